r"""Layers of torch.nn's own transformer as blocks of this chapter: their settings and their weights."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.transformers.transformer_block import TransformerBlock

__all__ = ["block_from_torch"]

Layer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
ACTIVATIONS = ((functional.relu, "relu"), (functional.gelu, "gelu"))  # what torch makes of these words


def block_from_torch(layer: Layer, causal: bool = False) -> TransformerBlock:
    r"""A block with the weights of torch's encoder layer, or with cross-attention of its decoder layer.

    Torch is told at each call to look back only; a block is told once, by `causal`. While training, torch leaves out
    values inside the network of each position, too.

    Claims: transformer.residual_ln

    >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, dim_feedforward=32, batch_first=True).eval()
    >>> x = torch.randn(2, 10, 16)
    >>> block_from_torch(layer)(x).allclose(layer(x), atol=1e-5)
    True
    """
    settings = settings_of(layer)
    with torch.device(layer.linear1.weight.device):
        block = TransformerBlock(**settings, causal=causal, cross=isinstance(layer, nn.TransformerDecoderLayer))
    return take_layer(block.to(layer.linear1.weight.dtype), layer)


def settings_of(layer: Layer) -> dict[str, Any]:
    """What a block is built with to be such a layer; what a block cannot be is refused."""
    if not isinstance(layer, Layer):
        raise TypeError(f"layer must be torch's TransformerEncoderLayer or DecoderLayer, got {type(layer).__name__}")
    if layer.linear1.bias is None:
        raise ValueError("layer must have biases: torch's bias=False leaves out those of the normalisations, too")
    name = next((name for kind, name in ACTIVATIONS if layer.activation is kind), None)
    if name is None:
        raise ValueError(f"layer must have the activation relu or gelu, got {layer.activation}: name it in words")
    for what, found in _layer_kinds(layer).items():
        if len(found) > 1:
            raise ValueError(f"layer must have one {what} throughout, got {', '.join(map(str, sorted(found)))}")
    return {
        "width": layer.linear1.in_features,
        "heads": layer.self_attn.num_heads,
        "hidden": layer.linear1.out_features,
        "activation": name,
        "norm_first": layer.norm_first,
        "dropout": layer.dropout1.p,
        "attention_dropout": layer.self_attn.dropout,
        "eps": layer.norm1.eps,
    }


def _layer_kinds(layer: Layer) -> dict[str, set[Any]]:
    """What a block has one of, where the parts of a layer that somebody has put together may differ."""
    looks: list[Any] = [layer.self_attn, getattr(layer, "multihead_attn", layer.self_attn)]
    norms = [part for part in layer.children() if isinstance(part, nn.LayerNorm)]
    return {
        "number of heads": {look.num_heads for look in looks},
        "attention dropout": {look.dropout for look in looks},
        "eps of its normalisations": {norm.eps for norm in norms},
        "dropout": {getattr(layer, f"dropout{n}").p for n in range(1, len(norms) + 1)},
        "kind of attention": {"plain", *(_attention_kind(look) for look in looks)},
    }


def _attention_kind(look: nn.MultiheadAttention) -> str:
    extra = {"add_zero_attn": look.add_zero_attn, "add_bias_kv": look.bias_k is not None}
    extra["kdim or vdim"] = look.in_proj_weight is None
    return next((name for name, there in extra.items() if there), "plain")


def take_layer(block: TransformerBlock, layer: Layer) -> TransformerBlock:
    """Copy the weights of a layer into a block of its settings."""
    parts: dict[str, nn.Module] = {"self_attention_norm": layer.norm1, "feed_forward.expand": layer.linear1}
    parts |= {"feed_forward.contract": layer.linear2, "self_attention.join": layer.self_attn.out_proj}
    weights = _packed_maps("self_attention.project", layer.self_attn)
    if isinstance(layer, nn.TransformerDecoderLayer):
        look, rows = layer.multihead_attn, layer.linear1.in_features
        parts |= {"cross_attention_norm": layer.norm2, "feed_forward_norm": layer.norm3}
        parts["cross_attention.join"] = look.out_proj
        for name, values in _packed_maps("", look).items():  # the queries' rows come first
            weights[f"cross_attention.project{name}"] = values[:rows]
            weights[f"cross_attention.project_memory{name}"] = values[rows:]
    else:
        parts["feed_forward_norm"] = layer.norm2
    for name, part in parts.items():
        weights |= {f"{name}.{key}": values for key, values in part.state_dict().items()}
    block.load_state_dict(weights)
    return block.train(layer.training)


def _packed_maps(name: str, attention: nn.MultiheadAttention) -> dict[str, Tensor]:
    """Queries', keys' and values' maps, which torch, too, keeps in one piece."""
    return {f"{name}.weight": attention.in_proj_weight, f"{name}.bias": attention.in_proj_bias}
