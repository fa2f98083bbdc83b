"""Cross-attention: torch's own layer with other widths, memories looked at many times, masks, bad input."""

import pytest
import torch
from torch import nn

from lemmata.transformers import CrossAttention

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision


def made(**kind):
    torch.manual_seed(0)
    return CrossAttention(**{"width": 8, "heads": 2, "memory_width": 5} | kind).double()


def drawn(batch=3):
    generator = torch.Generator().manual_seed(1)
    sizes = ((batch, 4, 8), (batch, 6, 5))
    return [torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes]


@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_weights_are_those_of_torch(bias):
    layer, (x, memory) = made(bias=bias), drawn()
    theirs = nn.MultiheadAttention(8, 2, bias=bias, kdim=5, vdim=5, batch_first=True).double()
    key, value = layer.project_memory.weight.detach().chunk(2)
    theirs.q_proj_weight.data, theirs.k_proj_weight.data, theirs.v_proj_weight.data = layer.project.weight, key, value
    theirs.out_proj.load_state_dict(layer.join.state_dict())
    if bias:
        theirs.in_proj_bias.data = torch.cat([layer.project.bias, layer.project_memory.bias]).detach()
    present = torch.arange(6) < torch.tensor([[6], [4], [1]])
    for mask in (None, present, present[:, None].expand(3, 4, 6)):
        expected, weights = theirs(
            x, memory, memory, key_padding_mask=None if mask is None else ~present, average_attn_weights=False
        )
        assert torch.allclose(layer(x, memory, mask), expected, rtol=0, atol=CLOSE)
        assert torch.allclose(layer.weights(x, memory, mask), weights, rtol=0, atol=CLOSE)


def test_a_memory_is_remembered_once_and_asked_many_times():
    layer, (x, memory) = made(), drawn()
    kept = layer.remember(memory)
    assert kept.key.shape == kept.value.shape == (3, 2, 6, 4)
    for step in range(4):
        assert torch.allclose(layer(x[:, step : step + 1], kept)[:, 0], layer(x, memory)[:, step], rtol=0, atol=CLOSE)
    assert torch.equal(layer.weights(x, kept), layer.weights(x, memory))


def test_an_empty_memory_tells_nothing():
    layer, (x, memory) = made(), drawn()
    present = torch.tensor([[True] * 6, [False] * 6, [True] * 6])
    found = layer(x, memory, present)
    assert torch.allclose(found[1], layer.join.bias.expand(4, 8), rtol=0, atol=CLOSE)
    found.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


def test_dropout_is_of_training_alone():
    layer, (x, memory) = made(dropout=0.5), drawn()
    assert not torch.equal(layer(x, memory), layer(x, memory))
    assert torch.equal(layer.eval()(x, memory), made()(x, memory))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"width": -1}, ValueError, "width must be >= 1, got -1"),
        ({"memory_width": 0}, ValueError, "memory_width must be >= 1, got 0"),
        ({"heads": 3}, ValueError, "width must be a multiple of heads, got 8 and 3"),
        ({"dropout": -0.1}, ValueError, r"dropout must be in \[0, 1\), got -0.1"),
        ({"bias": 1}, TypeError, "bias must be True or False, got 1"),
    ],
)
def test_bad_settings_are_named(settings, error, message, unchecked):
    with pytest.raises(error, match=message):
        made(**settings)


def test_bad_input_is_named(unchecked):
    layer, (x, memory) = made(), drawn()
    with pytest.raises(ValueError, match=r"memory must be \(batch, keys, 5\), got shape \(3, 6, 4\)"):
        layer(x, memory[..., :4])
    with pytest.raises(ValueError, match=r"mask must be \(batch, keys\) or \(batch, queries, keys\)"):
        layer(x, memory, torch.ones(6) > 0)
