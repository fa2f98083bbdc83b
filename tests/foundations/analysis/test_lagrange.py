"""Lagrangians: more variables, dtypes, and starts that lead nowhere."""

import pytest
import torch

from lemmata.foundations.analysis.lagrange import Lagrangian


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_law_of_largest_entropy_is_uniform(dtype):
    entropy = Lagrangian(lambda p: -(p * p.log()).sum(), lambda p: p.sum(), level=1)
    p, multiplier, value = entropy.stationary_point(torch.tensor([0.2, 0.3, 0.5], dtype=dtype))
    torch.testing.assert_close(p, torch.full((3,), 1 / 3, dtype=dtype))
    torch.testing.assert_close(value, torch.log(torch.tensor(3, dtype=dtype)))
    torch.testing.assert_close(multiplier, value - 1)


def test_one_variable_is_fixed_by_the_constraint():
    point = Lagrangian(lambda x: x.sum() ** 2, lambda x: 2 * x.sum(), level=6.0).stationary_point(torch.tensor([1.0]))
    assert (point.x.item(), point.multiplier.item(), point.value.item()) == (3.0, 3.0, 9.0)


def test_eigenvectors_are_stationary_points_of_the_quadratic_form_on_the_sphere():
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    sphere = Lagrangian(lambda x: x @ matrix @ x, lambda x: x @ x, level=1)
    x, multiplier, _ = sphere.stationary_point(torch.tensor([0.5, 0.9], dtype=torch.float64))
    torch.testing.assert_close(matrix @ x, multiplier * x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Lagrangian(torch.sum, torch.sum, level=float("nan")), "level must be finite"),
        (lambda: Lagrangian(torch.sum, lambda x: x @ x, 1).stationary_point(torch.zeros(2)), "its gradient is 0 there"),
        (lambda: Lagrangian(torch.sum, torch.sum, 1).stationary_point(torch.ones(2)), "degenerate point"),
        (
            lambda: Lagrangian(lambda x: x.exp().sum(), lambda x: x[0], 0).stationary_point(torch.ones(2)),
            "degenerate point",
        ),
        (
            lambda: Lagrangian(lambda x: x.exp().sum(), lambda x: x[0], 0).stationary_point(torch.ones(2).double()),
            "no stationary point was reached in 100 steps",
        ),
        (lambda: Lagrangian(torch.sum, torch.sum, 1).stationary_point(torch.ones(2) / 0), "start must be finite"),
    ],
)
def test_what_cannot_be_solved_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_rounding_alone_makes_regular_is_degenerate():
    for seed in range(20):
        a, start = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        # Along the plane a'x = 1 the objective is constant: no point of it is more stationary than another.
        flat = Lagrangian(lambda x, a=a: (a @ x) ** 2, lambda x, a=a: a @ x, level=1)
        with pytest.raises(ValueError, match="degenerate point"):
            flat.stationary_point(start)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e6])
def test_unknowns_of_other_units_are_no_degenerate_ones(unit):
    problem = Lagrangian(lambda x: x[0] ** 2 + unit * (x[1] - 3) ** 2, lambda x: x[0], level=2.0)
    x, multiplier, value = problem.stationary_point(torch.ones(2))
    torch.testing.assert_close(torch.stack([*x, multiplier, value]), torch.tensor([2.0, 3.0, 4.0, 4.0]))


def test_the_gradient_is_that_of_objective_and_constraint_anywhere():
    circle = Lagrangian(lambda p: p.sum(), lambda p: p @ p, level=1.7)
    place, multiplier = torch.tensor([0.4, -1.1], dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
    slopes = torch.stack([*(1 - 0.3 * 2 * place), 1.7 - place @ place])
    torch.testing.assert_close(circle.gradient(place, multiplier), slopes)


def test_both_ends_of_a_line_on_a_circle():
    circle = Lagrangian(lambda p: p.sum(), lambda p: p @ p, level=1.7)
    start = torch.tensor([1.0, 0.6], dtype=torch.float64)
    high, low = circle.stationary_point(start), circle.stationary_point(-start)
    torch.testing.assert_close(high.x, torch.full((2,), 0.85, dtype=torch.float64).sqrt())
    torch.testing.assert_close(high.multiplier, torch.tensor(3.4, dtype=torch.float64).rsqrt())
    torch.testing.assert_close(low.x, -high.x)
    torch.testing.assert_close(circle.gradient(*high[:2]), torch.zeros(3).double(), rtol=0, atol=1e-14)


def test_the_largest_product_of_two_numbers_of_sum_one():
    product = Lagrangian(lambda p: p[0] * p[1], lambda p: p[0] + p[1] - 1)
    found = product.stationary_point(torch.tensor([1.0, 0.6], dtype=torch.float64))
    torch.testing.assert_close(torch.stack([*found.x, *found[1:]]), torch.tensor([0.5, 0.5, 0.5, 0.25]).double())
