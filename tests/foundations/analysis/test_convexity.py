"""Convexity of functions: witnesses, rounding, proofs."""

import pytest
import torch

from lemmata.foundations import QuadraticFunction, is_convex, is_subgradient
from lemmata.foundations.analysis.claims.functions import chord_gap

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
    assert found.certified is (f is not steep_beside_shallow)  # intervals know no kinks
    assert found.certified or "seen" in found.reason
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


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("eigenvalues", [(1.0, 1.0), (0.0, 0.0), (0.0, 2.0), (-(2.0**-20), 1.0)])
def test_a_quadratic_is_certified_by_its_eigenvalues(eigenvalues, dtype, scale):
    f = QuadraticFunction(torch.diag(scale * torch.tensor(eigenvalues, dtype=dtype)))
    found = is_convex(f, (-torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)), points=64)
    assert (found.value, found.certified) == (min(eigenvalues) >= 0, True)


def test_a_singular_matrix_is_decided_in_fractions():
    """Of rank one, and the same with one entry a bit smaller: rounded eigenvalues cannot tell them apart."""
    side = torch.tensor([1.0, 3.0, 7.0], dtype=DOUBLE)
    matrix = torch.outer(side, side)
    assert is_convex(QuadraticFunction(matrix), unit_box(3), points=64).certified
    matrix[2, 2] = torch.nextafter(matrix[2, 2], torch.zeros((), dtype=DOUBLE))
    found = is_convex(QuadraticFunction(matrix), unit_box(3), points=64)
    assert not (found.value and found.certified)


CANCELLING = {  # convex functions, or straight ones, that lose their digits inside
    "squares far out": (lambda x: (x + 1e8).square().sum() - 3e16, DOUBLE),
    "the same for one number": (lambda x: (x[0] + 1e8) ** 2 - 1e16, DOUBLE),
    "a difference of lines": (lambda x: (1e10 * (x + 1) - 1e10 * x - 1e10).sum(), DOUBLE),
    "nothing at all": (lambda x: (3 * x).sum() - 3 * x.sum(), torch.float32),
    "exponentials far out": (lambda x: torch.logsumexp(x + 1e6, 0) - 1e6, torch.float32),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_digits_lost_inside_a_function_refute_nothing(name):
    f, dtype = CANCELLING[name]
    box = (-torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype))
    for seed in range(3):
        assert is_convex(f, box, points=256, generator=torch.Generator().manual_seed(seed)).value
    centre = torch.tensor([0.3, 0.2, 0.7], dtype=dtype)
    assert is_subgradient(f, centre, torch.func.grad(f)(centre.double()).to(dtype), box, points=256).value


def test_what_intervals_do_not_know_is_seen_and_never_proved():
    found = is_convex(lambda x: (1e8 + x.abs()).square().sum() - 3e16, unit_box(3), points=256)
    assert not found.certified
    found = is_convex(lambda x: -x.abs().sum(), unit_box(3), points=256)
    assert (found.value, found.certified) == (False, False)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_the_answer_does_not_depend_on_units(dtype, scale):
    low, high = -torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)
    for f, convex in ((lambda x: scale * torch.exp(x).sum(), True), (lambda x: scale * torch.sin(x).sum(), False)):
        found = is_convex(f, (low, high), points=128)
        assert (found.value, found.certified) == (convex, True)
    found = is_convex(lambda x: torch.cos(x / scale).sum(), (scale * low, scale * high), points=128)
    assert (found.value, found.certified) == (False, True)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_precision_is_measured(dtype):
    low, high, weight = -torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype), torch.eye(2, dtype=dtype)
    assert is_convex(lambda x: x.square().sum(), (low, high), points=64).certified
    assert is_convex(lambda x: (weight @ x).square().sum(), (low, high), points=64)
    assert not is_convex(lambda x: torch.sin(3 * x).sum(), (low, high), points=64)
    assert not is_convex(lambda x: -(weight @ x).abs().sum(), (low, high), points=64)


def test_nearly_equal_ends_and_one_point_are_enough():
    low = torch.full((1,), 1e6)
    box = (low, low + 0.125)  # two steps of float32
    assert is_convex(lambda x: x.square().sum(), box, points=1)
    assert is_convex(lambda x: (3 * x).sum(), box, points=1)


def test_infinite_values_are_taken_and_nan_is_not():
    assert is_convex(lambda x: torch.where(x.abs() <= 0.5, 0.0, torch.inf).sum(), (-1.0, 1.0), points=256)
    assert not is_convex(lambda x: torch.where(x.abs() >= 0.5, 0.0, torch.inf).sum(), (-1.0, 1.0), points=256)
    with pytest.raises(ValueError, match="f must not be NaN or -inf in the region"):
        is_convex(lambda x: torch.log(x).sum(), (-1.0, 1.0))
