"""DropConnect: a plain linear layer in evaluation, one mask or one for each example while training, and bad input."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrize

from lemmata.feedforward.recipes import classify_points
from lemmata.train import Options
from lemmata.tricks import DropConnect, compare


def test_evaluation_is_that_of_torchs_layer():
    ours, theirs, x = DropConnect(5, 3).double(), nn.Linear(5, 3).double(), torch.randn(2, 4, 5, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours.eval()(x), theirs(x))
    unmasked = DropConnect(5, 3, p=0.0).double()
    unmasked.load_state_dict(theirs.state_dict())
    assert torch.equal(unmasked.train()(x), theirs(x))


def test_one_mask_for_all_is_that_of_the_weights():
    layer, x = DropConnect(5, 3, p=0.4, per_example=False), torch.randn(7, 5)
    torch.manual_seed(1)
    found = layer(x)
    torch.manual_seed(1)
    weight = functional.dropout(layer.weight, 0.4)
    assert torch.equal(found, functional.linear(x, weight, layer.bias))


@pytest.mark.parametrize(("per_example", "rows"), [(True, 60), (False, 1)])
def test_examples_have_masks_of_their_own_or_one(per_example: bool, rows: int):
    torch.manual_seed(0)
    out = DropConnect(8, 6, per_example=per_example)(torch.ones(60, 8))
    assert len(out.unique(dim=0)) == rows


def test_gradients_reach_the_weights_that_were_kept_and_no_others():
    torch.manual_seed(0)
    layer = DropConnect(4, 3, p=0.5, bias=False)
    layer(torch.ones(1, 4)).sum().backward()
    assert set(layer.weight.grad.flatten().tolist()) == {0.0, 2.0}


def test_everything_and_nothing_may_be_left_out():
    layer, x = DropConnect(4, 3, p=1.0), torch.randn(2, 4)
    assert torch.equal(layer(x), layer.bias.expand(2, 3))
    assert DropConnect(4, 3, bias=False)(torch.randn(4)).shape == (3,)


def test_a_network_is_trained_with_and_without():
    options = Options(epochs=3, device="cpu")
    found = compare(classify_points, ["dropconnect"], "moons", options=options)
    network = found.runs["dropconnect"].system
    dropped = [parametrize.is_parametrized(layer, "weight") for layer in network.layers]
    assert dropped == [False, True, True]
    assert network.layers[1].parametrizations.weight[0].p == 0.3
    assert not torch.equal(network.train()(x := torch.randn(5, 2)), network(x))
    assert torch.equal(network.eval()(x), network(x))


def test_bad_input_is_answered_in_words():
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\], got -0.1"):
        DropConnect(4, 3, p=-0.1)
    with pytest.raises(ValueError, match="inputs must be >= 1, got 0"):
        DropConnect(0, 3)
    with pytest.raises(ValueError, match="x"):
        DropConnect(4, 3)(torch.randn(2, 5))
