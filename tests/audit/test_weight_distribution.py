"""Each scheme is known by its weights; trained ones are not taken for fresh."""

import pytest
import torch
from torch import nn

from lemmata.audit.layer_signals import depth_trend
from lemmata.audit.weight_distribution import initial_distribution


@pytest.mark.parametrize("shape", [(128, 64), (64, 300), (32, 16, 3, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_schemes_are_told_by_their_weights(shape, dtype):
    torch.manual_seed(0)
    weight = torch.empty(shape)
    inputs, outputs = weight[0].numel(), shape[0] * weight[0, 0].numel()
    draws = {
        "normal he": lambda: nn.init.kaiming_normal_(weight),
        "uniform he": lambda: nn.init.kaiming_uniform_(weight, nonlinearity="relu"),
        "normal lecun": lambda: nn.init.kaiming_normal_(weight, nonlinearity="linear"),
        "normal glorot": lambda: nn.init.xavier_normal_(weight),
        "uniform glorot": lambda: nn.init.xavier_uniform_(weight),
        "uniform torch": lambda: nn.init.kaiming_uniform_(weight, a=5**0.5),
        "normal 0.02": lambda: nn.init.normal_(weight, std=0.02),
        "orthogonal": lambda: nn.init.orthogonal_(weight),
        "zero": lambda: nn.init.zeros_(weight),
        "constant": lambda: nn.init.constant_(weight, 0.3),
    }
    for distribution, draw in draws.items():
        draw()
        assert str(initial_distribution(weight.to(dtype), inputs, outputs)) == distribution


def test_other_scales_and_other_laws():
    torch.manual_seed(0)
    weight = torch.randn(100, 100)
    found = initial_distribution(3 * (2 / 100) ** 0.5 * weight, 100, 100)
    assert (found.family, found.scheme) == ("normal", "")
    assert found.ratio == pytest.approx(3, rel=0.03)
    assert str(found) == f"normal, {found.ratio:.3g} times He"
    assert str(initial_distribution(weight.exp(), 100, 100)) == "trained"
    assert str(initial_distribution(weight + 0.5, 100, 100)) == "trained"
    assert str(initial_distribution(weight[:3, :3], 3, 3)) == "too small to say"


def test_a_trend_is_not_moved_by_odd_layers():
    sizes = [2.0**index for index in range(20)]
    for odd in (3, 8, 15):
        sizes[odd] = 1e-6
    sizes[5] = 0.0
    trend = depth_trend(sizes)
    assert trend.factor == pytest.approx(2, rel=1e-9)
    assert trend.layers == 19
    assert trend.total == pytest.approx(2.0**18)
    assert trend.depth_scale == pytest.approx(1 / (2 * torch.tensor(2.0).log().item()))
    assert 0.6 < trend.agreeing < 0.9
    assert depth_trend([1.0]).total == depth_trend([]).total == 1.0
    assert depth_trend([1.0, float("nan"), 1.0]).depth_scale == float("inf")
