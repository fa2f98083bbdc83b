"""The residual block around every cell, against its parts, in pieces and with lengths."""

import pytest
import torch

from lemmata.recurrent import CELLS, Elman, ResidualBlock, recurrent_layer

LENGTHS = torch.tensor([5, 0, 2])


def normalised(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def by_parts(block, x):
    """What a new block should give, from the matrices in it: its norms do not scale yet."""
    u = x + block.layer(normalised(x))[0] @ block.project.weight.T + block.project.bias
    if block.network is None:
        return u
    _, first, _, second = block.network
    total = normalised(u) @ first.weight.T + first.bias
    return u + (total * torch.special.ndtr(total)) @ second.weight.T + second.bias


@pytest.mark.parametrize("expansion", [0, 1, None])
@pytest.mark.parametrize("cell", CELLS)
def test_a_block_is_what_its_parts_make(cell, expansion):
    torch.manual_seed(0)
    layer = recurrent_layer(cell, 3, 5).double()
    block = (ResidualBlock(layer) if expansion is None else ResidualBlock(layer, expansion)).double()
    x = torch.randn(3, 5, 3).double()
    outputs, state = block(x)
    assert (type(layer).__name__.lower(), layer.inputs, block.outputs, block.causal) == (cell, 3, 3, True)
    assert (0 if block.network is None else len(block.network[1].weight)) == 3 * (2 if expansion is None else expansion)
    torch.testing.assert_close(outputs, by_parts(block, x))
    middle = block(x[:, :3])[1]
    torch.testing.assert_close(block(x[:, 3:], middle), (outputs[:, 3:], state))
    torch.testing.assert_close(block.by_steps(x), (outputs, state))
    torch.testing.assert_close(block(x, middle, LENGTHS), block.by_steps(x, middle, LENGTHS))


def test_dropout_leaves_out_a_fraction_and_the_rest_makes_up_for_it():
    torch.manual_seed(0)
    block, x = ResidualBlock(Elman(3, 5), 0, dropout=0.25).double(), torch.randn(3, 50, 3).double()
    ratio = (block(x)[0] - x) / (block.eval()(x)[0] - x)
    left = torch.isclose(ratio, torch.tensor(4 / 3).double())
    assert bool((left | (ratio == 0)).all())
    assert float(left.double().mean()) == pytest.approx(0.75, abs=6 * 0.433 / 450**0.5)  # six standard deviations
