"""Values enclosed by intervals, against many digits; and what they do not know."""

import mpmath
import pytest
import torch

from lemmata.foundations import QuadraticFunction
from lemmata.foundations.analysis.enclosures import enclosed_value, exactly

DOUBLE = torch.float64


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("dtype", [torch.half, torch.float32, DOUBLE])
def test_the_value_that_is_written_lies_inside(dtype, scale):
    point = torch.tensor([0.3, -0.7, 0.1], dtype=dtype)
    found = enclosed_value(lambda x: scale * (torch.exp(x) - x.square()).sum(), exactly(point), dtype)
    with mpmath.workdps(40):
        truth = scale * sum(mpmath.exp(v) - mpmath.mpf(v) ** 2 for v in point.tolist())
        assert found is not None
        assert mpmath.mpf(float(found.low)) <= truth <= mpmath.mpf(float(found.high))
    assert float(found.high - found.low) <= 1e-13 * float(truth)


def test_a_quadratic_function_is_enclosed_and_an_heir_is_not():
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    point = torch.tensor([0.5, -2.0])

    class Other(QuadraticFunction):
        def __call__(self, x):
            return super().__call__(x).abs()

    found = enclosed_value(QuadraticFunction(matrix, torch.tensor([1.0, 4.0]), constant=0.25), exactly(point))
    assert found is not None
    assert float(found.low) < 0.25 + 5.25 - 7.5 < float(found.high)
    assert float(found.high - found.low) < 1e-12
    assert enclosed_value(Other(matrix), exactly(point), torch.float32) is None


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.abs().sum(),
        lambda x: x.sum() if x[0] > 0 else -x.sum(),
        lambda x: torch.exp(1000 * (1 + x.square()).sum()),  # infinite
        lambda x: x,
        lambda x: 3.0,
    ],
)
def test_what_is_not_known_has_no_enclosure(f):
    assert enclosed_value(f, exactly(torch.ones(2, dtype=DOUBLE))) is None


def test_many_coordinates_are_not_tried():
    assert enclosed_value(lambda x: x.sum(), exactly(torch.ones(101))) is None
