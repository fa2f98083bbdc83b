"""Vision transformers: pictures as patches, the model from torch's own parts, and what it does not know of pictures."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import all_of, claim, close, exactly, lie
from lemmata.transformers.patches import PatchEmbedding
from lemmata.transformers.vit import ViT


def _channels_and_square_of_sides(p, q):
    return q * p**2


def _sides_and_square_of_channels(p, q):
    return p * q**2


@claim("vit.patch_embedding")
@lie("V has p times q squared columns", printed="002/1", entries=_sides_and_square_of_channels)
@lie("the convolution has half the stride, so that patches overlap", stride=0.5, loose="strides are whole numbers")
@lie("one token for every p pixels", count_power=1)
@lie("no constant", offset=0.0)
def patches_are_a_strided_convolution(
    draw, entries=_channels_and_square_of_sides, stride=1.0, count_power=2, offset=1.0, embedding=PatchEmbedding
):
    """Each patch cut out by hand; the convolution with the same weights; columns of V and tokens counted."""
    found, by_hand, convolved, columns, tokens = [], [], [], [], []
    for p, q, rows, across in ((4, 3, 2, 3), (2, 1, 1, 1), (2, 5, 4, 1)):
        embed, x = embedding(p, q, 6, dtype=torch.float64), draw.normal(2, q, p * rows, p * across)
        V, b = embed.matrix.detach(), offset * embed.project.bias.detach()  # type: ignore
        places = [(p * i, p * j) for i in range(rows) for j in range(across)]
        vectors = torch.stack([x[:, :, i : i + p, j : j + p].flatten(1) for i, j in places], dim=1)
        maps = functional.conv2d(x, V.unflatten(1, (q, p, p)), b, stride=int(stride * p))
        found.append(embed(x).detach().flatten())
        by_hand.append((vectors @ V.mT + b).flatten())
        convolved.append(maps[..., :rows, :across].flatten(2).mT.flatten())
        columns.append((V.shape[1], entries(p, q)))
        tokens.append((embed(x).shape[1], x[0, 0].numel() / p**count_power))
    whole = embedding(16, 3, 1)(torch.zeros(1, 3, 224, 224)).shape[1]
    (counted, predicted), (cut, expected) = zip(*columns, strict=True), zip(*tokens, strict=True)
    return all_of(
        close(torch.cat(found), torch.cat(by_hand), ulps=1000, scale=1.0),
        close(torch.cat(found), torch.cat(convolved), ulps=1000, scale=1.0),
        exactly(list(counted), list(predicted)),
        exactly([*cut, whole], [*expected, 196]),
    )


def _token_first(token, patches):
    return torch.cat([token, patches], dim=1)


def _token_last(token, patches):
    return torch.cat([patches, token], dim=1)


def _its_own(tokens):
    return tokens[:, 0]


def _mean_of_patches(tokens):
    return tokens[:, 1:].mean(1)


def _draw_weights(draw, network):
    """The network with drawn weights, of a size at which every part counts."""
    with torch.no_grad():
        for values in network.parameters():
            values.copy_(draw.normal(*values.shape) * values.shape[-1] ** -0.5)
    return network.double().eval().requires_grad_(False)


def _torchs_block(block):
    """torch's own encoder layer, with the weights of a block."""
    attention, network = block.self_attention, block.feed_forward
    width, hidden = network.expand.in_features, network.expand.out_features
    layer = nn.TransformerEncoderLayer(
        width, attention.heads, hidden, 0.0, "gelu", block.feed_forward_norm.eps, batch_first=True, norm_first=True,
        dtype=torch.float64,
    )  # fmt: skip
    parts = {
        "self_attn.in_proj_": attention.project, "self_attn.out_proj.": attention.join, "linear1.": network.expand,
        "linear2.": network.contract, "norm1.": block.self_attention_norm, "norm2.": block.feed_forward_norm,
    }  # fmt: skip
    layer.load_state_dict({f"{name}{key}": v for name, part in parts.items() for key, v in part.state_dict().items()})
    return layer


@claim("vit.model")
@lie("86 million parameters", count=86_000_000)
@lie("the positions are not added", position=0.0)
@lie("the [CLS] token comes last", joined=_token_last)
@lie("the classes from the mean of the patches", read=_mean_of_patches)
def a_transformer_reads_patches(draw, count=86_567_656, position=1.0, joined=_token_first, read=_its_own, network=ViT):
    """By torch's own encoder from the same weights, in a narrow network; parameters of ViT-B/16 counted."""
    sizes = {"image_size": (8, 12), "patch_size": 4, "channels": 2, "width": 16, "depth": 2, "heads": 4, "hidden": 24}
    narrow, x = _draw_weights(draw, network(classes=5, **sizes)), draw.normal(3, 2, 8, 12)
    tokens = functional.conv2d(x, narrow.patches.project.weight, narrow.patches.project.bias, stride=4).flatten(2).mT
    h = joined(narrow.class_token.expand(3, -1, -1), tokens) + position * narrow.positions
    for block in narrow.blocks:
        h = _torchs_block(block)(h).detach()
    logits = narrow.head(narrow.norm(read(h)))  # type: ignore
    return all_of(
        exactly(sum(values.numel() for values in network(device="meta").parameters()), count),
        close(narrow(x), logits, ulps=1e5, scale=logits.abs().amax()),
    )
