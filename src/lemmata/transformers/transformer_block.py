r"""A block of a transformer: attention mixes the positions, a small network works on each, and both are added to x."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.transformers.cross_attention import CrossAttention, Remembered
from lemmata.transformers.key_value_cache import FixedCache, KeyValueCache
from lemmata.transformers.self_attention import SelfAttention
from lemmata.transformers.sequence_input import vectors

__all__ = ["FeedForward", "TransformerBlock"]


class FeedForward(nn.Module):
    r"""The same network of two layers at every position: $F(\xi_t) = W_2\,\phi(W_1\xi_t + b_1) + b_2$.

    Shapes:
        x: (..., width)    returns: (..., width)

    Claims: attention.pointwise

    >>> FeedForward(width=8, hidden=32)(torch.randn(2, 10, 8)).shape
    torch.Size([2, 10, 8])
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: str = "gelu",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation_named(activation).name
        factory_kwargs: Any = {"bias": validate.flag("bias", bias), "device": device, "dtype": dtype}
        self.expand = nn.Linear(validate.count("width", width), validate.count("hidden", hidden), **factory_kwargs)
        self.contract = nn.Linear(hidden, width, **factory_kwargs)

    def forward(self, x: Float[Tensor, "... width"]) -> Float[Tensor, "... width"]:
        return self.contract(activated(self.activation, self.expand(x)))  # (..., hidden) in between


def activated(name: str, z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """What the activation of this name makes of z."""
    return activation_named(name).value(z)


@system(
    "transformer_block",
    title="Transformer block",
    kind="module",
    example="TransformerBlock(width=8, heads=2, causal=True)(torch.randn(4, 7, 8))",
)
class TransformerBlock(nn.Module):
    r"""Self-attention, cross-attention where there is a memory, and a network for each position, all with residuals.

    $$ \text{norm first:}\quad x + S(\mathrm{LN}(x)), \qquad \text{norm last:}\quad \mathrm{LN}(x + S(x)) $$

    `norm_first=False` is the original; GPT-2, ViT and nearly all that came later normalise first. `hidden` is the
    width inside the network of each position, four times `width` unless told. With `cross`, the block looks at a
    `memory` between the two. `dropout` leaves out a fraction of what each part adds, `attention_dropout` of the
    weights of attention. With `answered`, only the first so many positions come out, which look at all.

    Shapes:
        x: (batch, time, width)    mask: (batch, time) or (batch, time, time)
        returns: (batch, time, width), or (batch, answered, width)
        memory: (batch, keys, memory_width), or what `cross_attention.remember` made of it; memory_mask: (batch, keys)
        cache: what came before x

    Claims: transformer.residual_ln, transformer.decoder
    Source: Vaswani et al. 2017; Xiong et al. 2020.

    >>> block = TransformerBlock(width=16, heads=4, causal=True)
    >>> block(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int | None = None,
        activation: str = "gelu",
        norm_first: bool = True,
        causal: bool = False,
        cross: bool = False,
        memory_width: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        bias: bool = True,
        eps: float = 1e-5,
        rotary: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.norm_first, self.dropout = validate.flag("norm_first", norm_first), validate.fraction("dropout", dropout)
        eps = validate.number("eps", eps, least=0)
        factory_kwargs: Any = {"device": device, "dtype": dtype}
        self.self_attention = SelfAttention(
            width, heads, None, causal, attention_dropout, bias, rotary, **factory_kwargs
        )
        self.self_attention_norm = nn.LayerNorm(width, eps, **factory_kwargs)
        self.cross_attention = None
        if validate.flag("cross", cross):
            self.cross_attention = CrossAttention(
                width, heads, memory_width, None, attention_dropout, bias, **factory_kwargs
            )
            self.cross_attention_norm = nn.LayerNorm(width, eps, **factory_kwargs)
        elif memory_width is not None:
            raise ValueError("memory_width belongs to cross-attention: say cross=True")
        self.feed_forward = FeedForward(
            width, 4 * width if hidden is None else hidden, activation, bias, **factory_kwargs
        )
        self.feed_forward_norm = nn.LayerNorm(width, eps, **factory_kwargs)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "batch *_ keys"] | None = None,
        memory: Float[Tensor, "batch keys memory_width"] | Remembered | None = None,
        memory_mask: Bool[Tensor, "batch keys"] | None = None,
        cache: KeyValueCache | FixedCache | None = None,
        answered: int | None = None,
    ) -> Float[Tensor, "batch answers width"]:
        look = self.self_attention
        vectors("x", x, look.width)
        if (memory is None) != (self.cross_attention is None):
            raise ValueError("a block with cross=True needs a memory, and only such a block takes one")
        x = self._add_part(x, self.self_attention_norm, lambda h: look(h, mask, cache=cache, answered=answered))
        if self.cross_attention is not None:
            other = self.cross_attention
            x = self._add_part(x, self.cross_attention_norm, lambda h: other(h, memory, memory_mask))
        return self._add_part(x, self.feed_forward_norm, self.feed_forward)

    def _add_part(self, x: Tensor, norm: nn.LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what one part makes of it, where that part answers."""
        found = part(norm(x) if self.norm_first else x)
        if self.dropout and self.training:
            found = functional.dropout(found, self.dropout)
        if found.shape[1] != x.shape[1]:
            x = x[:, : found.shape[1]]  # (batch, answers, width)
        return x + found if self.norm_first else norm(x + found)
