"""Lipschitz constants of networks: known layers, unknown ones, kinks."""

import pytest
import torch
from torch import nn

from lemmata.foundations import difference_quotient, lipschitz

DOUBLE = torch.float64


def test_float32_regions_are_measured_in_float32():
    found = lipschitz(torch.tanh, (-torch.ones(2), torch.ones(2)), points=64)
    assert found.witness[0].dtype == torch.float32
    assert found.value == pytest.approx(1.0, abs=1e-2)


def test_networks_with_unknown_layers_need_a_region_and_stay_estimates():
    network = nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=-1))
    with pytest.raises(ValueError, match="only networks of known layers do without"):
        lipschitz(network)
    assert not lipschitz(network, (-torch.ones(2), torch.ones(2)), points=16).certified


@pytest.mark.parametrize("layer", [nn.Softplus(), nn.Softplus(threshold=1.0)])
def test_a_softplus_that_jumps_at_its_threshold_has_no_certified_constant(layer):
    with pytest.raises(ValueError, match="only networks of known layers do without"):
        lipschitz(nn.Sequential(nn.Linear(2, 2), layer))
    edge = torch.tensor([float(layer.threshold)], dtype=DOUBLE)
    assert difference_quotient(layer, edge, edge + 1e-12) > 100


@pytest.mark.parametrize(
    ("layer", "constant"),
    [
        (nn.ReLU(), 1.0), (nn.Tanh(), 1.0), (nn.Sigmoid(), 0.25), (nn.SiLU(), 1.09983932),
        (nn.GELU(), 1.12890415), (nn.GELU("tanh"), 1.12899307), (nn.ELU(2.0), 2.0), (nn.ELU(), 1.0),
        (nn.LeakyReLU(3.0), 3.0), (nn.Softsign(), 1.0), (nn.Identity(), 1.0), (nn.Flatten(), 1.0),
        (nn.Sequential(nn.Sigmoid(), nn.Sequential(nn.Sigmoid())), 0.0625),
    ],
)  # fmt: skip
def test_known_layers_have_their_constants(layer, constant):
    assert lipschitz(layer).value == pytest.approx(constant, rel=1e-8)
