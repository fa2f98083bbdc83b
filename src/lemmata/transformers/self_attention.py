r"""Multi-head self-attention: a sequence looks at itself, several times in parallel."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.dot_product_attention import attention, attention_weights
from lemmata.transformers.key_value_cache import FixedCache, KeyValueCache
from lemmata.transformers.positions import rotate
from lemmata.transformers.sequence_input import for_all_heads, head_width_of, vectors

__all__ = ["SelfAttention"]


@system(
    "self_attention",
    title="Multi-head self-attention",
    kind="module",
    example="SelfAttention(width=8, heads=2, causal=True)(torch.randn(4, 7, 8))",
)
class SelfAttention(nn.Module):
    r"""$h$ attentions side by side, each with queries, keys and values of its own, and a map that joins them.

    $$ Q_i = XW_Q^{(i)}, \quad K_i = XW_K^{(i)}, \quad V_i = XW_V^{(i)}, \qquad
       \Xi_i = \mathrm{softmax}\!\left(\frac{Q_iK_i^\top}{\sqrt{d_k}}\right)V_i, \qquad
       [\Xi_1, \dots, \Xi_h]\,W_O $$

    All projections are one product with `project`, whose rows are the queries of all heads, then the keys, then the
    values; each head has `head_width` values of each (`width / heads` unless told otherwise). With `causal`, position
    s sees the positions up to s alone. `rotary` turns queries and keys by their position, with that base (10,000 is
    usual). `dropout` leaves out a fraction of the weights while training. With `answered`, only the first so many
    positions ask: where the others' answers are of no use, as in the last block below a [CLS] token.

    Shapes:
        x: (batch, time, width)    returns: (batch, time, width), or (batch, answered, width)
        mask: (batch, time), true where there is a token to look at, or (batch, time, time) for each query and key
        cache: what came before x; it grows by x

    Claims: attention.self, attention.multihead, attention.fused_projection, attention.causal_mask,
        attention.equivariance, attention.query_key
    Source: Vaswani et al. 2017.

    >>> layer = SelfAttention(width=16, heads=4, causal=True)
    >>> layer(torch.randn(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        head_width: int | None = None,
        causal: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        rotary: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width, self.heads = validate.count("width", width), validate.count("heads", heads)
        self.head_width = head_width_of(width, heads, head_width)
        self.causal, self.dropout = validate.flag("causal", causal), validate.fraction("dropout", dropout)
        self.rotary = rotary
        if rotary is not None:
            validate.number("rotary", rotary, above=1)
            if self.head_width % 2:
                raise ValueError(f"rotary turns pairs of values, but head_width is {self.head_width}, which is odd")
        factory_kwargs: Any = {"bias": validate.flag("bias", bias), "device": device, "dtype": dtype}
        self.project = nn.Linear(width, 3 * heads * self.head_width, **factory_kwargs)
        self.join = nn.Linear(heads * self.head_width, width, **factory_kwargs)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        mask: Bool[Tensor, "batch *_ keys"] | None = None,
        cache: KeyValueCache | FixedCache | None = None,
        answered: int | None = None,
    ) -> Float[Tensor, "batch answers width"]:
        query, key, value = self.heads_of(x, 0 if cache is None else cache.start)
        if answered is not None:
            if self.causal:
                raise ValueError("causal attention has its last query at the last key: leave answered out")
            query = query[:, :, : validate.count("answered", answered)]  # (batch, heads, answered, head_width)
            mask = mask[:, :answered] if mask is not None and mask.ndim == 3 else mask
        if cache is not None:
            key, value = cache.append(key, value)  # (batch, heads, past, head_width)
        dropout = self.dropout if self.training else 0.0
        found = attention(query, key, value, for_all_heads(mask), self.causal, dropout=dropout)
        return self.join(found.transpose(1, 2).flatten(2))  # (batch, answers, width)

    def heads_of(self, x: Float[Tensor, "batch time width"], start: int | Tensor = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of each head, where x begins at position `start`."""
        batch, time, _ = vectors("x", x, self.width).shape
        # Cut before they are turned, so that their gradients are joined again where they lie.
        query, key, value = self.project(x).view(batch, time, 3, self.heads, self.head_width).unbind(2)
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        # each (batch, heads, time, head_width)
        if self.rotary is not None:
            positions = start + torch.arange(x.shape[1], device=x.device)
            query, key = rotate(query, positions, self.rotary), rotate(key, positions, self.rotary)
        return query, key, value

    def weights(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch *_ keys"] | None = None
    ) -> Float[Tensor, "batch heads time time"]:
        """Where each head looks."""
        query, key, _ = self.heads_of(x)
        return attention_weights(query, key, for_all_heads(mask), self.causal)  # (batch, heads, time, time)
