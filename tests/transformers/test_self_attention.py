"""Self-attention: torch's own layer, padding, caches against the whole, rotary positions, graphs, bad input."""

import pytest
import torch
from torch import nn

from lemmata.transformers import KeyValueCache, SelfAttention, rotate

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision
KINDS = [
    {},
    {"causal": True},
    {"rotary": 100.0},
    {"causal": True, "rotary": 10_000.0},
    {"bias": False, "head_width": 2},
]


def made(heads=2, **kind):
    torch.manual_seed(0)
    return SelfAttention(8, heads, **kind).double()


def tokens(batch=3, time=6):
    return torch.randn(batch, time, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def of_torch(layer):
    theirs = nn.MultiheadAttention(8, layer.heads, bias=layer.join.bias is not None, batch_first=True).double()
    names = {"in_proj_weight": "project.weight", "in_proj_bias": "project.bias"}
    names |= {"out_proj.weight": "join.weight", "out_proj.bias": "join.bias"}
    ours = layer.state_dict()
    theirs.load_state_dict({name: ours[source] for name, source in names.items() if source in ours})
    return theirs


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_weights_are_those_of_torch(heads, bias):
    layer, x = made(heads, bias=bias), tokens()
    nn.init.normal_(layer.project.weight)
    theirs = of_torch(layer)
    present = torch.ones(3, 6, dtype=torch.bool)
    present[1, 4:] = present[2, :2] = False
    pairs = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    pairs[..., 0] = True
    for mask, told in (
        (None, {}),
        (present, {"key_padding_mask": ~present}),
        (pairs, {"attn_mask": ~pairs.repeat_interleave(heads, 0)}),
    ):
        expected, weights = theirs(x, x, x, average_attn_weights=False, **told)
        assert torch.allclose(layer(x, mask), expected, rtol=0, atol=CLOSE)
        assert torch.allclose(layer.weights(x, mask), weights, rtol=0, atol=CLOSE)
    ahead = torch.ones(6, 6, dtype=torch.bool).triu(1)
    layer.causal = True
    assert torch.allclose(layer(x), theirs(x, x, x, attn_mask=ahead)[0], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_pads_a_sequence_changes_nothing(kind):
    layer, x = made(**kind), tokens()
    present = torch.arange(6) < torch.tensor([[6], [4], [1]])
    spoilt = torch.where(present[..., None], x, 100 * x)
    for row, n in enumerate((6, 4, 1)):
        alone = layer(x[row : row + 1, :n])[0]
        assert torch.allclose(layer(x, present)[row, :n], alone, rtol=0, atol=CLOSE)
        assert torch.allclose(layer(spoilt, present)[row, :n], alone, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("answered", [1, 4, 6])
@pytest.mark.parametrize("kind", [{}, {"rotary": 100.0}])
@torch.no_grad()
def test_the_first_positions_alone_are_answered_as_among_all(kind, answered):
    layer, x = made(**kind), tokens()
    pairs = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(3)) < 0.5
    for mask in (None, torch.arange(6) < torch.tensor([[6], [4], [1]]), pairs):
        found = layer(x, mask, answered=answered)
        assert torch.allclose(found, layer(x, mask)[:, :answered], rtol=0, atol=CLOSE)
        assert found.shape == (3, answered, 8)


def test_causal_attention_answers_all_or_nothing(unchecked):
    with pytest.raises(ValueError, match="causal attention has its last query at the last key: leave answered out"):
        made(causal=True)(tokens(), answered=1)
    with pytest.raises(ValueError, match="answered must be >= 1, got 0"):
        made()(tokens(), answered=0)


@pytest.mark.parametrize("parts", [[1, 1, 1, 1, 1, 1], [6], [3, 3], [4, 1, 1], [1, 5]])
@pytest.mark.parametrize("kind", [{"causal": True}, {"causal": True, "rotary": 100.0}])
@torch.no_grad()
def test_a_cache_gives_what_the_whole_gives(kind, parts):
    layer, x, cache = made(**kind), tokens(), KeyValueCache(7)
    found = [layer(part, cache=cache) for part in x.split(parts, dim=1)]
    assert len(cache) == 6
    assert torch.allclose(torch.cat(found, 1), layer(x), rtol=0, atol=CLOSE)


@torch.no_grad()
def test_a_cache_with_padding_on_the_left_gives_what_each_sequence_gives_alone():
    layer, x, cache = made(causal=True), tokens(), KeyValueCache(6)
    present = torch.arange(6) >= torch.tensor([[0], [2], [4]])
    for step in range(6):
        found = layer(x[:, step : step + 1], present[:, : step + 1], cache)
    for row, start in enumerate((0, 2, 4)):
        assert torch.allclose(found[row, 0], layer(x[row : row + 1, start:])[0, -1], rtol=0, atol=CLOSE)


def test_rotary_positions_know_only_distances():
    layer, x = made(rotary=50.0), tokens()
    query, key, value = made().heads_of(x)
    for start in (0, 1000):
        turned = layer.heads_of(x, start)
        expected = rotate(query, torch.arange(start, start + 6), 50.0), rotate(key, torch.arange(6) + start, 50.0)
        assert torch.equal(turned[0], expected[0])
        assert torch.equal(turned[1], expected[1])
        assert torch.equal(turned[2], value)
        scores = turned[0] @ turned[1].mT
        assert torch.allclose(scores, layer.heads_of(x)[0] @ layer.heads_of(x)[1].mT, rtol=0, atol=1e-10)


def test_rotary_positions_and_a_mask_in_one_graph(unchecked):
    layer, x, present = made(causal=True, rotary=100.0), tokens(), torch.ones(3, 6, dtype=torch.bool)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x, present), layer(x), rtol=0, atol=CLOSE)


def test_dropout_is_of_training_alone():
    layer, x = made(dropout=0.5), tokens()
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), made()(x))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"width": 0}, ValueError, "width must be >= 1, got 0"),
        ({"heads": 0}, ValueError, "heads must be >= 1, got 0"),
        ({"heads": 2.0}, TypeError, "heads must be an integer, got float"),
        ({"heads": 3}, ValueError, "width must be a multiple of heads, got 8 and 3: or say head_width"),
        ({"head_width": 0}, ValueError, "head_width must be >= 1, got 0"),
        ({"dropout": 1.0}, ValueError, r"dropout must be in \[0, 1\), got 1.0"),
        ({"causal": 1}, TypeError, "causal must be True or False, got 1"),
        ({"bias": None}, TypeError, "bias must be True or False, got None"),
        ({"rotary": 1.0}, ValueError, "rotary must be > 1, got 1.0"),
        ({"rotary": 10.0, "head_width": 3}, ValueError, "head_width is 3, which is odd"),
    ],
)
def test_bad_settings_are_named(settings, error, message, unchecked):
    with pytest.raises(error, match=message):
        SelfAttention(**{"width": 8, **settings})


def test_bad_input_is_named(unchecked):
    layer, x = made(), tokens()
    with pytest.raises(ValueError, match=r"mask must be \(batch, keys\) or \(batch, queries, keys\), got shape \(6,\)"):
        layer(x, torch.ones(6) > 0)
    with pytest.raises(ValueError, match=r"mask must be \(..., 6, 6\) or have axes of 1, got \(3, 1, 1, 5\)"):
        layer(x, torch.ones(3, 5) > 0)
    with pytest.raises(TypeError, match="mask must be boolean"):
        layer(x, torch.ones(3, 6))
    with pytest.raises(ValueError, match="the cache holds 5 positions, got 6: ask for a larger max_length"):
        layer(x, cache=KeyValueCache(5))
