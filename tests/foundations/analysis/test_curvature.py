"""Smoothness and strong convexity: bad input, honesty about what is proved, determinism."""

import math

import mpmath
import pytest
import torch

from lemmata.certified.rounding import fractions
from lemmata.foundations import QuadraticFunction, is_convex, lipschitz, pl_constant, smoothness, strong_convexity
from lemmata.foundations.analysis.claims.functions import curvature_between

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, is_convex, pl_constant])
def test_regions_are_checked(measure, unchecked):
    with pytest.raises(TypeError, match=r"region must be a pair \(low, high\), got float"):
        measure(squares, 3.0)
    with pytest.raises(ValueError, match="low must be below high"):
        measure(squares, (1.0, 1.0))
    with pytest.raises(ValueError, match="low and high must have the same shape"):
        measure(squares, (torch.zeros(2), torch.ones(3)))
    with pytest.raises(ValueError, match="low must be finite, got -inf"):
        measure(squares, (-math.inf, 0.0))
    with pytest.raises(ValueError, match="points must be >= 1, got 0"):
        measure(squares, (0.0, 1.0), points=0)


@pytest.mark.parametrize("measure", [smoothness, strong_convexity, lipschitz, pl_constant])
def test_without_a_region_only_known_functions_are_measured(measure):
    with pytest.raises(ValueError, match="region must be a pair"):
        measure(squares)


def test_an_estimate_is_never_called_a_proof():
    found = smoothness(lambda x: torch.relu(x).square().sum(), (-1.0, 1.0), points=64)
    assert not found.certified
    assert "an estimate, not a proof" in str(found)
    assert len(found.witness) == 2
    size, _ = curvature_between(lambda x: torch.relu(x).square().sum(), *found.witness)
    assert float(size) == pytest.approx(found.value)


def test_a_bound_too_loose_to_help_is_told_but_not_taken():
    found = strong_convexity(lambda x: torch.exp(x.sum()), (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)))
    assert not found.certified
    assert "proved is only >=" in str(found)
    assert found.value == pytest.approx(0.0, abs=1e-9)


def test_the_same_seed_gives_the_same_answer():
    once, again = (smoothness(lambda x: torch.relu(x.sin()).sum(), (-3.0, 3.0), points=50) for _ in range(2))
    assert once.value == again.value
    assert torch.equal(once.witness[0], again.witness[0])


def bowl():
    """A quadratic function with the eigenvalues 0.7, 1.5 and 4."""
    q = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    matrix = (q * torch.tensor([0.7, 1.5, 4.0], dtype=DOUBLE)) @ q.T
    return QuadraticFunction((matrix + matrix.T) / 2, torch.ones(3, dtype=DOUBLE))


def test_constants_of_a_quadratic_are_certified_by_its_eigenvalues():
    top, bottom = smoothness(bowl()), strong_convexity(bowl())
    assert top.certified
    assert bottom.certified
    assert "largest |eigenvalue|" in top.reason
    assert "least eigenvalue" in bottom.reason
    assert "certified" in str(top)
    assert (top.value, top.seen) == pytest.approx((4.0, 4.0), rel=1e-12)
    assert (bottom.value, bottom.seen) == pytest.approx((0.7, 0.7), rel=1e-12)


@pytest.mark.parametrize("radius", [0.5, 1.0, 2.0])
def test_a_concave_quartic_is_as_smooth_as_its_ends_are_bent(radius):
    found = smoothness(lambda t: -(t**4).sum(), (-radius, radius), points=64)
    exact = 12 * radius**2
    assert found.certified
    assert exact <= found.value <= 1.02 * exact
    assert 0.99 * exact <= found.seen <= exact


def test_the_least_curvature_of_the_exponential_is_proved():
    found = strong_convexity(lambda t: torch.exp(t).sum(), (-1.0, 2.0), points=64)
    assert found.certified
    assert 0.98 * math.exp(-1) <= found.value <= math.exp(-1)


def test_what_intervals_do_not_know_is_searched_and_shown():
    def kinked(t):
        return torch.exp(t).sum() + torch.relu(t).sum()

    found = strong_convexity(kinked, (-1.0, 2.0), points=64)
    assert not found.certified
    assert found.value == pytest.approx(math.exp(-1), abs=1e-3)
    assert float(curvature_between(kinked, *found.witness)[1]) == pytest.approx(found.value, rel=1e-6)
    box = (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE))
    plane = smoothness(lambda t: torch.relu(t).sum() - t[0] ** 4 + t[1] ** 2 / 10, box, points=64)
    assert not plane.certified
    assert plane.value == pytest.approx(12.0, abs=0.1)
    assert smoothness(lambda t: torch.relu(t).sum() - 2 * (t**2).sum(), (-1.0, 1.0), points=64).value == pytest.approx(
        4
    )


SCALES = [(DOUBLE, scale) for scale in (1e-200, 1e-30, 1e-12, 1.0, 1e11, 1e30, 1e200)]
SCALES += [(torch.float32, scale) for scale in (1e-30, 1e-12, 1.0, 1e11, 1e30)]


@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_at_every_scale_bounds_enclose_the_truth(dtype, scale):
    """Of the function, of the box, and of a quadratic function whose eigenvalues are known to many digits."""
    ends = (-torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype))
    top, bottom = (m(lambda x: scale * torch.exp(x).sum(), ends, points=16) for m in (smoothness, strong_convexity))
    assert (top.certified, bottom.certified) == (True, True)
    assert math.e * scale * (1 - 1e-15) <= top.value <= math.e * scale * 1.01
    assert 0.9 * scale / math.e <= bottom.value <= scale / math.e * (1 + 1e-15)
    wide = tuple(torch.tensor(scale, dtype=dtype) * end for end in ends)
    top, bottom = (m(lambda x: squares(x) + x[0] * x[1], wide, points=16) for m in (smoothness, strong_convexity))
    assert (top.certified, bottom.certified) == (True, True)
    assert 3 <= top.value <= 3 + 1e-12
    assert 1 - 1e-12 <= bottom.value <= 1
    for seed in range(5):
        matrix = torch.randn(3, 3, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
        check_quadratic((scale * (matrix + matrix.T)).to(dtype))


def check_quadratic(matrix):
    exact = eigenvalues_of(matrix)
    top, bottom = smoothness(QuadraticFunction(matrix)), strong_convexity(QuadraticFunction(matrix))
    assert (top.certified, bottom.certified) == (True, True)
    size = max(-exact[0], exact[-1])
    assert size <= mpmath.mpf(top.value) <= size * (1 + mpmath.mpf(1e-12))
    assert exact[0] - size * mpmath.mpf(1e-12) <= mpmath.mpf(bottom.value) <= exact[0]
    assert top.seen == pytest.approx(float(size), rel=1e-3)


def eigenvalues_of(matrix):
    """Of the symmetric part of a matrix as it is stored, to 50 digits, ascending."""
    with mpmath.workdps(50):
        stored = mpmath.matrix(matrix.double().tolist())
        return sorted(mpmath.eigsy((stored + stored.T) / 2, eigvals_only=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_bounded_in_double_and_not_searched(dtype):
    check_quadratic(torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=dtype))
    for measure in (smoothness, strong_convexity):
        with pytest.raises(TypeError, match="region must be float32 or float64"):
            measure(squares, (-torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype)))


def test_rank_one_matrices_at_small_scale_are_not_called_convex():
    """Rounded entries make the determinant of some negative, which is decided exactly."""
    generator = torch.Generator().manual_seed(0)
    for dtype, scale in ((DOUBLE, 1e-200), (torch.float32, 1e-30)):
        for _ in range(30):
            row = torch.randn(2, generator=generator, dtype=DOUBLE)
            matrix = (scale * torch.outer(row, row)).to(dtype)
            bottom = strong_convexity(QuadraticFunction(matrix))
            (a, b), (c, d) = fractions(matrix)
            assert bottom.certified
            assert bottom.value <= 0 or a * d > b * c


def test_a_slightly_asymmetric_matrix_is_its_symmetric_part():
    """An admitted difference between the triangles moves the least eigenvalue by many times the rounding."""
    n = 400
    error = 0.99 * 4 * n * torch.finfo(torch.float32).eps
    matrix = torch.diag(torch.full((n,), 0.03)) - error * torch.ones(n, n).triu(1)
    matrix[0, 0] = 1.0
    exact = torch.linalg.eigvalsh((matrix.double() + matrix.double().T) / 2)
    f = QuadraticFunction(matrix)
    assert strong_convexity(f).value <= float(exact[0]) + 1e-12
    assert strong_convexity(f).value < 0


def test_a_subclass_is_searched():
    class Steeper(QuadraticFunction):
        def __call__(self, x):
            return 3 * super().__call__(x)

    with pytest.raises(ValueError, match="region must be a pair"):
        smoothness(Steeper(torch.eye(2, dtype=DOUBLE)))
    found = smoothness(Steeper(torch.eye(2, dtype=DOUBLE)), (-torch.ones(2, dtype=DOUBLE), torch.ones(2, dtype=DOUBLE)))
    assert 3 <= found.value <= 3.001


def test_the_largest_and_the_smallest_numbers_prove_nothing_false():
    ones = torch.ones(2, 2, dtype=DOUBLE)
    huge, tiny = QuadraticFunction(1.7e308 * ones), QuadraticFunction(5e-324 * ones)
    assert not smoothness(huge).certified
    assert smoothness(tiny).value >= 1e-323
    assert strong_convexity(tiny).value <= 0
