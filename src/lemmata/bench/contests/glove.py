"""GloVe, entry by entry as published, against the plain loop: the same entries in the same order, on one core.

gensim has no GloVe. The authors' program is the loop that is here in NumPy, in C with threads that overwrite each
other's vectors. All contenders compute the same numbers up to rounding.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.convolution.glove import GloVe, cooccurrence_counts
from lemmata.data.registry import load
from lemmata.fast.glove_sweep import WordTables, sweep_entries, sweep_entries_in_torch

WORDS, WINDOW, DIMENSIONS, RATE = 8000, 10, 64, 0.05


class Table(NamedTuple):
    """A table of co-occurrences, its entries in an order drawn once, and a model to begin with."""

    pairs: Tensor
    counts: Tensor
    model: GloVe


@entry(
    "glove",
    title="GloVe against the plain loop",
    measures="one pass of AdaGrad over all entries, one after the other",
    cases={"plays": "8,000 words of Shakespeare: 86,744 entries, vectors of 64 numbers"},
    targets={"NumPy, entry by entry": 0.05},
    devices="cpu",
)
def plays(case: str, device: str) -> Table:
    """The beginning of three plays, word by word."""
    found = load("shakespeare", unit="word")
    size = len(found.extra["vocabulary"])
    pairs, counts = cooccurrence_counts(found.train.x[:WORDS], size, WINDOW)
    torch.manual_seed(0)
    order = torch.randperm(len(pairs))
    return Table(pairs[order], counts[order], GloVe(size, DIMENSIONS, maximum=10.0))


@ours("lemmata")
def by_sweep(table: Table) -> Callable[[], Any]:
    """Our sweep."""
    return _sweeping_tables(table, sweep_entries)


@ours("lemmata without a compiler")
def by_torch(table: Table) -> Callable[[], Any]:
    """The same by the readable path, which is made for batches."""
    return _sweeping_tables(table, sweep_entries_in_torch)


def _sweeping_tables(table: Table, sweep: Callable[..., float]) -> Callable[[], Any]:
    weights = table.model.weights(table.counts)

    def train() -> Any:
        vectors = _initial_tables(table.model)
        sweep(vectors, table.model.initial_squares(), table.pairs, table.counts.log(), weights, RATE, 1)
        return vectors, table

    return train


def _initial_tables(model: GloVe) -> WordTables:
    parts = (model.given.weight, model.predicted.weight, model.given_bias, model.predicted_bias)
    return WordTables(*(part.detach().clone() for part in parts))


@peer("NumPy, entry by entry")
def by_numpy(table: Table) -> Callable[[], Any]:
    """The plain loop: as few calls for each entry as there can be."""
    import numpy

    pairs = table.pairs.tolist()
    targets, weights = table.counts.log().tolist(), table.model.weights(table.counts).tolist()

    def train() -> Any:
        vectors = _initial_tables(table.model)
        x, y, p, q = (part.numpy() for part in vectors)
        xs, ys, ps, qs = (numpy.ones_like(part) for part in (x, y, p, q))
        for (w, c), target, weight in zip(pairs, targets, weights, strict=True):
            slope = weight * (x[w] @ y[c] + p[w] + q[c] - target)
            by_word, by_context = slope * y[c], slope * x[w]
            xs[w] += by_word**2
            ys[c] += by_context**2
            ps[w] += slope**2
            qs[c] += slope**2
            x[w] -= RATE * by_word / numpy.sqrt(xs[w])
            y[c] -= RATE * by_context / numpy.sqrt(ys[c])
            p[w] -= RATE * slope / numpy.sqrt(ps[w])
            q[c] -= RATE * slope / numpy.sqrt(qs[c])
        return vectors, table

    return train


@limit("the rows read and written back, without a product or a root")
def rows_alone(table: Table) -> Callable[[], Any]:
    """Vectors and squares of both words of each entry, gathered and put back."""
    vectors, squares = _initial_tables(table.model), table.model.initial_squares()
    words, contexts = table.pairs.unbind(1)

    def move() -> None:
        for part, rows in ((vectors, words), (vectors, contexts), (squares, words), (squares, contexts)):
            part.given.index_copy_(0, rows, part.given[rows])

    return move


@agreement(within=1e-3)
def loss_of_the_table(result: Any) -> dict[str, float]:
    """The mean of J's terms after the pass, and the length of all vectors."""
    vectors, table = result
    x, y = vectors.given[table.pairs[:, 0]], vectors.predicted[table.pairs[:, 1]]
    constants = vectors.given_bias[table.pairs[:, 0]] + vectors.predicted_bias[table.pairs[:, 1]]
    errors = ((x * y).sum(1) + constants - table.counts.log()).double()
    loss = (table.model.weights(table.counts) * errors.square()).mean()
    return {"loss": float(loss), "length": float(vectors.given.double().norm())}
