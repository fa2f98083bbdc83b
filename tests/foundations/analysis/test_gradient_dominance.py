"""The PL condition: wrong minima, searched constants, conditions and units."""

import math

import pytest
import torch

from lemmata.foundations import QuadraticFunction, pl_constant
from lemmata.foundations.analysis.claims.gradient_dominance import pl_ratio

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


def test_the_pl_condition_refuses_a_wrong_minimum():
    with pytest.raises(ValueError, match="minimum must not exceed the values of f"):
        pl_constant(squares, (-1.0, 1.0), minimum=1.0)
    with pytest.raises(ValueError, match="f must not be constant"):
        pl_constant(QuadraticFunction(torch.zeros(2, 2)))
    with pytest.raises(ValueError, match="has no minimum"):
        pl_constant(QuadraticFunction(-torch.eye(2)))


@pytest.mark.parametrize(
    ("dtype", "least"),
    [(torch.float32, 1e-2), (torch.float32, 1e-4), (DOUBLE, 1e-2), (DOUBLE, 1e-3), (DOUBLE, 1e-4), (DOUBLE, 1e-5)],
)
def test_an_ill_conditioned_quadratic_has_a_minimum_and_attains_it(dtype, least):
    generator = torch.Generator().manual_seed(0)
    q = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=DOUBLE))[0]
    matrix = ((q * torch.tensor([1.0, 1.0, 1.0, least])) @ q.T).to(dtype)
    f = QuadraticFunction((matrix + matrix.T) / 2, torch.randn(4, generator=generator, dtype=DOUBLE).to(dtype))
    assert pl_constant(f).value == pytest.approx(least, rel=0.1)


def test_the_pl_constant_does_not_depend_on_the_units_of_the_function():
    for unit in (1e-12, 1.0, 1e12):
        found = pl_constant(lambda x, unit=unit: unit * (x**2 + 3 * x**4).sum(), (-1.0, 2.0), minimum=0.0, points=64)
        assert found.value == pytest.approx(2 * unit, rel=1e-3)


def test_a_searched_constant_says_what_minimum_it_took():
    unit = torch.ones(2, dtype=DOUBLE)
    found = pl_constant(lambda t: 3 * t.square().sum() + 5, (-unit, unit), points=64)
    assert not found.certified
    assert found.value == pytest.approx(6.0, abs=1e-3)
    assert "least value found" in found.reason
    ratio = pl_ratio(lambda t: 3 * t.square().sum(), found.witness[0], 0.0)
    assert float(ratio) == pytest.approx(found.value, abs=1e-3)
    known = pl_constant(lambda t: (t**2 + 3 * t**4).sum() + 5, (-1.0, 2.0), minimum=5.0, points=64)
    assert "found" not in known.reason
    assert (known.value, known.seen) == pytest.approx((2.0, 2.0), abs=1e-3)


SCALES = [1e-30, 1e-12, 1.0, 1e12, 1e30]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_one_small_eigenvalue_among_many_equal_ones_is_found(dtype, scale):
    """Smaller than the rounding of a decomposition in float32, and all the same there."""
    values = torch.ones(100, dtype=dtype)
    values[-1] = 4e-4
    stored = scale * values
    found = pl_constant(QuadraticFunction(torch.diag(stored)))
    assert found.certified
    assert 0.999 * float(stored[-1]) <= found.value <= float(stored[-1])
    assert found.seen == pytest.approx(float(stored[-1]), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_one_small_negative_eigenvalue_leaves_no_minimum(dtype):
    for scale in SCALES:
        matrix = scale * torch.eye(100, dtype=dtype)
        matrix[-1, -1] *= -1e-5
        with pytest.raises(ValueError, match="has no minimum"):
            pl_constant(QuadraticFunction(matrix))


def test_a_slightly_asymmetric_matrix_is_its_symmetric_part():
    """As far from symmetric as is admitted: one triangle alone would be definite, the function is not convex."""
    n = 400
    edge = 0.99 * 4 * n * torch.finfo(torch.float32).eps
    matrix = torch.full((n, n), -edge).triu(1) + 0.03 * torch.eye(n)
    matrix[0, 0] = 1.0
    whole = matrix.double() / 2 + matrix.double().T / 2
    assert torch.linalg.eigvalsh(whole)[0] < -1e-3
    with pytest.raises(ValueError, match="has no minimum"):
        pl_constant(QuadraticFunction(matrix))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_a_singular_matrix_of_whole_numbers_is_certified_in_fractions(dtype, scale):
    unit = 2.0 ** round(math.log2(scale))
    rows = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]], dtype=dtype)
    matrix = unit * rows.T @ torch.diag(torch.tensor([1.0, 3.0], dtype=dtype)) @ rows  # the eigenvalues 0, 0, 4 and 12
    found = pl_constant(QuadraticFunction(matrix, matrix @ torch.arange(4.0, dtype=dtype)))
    assert found.certified
    assert 4 * unit * (1 - 1e-9) <= found.value <= 4 * unit
    with pytest.raises(ValueError, match="has no minimum"):
        pl_constant(QuadraticFunction(matrix, torch.eye(4, dtype=dtype)[0] * unit))


def test_a_matrix_that_may_be_singular_is_measured_and_not_certified():
    q = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=DOUBLE))[0]
    matrix = (q * torch.tensor([0.0, 0.0, 1.0, 2.0, 3.0])) @ q.T
    found = pl_constant(QuadraticFunction((matrix + matrix.T) / 2))
    assert not found.certified
    assert found.value == pytest.approx(1.0, rel=1e-12)
    wide = torch.zeros(40, 40, dtype=DOUBLE)  # too large to be counted in fractions
    wide[0, 0] = 2.0
    assert (pl_constant(QuadraticFunction(wide)).value, pl_constant(QuadraticFunction(wide)).certified) == (2.0, False)


def test_a_linear_part_that_leaves_the_range_by_a_bit_is_not_certified():
    matrix = torch.tensor([[1.0, 1.0], [1.0, 1.0]], dtype=DOUBLE)
    assert pl_constant(QuadraticFunction(matrix, torch.tensor([1.0, 1.0], dtype=DOUBLE))).certified
    assert not pl_constant(QuadraticFunction(matrix, torch.tensor([1.0, 1.0 + 2.0**-52], dtype=DOUBLE))).certified


def test_one_variable_and_a_subclass():
    assert pl_constant(QuadraticFunction(torch.full((1, 1), 3.0))).value == pytest.approx(3.0, rel=1e-12)

    class Halved(QuadraticFunction):
        def __call__(self, x):
            return super().__call__(x) / 2

    found = pl_constant(Halved(torch.eye(1, dtype=DOUBLE)), (-1.0, 1.0), minimum=0.0, points=16)
    assert (found.value, found.certified) == (pytest.approx(0.5, rel=1e-6), False)
