r"""Neighbour sampling: what a few nodes hear over a few rounds, from some of their neighbours, in bounded memory."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.rows import Rows
from lemmata.geometric.graph import Graph, check_graph
from lemmata.train.randomness import batch_indices

__all__ = ["NeighbourSample", "neighbour_batches", "sample_neighbours"]


class NeighbourSample(NamedTuple):
    """A small graph around some nodes: they come first, then those found, in the order in which they were.

    Shapes:
        nodes: (found,) which nodes of the large graph these are    edges: (sampled,) which of its edges
    """

    graph: Graph
    nodes: Int[Tensor, " found"]
    edges: Int[Tensor, " sampled"]
    asked: int


def sample_neighbours(
    graph: Graph,
    nodes: Int[Tensor, " asked"],
    fanouts: Sequence[int | None],
    generator: torch.Generator | None = None,
    unbiased: bool = False,
) -> NeighbourSample:
    r"""For each node at most `fanouts[0]` of the edges that lead to it, for their sources `fanouts[1]`, and so on.

    Edges are drawn without replacement, each as likely; a fanout of None takes them all, and then a network of as many
    layers as fanouts gives the asked nodes, `[:asked]`, what it gives them in the whole graph. With `unbiased` the $k$
    of $d$ edges drawn count $d/k$ times their weight, so that the mean of a sampled sum is the sum:

    $$ \mathbb{E} \sum_{e \in S} \frac{d}{k}\, w_e x_e = \sum_e w_e x_e $$

    For a graph convolution sample from `normalized_adjacency(graph)`, whose weights know the degrees in the whole
    graph. Memory is that of the sample, whatever the degrees.

    Shapes:
        nodes: (asked,) int64, each once

    Source: W. Hamilton, R. Ying and J. Leskovec, Inductive representation learning on large graphs (2017).

    >>> star = Graph([[leaf, 0] for leaf in range(1, 100)])
    >>> sample_neighbours(star, torch.tensor([0]), [5], torch.Generator().manual_seed(0)).graph
    Graph(6 nodes, 5 edges)
    """
    check_graph(graph)
    if nodes.ndim != 1 or nodes.is_floating_point() or len(nodes.unique()) != len(nodes):
        raise ValueError(f"nodes must be a row of integers, each once, got {nodes.tolist()[:8]}")
    if len(nodes) and not (int(nodes.min()) >= 0 and int(nodes.max()) < graph.nodes):
        raise ValueError(f"nodes must be from 0 to {graph.nodes - 1}, got {int(nodes.min())} to {int(nodes.max())}")
    if graph.graph_of is not None:
        raise ValueError("graph must be a single one, got several side by side: use unbatch_graphs")
    known, front = nodes.to(torch.int64), 0  # those before `front` have been asked
    targets, sources, places, counts = [], [], [], []  # of the edges drawn, round by round
    for fanout in fanouts:
        count = None if fanout is None else validate.count("fanouts", fanout)
        which, row, share = _draw_neighbours(graph.incoming, known[front:], count, generator)
        targets.append(row + front)
        places.append(graph.incoming.entries[which])
        counts.append(share)
        front, (known, local) = len(known), _join_nodes(known, graph.incoming.columns[which])
        sources.append(local)
    if not targets:
        raise ValueError("fanouts must be at least one, got none")
    chosen = torch.cat(places)
    weights = None if graph.edge_weights is None else graph.edge_weights[chosen]
    if unbiased:
        scale = torch.cat(counts).to(torch.get_default_dtype() if weights is None else weights.dtype)
        weights = scale if weights is None else weights * scale
    x, features = graph.x, graph.edge_features
    small = Graph(
        torch.stack([torch.cat(sources), torch.cat(targets)]),
        len(known),
        None if x is None else x[known],
        weights,
        None if features is None else features[chosen],
    )
    return NeighbourSample(small, known, chosen, len(nodes))


def neighbour_batches(
    graph: Graph,
    nodes: Int[Tensor, " examples"],
    fanouts: Sequence[int | None],
    batch_size: int,
    seed: int = 0,
    epoch: int = 0,
    unbiased: bool = False,
) -> Iterator[NeighbourSample]:
    """All nodes in a random order, batch by batch, each with its sampled neighbours.

    Batch t is a function of (seed, epoch, t) alone: the same on a graph that lies elsewhere.

    >>> path = Graph([[0, 1], [1, 2], [2, 3]]).undirected()
    >>> [batch.asked for batch in neighbour_batches(path, torch.arange(4), [2], batch_size=3)]
    [3, 1]
    """
    validate.count("batch_size", batch_size)
    for number in range(-(-len(nodes) // batch_size)):
        digest = hashlib.sha256(f"neighbours {seed} {epoch} {number}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        some = nodes[batch_indices(seed, epoch, number, batch_size, len(nodes)).to(nodes.device)]
        yield sample_neighbours(graph, some, fanouts, generator, unbiased)


def _draw_neighbours(
    rows: Rows, asked: Int[Tensor, " asked"], count: int | None, generator: torch.Generator | None
) -> tuple[Int[Tensor, " drawn"], Int[Tensor, " drawn"], Float[Tensor, " drawn"]]:
    """Places among the columns, which of those asked each belongs to, and how many edges each stands for."""
    first, degrees = rows.pointers[asked], rows.pointers[asked + 1] - rows.pointers[asked]
    taken = degrees if count is None else degrees.clamp(max=count)
    row = torch.arange(len(asked), device=asked.device).repeat_interleave(taken)
    begin = taken.cumsum(0) - taken
    inner = torch.arange(len(row), device=asked.device) - begin[row]  # 0, 1, ... in each row: all its edges, or
    many = (degrees > taken).nonzero()[:, 0]
    if count is not None and len(many):
        inner[begin[many][:, None] + torch.arange(count, device=asked.device)] = _draw_subsets(
            degrees[many], count, generator
        )
    return first[row] + inner, row, (degrees.double() / taken.clamp(min=1))[row]


def _draw_subsets(
    sizes: Int[Tensor, " sets"], count: int, generator: torch.Generator | None
) -> Int[Tensor, "sets {count}"]:
    """From each of 0, ..., size - 1 so many different numbers, each subset as likely: by R. Floyd, for all at once."""
    device = "cpu" if generator is None else generator.device
    uniform = torch.rand(len(sizes), count, dtype=torch.float64, generator=generator, device=device).to(sizes.device)
    chosen = torch.full((len(sizes), count), -1, dtype=torch.int64, device=sizes.device)
    for step in range(count):
        last = sizes - count + step
        drawn = torch.minimum((uniform[:, step] * (last + 1)).to(torch.int64), last)
        taken = (chosen == drawn[:, None]).any(1)
        chosen[:, step] = torch.where(taken, last, drawn)  # `last` is new to the set
    return chosen


def _join_nodes(
    known: Int[Tensor, " known"], found: Int[Tensor, " found"]
) -> tuple[Int[Tensor, " all"], Int[Tensor, " found"]]:
    """Those known, then those found that are new, in their order; and the place of each one found."""
    both = torch.cat([known, found])
    values, which = both.unique(return_inverse=True)
    places = torch.arange(len(both), device=both.device)
    first = torch.full_like(values, len(both)).scatter_reduce(0, which, places, "amin")
    order = first.argsort()
    rank = torch.empty_like(order).index_copy(0, order, torch.arange(len(order), device=both.device))
    return values[order], rank[which][len(known) :]
