"""Encoder and decoder: torch's stacks, kinds of positions, masks, caches, bad input."""

import pytest
import torch
from torch import nn

from lemmata.transformers import TransformerDecoder, TransformerEncoder

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision


def test_torchs_own_transformer_in_two_halves():
    torch.manual_seed(0)
    theirs = nn.Transformer(12, 2, 2, 3, 20, dropout=0.0, batch_first=True, dtype=torch.float64)
    source, target = torch.randn(2, 5, 12, dtype=torch.float64), torch.randn(2, 4, 12, dtype=torch.float64)
    ahead, padded = torch.ones(4, 4, dtype=torch.bool).triu(1), torch.tensor([[False] * 5, [False] * 2 + [True] * 3])
    encoder, decoder = TransformerEncoder.from_torch(theirs.encoder), TransformerDecoder.from_torch(theirs.decoder)
    ours = decoder(target, encoder(source, ~padded), ~padded)
    words = {"tgt_mask": ahead, "src_key_padding_mask": padded, "memory_key_padding_mask": padded}
    assert torch.allclose(ours, theirs(source, target, **words), rtol=0, atol=CLOSE)
    assert (len(encoder.blocks), len(decoder.blocks), encoder.positions) == (2, 3, None)


def test_from_torch_keeps_mode_and_norm_and_leaves_the_input_as_it_is():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, norm_first=True, batch_first=True)
    for last in (None, nn.LayerNorm(8)):
        stack = nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=False).eval()
        made = TransformerEncoder.from_torch(stack)
        assert (made.norm is None, made.training, made.dropout) == (last is None, False, 0.0)
        x = torch.randn(1, 3, 8)
        assert torch.allclose(made(x), stack(x), atol=1e-5)


def test_layers_of_torch_that_differ_are_each_taken_as_they_are():
    torch.manual_seed(0)
    words = {"dropout": 0.0, "batch_first": True, "dtype": torch.float64}
    other = {"nhead": 4, "dim_feedforward": 8, "norm_first": True, "activation": "gelu"}
    x, memory = torch.randn(2, 5, 12, dtype=torch.float64), torch.randn(2, 4, 12, dtype=torch.float64)
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 20, **words), 2, enable_nested_tensor=False)
    stack.layers[1] = nn.TransformerEncoderLayer(12, **other, **words)
    assert torch.allclose(TransformerEncoder.from_torch(stack)(x), stack(x), rtol=0, atol=CLOSE)
    stack = nn.TransformerDecoder(nn.TransformerDecoderLayer(12, 2, 20, **words), 2)
    stack.layers[1] = nn.TransformerDecoderLayer(12, **other, **words)
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    ours = TransformerDecoder.from_torch(stack)(x, memory)
    assert torch.allclose(ours, stack(x, memory, tgt_mask=ahead), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", None])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_in_pieces_equals_the_whole(positions, norm_first):
    torch.manual_seed(0)
    words = {"positions": positions, "norm_first": norm_first, "max_length": 8, "dtype": torch.float64}
    decoder = TransformerDecoder(8, 2, 2, **words)
    x, memory = torch.randn(2, 8, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    seen, caches = torch.tensor([[True] * 5, [True] * 2 + [False] * 3]), decoder.new_caches()
    remembered = decoder.remember(memory)
    pieces = [decoder(part, remembered, seen, caches) for part in x.split([3, 1, 4], 1)]
    assert torch.allclose(torch.cat(pieces, 1), decoder(x, memory, seen), rtol=0, atol=CLOSE)
    with pytest.raises(ValueError, match=r"the cache holds 8 positions|there are 8 learned positions"):
        decoder(x[:, :1], remembered, seen, caches)


def test_what_is_behind_a_mask_changes_nothing():
    torch.manual_seed(0)
    encoder, x = TransformerEncoder(8, 2, 2, dtype=torch.float64), torch.randn(1, 6, 8, dtype=torch.float64)
    mask = torch.tensor([[True] * 4 + [False] * 2])
    other = x.clone()
    other[:, 4:] = 1e3
    assert torch.allclose(encoder(x, mask)[:, :4], encoder(other, mask)[:, :4], rtol=0, atol=CLOSE)
    assert torch.allclose(encoder(x, mask)[:, :4], encoder(x[:, :4]), rtol=0, atol=CLOSE)


def test_dropout_is_for_training_only_and_the_last_norm_for_norm_first():
    torch.manual_seed(0)
    encoder, x = TransformerEncoder(8, 1, 2, dropout=0.5), torch.randn(1, 4, 8)
    assert not torch.equal(encoder(x), encoder(x))
    encoder.eval()
    assert torch.equal(encoder(x), encoder(x))
    assert isinstance(encoder.norm, nn.LayerNorm)
    assert TransformerEncoder(8, 1, 2, norm_first=False).norm is None


def test_fresh_weights_follow_glorot_and_biases_are_zero():
    torch.manual_seed(0)
    block = TransformerEncoder(64, 1, 4).blocks[0]
    assert not block.self_attention.project.bias.any()
    assert not block.feed_forward.contract.bias.any()
    spread = float(block.feed_forward.expand.weight.detach().std())
    assert abs(spread / (2 / (64 + 256)) ** 0.5 - 1) < 0.03  # 16,384 values: a standard error of half a per cent


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TransformerEncoder(8, 0, 2), "depth must be >= 1, got 0"),
        (lambda: TransformerEncoder(8, 1, 3), "width must be a multiple of heads, got 8 and 3"),
        (
            lambda: TransformerEncoder(8, 1, 2, positions="none"),
            "positions must be one of sinusoidal, learned, got 'none'",
        ),
        (lambda: TransformerEncoder(8, 1, 2, dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (lambda: TransformerEncoder(8, 1, 2, max_length=0), "max_length must be >= 1, got 0"),
        (lambda: TransformerEncoder(8, 1, 2, positions=None)(torch.zeros(1, 2, 4)), r"x must be \(batch, time, 8\)"),
    ],
)
def test_bad_input_is_named(call, message, unchecked):
    with pytest.raises(ValueError, match=message):
        call()
