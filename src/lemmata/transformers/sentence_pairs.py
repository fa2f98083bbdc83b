r"""Pairs of sentences for BERT: [CLS] A [SEP] B [SEP], and whether B came after A."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["SentencePairs", "draw_pairs", "join_pairs"]

Sentence = Sequence[int]


class SentencePairs(NamedTuple):
    """What BERT reads of each pair: tokens, segments, where there is a token; and whether B follows A, where known."""

    x: Int[Tensor, "batch time"]
    segments: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    follows: Bool[Tensor, " batch"] | None = None


def join_pairs(
    pairs: Sequence[tuple[Sentence, Sentence]],
    cls_token: int,
    sep_token: int,
    pad_token: int = 0,
    max_length: int = 512,
) -> SentencePairs:
    r"""Sentences as `[CLS] A [SEP] B [SEP]`, padded to the longest; of a pair too long, the longer one is cut.

    A with the two tokens around it has segment 0, B and its end segment 1. Where B is empty, so is its end:
    `[CLS] A [SEP]`.

    Shapes:
        returns: x, segments and mask, all (pairs, time)

    Claims: bert.nsp

    >>> join_pairs([([5, 6], [7]), ([8], [])], cls_token=1, sep_token=2).x
    tensor([[1, 5, 6, 2, 7, 2],
            [1, 8, 2, 0, 0, 0]])
    """
    if not pairs:
        raise ValueError("pairs must hold at least one pair of sentences")
    validate.count("max_length", max_length, least=5)
    rows, starts = [], []
    for whole in pairs:
        first, second = cut_pair(*whole, max_length)
        rows.append([cls_token, *first, sep_token, *second, *([sep_token] if len(second) else [])])
        starts.append(len(first) + 2)
    lengths = torch.tensor([len(row) for row in rows])[:, None]
    longest = int(lengths.max())
    x = torch.tensor([row + [pad_token] * (longest - len(row)) for row in rows])  # (pairs, time)
    place = torch.arange(longest)
    mask = place < lengths
    segments = (mask & (place >= torch.tensor(starts)[:, None])).long()
    return SentencePairs(x, segments, mask)


def cut_pair(first: Sentence, second: Sentence, max_length: int) -> tuple[Sentence, Sentence]:
    """Two sentences that fit, with the tokens around them: the longer one loses its end, until both are alike."""
    room = max_length - (3 if len(second) else 2)
    kept = min(len(first), max(room - len(second), room - room // 2))
    return first[:kept], second[: room - kept]


@system("draw_pairs", title="Pairs of sentences", kind="function")
def draw_pairs(
    documents: Sequence[Sequence[Sentence]],
    count: int,
    cls_token: int,
    sep_token: int,
    pad_token: int = 0,
    max_length: int = 512,
    fraction: float = 0.5,
    generator: torch.Generator | None = None,
) -> SentencePairs:
    r"""Pairs of which a `fraction` are neighbours in the corpus, and the others no such: what BERT has to tell apart.

    $$ P(B \text{ is the sentence after } A) = \tfrac12, \qquad \text{else } B \text{ is any sentence of another
       document} $$

    A is any sentence that has one after it, and all such are equally likely. If there is one document only, a B that
    does not follow is any sentence of it but A and the one after.

    Shapes:
        documents: sentences in their order, each a sequence of tokens
        returns: x, segments and mask (count, time), follows (count,)

    Claims: bert.nsp
    Source: Devlin et al. 2019.

    >>> draw_pairs([[[5, 6], [7]], [[8]]], 2, cls_token=1, sep_token=2, fraction=1.0).x
    tensor([[1, 5, 6, 2, 7, 2],
            [1, 5, 6, 2, 7, 2]])
    """
    validate.count("count", count)
    validate.number("fraction", fraction, least=0, most=1)
    sentences = [sentence for document in documents for sentence in document]
    lengths = torch.tensor([len(document) for document in documents], dtype=torch.int64)
    ends = lengths.cumsum(0)
    first = torch.ones(len(sentences), dtype=torch.bool)
    first[ends[lengths > 0] - 1] = False  # the last sentence of a document has none after it
    places = first.nonzero().flatten()
    if not len(places):
        raise ValueError("documents must hold one with two sentences or more, to have one that follows another")
    if sum(lengths > 0) == 1 and len(sentences) < 3:
        raise ValueError("a single document must have at least 3 sentences, for one that does not follow: give more")
    chosen = places[torch.randint(len(places), (count,), generator=generator)]
    follows = torch.rand(count, generator=generator) < fraction
    # The sentences that may not be drawn stand together: A's document, or A and its successor in the only one.
    document = torch.searchsorted(ends, chosen, right=True)
    alone = lengths[document] == len(sentences)
    begin = torch.where(alone, chosen, ends[document] - lengths[document])
    left_out = torch.where(alone, 2, lengths[document])
    share = torch.rand(count, generator=generator, dtype=torch.float64) * (len(sentences) - left_out)
    other = share.long().minimum(len(sentences) - left_out - 1)
    other += torch.where(other >= begin, left_out, 0)
    second = torch.where(follows, chosen + 1, other)
    pairs = [(sentences[a], sentences[b]) for a, b in zip(chosen.tolist(), second.tolist(), strict=True)]
    return join_pairs(pairs, cls_token, sep_token, pad_token, max_length)._replace(follows=follows)
