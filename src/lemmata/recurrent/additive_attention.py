r"""Additive attention: a query looks at every place of a memory and takes their weighted mean."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.layer import checked_lengths, mask_outputs

__all__ = ["AdditiveAttention", "AttentionMemory"]


class AttentionMemory(NamedTuple):
    """What a memory needs to be asked many times: its annotations, their part of the scores, and which are there."""

    annotations: Float[Tensor, "batch places annotations"]
    keys: Float[Tensor, "batch places hidden"]
    there: Bool[Tensor, "batch places"] | None


@system("bahdanau_attention", title="Additive (Bahdanau) attention", kind="module")
class AdditiveAttention(nn.Module):
    r"""Weights from a small network that is shown the query beside each annotation; they add up to one.

    $$ a_j = \mathrm{softmax}_j\big(v^\top \tanh(W_z z + W_\zeta \zeta_j + b)\big), \qquad c = \sum_j a_j \zeta_j $$

    The network of the pair $[z, \zeta_j]$ has one layer of `hidden` units; its part that depends on the annotations
    alone is computed once for all queries (`remember`), and each query then costs one small product and a tanh for each
    place. With `lengths`, places after the end of a memory get the weight 0; an empty memory gives the context 0.

    Shapes:
        query: (batch, queries)    annotations: (batch, places, annotations)    lengths: (batch,)
        returns: context (batch, annotations), weights (batch, places)

    Claims: seq.bahdanau
    Source: Bahdanau, Cho, Bengio 2015.

    >>> attention = AdditiveAttention(queries=3, annotations=5, hidden=8)
    >>> context, weights = attention(torch.randn(2, 3), torch.randn(2, 7, 5), lengths=torch.tensor([7, 1]))
    >>> context.shape, weights[1]
    (torch.Size([2, 5]), tensor([1., 0., 0., 0., 0., 0., 0.], grad_fn=<SelectBackward0>))
    """

    def __init__(self, queries: int, annotations: int, hidden: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(validate.count("queries", queries), validate.count("hidden", hidden))
        self.of_annotation = nn.Linear(validate.count("annotations", annotations), hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)  # a constant would fall out of the softmax

    def remember(
        self, annotations: Float[Tensor, "batch places annotations"], lengths: Integer[Tensor, " batch"] | None = None
    ) -> AttentionMemory:
        """Everything about a memory that no query changes."""
        wanted = self.of_annotation.in_features
        if annotations.ndim != 3 or annotations.shape[-1] != wanted:
            raise ValueError(f"annotations must be (batch, places, {wanted}), got shape {tuple(annotations.shape)}")
        lengths = checked_lengths(lengths, annotations)
        annotations = mask_outputs(annotations, lengths)
        there = None
        if lengths is not None:
            there = torch.arange(annotations.shape[1], device=annotations.device) < lengths[:, None]
        return AttentionMemory(annotations, self.of_annotation(annotations), there)

    def look(
        self, query: Float[Tensor, "batch queries"], memory: AttentionMemory
    ) -> tuple[Float[Tensor, "batch annotations"], Float[Tensor, "batch places"]]:
        """The context and the weights of one query for each remembered memory."""
        scores = self.score(torch.tanh(self.of_query(query)[:, None] + memory.keys)).squeeze(-1)
        weights = _shares(scores, memory.there)
        return (weights[:, None] @ memory.annotations).squeeze(1), weights

    def forward(
        self,
        query: Float[Tensor, "batch queries"],
        annotations: Float[Tensor, "batch places annotations"],
        lengths: Integer[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch annotations"], Float[Tensor, "batch places"]]:
        if query.shape != (len(annotations), self.of_query.in_features):
            wanted = f"({len(annotations)}, {self.of_query.in_features})"
            raise ValueError(f"query must be {wanted}, one for each memory, got shape {tuple(query.shape)}")
        return self.look(query, self.remember(annotations, lengths))


def _shares(scores: Tensor, there: Tensor | None) -> Tensor:
    """The softmax over the places that are there; where there is none, zeros instead of 0/0."""
    if there is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min  # not minus infinity, whose softmax has no derivative where all are so
    shares = scores.masked_fill(~there, lowest).softmax(-1)
    return shares.masked_fill(~there, 0)
