r"""Cross-attention: one sequence looks at another."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.dot_product_attention import attention, attention_weights
from lemmata.transformers.sequence_input import for_all_heads, head_width_of, vectors

__all__ = ["CrossAttention", "Remembered"]


class Remembered(NamedTuple):
    """Keys and values of a memory, which no query changes."""

    key: Float[Tensor, "batch heads keys head_width"]
    value: Float[Tensor, "batch heads keys head_width"]


@system(
    "cross_attention",
    title="Cross-attention",
    kind="module",
    example="CrossAttention(width=8, heads=2, memory_width=6)(torch.randn(4, 5, 8), torch.randn(4, 7, 6))",
)
class CrossAttention(nn.Module):
    r"""Queries from one sequence, keys and values from another: a decoder looks at what an encoder found.

    $$ Q = AW_Q, \quad K = BW_K, \quad V = BW_V $$

    With $A = B$ this is self-attention. The memory's part is one product with `project_memory`, keys before values,
    and is computed once for all queries by `remember`.

    Shapes:
        x: (batch, queries, width)    memory: (batch, keys, memory_width)    returns: (batch, queries, width)
        mask: (batch, keys), true where the memory holds something, or (batch, queries, keys)

    Claims: attention.cross
    Source: Vaswani et al. 2017.  Differs: `memory_width` is both kdim and vdim of torch.nn.MultiheadAttention. Keys and
    values of different sequences or widths are projected first and given to `attention(query, key, value)`; what
    add_bias_kv and add_zero_attn append is one more row of the memory.

    >>> layer = CrossAttention(width=16, heads=4, memory_width=12)
    >>> layer(torch.randn(2, 5, 16), torch.randn(2, 9, 12)).shape
    torch.Size([2, 5, 16])
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        memory_width: int | None = None,
        head_width: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width, self.heads = validate.count("width", width), validate.count("heads", heads)
        self.memory_width = width if memory_width is None else validate.count("memory_width", memory_width)
        self.head_width = head_width_of(width, heads, head_width)
        self.dropout = validate.fraction("dropout", dropout)
        factory_kwargs: Any = {"bias": validate.flag("bias", bias), "device": device, "dtype": dtype}
        self.project = nn.Linear(width, heads * self.head_width, **factory_kwargs)
        self.project_memory = nn.Linear(self.memory_width, 2 * heads * self.head_width, **factory_kwargs)
        self.join = nn.Linear(heads * self.head_width, width, **factory_kwargs)

    def remember(self, memory: Float[Tensor, "batch keys memory_width"]) -> Remembered:
        """Everything about a memory that no query changes."""
        batch, keys, _ = vectors("memory", memory, self.memory_width, "keys").shape
        # Cut before they are turned, so that their gradients are joined again where they lie.
        key, value = self.project_memory(memory).view(batch, keys, 2, self.heads, self.head_width).unbind(2)
        return Remembered(key.transpose(1, 2), value.transpose(1, 2))  # each (batch, heads, keys, head_width)

    def forward(
        self,
        x: Float[Tensor, "batch queries width"],
        memory: Float[Tensor, "batch keys memory_width"] | Remembered,
        mask: Bool[Tensor, "batch *_ keys"] | None = None,
    ) -> Float[Tensor, "batch queries width"]:
        query, (key, value) = self._project_queries(x), self._remembered_memory(memory)
        dropout = self.dropout if self.training else 0.0
        found = attention(query, key, value, for_all_heads(mask), dropout=dropout)
        return self.join(found.transpose(1, 2).flatten(2))  # (batch, queries, width)

    def weights(
        self,
        x: Float[Tensor, "batch queries width"],
        memory: Float[Tensor, "batch keys memory_width"] | Remembered,
        mask: Bool[Tensor, "batch *_ keys"] | None = None,
    ) -> Float[Tensor, "batch heads queries keys"]:
        """Where each head looks."""
        return attention_weights(self._project_queries(x), self._remembered_memory(memory).key, for_all_heads(mask))

    def _project_queries(self, x: Tensor) -> Tensor:
        batch, queries, _ = vectors("x", x, self.width, "queries").shape
        return self.project(x).view(batch, queries, self.heads, self.head_width).transpose(1, 2)

    def _remembered_memory(self, memory: Tensor | Remembered) -> Remembered:
        return memory if isinstance(memory, Remembered) else self.remember(memory)
