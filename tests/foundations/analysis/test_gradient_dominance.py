"""The PL condition: wrong minima, searched constants, conditions and units."""

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
