"""Exact evidence: equality without tolerance, cases without exception, symbolic identity."""

import math
from fractions import Fraction

import numpy
import pytest
import sympy
import torch

from lemmata.judge import always, exactly, symbolic

x, y = sympy.symbols("x y", real=True)


class Opaque:
    """Equal by what it does not show."""

    def __init__(self, content):
        self.content = content

    def __eq__(self, other):
        return isinstance(other, Opaque) and other.content == self.content

    def __hash__(self):
        return hash(self.content)

    def __repr__(self):
        return "opaque"


@pytest.mark.parametrize(
    ("measured", "predicted"),
    [
        (10, 10),
        (2**200, 2**200),
        (Fraction(1, 3), Fraction(2, 6)),
        (Fraction(4, 2), 2),
        (0.5, Fraction(1, 2)),
        (5, 5.0),
        (True, 1),
        ("XOR", "XOR"),
        ((1, "a"), (1, "a")),
        ([1, 2], (1, 2)),
        ({1, 2}, {2, 1}),
        ((2**70, 1), (2**70, 1)),
        (torch.tensor(5), 5),
        (torch.tensor(True), True),
        (torch.tensor([1, 0]), [True, False]),
        (torch.tensor([0.5, 0.25]), [0.5, 0.25]),
        (torch.tensor([6, 8]), torch.tensor([6.0, 8.0])),
        (numpy.array([1, 2]), [1, 2]),
        (numpy.int64(3), 3),
        (torch.tensor([math.inf]), torch.tensor([math.inf])),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j])),
    ],
)
def test_equal_things_are_equal(measured, predicted):
    evidence = exactly(measured, predicted)
    assert evidence.holds
    assert evidence.by == "exact"
    assert not evidence.undecided


@pytest.mark.parametrize(
    ("measured", "predicted"),
    [
        (10, 11),
        (2**53 + 1, 2.0**53),
        (Fraction(1, 3), 1 / 3),
        ("a", "b"),
        ("1", 1),
        ((1, 2), (1, 2, 3)),
        (torch.tensor([1.0]), torch.tensor([1.0 + 2**-20])),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.tensor([1, 2]), "[1, 2]"),
        (torch.tensor([1, 2]), None),
        (torch.tensor([1 + 2j]), torch.tensor([1 - 2j])),
    ],
)
def test_the_last_bit_counts(measured, predicted):
    evidence = exactly(measured, predicted)
    assert not evidence.holds
    assert not evidence.undecided


def test_the_first_entry_that_differs_is_named():
    evidence = exactly(torch.arange(2000), torch.arange(2000).index_fill(0, torch.tensor([1500]), -1))
    assert (evidence.measured, evidence.predicted, evidence.detail) == (1500, -1, "1 of 2,000 values differ")


@pytest.mark.parametrize(
    ("measured", "predicted"),
    [
        (math.nan, 1.0),
        (1.0, math.nan),
        (torch.tensor([1.0, math.nan]), torch.ones(2)),
        (torch.tensor(math.nan), 1.0),
        ((0.5, math.nan), (0.5, math.nan)),  # the same object: Python's tuples call them equal
    ],
)
def test_nan_equals_nothing_and_decides_nothing(measured, predicted):
    evidence = exactly(measured, predicted)
    assert not evidence.holds
    assert evidence.undecided


def test_empty_tensors_are_no_evidence():
    with pytest.raises(ValueError, match="exactly was given empty tensors: draw at least one instance"):
        exactly(torch.zeros(0), torch.zeros(0))


def test_one_case_is_no_proof_and_nobody_can_promise_one():
    assert not exactly(3, 3).proof
    assert not always([True]).proof
    for judge, case in ((exactly, (3, 3)), (always, ([True],))):
        with pytest.raises(TypeError, match="exhaustive"):
            judge(*case, exhaustive=True)


def test_whole_numbers_and_floats_are_compared_without_rounding():
    """Torch itself would compare them in float32, in which these are equal."""
    for whole, real in ((2**24 + 1, 2.0**24), (2**53 + 1, 2.0**53), (2**63 - 1, 2.0**63), (1, 1.5)):
        assert not exactly(torch.tensor([0, whole]), torch.tensor([0.0, real], dtype=torch.float64)).holds
        assert not exactly(torch.tensor([0.0, real]), torch.tensor([0, whole])).holds
    assert not exactly(torch.tensor([0]), torch.tensor([math.inf])).holds
    assert exactly(torch.tensor([True, False]), torch.tensor([1.0, 0.0])).holds


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a" * 500 + "b", "a" * 500 + "c"),
        ("a" * 500, "a" * 499),
        (10**80, 10**80 + 1),
        (set(range(100)), set(range(101))),
        (Fraction(1, 3), "1/3"),
        (Opaque(1), Opaque(2)),
    ],
)
def test_different_things_are_shown_as_different_however_long(one, other):
    evidence = exactly(one, other)
    assert not evidence.holds
    assert evidence.measured != evidence.predicted
    assert len(evidence.measured) <= 60
    assert exactly(one, one).holds


def test_equal_things_of_different_text_are_shown_as_equal():
    one, other = {f"{n} times" for n in range(40)}, {f"{n} times" for n in reversed(range(40))}
    assert exactly(one, other).holds
    assert exactly(frozenset({1}), {1}).holds


def test_nan_against_any_thing_decides_nothing():
    assert exactly(math.nan, Fraction(1, 3)).undecided
    assert exactly("a" * 500, math.nan).undecided


def test_the_word_nan_is_a_word():
    assert exactly("nan", "nan").holds
    assert not exactly("nan", "inf").holds
    assert not exactly("inf", math.inf).holds


def test_long_values_are_shortened_for_the_page():
    assert len(exactly("a" * 500, "b").measured) == 60
    assert len(str(exactly(10**80, 1).measured)) == 60


# --- always ---


def test_one_exception_breaks_a_rule():
    evidence = always(torch.ones(1000, dtype=torch.bool).index_fill(0, torch.tensor([5]), False))
    assert not evidence.holds
    assert (evidence.measured, evidence.predicted, evidence.detail) == (999, 1000, "999 of 1,000 cases")


@pytest.mark.parametrize(
    "conditions",
    [[True, True], (n > 0 for n in (1, 2)), torch.ones(2, 3) > 0, [torch.tensor(True)], [numpy.bool_(True)], {True}],
)
def test_conditions_come_in_many_forms(conditions):
    assert always(conditions).holds


@pytest.mark.parametrize("conditions", [[], (), iter(()), torch.zeros(0, dtype=torch.bool)])
def test_no_case_proves_nothing(conditions):
    with pytest.raises(ValueError, match="always was given no case"):
        always(conditions)


@pytest.mark.parametrize("conditions", [[math.nan], [1, 0], [None], ["yes"], torch.ones(2), [torch.tensor(1.0)]])
def test_only_booleans_are_conditions(conditions):
    """bool(nan) is True: a rule that is never computed must not hold."""
    with pytest.raises(
        TypeError, match=r"(always takes booleans|a condition must be a boolean), got .*: compare first"
    ):
        always(conditions)


# --- symbolic ---


def test_an_identity_is_proved():
    evidence = symbolic(sympy.cos(2 * x), 2 * sympy.cos(x) ** 2 - 1)
    assert evidence.holds
    assert evidence.proof
    assert (evidence.measured, evidence.predicted) == (0, 0)
    assert evidence.detail == "both sides as symbols, 8 random points agree"


def test_a_false_identity_is_rejected_with_its_gap():
    evidence = symbolic((x + y) ** 2, x**2 + y**2)
    assert not evidence.holds
    assert not evidence.proof
    assert (evidence.measured, evidence.predicted) == ("2*x*y", 0)
    assert ", they differ by " in evidence.detail


def test_a_difference_far_below_double_precision_is_seen():
    assert not symbolic(x, x + sympy.Rational(1, 10**18)).holds


def test_constants_need_no_symbols():
    assert symbolic(sympy.sqrt(8), 2 * sympy.sqrt(2)).holds
    assert not symbolic(sympy.pi, sympy.Rational(22, 7)).holds


def test_points_respect_the_domain_of_a_symbol():
    positive, negative = sympy.symbols("p", nonnegative=True), sympy.symbols("q", nonpositive=True)
    assert symbolic(sympy.Abs(positive) - positive, 0).holds
    assert symbolic(sympy.Abs(negative) + negative, 0).holds
    n = sympy.symbols("n", integer=True, positive=True)
    assert symbolic(sympy.cos(sympy.pi * n), (-1) ** n).holds


def test_agreement_without_proof_is_an_error(monkeypatch):
    monkeypatch.setattr(sympy, "simplify", lambda expression: expression)
    with pytest.raises(ArithmeticError, match="agree at random points, but sympy cannot prove it"):
        symbolic(sympy.sin(x) ** 2 + sympy.cos(x) ** 2, 1)


def test_proof_without_agreement_is_an_error(monkeypatch):
    monkeypatch.setattr(sympy, "simplify", lambda expression: sympy.Integer(0))
    with pytest.raises(ArithmeticError, match="simplifies the difference to 0, yet at a random point"):
        symbolic(x, x + 1)


def test_what_is_undefined_is_an_error():
    with pytest.raises(ArithmeticError, match="not defined at a random point"):
        symbolic(sympy.nan * x, x)


@pytest.mark.parametrize("nothing", [(), [], {}, "", torch.zeros(0)])
def test_nothing_is_no_evidence(nothing):
    with pytest.raises(ValueError, match="draw at least one instance"):
        exactly(nothing, nothing)


def test_nothing_differs_from_something():
    assert not exactly([], [1]).holds
    assert not exactly(["a fault"], []).holds
