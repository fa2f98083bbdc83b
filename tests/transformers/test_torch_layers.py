"""Torch's transformer layers as blocks: every setting that is taken, those that are refused, and no shared weights."""

import pytest
import torch
from torch import nn

from lemmata.transformers import block_from_torch

CLOSE = 1e-12  # sums of a few dozen terms of size one in double precision


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_layer_is_a_block(activation, norm_first):
    torch.manual_seed(0)
    settings = {"activation": activation, "norm_first": norm_first, "layer_norm_eps": 0.1, "dropout": 0.0}
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, dtype=torch.float64, **settings)
    block, x = block_from_torch(layer), torch.randn(2, 5, 12, dtype=torch.float64)
    assert torch.allclose(block(x), layer(x), rtol=0, atol=CLOSE)
    padded = torch.tensor([[False] * 5, [False, False, True, True, True]])
    both = block(x, ~padded), layer(x, src_key_padding_mask=padded)
    assert torch.allclose(both[0][~padded], both[1][~padded], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_layer_is_a_block_with_cross_attention(norm_first):
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(12, 3, 20, 0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64)
    for values in layer.parameters():
        values.data += 0.1 * torch.randn_like(values)
    x, memory = torch.randn(2, 5, 12, dtype=torch.float64), torch.randn(2, 4, 12, dtype=torch.float64)
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert torch.allclose(block_from_torch(layer)(x, memory=memory), layer(x, memory), rtol=0, atol=CLOSE)
    causal = block_from_torch(layer, causal=True)
    assert torch.allclose(causal(x, memory=memory), layer(x, memory, tgt_mask=ahead), rtol=0, atol=CLOSE)


def test_settings_modes_and_dtypes_come_along_and_weights_are_copied():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True).eval()
    block = block_from_torch(layer)
    assert (block.training, block.dropout, block.self_attention.dropout) == (False, 0.3, 0.3)
    assert block_from_torch(layer.bfloat16()).feed_forward.expand.weight.dtype == torch.bfloat16
    block.feed_forward.expand.weight.data.zero_()
    assert layer.linear1.weight.any()
    assert block_from_torch(nn.TransformerEncoderLayer(8, 2, device="meta")).feed_forward.expand.weight.is_meta


def changed(name, value):
    """A layer of a decoder in which somebody has put another part."""
    layer = nn.TransformerDecoderLayer(8, 2)
    setattr(layer, name, value)
    return layer


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        (nn.Linear(2, 2), TypeError, "TransformerEncoderLayer or DecoderLayer, got Linear"),
        (nn.TransformerEncoderLayer(8, 2, bias=False), ValueError, "layer must have biases"),
        (nn.TransformerEncoderLayer(8, 2, activation=torch.tanh), ValueError, "activation relu or gelu, got"),
        (changed("multihead_attn", nn.MultiheadAttention(8, 4, 0.1)), ValueError, "one number of heads .*, got 2, 4"),
        (
            changed("norm2", nn.LayerNorm(8, 0.1)),
            ValueError,
            "one eps of its normalisations .*, got 1e-05, 0.1",
        ),
        (changed("dropout3", nn.Dropout(0.5)), ValueError, "one dropout throughout, got 0.1, 0.5"),
        (
            changed("multihead_attn", nn.MultiheadAttention(8, 2, 0.1, kdim=4)),
            ValueError,
            "one kind of attention throughout, got kdim or vdim, plain",
        ),
    ],
)
def test_what_a_block_cannot_be_is_refused(layer, error, message, unchecked):
    with pytest.raises(error, match=message):
        block_from_torch(layer)
