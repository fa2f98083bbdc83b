"""The instruments of matrix calculus's claims: differences, layouts, and agreement at every length."""

import pytest
import torch

from lemmata.foundations.matrix_calculus.claims.derivatives import (
    at_every_length,
    central_differences,
    columns,
    rows,
    wave,
)
from lemmata.judge import exactly
from lemmata.judge.draw import Draw

DRAW = Draw("matcalc.layout")


def test_differences_of_a_quadratic_have_no_error_but_rounding():
    A, x = DRAW.normal(4, 4), DRAW.normal(4)
    # Values of some 10 are rounded at 1e-15, over twice the step.
    torch.testing.assert_close(central_differences(lambda x: x @ A @ x, x), (A + A.mT) @ x, rtol=0, atol=1e-8)
    torch.testing.assert_close(central_differences(lambda x: x @ A @ x, x, 0.5), (A + A.mT) @ x, rtol=0, atol=1e-13)


def test_differences_err_by_the_square_of_their_step():
    x = DRAW.uniform(5, low=0.5, high=1.0)
    errors = [(central_differences(torch.exp, x, step).diag() / x.exp() - 1).mean() for step in (0.1, 0.05)]
    assert errors[0] == pytest.approx(0.1**2 / 6, rel=1e-2)
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-2)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_the_axes_of_the_value_come_before_those_of_the_variable(shape):
    w = DRAW.normal(*shape)
    found = central_differences(lambda w: torch.stack([w.sum(), (w * w).sum()]), w)
    torch.testing.assert_close(found, torch.stack([torch.ones_like(w), 2 * w]), rtol=0, atol=1e-8)


def test_the_derivative_of_one_number_is_a_row_or_a_column():
    x = DRAW.normal(3)
    assert rows(torch.sum, x).tolist() == [[1.0, 1.0, 1.0]]
    assert columns(torch.sum, x).tolist() == [[1.0], [1.0], [1.0]]
    assert rows(lambda x: x[:2], x).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_wave_is_nowhere_zero_and_has_the_shape_asked_for(outputs):
    values = torch.stack([wave(DRAW, 3, *outputs)(DRAW.normal(3)) for _ in range(100)])
    assert values.shape == (100, *outputs)
    assert values.min() >= 1


def test_lengths_are_equal_first_and_then_all_different():
    met = []

    def sides(n, m, k):
        met.append((n, m, k))
        yield torch.zeros(1), torch.zeros(1)

    assert at_every_length(DRAW, sides).holds
    assert met[:4] == [(1, 1, 1), (2, 2, 2), (3, 3, 3), (5, 5, 5)]
    assert len(met) == 8
    assert all(len(set(lengths)) == 3 for lengths in met[4:])


def test_a_false_formula_falls_before_its_shapes_do():
    def transposed(n, m):
        A, x = DRAW.normal(m, n), DRAW.normal(m)
        yield A @ x, A.mT @ x

    assert not at_every_length(DRAW, transposed).holds


def test_what_is_true_of_equal_lengths_alone_is_rejected():
    def sides(n, m):
        yield torch.full((n,), float(n)), torch.full((n,), float(m))

    assert not at_every_length(DRAW, sides).holds


def test_every_pair_counts_and_the_judge_may_be_another():
    def sides(n):
        yield torch.ones(n), torch.ones(n)
        yield torch.full((n,), 1 + 1e-6), torch.ones(n)

    assert not at_every_length(DRAW, sides, judge=exactly).holds
    assert at_every_length(DRAW, sides).holds  # in float32 that is some 8 units of rounding
