"""Blocks: written out part by part, caches against the whole, memories, bad input."""

import pytest
import torch
from torch.nn import functional

from lemmata.transformers import FeedForward, KeyValueCache, TransformerBlock

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision
KINDS = [{}, {"norm_first": False}, {"causal": True, "rotary": 100.0}, {"cross": True, "memory_width": 5}]
KINDS += [{"activation": "relu", "hidden": 3, "bias": False, "eps": 0.1}]


def made(**kind):
    torch.manual_seed(0)
    block = TransformerBlock(8, 2, **kind).double()
    for values in block.parameters():
        values.data += 0.1 * torch.randn_like(values)  # gains and offsets, too
    return block


def inputs(batch=2, time=5, **kind):
    generator = torch.Generator().manual_seed(1)
    told = {"x": torch.randn(batch, time, 8, dtype=torch.float64, generator=generator)}
    if kind.get("cross"):
        told["memory"] = torch.randn(batch, 4, 5, dtype=torch.float64, generator=generator)
    return told


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("cross", [True, False])
def test_each_part_is_added_to_what_came_before(norm_first, cross):
    block = made(norm_first=norm_first, cross=cross, memory_width=5 if cross else None, activation="tanh", eps=0.01)
    told = inputs(cross=cross)
    present = torch.arange(4) < torch.tensor([[4], [2]])

    def normal(norm, x):
        """Layer normalisation in words."""
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 0.01).sqrt() * norm.weight + norm.bias

    feed = block.feed_forward
    parts = [(block.self_attention_norm, block.self_attention)]
    if cross:
        parts.append((block.cross_attention_norm, lambda x: block.cross_attention(x, told["memory"], present)))
    parts.append((block.feed_forward_norm, lambda x: feed.contract(feed.expand(x).tanh())))
    x = told["x"]
    for norm, part in parts:
        x = x + part(normal(norm, x)) if norm_first else normal(norm, x + part(x))
    assert torch.allclose(block(**told, memory_mask=present if cross else None), x, rtol=0, atol=CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("cross", [True, False])
def test_the_first_positions_alone_are_answered_as_among_all(norm_first, cross):
    block = made(norm_first=norm_first, cross=cross, memory_width=5 if cross else None)
    told, counted = inputs(cross=cross), []
    whole = block(**told)
    block.feed_forward.register_forward_pre_hook(lambda part, given: counted.append(given[0].shape[1]))
    for answered in (1, 2):
        assert torch.allclose(block(**told, answered=answered), whole[:, :answered], rtol=0, atol=CLOSE)
    assert counted == [1, 2]  # nothing is computed that does not come out


@torch.no_grad()
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_cache_gives_what_the_whole_gives(norm_first):
    kind = {"causal": True, "cross": True, "memory_width": 5, "norm_first": norm_first}
    block, told, cache = made(**kind), inputs(**kind), KeyValueCache(5)
    kept = block.cross_attention.remember(told["memory"])
    parts = [block(part, memory=kept, cache=cache) for part in told["x"].split([3, 1, 1], 1)]
    assert torch.allclose(torch.cat(parts, 1), block(**told), rtol=0, atol=CLOSE)


def test_padding_changes_nothing():
    block, x = made(), inputs()["x"]
    present = torch.arange(5) < torch.tensor([[5], [3]])
    assert torch.allclose(block(x, present)[1, :3], block(x[1:, :3])[0], rtol=0, atol=CLOSE)
    pairs = present[:, None].expand(2, 5, 5)
    assert torch.allclose(block(x, pairs), block(x, present), rtol=0, atol=CLOSE)


def test_the_hidden_width_is_four_times_the_width_unless_told():
    assert made().feed_forward.expand.weight.shape == (32, 8)
    assert made(hidden=3).feed_forward.expand.weight.shape == (3, 8)
    assert made(bias=False).feed_forward.expand.bias is None
    assert made(bias=False).self_attention.join.bias is None


def test_dropout_is_of_training_alone_and_each_has_its_place():
    x = inputs()["x"]
    for kind in ({"dropout": 0.5}, {"attention_dropout": 0.5}):
        block = made(**kind)
        assert not torch.equal(block(x), block(x))
        assert torch.equal(block.eval()(x), made()(x))
    block = made(dropout=0.5)
    block.self_attention.join.weight.data.zero_()
    block.self_attention.join.bias.data.zero_()
    # Half of what the network of each position adds is left out, and the rest is doubled.
    added, whole = block(x) - x, block.eval()(x) - x
    kept = added.abs() > 1e-9
    assert torch.allclose(added, 2 * whole * kept, rtol=0, atol=1e-9)
    assert 0 < kept.sum() < kept.numel()


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu"])
def test_the_network_of_each_position_has_the_activation_it_is_told(name):
    torch.manual_seed(0)
    network, x = FeedForward(4, 6, name).double(), torch.randn(3, 4).double()
    given = {"gelu_tanh": lambda h: functional.gelu(h, approximate="tanh")}.get(name) or getattr(functional, name)
    assert torch.allclose(network(x), network.contract(given(network.expand(x))), rtol=0, atol=CLOSE)
    assert network(x[0]).shape == (4,)
    assert FeedForward(4, 6, bias=False).contract.bias is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"heads": 3}, ValueError, "width must be a multiple of heads, got 8 and 3"),
        ({"hidden": 0}, ValueError, "hidden must be >= 1, got 0"),
        ({"activation": "sinus"}, ValueError, "sinus"),
        ({"norm_first": "yes"}, TypeError, "norm_first must be True or False, got 'yes'"),
        ({"cross": 1}, TypeError, "cross must be True or False, got 1"),
        ({"memory_width": 5}, ValueError, "memory_width belongs to cross-attention: say cross=True"),
        ({"dropout": 1.5}, ValueError, r"dropout must be in \[0, 1\), got 1.5"),
        ({"attention_dropout": -1.0}, ValueError, r"dropout must be in \[0, 1\), got -1"),
        ({"eps": -1e-5}, ValueError, "eps must be >= 0, got -1e-05"),
    ],
)
def test_bad_settings_are_named(settings, error, message, unchecked):
    with pytest.raises(error, match=message):
        TransformerBlock(**{"width": 8, "heads": 2, **settings})


def test_a_memory_belongs_to_cross_attention():
    told = inputs(cross=True)
    for block, given in ((made(), told), (made(cross=True, memory_width=5), {"x": told["x"]})):
        with pytest.raises(ValueError, match="a block with cross=True needs a memory, and only such a block takes one"):
            block(**given)
