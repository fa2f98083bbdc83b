"""Convexity of functions and sets: witnesses, rounding, bad input."""

import math

import pytest
import torch

from lemmata.foundations import (
    QuadraticFunction,
    chord_gap,
    curvature_between,
    difference_quotient,
    gradient_monotony,
    is_convex,
    is_convex_set,
    is_subgradient,
    jensen_gap,
    quadratic_bound_gap,
    tangent_gap,
)

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


def test_a_concave_kink_is_found_though_its_hessian_vanishes():
    assert not is_convex(lambda x: -x.abs().sum(), (-1.0, 1.0)).value
    assert is_convex(lambda x: x.abs().sum(), (-1.0, 1.0)).value


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda x: (3 * x).sum(), -1.0, 1.0),
        (lambda x: x.square().sum(), 1.0, 1.001),
        (lambda x: torch.logsumexp(x, 0), -1.0, 1.0),
        (lambda x: torch.logsumexp(x, 0), 1.0, 1.01),
        (lambda x: torch.exp(x).sum(), -1.0, 1.0),
    ],
)
def test_rounding_in_float32_refutes_neither_convexity_nor_a_gradient(f, low, high):
    box = (torch.full((3,), low), torch.full((3,), high))
    centre = (box[0] + box[1]) / 2
    for seed in range(5):
        assert is_convex(f, box, points=256, generator=torch.Generator().manual_seed(seed)).value
        assert is_subgradient(f, centre, torch.func.grad(f)(centre), box, points=256).value
    if low < 0:  # in the small boxes there is nothing to see
        assert not is_convex(lambda x: f(x) - 10 * x.square().sum(), box, points=256).value


def test_quadratics_with_a_negative_direction_are_refuted_in_any_box():
    saddle = QuadraticFunction(torch.diag(torch.tensor([1.0, -1e-3], dtype=DOUBLE)))
    box = (torch.full((2,), 5.0, dtype=DOUBLE), torch.full((2,), 6.0, dtype=DOUBLE))
    found = is_convex(saddle, box, points=8)
    assert not found.value
    assert all(bool((corner >= 5).all() and (corner <= 6).all()) for corner in found.witness[:2])


def test_gaps_check_their_weights(unchecked):
    x = torch.zeros(2, 1)
    with pytest.raises(ValueError, match=r"weight must lie between 0 and 1, got 0\.5 to 1\.5"):
        chord_gap(squares, x, x, torch.tensor([0.5, 1.5]))
    with pytest.raises(ValueError, match="weights must be >= 0 and sum to 1"):
        jensen_gap(squares, x, torch.tensor([0.5, 0.6]))
    with pytest.raises(ValueError, match="weights must be >= 0 and sum to 1"):
        jensen_gap(squares, x, torch.tensor([-0.5, 1.5]))
    with pytest.raises(ValueError, match="curvature must be finite"):
        quadratic_bound_gap(squares, x, x, math.inf)
    for quotient in (curvature_between, difference_quotient):
        with pytest.raises(ValueError, match="x and y must differ"):
            quotient(squares, x, x)


def test_sets_are_known_by_their_members():
    with pytest.raises(ValueError, match="contains must return one boolean for each row"):
        is_convex_set(lambda x: x, (0.0, 1.0))
    with pytest.raises(ValueError, match="region must hold points of the set, found 0 among 4,096"):
        is_convex_set(lambda x: torch.zeros(len(x), dtype=torch.bool), (0.0, 1.0))


def unit_box(n):
    return -torch.ones(n, dtype=DOUBLE), torch.ones(n, dtype=DOUBLE)


def falling(x):
    return -torch.exp(x).sum()


def steep_beside_shallow(x):
    """Convex but for a kink among the negative numbers, where the values are small."""
    return (1e12 * torch.relu(x) - 1e-6 * torch.relu(-x - 0.5)).sum()


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (lambda x: torch.sin(x).sum(), -3.0, 3.0),
        (lambda x: -squares(x), -1.0, 1.0),
        (falling, 0.0, 5.0),
        (steep_beside_shallow, -1.0, 1.0),
    ],
)
def test_a_refuted_function_lies_above_its_witness(f, low, high):
    found = is_convex(f, (low, high))
    assert not found.value
    assert found.certified
    assert found.seen < 0
    torch.testing.assert_close(torch.tensor(found.seen, dtype=DOUBLE), chord_gap(f, *found.witness))


def test_the_lowest_chord_need_not_be_seen_at_its_middle():
    assert abs(float(is_convex(falling, (0.0, 5.0)).witness[2]) - 0.5) > 0.2


@pytest.mark.parametrize(
    ("f", "certified", "reason"),
    [
        (lambda x: squares(x) + 0.1 * torch.sin(x).sum(), True, "least curvature"),
        (lambda x: squares(x) + x.abs().sum(), False, "no chord"),
    ],
)
def test_a_yes_says_what_it_rests_on(f, certified, reason):
    found = is_convex(f, unit_box(2), points=64)
    assert found.value
    assert found.certified is certified
    assert reason in found.reason
    torch.testing.assert_close(torch.tensor(found.seen, dtype=DOUBLE), chord_gap(f, *found.witness))


@pytest.mark.parametrize(("direction", "place"), [([3.0], 1.0), ([0.6, 0.8], 0.05)])
def test_a_dent_a_hundredth_wide_is_found_along_the_least_curvature(direction, place):
    across = torch.tensor(direction, dtype=DOUBLE)

    def dented(x):  # a bowl of curvature 2 with a ridge of curvature -4 across a line
        return squares(x) + 4e-4 * torch.exp(-(((x @ across - place) / (0.01 * across.norm())) ** 2) / 2)

    found = is_convex(dented, unit_box(len(direction)), points=512)
    assert (found.value, found.certified) == (False, True)


@pytest.mark.parametrize("size", [1e9, 0.0])
def test_what_rounding_puts_above_a_chord_is_no_answer(size):
    found = is_convex(lambda x: size * torch.relu(x + 2).sum(), (-1.0, 1.0), points=64)
    assert (found.value, found.certified) == (True, False)


@pytest.mark.parametrize(("eigenvalues", "certified"), [((1.0, 1.0), True), ((0.0, 0.0), True), ((-1e-12, 1.0), False)])
def test_a_quadratic_is_certified_by_its_eigenvalues(eigenvalues, certified):
    f = QuadraticFunction(torch.diag(torch.tensor(eigenvalues, dtype=DOUBLE)), constant=1.0)
    found = is_convex(f, unit_box(2))
    assert (found.value, found.certified) == (True, certified)


def test_a_set_is_never_certified_convex():
    assert not is_convex_set(lambda x: x.norm(dim=1) <= 1, unit_box(2)).certified
    assert is_convex_set(lambda x: x.norm(dim=1) >= 0.5, unit_box(2)).certified


def test_gaps_keep_batch_axes():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 3, 5, 4, generator=generator, dtype=DOUBLE)
    distance = (x - y).square().sum(-1)
    torch.testing.assert_close(tangent_gap(squares, x, y), distance)
    torch.testing.assert_close(gradient_monotony(squares, x, y), 2 * distance)
    torch.testing.assert_close(chord_gap(squares, x, y, torch.full((3, 5), 0.5, dtype=DOUBLE)), distance / 4)
    weights = torch.softmax(torch.randn(3, 5, generator=generator, dtype=DOUBLE), -1)
    mean = (weights[..., None] * x).sum(-2, keepdim=True)
    torch.testing.assert_close(jensen_gap(squares, x, weights), (weights * (x - mean).square().sum(-1)).sum(-1))
    torch.testing.assert_close(jensen_gap(squares, x[0], weights[0]), jensen_gap(squares, x, weights)[0])
