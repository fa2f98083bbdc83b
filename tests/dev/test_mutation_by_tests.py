"""Mutation with tests: who kills what, what cannot be used, the lines that changed, and the end of the time."""

import importlib.util
import subprocess
import threading
from pathlib import Path

import pytest

from mutation import hunt as hunting
from mutation import mutate as harness
from mutation.mutants import mutants
from mutation.mutate import mutate
from mutation.report import MutationReport, Outcome, counts, spread
from mutation.targets import Target, changed_lines, mirrored_tests, select
from mutation.traced_lines import tracing

SYSTEM = '''
"""One function has a claim, two have tests, one has nobody."""


def claimed(n):
    """1 + 2 + ... + n.

    >>> claimed(1)
    1
    """
    return n * (n + 1) // 2


def doubled(n):
    """Twice n."""
    return n + n


def halved(n):
    """Down to one."""
    while n > 1:
        n //= 2
    return n


def forgotten(n):
    """Run by a test that looks away."""
    return n - 7
'''

CLAIMS = '''
"""What is known of the first."""

from lemmata.judge import claim, exactly, lie
from tiny.system import claimed


@claim("tiny.claimed")
@lie("one more", shift=1)
def sums(draw, shift=0):
    """Against the sum."""
    return exactly([claimed(n) for n in range(9)], [sum(range(n + 1)) + shift for n in range(9)])
'''

TESTS = '''
"""Tests of the others."""

import pytest

from tiny.system import doubled, forgotten, halved


@pytest.fixture(scope="module")
def made():
    return doubled(5)


def test_twice(made):
    assert made == 10


def test_no_difference(made):
    assert made - doubled(4) == 2


def test_halves():
    assert halved(3) == 1


def test_looks_away():
    forgotten(3)


def test_never_passes():
    assert doubled(2) == 5


@pytest.mark.skip(reason="not here")
def test_elsewhere():
    assert False
'''


@pytest.fixture
def tiny(tmp_path) -> Path:
    """A package with its claims beside it and its tests in the mirrored folder."""
    for name in ("tiny", "tests"):
        (tmp_path / name).mkdir()
    (tmp_path / "tiny" / "__init__.py").write_text("")
    (tmp_path / "tiny" / "system.py").write_text(SYSTEM)
    (tmp_path / "tiny" / "claims.py").write_text(CLAIMS)
    (tmp_path / "tests" / "test_system.py").write_text(TESTS)
    (tmp_path / "tests" / "test_cuda.py").write_text("from tiny.system import doubled\n")
    (tmp_path / "tests" / "test_unrelated.py").write_text("import math\n")
    return tmp_path


def test_claims_kill_first_then_tests_and_what_nobody_looks_at_survives(tiny):
    report = mutate(tiny / "tiny/system.py", [tiny / "tiny/claims.py"], jobs=1, patience=1.0)
    of_file = report.to_json()
    assert of_file["claims"] == ["tiny.claimed"]
    assert of_file["tests"] == ["tests/test_system.py"]
    (unused,) = of_file["unused"].items()
    assert unused[0] == "tests/test_system.py::test_never_passes"
    assert unused[1].startswith("does not pass on the unbroken code (test_system.py:")
    by_row = {
        row: {o.kind for o in report.outcomes if o.mutant.row == row} for row in map(str.strip, SYSTEM.splitlines())
    }
    assert by_row["return n * (n + 1) // 2"] == {"claim"}
    assert by_row["return n + n"] == {"test"}  # one of them takes what a fixture of a wider scope made
    assert by_row["return n - 7"] == {""}
    assert {each.how for each in report.survivors if each.mutant.row == "return n - 7"} == {""}  # run, but not noticed
    hanging = {each.by for each in report.outcomes if each.how == "it hangs"}
    assert hanging == {"tests/test_system.py::test_halves"}
    kinds = [each.kind for each in report.outcomes]
    assert (of_file["killed_by_claims"], of_file["killed_by_tests"]) == (kinds.count("claim"), kinds.count("test"))
    assert of_file["survived"] + kinds.count("claim") + kinds.count("test") == of_file["mutants"] == of_file["tried"]
    assert report.score == (kinds.count("claim") + kinds.count("test")) / len(kinds)


def test_the_tests_of_a_file_are_its_mirror_image_and_those_that_import_it(tiny):
    system, tests = tiny / "tiny/system.py", tiny / "tests"
    assert mirrored_tests(system) == [tests / "test_system.py", system]
    (tests / "test_beside.py").write_text("from tiny import system\n")
    assert mirrored_tests(system) == [tests / "test_system.py", tests / "test_beside.py", system]
    (tiny / "tiny/other.py").write_text("def g(x):\n    return x + 1\n")
    # Nobody imports it: whoever imports its package may reach it.
    assert mirrored_tests(tiny / "tiny/other.py") == [tests / "test_beside.py", tests / "test_system.py"]


def test_ours_are_found_through_the_names_that_a_chapter_gives():
    (target,) = select(["lru"], False)
    names = [test.name for test in target.tests]
    assert names[0] == "test_lru.py"
    assert "test_cuda.py" not in names
    (target,) = select(["scan_chunked"], False)
    assert any(test.name == "test_scan.py" for test in target.tests)


def test_what_a_fixture_keeps_is_filled_by_the_unbroken_code_and_not_by_a_mutant(tiny):
    kept = """
def test_doubled(pytestconfig):
    from tiny.system import doubled
    known = pytestconfig.cache.get("tiny", None)
    pytestconfig.cache.set("tiny", known or doubled(5))
    assert doubled(5) == pytestconfig.cache.get("tiny", None)
"""
    (tiny / "tests/test_system.py").write_text(kept)
    report = mutate(tiny / "tiny/system.py", jobs=1)
    assert {each.kind for each in report.outcomes if each.mutant.row == "return n + n"} == {"test"}


def test_when_the_time_is_up_the_rest_is_not_tried(tiny):
    report = mutate(tiny / "tiny/system.py", [tiny / "tiny/claims.py"], jobs=1, seconds=0.0)
    assert report.outcomes == []
    assert report.not_tried == report.mutants > 0
    assert "not tried" in counts([report])
    assert "score" not in counts([report])


class Losing:
    """Workers that are all killed."""

    def answers(self, tasks, until):
        while tasks:
            yield tasks.popleft(), {"lost": "the worker was killed", "how": "the worker was killed"}


def test_a_mutant_whose_process_is_lost_was_not_tried(tiny):
    target = Target.of(tiny / "tiny/system.py", [])
    hunt = hunting._Hunt([target], hunting.Settings(), lambda *_: None, str(tiny))
    hunt.tests = {test: hunting._Tests({f"{test.name}::test": 0.1}) for test in target.tests}  # lines not known
    hunt.kill(Losing(), float("inf"))
    assert target.report.outcomes == []
    assert target.report.not_tried == len(target.mutants) == len(target.report.unused)


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def history(tiny) -> Path:
    git(tiny, "init", "-b", "main")
    git(tiny, "add", ".")
    git(tiny, "commit", "-m", "first")
    git(tiny, "switch", "-c", "work")
    return tiny


def test_changed_takes_lines_since_the_branch_and_what_is_not_committed(history, capsys):
    system = history / "tiny/system.py"
    system.write_text(SYSTEM.replace("n + n", "n * 2"))
    git(history, "commit", "-am", "second")
    system.write_text(system.read_text().replace("n - 7", "n - 8"))
    (history / "tiny/new.py").write_text("X = 1\n")
    rows = system.read_text().splitlines()
    wanted = [rows.index("    return n * 2") + 1, rows.index("    return n - 8") + 1]
    assert changed_lines(history, "") == {
        system: [(line, line) for line in wanted],
        history / "tiny/new.py": [(1, 1 << 30)],
    }
    assert changed_lines(history, "HEAD")[system] == [(wanted[1], wanted[1])]
    targets = harness._targets(harness._arguments([str(system), "--changed"]))
    assert {mutant.line for mutant in targets[0].mutants} == set(wanted)
    assert targets[0].report.found == len(targets[0].mutants) < len(mutants(system))
    git(history, "commit", "-am", "third")
    assert harness.main([str(system), "--changed", "HEAD"]) == 0
    assert "nothing to mutate" in capsys.readouterr().out


def test_without_a_main_branch_a_commit_must_be_named(history):
    git(history, "branch", "-m", "main", "trunk")
    with pytest.raises(ValueError, match="name a commit, --changed REV"):
        changed_lines(history, "")


def test_the_standard_error_is_that_of_a_share_and_gone_when_all_were_tried():
    (mutant, *_) = mutants("f.py", b"def f(a, b):\n    return a + b\n")
    tried = [Outcome(mutant, "test", "t")] * 80 + [Outcome(mutant)] * 20
    assert spread([MutationReport(Path("f.py"), 100, 100, outcomes=tried)]) == 0
    assert spread([MutationReport(Path("f.py"), 10**9, 100, outcomes=tried)]) == pytest.approx(0.04, rel=0.02)


def test_lines_are_seen_in_every_thread_and_anew_after_each_look(tmp_path):
    path = tmp_path / "watched.py"
    path.write_text("def f(n):\n    if n > 3:\n        return 0\n    return sum(i for i in range(n))\n")
    spec = importlib.util.spec_from_file_location("watched", path)
    module = importlib.util.module_from_spec(spec)
    with tracing([str(path)]) as lines:
        spec.loader.exec_module(module)
        assert lines.take() == {str(path): [1]}
        for _ in range(2):
            module.f(2)
            assert lines.take() == {str(path): [2, 4]}
        thread = threading.Thread(target=module.f, args=(5,))
        thread.start()
        thread.join()
        assert lines.take() == {str(path): [2, 3]}
    module.f(2)
    assert lines.take() == {}
