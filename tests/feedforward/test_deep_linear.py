"""Deep linear networks: agreement with torch's layers, the collapsed layer, initial scale, habits and refusals."""

import pytest
import torch
from torch import nn

from lemmata.feedforward import DeepLinear


def filled(*arguments, **words):
    network = DeepLinear(*arguments, dtype=torch.float64, **words)
    for values in network.parameters():
        nn.init.normal_(values)
    return network


@pytest.mark.parametrize("widths", [(), (3,), (8, 1), [2, 5, 4]])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_torchs_layers_and_one_of_them(widths, bias):
    network, x = filled(4, 6, widths, bias), torch.randn(2, 3, 4, dtype=torch.float64)
    assert torch.equal(network(x), nn.Sequential(*network.layers)(x))
    single = network.collapse()
    assert (single.bias is None) == (not bias)
    torch.testing.assert_close(single(x), network(x), rtol=1e-12, atol=1e-12)
    assert network.rank_bound == min(4, 6, *widths)
    assert torch.linalg.matrix_rank(single.weight, rtol=1e-9) == network.rank_bound


def test_collapsing_leaves_the_network_and_its_graph_alone():
    network = filled(3, 2, (4,))
    before = [values.clone() for values in network.parameters()]
    single = network.collapse()
    single.weight.data.zero_()
    assert single.weight.requires_grad
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_initial_weights_keep_the_size_of_the_signal():
    network = DeepLinear(300, 300, widths=(300, 400))
    deviations = [layer.weight.std().item() * layer.in_features**0.5 for layer in network.layers]
    assert deviations == pytest.approx([1, 1, 1], rel=0.02)
    assert not any(layer.bias.any() for layer in network.layers)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: DeepLinear(0, 1), "inputs must be >= 1, got 0"),
        (lambda: DeepLinear(1, 0), "outputs must be >= 1, got 0"),
        (lambda: DeepLinear(1, 1, (2, 0)), "widths must be >= 1, got 0"),
        (lambda: DeepLinear(1, 1, 8), r"widths must be a tuple of integers such as \(8, 8\), got 8"),
        (lambda: DeepLinear(1, 1, bias=1), "bias must be True or False, got 1"),
    ],
)
def test_bad_choices_and_inputs_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
