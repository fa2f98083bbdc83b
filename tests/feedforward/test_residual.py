"""Residual layers and networks: formulas by torch's own parts, initial scale, regions, torch's habits, refusals."""

import json
from dataclasses import asdict

import pytest
import torch
from torch import nn

from lemmata.feedforward import DenselyConnectedBlock, ResidualLayer, ResidualMLP, ResidualMLPConfig, linear_regions
from lemmata.foundations.activations import ACTIVATION_TABLE


@pytest.mark.parametrize("name", sorted(ACTIVATION_TABLE))
@pytest.mark.parametrize("outputs", [None, 4])
def test_a_layer_adds_the_change_of_the_activation(name, outputs):
    layer = ResidualLayer(6, outputs, activation=name, dtype=torch.float64)
    nn.init.normal_(layer.linear.bias)
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    phi = ACTIVATION_TABLE[name]
    skip = x if outputs is None else x @ layer.projection.weight.T
    expected = skip + phi(layer.linear(x)) - phi(torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(layer(x), expected, rtol=1e-14, atol=1e-14)
    still = ResidualLayer(6, activation=name, scale=0.0, dtype=torch.float64)
    torch.testing.assert_close(still(x), x, rtol=1e-15, atol=2e-16)


def test_a_projection_is_there_where_it_is_needed_or_wanted():
    assert ResidualLayer(3).projection is None
    assert ResidualLayer(3, 3).projection is None
    assert ResidualLayer(3, 2).projection.weight.shape == (2, 3)
    assert ResidualLayer(3, projection=True).projection.bias is None
    assert ResidualLayer(3, bias=False).linear.bias is None


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_initial_weights_have_the_deviation_that_is_said(name):
    layer = ResidualLayer(400, 300, activation=name, scale=0.5)
    gain = ACTIVATION_TABLE[name].gain
    assert layer.linear.weight.std().item() == pytest.approx(0.5 * gain / 20, rel=0.02)  # of 120,000 values
    assert layer.projection.weight.std().item() == pytest.approx(1 / 20, rel=0.02)
    block = DenselyConnectedBlock(400, 300, 2, activation=name)
    assert block.layers[1].weight.std().item() == pytest.approx(gain / 700**0.5, rel=0.02)
    assert not any(part.bias.any() for part in (layer.linear, *block.layers))
    deep = ResidualMLP(300, 300, width=300, depth=4, activation=name)
    assert deep.layers[3].linear.weight.std().item() == pytest.approx(gain / 300**0.5 / 4, rel=0.02)
    assert deep.embedding.weight.std().item() == pytest.approx(1 / 300**0.5, rel=0.02)
    assert deep.head.weight.std().item() == pytest.approx(1 / 300**0.5, rel=0.02)


def test_a_dense_block_hands_everything_on():
    block = DenselyConnectedBlock(4, growth=3, layers=2, activation="tanh", dtype=torch.float64)
    x = torch.randn(5, 4, dtype=torch.float64)
    first = torch.tanh(block.layers[0](x))
    second = torch.tanh(block.layers[1](torch.cat([x, first], dim=1)))
    assert torch.equal(block(x), torch.cat([x, first, second], dim=1))


def test_a_network_is_its_parts_in_order():
    network = ResidualMLP(4, 3, width=5, depth=2, activation="sigmoid", dropout=0.4, dtype=torch.float64)
    x = torch.randn(6, 2, 2, dtype=torch.float64)
    hidden = network.embedding(x.flatten(1))
    for layer in network.layers:
        hidden = hidden + torch.sigmoid(layer.linear(hidden)) - 0.5
    torch.testing.assert_close(network.eval()(x), network.head(hidden), rtol=1e-13, atol=1e-13)
    network.train()
    assert not torch.equal(network(x), network(x))


@pytest.mark.parametrize("depth", [1, 10, 300])
def test_the_signal_does_not_grow_with_the_depth(depth):
    network = ResidualMLP(64, 64, width=64, depth=depth, dtype=torch.float64)
    x = torch.randn(256, 64, dtype=torch.float64)
    grown = network(x).square().mean() / x.square().mean()
    assert (
        0.3 < grown < 12
    )  # each layer adds at most sqrt(2)/L of the signal's size: e^(2 sqrt(2)) = 17 at the very most


@pytest.mark.parametrize("name", ACTIVATION_TABLE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_without_weights_a_layer_is_the_identity_for_every_activation(name, dtype):
    layer, x = ResidualLayer(4, activation=name, dtype=dtype), torch.tensor([3.0, -2.0, 1e-3, 0.0], dtype=dtype)
    nn.init.zeros_(layer.linear.weight)
    # The value at 0 is at most 1, and rounded once where it is taken away and once where the layer computes it.
    torch.testing.assert_close(layer(x).detach(), x, rtol=0, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["gelu", "tanh", "sigmoid"])
def test_gradients_are_those_of_finite_differences(name):
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    for model in (
        ResidualLayer(3, 2, activation=name, dtype=torch.float64),
        DenselyConnectedBlock(3, 2, 2, activation=name, dtype=torch.float64),
        ResidualMLP(3, 2, width=4, depth=2, activation=name, dtype=torch.float64),
    ):
        assert torch.autograd.gradcheck(lambda x, *_, model=model: model(x), (x, *model.parameters()))


def residual(*parts):
    return nn.Sequential(*parts).double().requires_grad_(False)


def patterns(model, x):
    """Whether each unit is active, in double precision, from what enters the rectifiers."""
    found, hidden = [], x
    for part in model:
        if isinstance(part, ResidualLayer):
            found.append(part.linear(hidden) > 0)
        elif isinstance(part, DenselyConnectedBlock):
            seen = hidden
            for layer in part.layers:
                found.append(layer(seen) > 0)
                seen = torch.cat([seen, layer(seen).relu()], dim=1)
        hidden = part(hidden)
    return torch.cat(found, dim=1)


@pytest.mark.parametrize("inputs", [1, 2])
def test_regions_of_residual_and_dense_blocks_are_those_of_a_grid(inputs):
    torch.manual_seed(3)
    blocks = [ResidualLayer(inputs, 4), ResidualLayer(4), DenselyConnectedBlock(4, 2, 2), ResidualLayer(8)]
    model = residual(*blocks, nn.Linear(8, 1))
    for values in model.parameters():
        if values.ndim == 1:
            nn.init.normal_(values)
    regions = linear_regions(model, [(-2, 2)] * inputs)
    own = torch.arange(regions.corners.shape[1]) < regions.sizes[:, None]
    inside = (own[..., None] * regions.corners).sum(1) / regions.sizes[:, None]  # (regions, inputs)
    at = torch.cat(regions.patterns, dim=1)
    torch.testing.assert_close(patterns(model, inside), at)
    values = torch.einsum("roi,ri->ro", regions.slopes, inside) + regions.constants
    torch.testing.assert_close(model(inside), values, rtol=1e-10, atol=1e-10)
    side = torch.linspace(-2, 2, 20_001 if inputs == 1 else 301, dtype=torch.float64)
    grid = side[:, None] if inputs == 1 else torch.cartesian_prod(side, side)
    known = {tuple(row) for row in at.tolist()}
    assert {tuple(row) for row in patterns(model, grid).tolist()} <= known
    assert len(known) == len(regions) > 10


def test_a_residual_network_has_regions_like_its_parts():
    torch.manual_seed(0)
    network = ResidualMLP(2, 1, width=6, depth=3).double()
    parts = nn.Sequential(network.embedding, *network.layers, network.head)
    box = [(-1, 1), (-1, 1)]
    assert len(linear_regions(network, box)) == len(linear_regions(parts, box)) > 5
    with pytest.raises(ValueError, match=r"use model\.eval"):
        linear_regions(ResidualMLP(2, 1, dropout=0.5), box)


class Doubled(ResidualLayer):
    def forward(self, x):
        return 2 * super().forward(x)


@pytest.mark.parametrize(
    "model", [Doubled(1), ResidualLayer(1, activation="tanh"), ResidualMLP(1, 1, activation="gelu")]
)
def test_what_is_not_piecewise_affine_has_no_regions(model):
    with pytest.raises(ValueError, match=r"not known to be piecewise affine: use Linear, .* ResidualLayer"):
        linear_regions(model, [(0, 1)])
    hooked = ResidualMLP(1, 1, width=2, depth=1)
    hooked.layers[0].linear.register_forward_hook(lambda *parts: 2 * parts[-1])
    with pytest.raises(ValueError, match="hook or a forward of its own"):
        linear_regions(hooked, [(0, 1)])


def test_a_network_is_rebuilt_from_json():
    network = ResidualMLP(4, 3, width=5, depth=2, activation="tanh", dropout=0.1)
    again = ResidualMLP(**json.loads(json.dumps({"inputs": 4, "outputs": 3, **asdict(network.config)})))
    again.load_state_dict(network.state_dict())
    x = torch.rand(3, 4)
    assert again.config == network.config
    assert torch.equal(again.eval()(x), network.eval()(x))


MODELS = [
    lambda **place: ResidualLayer(4, 3, **place),
    lambda **place: DenselyConnectedBlock(4, 2, 2, **place),
    lambda **place: ResidualMLP(4, 3, width=5, depth=2, **place),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ResidualLayer(0), "inputs must be >= 1, got 0"),
        (lambda: ResidualLayer(2, 0), "outputs must be >= 1, got 0"),
        (lambda: ResidualLayer(2, activation="rleu"), "unknown activation 'rleu': did you mean relu?"),
        (lambda: ResidualLayer(2, scale=-1.0), "scale must be >= 0, got -1.0"),
        (lambda: ResidualLayer(2, projection=1), "projection must be True or False, got 1"),
        (lambda: ResidualLayer(2, bias=0), "bias must be True or False, got 0"),
        (lambda: DenselyConnectedBlock(2, 0, 1), "growth must be >= 1, got 0"),
        (lambda: DenselyConnectedBlock(2, 1, 0), "layers must be >= 1, got 0"),
        (lambda: DenselyConnectedBlock(0, 1, 1), "inputs must be >= 1, got 0"),
        (lambda: DenselyConnectedBlock(1, 1, 1, bias=2), "bias must be True or False, got 2"),
        (lambda: DenselyConnectedBlock(1, 1, 1, activation="x"), "unknown activation 'x'"),
        (lambda: ResidualMLP(0, 1), "inputs must be >= 1, got 0"),
        (lambda: ResidualMLP(1, 0), "outputs must be >= 1, got 0"),
        (lambda: ResidualMLPConfig(width=0), "width must be >= 1, got 0"),
        (lambda: ResidualMLPConfig(depth=0), "depth must be >= 1, got 0"),
        (lambda: ResidualMLPConfig(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: ResidualMLPConfig(activation="x"), "unknown activation 'x'"),
        (lambda: ResidualMLPConfig(bias=1), "bias must be True or False, got 1"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


def test_what_a_layer_is_can_be_read():
    assert "activation=tanh" in repr(ResidualLayer(2, activation="tanh"))
    assert "activation=tanh" in repr(DenselyConnectedBlock(2, 1, 1, activation="tanh"))
    assert "activation=tanh, dropout=0.25" in repr(ResidualMLP(2, 1, activation="tanh", dropout=0.25))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("make", [ResidualLayer, lambda n: DenselyConnectedBlock(n, 2, 2), lambda n: ResidualMLP(n, 2)])
def test_no_inputs_are_answered_in_a_sentence(make):
    with pytest.raises(ValueError, match="inputs must be >= 1, got 0"):
        make(0)
    with pytest.raises(ValueError, match="inputs must be >= 1, got 0"):
        ResidualLayer(0, 3)
