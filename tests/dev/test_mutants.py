"""Mutants: which changes are made, and what is left alone."""

import ast
from pathlib import Path

import pytest

import lemmata
from mutation.mutants import mutants

CHAPTERS = sorted((Path(lemmata.__file__).parent / "connectionism").glob("*.py"))


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
        ("off by one", "return x[: 1 << 20] + x[16_384:] + x[999]", ["999 -> 1000"]),
        ("off by one", "return 1 << i", ["1 -> 2"]),
        ("swapped arguments", "return x[: 10**7]", []),
        ("dropped term", "return x > 2.0**-40", []),
        ("sign", "return x > 2.0**-40", []),
        ("dropped term", "return '(' + a + ')'", []),
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


def test_defaults_are_mutated_but_none_and_sizes_are_not():
    found = mutants("f.py", b"def f(x=None, n: int = 3, units=64, flag: bool = False, *, rate=0.5):\n    return x\n")
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
    return "s" if number != 1 else _plural(number - 1)


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
