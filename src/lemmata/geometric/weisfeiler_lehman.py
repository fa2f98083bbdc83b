r"""Weisfeiler and Lehman's colour refinement: a quick proof that two graphs differ, where it finds one."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from lemmata import validate
from lemmata.geometric.graph import Graph, check_graph
from lemmata.geometric.graph_batches import batch_graphs
from lemmata.marks import system

__all__ = ["ColourRefinement", "refine_colours", "same_colours"]

FIRST, SECOND = -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15  # the constants of splitmix64, as signed numbers
GOLDEN = -0x61C8864680B583EB


class ColourRefinement(NamedTuple):
    """The colours of all nodes when nothing changes any more, and after how many rounds that was.

    Colours are hashes, the same on every machine and for every order of the nodes: histograms of different graphs can
    be compared after the same number of rounds, as `same_colours` does.
    """

    colours: Int[Tensor, " nodes"]
    rounds: int

    def histogram(self) -> dict[int, int]:
        """How often each colour comes."""
        colours, counts = self.colours.unique(return_counts=True)
        return dict(zip(colours.tolist(), counts.tolist(), strict=True))


@system("weisfeiler_lehman", title="Weisfeiler-Lehman refinement", kind="function")
def refine_colours(
    graph: Graph, colours: Int[Tensor, " nodes"] | None = None, rounds: int | None = None
) -> ColourRefinement:
    r"""Replace each node's colour by a hash of it and of the multiset of its neighbours' colours, until nothing splits.

    $$ c_v^{t+1} = \mathrm{hash}\big(c_v^t, \{\!\{ c_u^t : u \to v \}\!\}\big) $$

    Different histograms prove that two graphs are not isomorphic; equal ones prove nothing: a hexagon and two triangles
    have the same. A multiset is hashed by the sum of its members' hashes, so that a round takes one pass over the edges
    and no sorting; sums of 64 bits collide by chance about once in $2^{63}$ pairs. It ends after at most as many rounds
    as there are nodes; with `rounds`, after so many.

    Shapes:
        colours: (nodes,) integers to begin with, all equal if left out

    Claims: graph.wl, graph.wl.bound
    Source: B. Weisfeiler and A. Lehman 1968.

    >>> star, path = Graph([[0, 1], [0, 2], [0, 3]]).undirected(), Graph([[0, 1], [1, 2], [2, 3]]).undirected()
    >>> sorted(refine_colours(star).histogram().values()), sorted(refine_colours(path).histogram().values())
    ([1, 3], [2, 2])
    """
    check_graph(graph)
    if colours is None:
        colours = torch.zeros(graph.nodes, dtype=torch.int64, device=graph.device)
    if colours.shape != (graph.nodes,) or colours.is_floating_point():
        raise ValueError(f"colours must be ({graph.nodes},) integers, got {tuple(colours.shape)} {colours.dtype}")
    most = graph.nodes if rounds is None else validate.count("rounds", rounds, least=0)
    found, kinds = mixed(colours.to(torch.int64)), len(colours.unique())
    sources, targets = graph.edges
    for number in range(most):
        heard = torch.zeros_like(found).index_add_(0, targets, mixed(found + GOLDEN)[sources])  # sums wrap around
        refined = mixed(mixed(found) + heard)
        split = len(refined.unique())
        if split == kinds and rounds is None:  # the classes only ever split: as many means the same
            return ColourRefinement(found, number)
        found, kinds = refined, split
    return ColourRefinement(found, most)


def same_colours(one: Graph, other: Graph) -> bool:
    """Whether refinement gives two graphs the same histogram: if not, they are not isomorphic; if so, who knows.

    >>> hexagon = Graph([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]).undirected()
    >>> triangles = Graph([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]).undirected()
    >>> same_colours(hexagon, triangles)
    True
    """
    if check_graph(one).nodes != check_graph(other).nodes or one.edges.shape != other.edges.shape:
        return False
    # Refined together, until nothing splits in both: each by itself may be stable before their colours part.
    both = batch_graphs([Graph(graph.edges, graph.nodes) for graph in (one, other)])
    colours = refine_colours(both).colours
    return torch.equal(colours[: one.nodes].sort().values, colours[one.nodes :].sort().values)


def mixed(z: Int[Tensor, " *n"]) -> Int[Tensor, " *n"]:
    """Integers scattered over 64 bits, by the finaliser of splitmix64; one to one."""
    z = (z ^ _shift_right(z, 30)) * FIRST
    z = (z ^ _shift_right(z, 27)) * SECOND
    return z ^ _shift_right(z, 31)


def _shift_right(z: Tensor, places: int) -> Tensor:
    """Bits moved to the right, zeros coming from the left."""
    return (z >> places) & ((1 << (64 - places)) - 1)
