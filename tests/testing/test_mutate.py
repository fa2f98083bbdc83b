"""The mutation harness: which changes it makes, what it leaves alone, and that a weak claim is found out."""

import ast
import importlib
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from lemmata.testing import mutant_server
from lemmata.testing import mutate as harness
from lemmata.testing import mutation_targets as selection
from lemmata.testing.mutate import mutate
from lemmata.testing.mutation_report import MutationReport, Outcome
from lemmata.testing.mutations import mutants

CHAPTERS = sorted(Path(harness.__file__).parents[1].glob("connectionism/*.py"))


def changes(code: str, operator: str = "") -> list[str]:
    """The mutants of a function with this body, as `before -> after`."""
    source = "def f(a, b, c, x, i):\n" + "".join(f"    {row}\n" for row in code.splitlines())
    found = mutants("f.py", source.encode())
    return [f"{m.before} -> {m.after}" for m in found if m.operator == operator or not operator]


# --- Operators ---


@pytest.mark.parametrize(
    ("operator", "code", "expected"),
    [
        ("sign", "return a + b", ["a + b -> a - b"]),
        ("sign", "return a - b", ["a - b -> a + b"]),
        ("sign", "return -x", ["-x -> x"]),
        ("sign", "return ~x", ["~x -> x"]),
        ("sign", "return not x", ["not x -> x"]),
        ("sign", "return x[-1]", ["-1 -> 1"]),
        ("sign", "return x.sum(dim=-1) + x.shape[-1]", ["x.sum(dim=-1) + x.shape[-1] -> x.sum(dim=-1) - x.shape[-1]"]),
        ("sign", "a += b\nreturn a", ["a += b -> a -= b"]),
        ("off by one", "return x[3]", ["3 -> 4"]),
        ("off by one", "return x[i:]", ["i -> i + 1"]),
        ("off by one", "return x[: i + 1]", ["1 -> 2"]),
        ("off by one", "return x[: len(x)]", []),
        ("off by one", "return [a for a in range(b)]", ["b -> b + 1"]),
        ("off by one", "return a <= b", ["a <= b -> a < b"]),
        ("off by one", "return a > b", ["a > b -> a >= b"]),
        ("dropped term", "return a + b", ["a + b -> a", "a + b -> b"]),
        ("dropped term", "return a * b", ["a * b -> a", "a * b -> b"]),
        ("dropped term", "return a / b", ["a / b -> a"]),
        ("dropped term", "return a**b", ["a**b -> a"]),
        ("dropped term", "return a & b", ["a & b -> b", "a & b -> a"]),
        ("dropped term", "return a and b and c", ["a and b and c -> " + t for t in ("b and c", "a and c", "a and b")]),
        ("dropped term", "a += b\nreturn a", ["a += b -> pass"]),
        ("dropped term", "x.append(a)\nreturn x", ["x.append(a) -> pass"]),
        ("swapped arguments", "return g(a, b)", ["g(a, b) -> g(b, a)"]),
        ("swapped arguments", "return g(a, b, c)", ["g(a, b, c) -> g(b, a, c)", "g(a, b, c) -> g(a, c, b)"]),
        ("swapped arguments", "return a - b", ["a - b -> b - a"]),
        ("swapped arguments", "return a / b", ["a / b -> b / a"]),
        ("changed constant", "return 0.5 * x", ["0.5 -> 1.0"]),
        ("changed constant", "return x + 0.0", ["0.0 -> 1.0"]),
        ("changed constant", "return x.sum(keepdim=True)", ["True -> False"]),
        ("changed constant", "return g(a, foreach=True)", []),
        ("flipped condition", "return a == b", ["a == b -> a != b"]),
        ("flipped condition", "return a is not None", ["a is not None -> a is None"]),
        ("flipped condition", "return a < b < c", ["a < b < c -> a > b < c", "a < b < c -> a < b > c"]),
        ("flipped condition", "return a or b", ["a or b -> a and b"]),
        ("flipped condition", "return a if x else b", ["x -> not x"]),
        ("flipped condition", "return [a for a in b if a]", ["a -> not a"]),
        ("other function", "return max(a, b)", ["max -> min"]),
        ("other function", "return x.sum()", ["x.sum -> x.mean"]),
        ("other function", "return x.any()", ["x.any -> x.all"]),
        ("other function", "return x.clamp(min=a)", ["min=a -> max=a"]),
    ],
)
def test_operator(operator, code, expected):
    assert changes(code, operator) == expected


@pytest.mark.parametrize(
    "code", ["abs(a - b)", "g(a, a)", "max(a, b)", "g('name', a)", "isinstance(a, b)", "promote_types(a, b)"]
)
def test_swaps_that_change_nothing_or_are_nonsense_are_not_made(code):
    assert changes(f"return {code}", "swapped arguments") == []


def test_the_factors_of_a_product_are_not_swapped_but_the_term_is():
    assert changes("return addcmul(a, b, c)", "swapped arguments") == ["addcmul(a, b, c) -> addcmul(b, a, c)"]


def test_defaults_are_mutated_and_none_is_not():
    found = mutants("f.py", b"def f(x=None, n: int = 3, flag: bool = False, *, rate=0.5):\n    return x\n")
    assert [f"{m.before} -> {m.after}" for m in found] == ["3 -> 4", "False -> True", "0.5 -> 1.0"]


def test_a_tolerance_is_not_doubled():
    assert changes("return x < 1e-9", "changed constant") == []


LEFT_ALONE = '''
"""A docstring with 3 + 4."""

import math
from somewhere import validate
from somewhere.validate import count

__all__ = ["f" + "g"]


@decorated(3, flag=True)
class System(Base, rate=2):
    field: Array[3] = None

    def __init__(self, n):
        super().__init__()
        validate.positive("n", n)
        count("n", n, least=2, most=2 + 3)
        self._check("n", n)
        for name in n:
            if name < 3:
                raise ValueError(f"name must be >= 3, got {name - 1}")

    def forward(self, x: "Float[Tensor, 3]") -> "Tensor[2 + 2]":
        """Adds 1 + 1."""
        assert len(x) > 1
        wanted = 2 * len(x)
        if x.ndim != 2 or x.shape[-1] < 1:
            found = x.ndim + 1
            raise ValueError(f"x must have {wanted} entries, got {_plural(found, 1)}")
        return x

    def extra_repr(self):
        return f"n={self.n + 1}" + str(self.n - 1)

    def __repr__(self):
        return str(1 + 1)

    def _load_from_state_dict(self, state, prefix):
        self.n = state[prefix + "n"] + 1

    def _check(self, name, value):
        if math.isfinite(value + 0.0):
            return value
        if value < 1:
            raise ValueError(f"{name} must be >= 1, got {value}")
        return value


def _plural(number, shown=4):
    return "s" if number != 1 else ""


if __name__ == "__main__":
    print(1 + 2)
'''


def test_guards_messages_annotations_and_appearance_are_left_alone():
    assert [m.id for m in mutants("system.py", LEFT_ALONE.encode())] == []


def test_work_beside_a_guard_is_mutated():
    found = changes(
        "if a < 0:\n    raise ValueError('a')\nelif a == b:\n    return c\nreturn validate.count('x', a + b, least=3)"
    )
    assert "a == b -> a != b" in found
    assert "a + b -> a - b" in found
    assert not any("0 ->" in change or "3 ->" in change for change in found)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_mutant_of_a_system_is_valid_unique_ordered_and_keeps_its_lines(path):
    source = path.read_bytes()
    found = mutants(path)
    assert found == mutants(path)
    assert len({mutant.id for mutant in found}) == len(found)
    assert [m.start for m in found] == sorted(m.start for m in found)
    for mutant in found:
        changed = mutant.of(source)
        assert changed != source
        assert ast.parse(changed), mutant.id
        assert changed.count(b"\n") == source.count(b"\n"), mutant.id


def test_a_statement_over_several_lines_keeps_the_lines_below():
    source = "def f(a, b):\n    x = g(\n        a\n        + b,\n    )\n    return x - 1\n"
    (mutant,) = [m for m in mutants("f.py", source.encode()) if m.after == "a - b"]
    assert mutant.of(source.encode()).decode().splitlines()[5] == "    return x - 1"
    assert mutant.lines == (2, 5)


def test_columns_count_characters_and_text_beyond_ascii_is_kept():
    source = "def f(a):\n    return {'é': a + 1}\n".encode()
    found = mutants("f.py", source)
    assert found[0].column == 18
    assert all("é".encode() in mutant.of(source) for mutant in found)


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
    snapshot = mutant_server.Snapshot({"replaced": (str(path), "answer = 1\n")})
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
