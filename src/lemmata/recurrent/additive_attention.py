r"""Additive attention: a query looks at every position of a memory and takes their weighted mean."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.layer import checked_lengths, mask_outputs

__all__ = ["AdditiveAttention", "AttentionMemory"]


class AttentionMemory(NamedTuple):
    """What a memory needs to be asked many times: its annotations, their part of the scores, and where they end."""

    annotations: Float[Tensor, "batch positions annotations"]
    keys: Float[Tensor, "batch positions hidden"]
    mask: Bool[Tensor, "batch positions"] | None


@system(
    "bahdanau_attention",
    title="Additive (Bahdanau) attention",
    kind="module",
    example="AdditiveAttention(queries=3, annotations=5, hidden=8)(torch.randn(4, 3), torch.randn(4, 7, 5))",
)
class AdditiveAttention(nn.Module):
    r"""Weights from a small network that is shown the query beside each annotation; they add up to one.

    $$ a_j = \mathrm{softmax}_j\big(v^\top \tanh(W_z z + W_\zeta \zeta_j + b)\big), \qquad c = \sum_j a_j \zeta_j $$

    The network of the pair $[z, \zeta_j]$ has one layer of `hidden` units; its part that depends on the annotations
    alone is computed once for all queries (`remember`), and each query then costs one small product and a tanh for each
    position. With `lengths`, positions after the end of a memory get the weight 0; an empty memory gives the context 0.

    Shapes:
        query: (batch, queries)    annotations: (batch, positions, annotations)    lengths: (batch,)
        returns: context (batch, annotations), weights (batch, positions)

    Claims: seq.bahdanau
    Source: Bahdanau, Cho, Bengio 2015.

    >>> attention = AdditiveAttention(queries=3, annotations=5, hidden=8)
    >>> context, weights = attention(torch.randn(2, 3), torch.randn(2, 7, 5), lengths=torch.tensor([7, 1]))
    >>> context.shape, weights[1]
    (torch.Size([2, 5]), tensor([1., 0., 0., 0., 0., 0., 0.], grad_fn=<SelectBackward0>))
    """

    def __init__(
        self,
        queries: int,
        annotations: int,
        hidden: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        validate.count("hidden", hidden)
        self.of_query = nn.Linear(validate.count("queries", queries), hidden, **factory_kwargs)
        self.of_annotation = nn.Linear(validate.count("annotations", annotations), hidden, bias=False, **factory_kwargs)
        self.score = nn.Linear(hidden, 1, bias=False, **factory_kwargs)  # a constant would fall out of the softmax

    def remember(
        self,
        annotations: Float[Tensor, "batch positions annotations"],
        lengths: Integer[Tensor, " batch"] | None = None,
    ) -> AttentionMemory:
        """Everything about a memory that no query changes."""
        wanted = self.of_annotation.in_features
        if validate.inputs("annotations", annotations, wanted).ndim != 3:
            raise ValueError(f"annotations must be (batch, positions, {wanted}), got shape {tuple(annotations.shape)}")
        lengths = checked_lengths(lengths, annotations)
        annotations = mask_outputs(annotations, lengths)
        mask = None
        if lengths is not None:
            mask = (
                torch.arange(annotations.shape[1], device=annotations.device) < lengths[:, None]
            )  # (batch, positions)
        return AttentionMemory(annotations, self.of_annotation(annotations), mask)  # keys (batch, positions, hidden)

    def attend(
        self, query: Float[Tensor, "batch query_width"], memory: AttentionMemory
    ) -> tuple[Float[Tensor, "batch annotations"], Float[Tensor, "batch positions"]]:
        """The context and the weights of one query for each remembered memory."""
        units = torch.tanh(self.of_query(query)[:, None] + memory.keys)  # (batch, positions, hidden)
        scores = self.score(units).squeeze(-1)  # (batch, positions)
        weights = _masked_softmax(scores, memory.mask)  # (batch, positions)
        return (weights[:, None] @ memory.annotations).squeeze(1), weights  # (batch, annotations)

    def forward(
        self,
        query: Float[Tensor, "batch query_width"],
        annotations: Float[Tensor, "batch positions annotations"],
        lengths: Integer[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch annotations"], Float[Tensor, "batch positions"]]:
        memory = self.remember(annotations, lengths)
        wanted = annotations.shape[0], self.of_query.in_features
        if validate.inputs("query", query, wanted[1]).shape != wanted:
            raise ValueError(f"query must be {wanted}, one for each memory, got shape {tuple(query.shape)}")
        return self.attend(query, memory)


def _masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the positions in the mask; where there is none, zeros instead of 0/0."""
    if mask is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min  # not minus infinity, whose softmax has no derivative where all are so
    return scores.masked_fill(~mask, lowest).softmax(-1).masked_fill(~mask, 0)
