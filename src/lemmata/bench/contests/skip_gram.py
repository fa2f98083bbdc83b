"""Skip-gram with negative sampling against gensim: the same text, window, negatives and passes, on two cores.

gensim's compiled loop goes pair by pair with a BLAS call for each product, draws each negative by a binary search, and
lets its two workers overwrite each other's vectors, so that no two runs agree. Ours goes batch by batch on one core,
with draws that cost the same for any vocabulary, and the same seed gives the same vectors. So they cannot agree in
numbers: what they must share is how well the vectors tell pairs of the text from drawn ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.convolution.skip_gram import SkipGram, cooccurring_pairs, unigram_distribution
from lemmata.data.registry import load
from lemmata.data.text import Vocabulary
from lemmata.fast.skip_gram_sweep import alias_table, sweep_pairs, sweep_pairs_in_torch

PASSES, WINDOW, SAMPLES, RATE, BATCH = 4, 5, 5, 0.025, 256
DIMENSIONS = 100  # gensim's default
WORDS = 80_000  # of the text, at most
PIECE = 1000  # words that gensim is given at once


class Text(NamedTuple):
    """A text in numbers, and the pairs in it."""

    tokens: Tensor
    pairs: Tensor
    vocabulary: Vocabulary


@entry(
    "skip_gram",
    title="Skip-gram with negative sampling against gensim",
    measures="four passes over all pairs of a text, five negatives each",
    cases={"plays": "79,205 words of Shakespeare, 7,075 different; 3.2 million pairs in all; vectors of 100 numbers"},
    targets={"gensim, two workers": 1.0},
    devices="cpu",
)
def plays(case: str, device: str) -> Text:
    """Three plays, word by word."""
    found = load("shakespeare", unit="word")
    tokens = found.train.x[:WORDS]
    return Text(tokens, cooccurring_pairs(tokens, WINDOW), found.extra["vocabulary"])


@ours("lemmata")
def by_sweeps(text: Text) -> Callable[[], Any]:
    """Our sweeps, with the rate falling from pass to pass; the order of the pairs is drawn in the time measured."""
    return _sweeping_tables(text, sweep_pairs)


@ours("lemmata without a compiler")
def by_torch(text: Text) -> Callable[[], Any]:
    """The same by the readable path."""
    return _sweeping_tables(text, sweep_pairs_in_torch)


def _sweeping_tables(text: Text, sweep: Callable[..., float]) -> Callable[[], Any]:
    size = len(text.vocabulary)

    def train() -> Any:
        torch.manual_seed(0)
        model, distribution = SkipGram(size, DIMENSIONS), alias_table(unigram_distribution(text.tokens, size))
        tables = model.given.weight.detach(), model.predicted.weight.detach()
        for number in range(PASSES):
            order = text.pairs[torch.randperm(len(text.pairs))]
            sweep(*tables, order, distribution, RATE * (1 - number / PASSES), SAMPLES, BATCH, seed=number)
        return *tables, text

    return train


@peer("gensim, two workers", needs="gensim")
def by_gensim(text: Text) -> Callable[[], Any]:
    """gensim's word2vec with the whole window and all words, as ours has them."""
    return _peer_tables(text, 2)


@peer("gensim, one worker", needs="gensim")
def by_one_worker(text: Text) -> Callable[[], Any]:
    """The same on one core."""
    return _peer_tables(text, 1)


def _peer_tables(text: Text, workers: int) -> Callable[[], Any]:
    from gensim.models import Word2Vec  # type: ignore[import-not-found]

    words = [text.vocabulary.tokens[number] for number in text.tokens.tolist()]
    pieces = [words[first : first + PIECE] for first in range(0, len(words), PIECE)]
    choices: dict[str, Any] = {"vector_size": DIMENSIONS, "window": WINDOW, "negative": SAMPLES, "alpha": RATE}
    choices |= {"sg": 1, "min_count": 1, "sample": 0, "shrink_windows": False, "workers": workers, "seed": 1}

    def train() -> Any:
        model = Word2Vec(**choices)
        model.build_vocab(pieces)
        model.train(pieces, total_examples=len(pieces), epochs=PASSES)
        # Their rows in our order; a word of the vocabulary that the text lacks has none.
        numbers = torch.tensor([text.vocabulary.numbers[word] for word in model.wv.index_to_key])
        tables = []
        for theirs in (model.wv.vectors, model.syn1neg):
            table = torch.zeros(len(text.vocabulary), DIMENSIONS)
            table[numbers] = torch.from_numpy(theirs)
            tables.append(table)
        return *tables, text

    return train


@limit("as many multiplications in products of matrices: each score, and its part in two gradients")
def multiplications_alone(text: Text) -> Callable[[], Any]:
    """Nothing is gathered, drawn or scattered."""
    block, terms = 4096, 3 * (1 + SAMPLES)
    left, right, out = torch.randn(block, terms), torch.randn(terms, DIMENSIONS), torch.empty(block, DIMENSIONS)
    blocks = -(-len(text.pairs) // block)

    def multiply() -> None:
        for _ in range(PASSES * blocks):
            torch.mm(left, right, out=out)

    return multiply


@agreement(within=0.06)
def pairs_told_from_drawn_ones(result: Any) -> dict[str, float]:
    """How often a pair of the text scores above one with a drawn word; equal vectors would give a half."""
    given, predicted, text = result
    generator = torch.Generator().manual_seed(0)
    pairs = text.pairs[torch.randint(len(text.pairs), (100_000,), generator=generator)]
    distribution = unigram_distribution(text.tokens, len(text.vocabulary))
    drawn = torch.multinomial(distribution, len(pairs), replacement=True, generator=generator)
    x = given[pairs[:, 0]]
    lead = (x * (predicted[pairs[:, 1]] - predicted[drawn])).sum(1)
    return {"accuracy": float((lead > 0).double().mean())}
