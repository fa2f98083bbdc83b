"""Broken lines as modules: values, gradients, networks, refusals."""

import pytest
import torch
from torch import nn

from lemmata.feedforward import PiecewiseLinear, linear_regions


def random_line(knots=5, dtype=torch.float64, **slopes):
    generator = torch.Generator().manual_seed(knots)
    at = torch.randn(knots, generator=generator, dtype=torch.float64).sort().values
    return PiecewiseLinear(at.to(dtype), torch.randn(knots, generator=generator).to(dtype), **slopes)


def test_it_meets_its_points_and_goes_on_with_the_outer_slopes():
    line = random_line(left=2.0, right=-3.0)
    assert torch.allclose(line(line.knots), line.values)
    first, last = line.knots[0].item(), line.knots[-1].item()
    outside = torch.tensor([first - 1, last + 1], dtype=torch.float64)
    assert line(outside).tolist() == pytest.approx([line.values[0].item() - 2, line.values[-1].item() - 3])
    assert line(torch.zeros(2, 3, dtype=torch.float64)).shape == (2, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_its_network_is_the_same_function_with_two_more_units(dtype):
    line = random_line(7, dtype, left=1.0, right=0.5)
    network = line.network()
    x = torch.linspace(-4, 4, 101, dtype=dtype)
    assert torch.allclose(network(x[:, None])[:, 0], line(x), atol=1e-5)
    assert isinstance(network[0], nn.Linear)
    assert (network[0].out_features, network[2].out_features) == (9, 1)
    assert network[0].weight.dtype == dtype
    assert len(linear_regions(line.network(), [(-9, 9)])) == 9  # 8 pieces, and a unit of the affine part turns at 0


def test_values_and_knots_can_be_learnt():
    line = random_line(4)
    x = torch.linspace(-2, 2, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(line, x)
    assert torch.autograd.gradcheck(lambda v, k: torch.func.functional_call(line, {"values": v, "knots": k}, x), (
        line.values, line.knots))  # fmt: skip
    assert {name for name, _ in line.named_parameters()} == {"knots", "values"}


def test_the_state_is_the_whole_function():
    line, other = random_line(4, left=2.0, right=-1.0), random_line(4)
    other.load_state_dict(line.state_dict())
    x = torch.linspace(-9, 9, 50, dtype=torch.float64)
    assert torch.equal(other(x), line(x))


def test_far_from_its_knots_it_keeps_its_digits():
    """A sum of units cancels there: of 2,000 knots nothing was left at 100,000."""
    line = PiecewiseLinear.interpolate(lambda x: (50 * x).sin(), 0, 1, pieces=2000)
    last = line.values[-1].item()
    assert line(torch.tensor([1.0, 10.0, 1e5, 1e30])).tolist() == [last] * 4
    inside = line.knots.detach()
    assert torch.equal(line(inside), line.values)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_inputs_of_any_dtype_are_taken(dtype):
    hat = PiecewiseLinear(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 0.0]), left=1.0)
    found = hat(torch.tensor([-1, 0, 1, 2, 3]).to(dtype))
    assert found.tolist() == [-1.0, 0.0, 1.0, 0.0, 0.0]
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert hat.bfloat16()(torch.tensor([0.5], dtype=torch.bfloat16)).item() == 0.5


def test_one_knot_is_a_kink():
    kink = PiecewiseLinear(torch.tensor([1.0]), torch.tensor([2.0]), left=-1.0, right=3.0)
    assert kink(torch.tensor([0.0, 1.0, 2.0])).tolist() == [3.0, 2.0, 5.0]
    assert kink(torch.zeros(0)).shape == (0,)
    assert kink(torch.tensor([[0.0, 1.0, 2.0]]).expand(3, 3).mT).tolist() == [[3.0] * 3, [2.0] * 3, [5.0] * 3]
    assert kink(torch.tensor(2.0)).item() == 5.0


def test_interpolation_meets_the_function_at_equal_distances():
    line = PiecewiseLinear.interpolate(torch.exp, 0, 2, pieces=4, dtype=torch.float64)
    assert line.knots.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert torch.equal(line.values.detach(), line.knots.detach().exp())


@pytest.mark.parametrize(
    ("knots", "values", "error", "message"),
    [
        ([0.0, 0.0], [1.0, 2.0], ValueError, "knots must increase"),
        ([1.0, 0.0], [1.0, 2.0], ValueError, "knots must increase"),
        ([0.0, 1.0], [1.0], ValueError, "values must have 2 entries, got 1"),
        ([0.0, torch.nan], [1.0, 2.0], ValueError, "knots must be finite"),
        ([], [], ValueError, "knots must not be empty"),
    ],
)
def test_bad_points_are_refused(unchecked, knots, values, error, message):
    with pytest.raises(error, match=message):
        PiecewiseLinear(torch.tensor(knots), torch.tensor(values))


def test_bad_intervals_and_dtypes_are_refused(unchecked):
    with pytest.raises(ValueError, match="low must be below high"):
        PiecewiseLinear.interpolate(torch.exp, 1, 1, pieces=4)
    with pytest.raises(ValueError, match="pieces must be >= 1"):
        PiecewiseLinear.interpolate(torch.exp, 0, 1, pieces=0)
    with pytest.raises(TypeError, match="x must be a tensor, got float"):
        random_line()(1.0)
    with pytest.raises(TypeError, match="values must have the dtype of knots"):
        PiecewiseLinear(torch.tensor([0.0]), torch.tensor([0.0], dtype=torch.float64))
