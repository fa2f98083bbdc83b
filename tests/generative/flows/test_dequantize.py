"""Discrete data: the levels come back, and bits per dimension are those of the discrete law."""

import math

import pytest
import torch
from torch import nn

from lemmata.generative.flows import ActNorm, Dequantize, Flow, bits_per_dimension


class Uniform(nn.Module):
    """Noise in the unit cube."""

    def __init__(self, features):
        super().__init__()
        self.features = features

    def log_prob(self, z):
        inside = ((z >= 0) & (z < 1)).all(1)
        return torch.where(inside, 0.0, -math.inf).to(z)

    def sample(self, n, *, generator=None):
        return torch.rand(n, self.features, generator=generator)


@pytest.mark.parametrize("features", [1, 3, 48, 784])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_uniform_law_of_256_levels_has_eight_bits_exactly(features, dtype):
    flow = Flow(Uniform(features), [Dequantize(256)])
    x = torch.randint(256, (50, features)).to(dtype)
    bits = flow.bits_per_dimension(x, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(bits, torch.full((50,), 8.0, dtype=dtype), rtol=4 * torch.finfo(dtype).eps, atol=0)
    if features == 1:
        assert bits.unique().tolist() == [8.0]


@pytest.mark.parametrize("levels", [2, 5, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_levels_come_back(levels, dtype):
    if dtype == torch.bfloat16 and levels == 256:
        pytest.skip("bfloat16 has fewer digits than a byte and its noise")
    x = torch.arange(levels).repeat(200)[:, None].to(dtype)
    layer = Dequantize(levels)
    u, log_det = layer.inverse(x)
    assert bool(((u >= 0) & (u < 1)).all())
    assert bool(((layer(u)[0] - x).abs() <= (dtype == torch.bfloat16)).all())
    torch.testing.assert_close(log_det, -layer(u)[1])


def test_a_skewed_law_costs_no_less_than_its_entropy():
    flow = Flow(Uniform(1), [ActNorm(1), Dequantize(4)])
    flow.transforms[0].log_scale.data += 0.1  # a density that misses some of the mass
    x = torch.randint(4, (100, 1))
    assert bool((flow.bits_per_dimension(x).detach() >= 2).all())


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.tensor([[0.5]]), "x must hold whole numbers from 0 to 7, got 0.5 to 0.5: scale pixels to levels"),
        (torch.tensor([[8]]), "x must hold whole numbers from 0 to 7, got 8 to 8"),
        (torch.tensor([3]), r"x must be \(batch, ...\), got shape \(1,\)"),
    ],
)
def test_what_is_no_level_is_refused(unchecked, x, message):
    with pytest.raises(ValueError, match=message):
        Dequantize(8).inverse(x)
    with pytest.raises(ValueError, match="levels must be >= 2, got 1"):
        Dequantize(1)
    with pytest.raises(ValueError, match="dimensions must be >= 1, got 0"):
        bits_per_dimension(torch.zeros(1), 0)
