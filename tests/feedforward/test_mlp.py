"""The multilayer perceptron: torch's own numbers, its gradients, its initial scale, and refusals that name the fix."""

import functools
import json
from dataclasses import asdict

import pytest
import torch
from torch import nn

from lemmata.feedforward import MLP, MLPConfig
from lemmata.foundations.activations import ACTIVATION_TABLE

TWINS = {
    "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "elu": nn.ELU, "gelu": nn.GELU, "silu": nn.SiLU,
    "softplus": nn.Softplus, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "identity": nn.Identity,
    "softsign": nn.Softsign, "gelu_tanh": functools.partial(nn.GELU, "tanh"),
}  # fmt: skip


def sequential(mlp):
    """The same network from torch's parts, with its weights."""
    parts = []
    for layer in mlp.layers:
        twin = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None).double()
        twin.load_state_dict(layer.state_dict())
        parts += [twin, TWINS[mlp.config.activation](), nn.Dropout(mlp.config.dropout)]
    return nn.Sequential(nn.Flatten(), *parts[:-2])


@pytest.mark.parametrize("activation", sorted(ACTIVATION_TABLE))
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_sequence_of_torchs_own_parts(activation, bias):
    mlp = MLP(12, 3, widths=(7, 5), activation=activation, bias=bias).double()
    x = torch.randn(4, 3, 4, dtype=torch.double)
    torch.testing.assert_close(mlp(x), sequential(mlp)(x), rtol=1e-14, atol=1e-14)


def test_dropout_is_torchs_and_only_in_training():
    mlp = MLP(6, 2, widths=(50, 50), dropout=0.4).double()
    twin, x = sequential(mlp), torch.randn(8, 6, dtype=torch.double)
    torch.manual_seed(3)
    ours = mlp(x)
    torch.manual_seed(3)
    torch.testing.assert_close(ours, twin(x), rtol=1e-14, atol=1e-14)
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))


@pytest.mark.parametrize("activation", ["gelu", "silu", "softplus", "tanh", "sigmoid", "identity"])
def test_gradients_are_those_of_finite_differences(activation):
    mlp = MLP(3, 2, widths=(4,), activation=activation).double()
    x = torch.randn(2, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: mlp(x), (x, *mlp.parameters()))


def test_initial_weights_shrink_with_the_inputs_of_a_layer_and_only_hidden_ones_have_a_gain():
    torch.manual_seed(0)
    mlp = MLP(50, 400, widths=(300, 200), activation="relu")
    for layer, gain in zip(mlp.layers, (2**0.5, 2**0.5, 1.0), strict=True):
        # The standard deviation of n numbers is off by one part in sqrt(2n), here 0.6 % and less.
        assert layer.weight.std().item() == pytest.approx(gain / layer.in_features**0.5, rel=0.05)
        assert not layer.bias.any()
    assert MLPConfig().widths == (256, 256)
    assert [layer.out_features for layer in MLP(3, 2).layers] == [256, 256, 2]


@pytest.mark.parametrize("activation", ["relu", "tanh", "identity"])
def test_the_initial_signal_keeps_its_size_through_the_layers(activation):
    mlp, signals = MLP(1000, 10, widths=(1000,) * 4, activation=activation), []
    for layer in mlp.layers[1:-1]:
        layer.register_forward_hook(lambda layer, inputs, output: signals.append(output.square().mean().item()))
    mlp(0.1 * torch.randn(64, 1000))
    assert signals == pytest.approx([signals[0]] * 3, rel=0.2)
    assert not any(layer.bias.any() for layer in mlp.layers)


def test_without_hidden_layers_it_is_a_linear_map():
    mlp = MLP(4, 2, widths=())
    x = torch.randn(5, 4)
    torch.testing.assert_close(mlp(2 * x), 2 * mlp(x))


def test_it_is_rebuilt_from_json():
    mlp = MLP(64, 10, widths=(8,), activation="tanh", dropout=0.1)
    arguments = json.loads(json.dumps({"inputs": 64, "outputs": 10, **asdict(mlp.config)}))
    again = MLP(**arguments)
    again.load_state_dict(mlp.state_dict())
    x = torch.rand(3, 8, 8)
    assert again.config == mlp.config
    assert torch.equal(again.eval()(x), mlp.eval()(x))


def test_autocast_gives_bfloat16():
    with torch.autocast("cpu", torch.bfloat16):
        assert MLP(1, 1, widths=())(torch.rand(1, 1)).dtype is torch.bfloat16


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"inputs": 0}, "inputs must be >= 1, got 0"),
        ({"outputs": 2.0}, "outputs must be an integer, got float"),
        ({"widths": (4, -1)}, "widths must be >= 1, got -1"),
        ({"widths": 256}, "widths must be a tuple"),
        ({"widths": "256"}, "widths must be a tuple"),
        ({"activation": "rleu"}, "unknown activation 'rleu': did you mean relu?"),
        ({"activation": "xyz"}, "known are relu, "),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": float("nan")}, "dropout must be finite, got nan"),
        ({"bias": 1}, "bias must be True or False, got 1"),
    ],
)
def test_bad_choices_name_the_argument_the_value_and_the_fix(words, said):
    with pytest.raises((ValueError, TypeError), match=said):
        MLP(**{"inputs": 4, "outputs": 2} | words)


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        MLPConfig().dropout = 0.5


@pytest.mark.parametrize("widths", [(), (7,), (7, 5)])
def test_activations_are_those_of_the_forward_pass(widths):
    mlp, x = MLP(6, 3, widths=widths, activation="tanh"), torch.randn(4, 2, 3)
    seen = []
    for layer in mlp.layers:
        layer.register_forward_hook(lambda layer, inputs, output: seen.extend([inputs[0], output]))
    output = mlp(x)
    found = mlp.activations(x)
    assert torch.equal(found[0], x.flatten(1))
    assert torch.equal(found[-1], output)
    assert all(torch.equal(a, b) for a, b in zip(found[:-1], seen[::2], strict=False))


def test_activations_drop_units_only_in_training():
    mlp, x = MLP(6, 2, widths=(50,), dropout=0.5), torch.randn(8, 6)
    assert (mlp.activations(x)[1] == 0).double().mean() > 0.65  # half by the rectifier, half of the rest by dropout
    mlp.eval()
    assert torch.equal(mlp.activations(x)[-1], mlp(x))


@pytest.mark.parametrize("bias", [True, False])
def test_permuted_units_compute_the_same(bias):
    mlp, x = MLP(6, 3, widths=(7, 5), bias=bias, dtype=torch.float64), torch.randn(9, 6, dtype=torch.float64)
    orders = [torch.randperm(7), torch.randperm(5)]
    twin = mlp.permuted(orders)
    torch.testing.assert_close(twin(x), mlp(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(twin.activations(x)[1], mlp.activations(x)[1][:, orders[0]], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(twin.activations(x)[2], mlp.activations(x)[2][:, orders[1]], rtol=1e-12, atol=1e-12)
    assert not torch.equal(twin.layers[0].weight, mlp.layers[0].weight)


@pytest.mark.usefixtures("unchecked")
def test_orders_must_be_orders():
    mlp = MLP(6, 3, widths=(3, 2))
    with pytest.raises(ValueError, match="orders must have one entry for each of 2 hidden layers"):
        mlp.permuted([torch.arange(3)])
    with pytest.raises(ValueError, match=r"orders\[1\] must hold each of 0 to 1 once, got \[0, 0\]"):
        mlp.permuted([torch.arange(3), torch.tensor([0, 0])])
    with pytest.raises(TypeError, match=r"orders\[0\] must be a tensor, got list: use torch\.as_tensor\(orders\[0\]\)"):
        mlp.permuted([[0, 1, 2], [0, 1]])
    with pytest.raises(ValueError, match=r"orders\[0\] must hold each of 0 to 2 once, got \[0\.0, 1\.0, 2\.0\]"):
        mlp.permuted([torch.arange(3.0), torch.arange(2)])
    assert mlp.permuted(iter([torch.arange(3), torch.arange(2)])).config == mlp.config
    with pytest.raises(ValueError, match=r"unknown activation \['relu'\]: did you mean"):
        MLP(6, 3, activation=["relu"])
