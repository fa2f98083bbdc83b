"""Networks with one hidden layer: sums, wider and converted copies in every dtype, torch's habits, refusals."""

import pytest
import torch
from torch import nn

from lemmata.feedforward import ShallowNetwork
from lemmata.foundations.activations import ACTIVATION_TABLE


def filled(*arguments, dtype=torch.float64):
    network = ShallowNetwork(*arguments, dtype=dtype)
    for values in network.parameters():
        nn.init.normal_(values)
    return network


@pytest.mark.parametrize("name", sorted(ACTIVATION_TABLE))
def test_it_is_torchs_layers_with_one_output(name):
    network, x = filled(4, 6, name), torch.randn(2, 3, 4, dtype=torch.float64)
    expected = (ACTIVATION_TABLE[name](network.hidden(x)) * network.outer).sum(-1)
    torch.testing.assert_close(network(x), expected, rtol=1e-12, atol=1e-12)
    assert network(x[0, 0]).shape == ()
    assert network(x[:0]).shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_and_wider_copies_keep_dtype_and_values(dtype):
    first, second, x = filled(3, 4, dtype=dtype), filled(3, 2, dtype=dtype), torch.randn(9, 3, dtype=dtype)
    both, wider = first + second, first.widened(3)
    assert (both.width, wider.width) == (6, 7)
    assert both.outer.dtype is wider.outer.dtype is dtype
    torch.testing.assert_close(both(x), first(x) + second(x))
    torch.testing.assert_close(wider(x), first(x))
    both.outer.data.zero_()
    assert first.outer.any()
    assert both.outer.requires_grad


@pytest.mark.parametrize(("name", "other"), [("sigmoid", "tanh"), ("tanh", "sigmoid")])
def test_converted_there_and_back_it_is_the_same_function(name, other):
    network, x = filled(3, 5, name), 5 * torch.randn(50, 3, dtype=torch.float64)
    there = network.converted(other)
    back = there.converted(name)
    assert (there.activation, there.width, back.activation, back.width) == (other, 6, name, 7)
    torch.testing.assert_close(there(x), network(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(back(x), network(x), rtol=1e-12, atol=1e-12)


def test_initial_weights_have_the_deviation_that_is_said():
    network = ShallowNetwork(100, 10_000)
    assert network.outer.std().item() == pytest.approx(0.01, rel=0.05)
    assert network.hidden.weight.abs().max().item() == pytest.approx(0.1, rel=0.01)
    assert "activation=sigmoid" in repr(network)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ShallowNetwork(0, 1), "inputs must be >= 1, got 0"),
        (lambda: ShallowNetwork(1, 0), "hidden must be >= 1, got 0"),
        (lambda: ShallowNetwork(1, 1, "sigmoit"), "unknown activation 'sigmoit': did you mean sigmoid?"),
        (lambda: ShallowNetwork(1, 1).widened(0), "units must be >= 1, got 0"),
        (lambda: ShallowNetwork(1, 1).converted("relu"), "activation must be one of sigmoid, tanh, got 'relu'"),
        (lambda: ShallowNetwork(1, 1).converted("sigmoid"), "of sigmoid units cannot be converted to sigmoid"),
        (lambda: ShallowNetwork(1, 1, "relu").converted("tanh"), "of relu units cannot be converted to tanh"),
        (
            lambda: ShallowNetwork(1, 1) + ShallowNetwork(2, 1),
            r"to be added, got \(1, 'sigmoid'\) and \(2, 'sigmoid'\)",
        ),
        (lambda: ShallowNetwork(1, 1) + ShallowNetwork(1, 1, "tanh"), "must have the same inputs and activation"),
        (lambda: ShallowNetwork(1, 1) + 1, "unsupported operand"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
