"""The mutation harness: a weak claim is found out, nothing is touched, and bad use is told."""

import importlib
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from mutation import mutate as harness
from mutation import server
from mutation import targets as selection
from mutation.mutants import mutants
from mutation.mutate import mutate
from mutation.report import MutationReport, Outcome

# --- Running ---

SYSTEM = '''
"""Sums and halvings."""


def triangle(n):
    """1 + 2 + ... + n."""
    if n < 0:
        raise ValueError(f"n must be >= 0, got {n}")
    total = 0
    for i in range(1, n + 1):
        total += i
    return total


def halvings(n):
    """How often n can be halved."""
    count = 0
    while n > 1:
        n //= 2
        count += 1
    return count


def unused(n):
    """Nobody runs this."""
    return n + 1
'''

CLAIMS = '''
"""What is known of them."""

from lemmata.judge import always, claim, exactly, lie
from tiny.system import halvings, triangle


@claim("tiny.triangle")
@lie("one more", shift=1)
def the_sum_has_a_closed_form(draw, shift=0):
    """Against n (n + 1) / 2."""
    return exactly([triangle(n) for n in range(9)], [n * (n + 1) // 2 + shift for n in range(9)])


@claim("tiny.halvings")
@lie("one more", shift=1)
def halving_counts_bits(draw, shift=0):
    """Against the length in bits."""
    return exactly([halvings(n) for n in range(1, 40)], [n.bit_length() - 1 + shift for n in range(1, 40)])


@claim("tiny.weak")
@lie("the sum falls", sign=-1)
def the_sum_grows(draw, sign=1):
    """Too weak: any growing function passes."""
    return always([sign * triangle(n + 1) > sign * triangle(n) for n in range(9)])


@claim("tiny.false")
@lie("another", value=5)
def false(draw, value=4):
    """Does not hold."""
    return exactly(triangle(2), value)
'''


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mutate") / "tiny"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "system.py").write_text(SYSTEM)
    for name, kept in {"strong": ("tiny.triangle", "tiny.halvings"), "weak": ("tiny.weak", "tiny.false")}.items():
        head, *claims = CLAIMS.split("\n\n\n")
        wanted = [text for text in claims if any(f'"{id}"' in text for id in kept)]
        (folder / f"{name}.py").write_text("\n\n\n".join([head, *wanted]))
    return folder


@pytest.fixture(scope="module")
def strong(tiny) -> tuple[MutationReport, set[str]]:
    modules = set(sys.modules)
    report = mutate(tiny / "system.py", [tiny / "strong.py"], jobs=2, patience=1.0)
    return report, set(sys.modules) - modules


def test_strong_claims_kill_every_mutant_that_they_run(strong):
    report, _ = strong
    assert report.claims == ["tiny.triangle", "tiny.halvings"]
    assert [outcome.mutant.id for outcome in report.survivors if "no claim and no test" not in outcome.how] == []
    assert {(outcome.kind, outcome.by) for outcome in report.killed} == {
        ("claim", "tiny.triangle"),
        ("claim", "tiny.halvings"),
    }


def test_what_nobody_runs_survives_and_says_so(strong):
    report, _ = strong
    assert {outcome.mutant.line for outcome in report.survivors} == {SYSTEM.splitlines().index("    return n + 1") + 1}


def test_a_mutant_that_hangs_is_killed(strong):
    report, _ = strong
    hanging = {outcome.mutant.before: outcome.how for outcome in report.killed if outcome.mutant.after == "pass"}
    assert hanging["n //= 2"] == "it hangs"
    assert hanging["total += i"].startswith("refuted")


def test_outcomes_stand_in_the_order_of_the_source(strong, tiny):
    report, _ = strong
    assert [outcome.mutant for outcome in report.outcomes] == mutants(tiny / "system.py")


def test_neither_the_parent_nor_the_file_is_touched(strong, tiny, monkeypatch):
    _, imported = strong
    assert not any(name.partition(".")[0] == "tiny" for name in imported)
    assert (tiny / "system.py").read_text() == SYSTEM
    monkeypatch.syspath_prepend(tiny.parent)
    assert importlib.import_module("tiny.system").triangle(4) == 10  # no mutant's bytecode was left behind


def test_a_weak_claim_leaves_known_survivors_and_the_command_says_so(tiny, capsys):
    words = [str(tiny / "system.py"), "--claims", str(tiny / "weak.py"), "--json", "--jobs", "2"]
    assert harness.main(words) == 1
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert told["claims"] == ["tiny.weak"]
    assert told["unused"]["tiny.false"].startswith("does not hold on the unbroken code (refuted")
    survivors = {each["id"].partition(" ")[2] for each in told["survivors"] if not each["how"]}
    assert survivors == {"off by one: 0 -> 1", "off by one: 1 -> 2"}
    assert told["killed_by_tests"] == 0
    assert told["score"] == told["killed_by_claims"] / told["mutants"]


def test_a_module_comes_from_the_snapshot_or_the_mutant_and_never_from_its_file(tmp_path, monkeypatch):
    path = tmp_path / "replaced" / "__init__.py"
    path.parent.mkdir()
    path.write_text("answer = 3\n")  # edited since the snapshot was taken
    path.with_name("data.txt").write_text("read from where it is")
    snapshot = server.Snapshot({"replaced": (str(path), "answer = 1\n")})
    monkeypatch.setattr(sys, "meta_path", [snapshot, *sys.meta_path])
    for value in (1, 2):
        monkeypatch.delitem(sys.modules, "replaced", raising=False)
        assert importlib.import_module("replaced").answer == value
        assert files("replaced").joinpath("data.txt").read_text() == "read from where it is"
        snapshot.replace("replaced", str(path), "answer = 2\n")
    del sys.modules["replaced"]
    assert sorted(file.name for file in path.parent.iterdir()) == ["__init__.py", "data.txt"]


# --- The command ---


def test_chapters_systems_and_files_are_found_and_helpers_get_every_claim_that_imports_them():
    (by_system,) = selection.select(["hopfield"], False)
    (by_file,) = selection.select([str(by_system.path)], False)
    assert by_system.path == by_file.path
    (shared,) = selection.select(["parameters"], True)
    assert not selection._promised(shared.path)
    assert "gaussian.entropy" in {claim.id for claim in shared.claims}
    chapter = selection.select(["connectionism"], False)
    assert by_system.path in [target.path for target in chapter]
    assert not any(target.path.stem in ("__init__", "recipes") for target in chapter)


def test_a_sample_is_the_same_for_the_same_seed_and_of_all_files_together():
    kept = {}
    for seed in (0, 0, 1):
        targets = selection.select(["hopfield", "cover"], False)
        found = sum(len(target.mutants) for target in targets)
        selection.sampled(targets, 0.1, seed)
        chosen = [mutant for target in targets for mutant in target.mutants]
        assert len(chosen) == sum(target.report.mutants for target in targets) == round(0.1 * found)
        assert sum(target.report.found for target in targets) == found
        assert kept.setdefault(seed, chosen) == chosen
    assert kept[0] != kept[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hopfeld"], "there is no chapter, system or file 'hopfeld': did you mean hopfield"),
        (["zzzz"], "chapters are foundations"),
        (["missing.py", "--claims", __file__], "has no claims: mark one with @claim"),
        (["missing.py", "--claims", "absent.py"], "there is no file absent.py"),
        (["hopfield", "--jobs", "0"], "jobs must be >= 1, got 0"),
        (["hopfield", "--sample", "0"], "sample must be a fraction in (0, 1], got 0"),
        (["hopfield", "--changed", "no-such-commit"], "git diff failed: fatal: bad revision 'no-such-commit'"),
        (["missing.py", "--tests", "absent.py"], "there is no file"),
    ],
)
def test_bad_use_is_told_in_a_line(words, message, capsys):
    assert harness.main(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_file_that_is_not_python_is_told_with_its_line(tmp_path, capsys):
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ny = (\n")
    assert harness.main([str(path)]) == 2
    assert "broken.py:2: not valid Python" in capsys.readouterr().err


def test_ctrl_c_prints_what_there_is(monkeypatch, capsys):
    def interrupted(targets, *_):
        targets[0].report.outcomes.append(Outcome(targets[0].mutants[0], "claim", "some.claim", "refuted"))
        raise KeyboardInterrupt

    monkeypatch.setattr(harness, "run", interrupted)
    assert harness.main(["hopfield"]) == 130
    told = capsys.readouterr()
    assert "interrupted" in told.err
    assert "mutants, 1 killed by claims, 0 by tests, 0 survived" in told.out
    assert "not tried, score 1.000" in told.out
