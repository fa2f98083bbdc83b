"""The PL condition: wrong minima, searched constants, conditions and units."""

import pytest
import torch

from lemmata.foundations import QuadraticFunction, least_squares_pl, pl_constant, pl_ratio

DOUBLE = torch.float64


def squares(x):
    return x.square().sum()


def test_the_pl_condition_refuses_a_wrong_minimum():
    with pytest.raises(ValueError, match="minimum must not exceed the values of f"):
        pl_ratio(squares, torch.zeros(1, 2), 1.0)
    with pytest.raises(ValueError, match="f must not be constant"):
        pl_constant(QuadraticFunction(torch.zeros(2, 2)))
    with pytest.raises(ValueError, match="has no minimum"):
        pl_constant(QuadraticFunction(-torch.eye(2)))
    with pytest.raises(ValueError, match="kernel must be symmetric"):
        least_squares_pl(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))


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
    if least**-1 * torch.finfo(dtype).eps < 1e-4:  # else the values at the minimum have lost more than half
        assert pl_ratio(f, f.minimiser.expand(7, 4), float(f.minimum)).isinf().all()


def test_the_pl_constant_does_not_depend_on_the_units_of_the_function():
    for unit in (1e-12, 1.0, 1e12):
        found = pl_constant(lambda x, unit=unit: unit * (x**2 + 3 * x**4).sum(), (-1.0, 2.0), minimum=0.0, points=64)
        assert found.value == pytest.approx(2 * unit, rel=1e-3)
