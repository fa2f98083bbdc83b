"""Colour refinement against networkx: the same rounds on the same graph.

networkx hashes strings of sorted colours, node by node; ours adds up hashes over all edges at once. Both give every
node a colour for each round, and must split the nodes into as many classes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.geometric.conversions import to_networkx
from lemmata.geometric.graph import Graph
from lemmata.geometric.weisfeiler_lehman import refine_colours

NODES, PAIRS, ROUNDS = 100_000, 200_000, 3


class Classes(NamedTuple):
    """How many colours there are in the end."""

    number: int


@entry(
    "weisfeiler_lehman",
    title="Weisfeiler-Lehman colour refinement against networkx",
    measures="three rounds from one colour, the colours of all nodes, and how many there are",
    cases={"random": "100,000 nodes, 200,000 pairs joined at random"},
    targets={"networkx": 0.05},
    devices="cpu",
)
def random_graph(case: str, device: str) -> Graph:
    """Pairs of nodes joined at random, in both directions."""
    generator = torch.Generator().manual_seed(0)
    return Graph(torch.randint(NODES, (2, PAIRS), generator=generator), NODES).without_self_loops().undirected()


@ours("lemmata")
def by_refinement(graph: Graph) -> Callable[[], Classes]:
    """As it comes."""
    return lambda: Classes(len(refine_colours(graph, rounds=ROUNDS).colours.unique()))


@peer("networkx", needs="networkx")
def by_networkx(graph: Graph) -> Callable[[], Classes]:
    """Hashes of each node's surroundings; its graph is built before."""
    import networkx

    theirs = to_networkx(graph, undirected=True)
    networkx.set_node_attributes(theirs, dict.fromkeys(theirs, "one"), "colour")

    def refine() -> Classes:
        given: dict[str, Any] = {"node_attr": "colour", "iterations": ROUNDS}
        hashes = networkx.weisfeiler_lehman_subgraph_hashes(theirs, **given)
        return Classes(len({found[-1] for found in hashes.values()}))

    return refine


@limit("reading a number for every edge and writing one for every node, once a round")
def gathering(graph: Graph) -> Callable[[], object]:
    """Nothing is hashed."""
    colours, (sources, targets) = torch.arange(graph.nodes), graph.edges

    def gather() -> None:
        for _ in range(ROUNDS):
            torch.zeros_like(colours).index_add_(0, targets, colours[sources])

    return gather


@agreement(within=0.0)
def classes(result: Classes) -> dict[str, float]:
    """How many."""
    return {"classes": float(result.number)}
