"""Graphs: the karate club and the packages of Debian, as data sets whose examples are labelled nodes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata.data.examples import Dataset, Examples, moved
from lemmata.data.registry import dataset
from lemmata.data.stored import stored_arrays

__all__ = ["GraphDataset", "debian", "karate"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GraphDataset(Dataset):
    r"""One graph with labelled nodes. Its parts say which nodes may be learnt from: `Examples(node=..., y=...)`.

    An edge points from its first to its second node; an undirected graph has each edge in both directions.

    Shapes:
        x: (nodes, features) float32, the features of all nodes; y: (nodes,) int64, the labels of all nodes
        edges: (2, edges) int64, edge_types: (edges,) int64 into `relations`, edge_weights: (edges,) float32
        masks: for each part (nodes,) bool

    >>> graph = karate()
    >>> graph.train, graph.edges.shape, int(graph.masks["test"].sum())
    (Examples(node=(2,), y=(2,)), torch.Size([2, 156]), 32)
    """

    x: Float[Tensor, "nodes features"]
    y: Int[Tensor, " nodes"]
    edges: Int[Tensor, "2 edges"]
    edge_types: Int[Tensor, " edges"]
    edge_weights: Float[Tensor, " edges"]
    relations: tuple[str, ...]
    names: tuple[str, ...] = ()

    @property
    def masks(self) -> dict[str, Bool[Tensor, " nodes"]]:
        """Which nodes belong to each part."""
        empty = torch.zeros(len(self.y), dtype=torch.bool, device=self.y.device)
        return {name: empty.index_fill(0, part.node, True) for name, part in self.parts.items()}

    def undirected(self) -> "GraphDataset":
        """Each edge in both directions and once, of whatever type; of parallel edges the largest weight stays.

        >>> debian().undirected().edges.shape
        torch.Size([2, 10572])
        """
        both = torch.cat([self.edges, self.edges.flip(0)], dim=1)
        edges, which = both.unique(dim=1, return_inverse=True)
        weights = self.edge_weights.new_zeros(edges.shape[1])
        weights = weights.scatter_reduce(0, which, self.edge_weights.repeat(2), "amax", include_self=False)
        types = torch.zeros_like(edges[0])
        return replace(self, edges=edges, edge_types=types, edge_weights=weights, relations=("neighbours",))

    def to(self, *place: Any, **options: Any) -> "GraphDataset":
        """The same graph on a device or in a dtype."""
        tensors = {key: value for key, value in vars(self).items() if isinstance(value, Tensor)}
        there = {key: moved(tensor, *place, **options) for key, tensor in tensors.items()}
        return replace(self, parts=super().to(*place, **options).parts, **there)

    def __repr__(self) -> str:
        size = f"{len(self.y)} nodes, {self.edges.shape[1]} edges"
        return f"{super().__repr__()[:-1]}, {size})"


def labelled(nodes: Bool[Tensor, " nodes"], y: Int[Tensor, " nodes"]) -> Examples:
    """The part of a graph that a mask chooses."""
    chosen = nodes.nonzero()[:, 0]
    return Examples(node=chosen, y=y[chosen])


@dataset(
    "karate",
    title="Zachary's karate club",
    task="graph",
    origin="embedded",
    size="34 nodes, 78 edges",
    shape="one node of an undirected graph",
    licence="facts, no licence needed",
    credit="W. W. Zachary, An Information Flow Model for Conflict and Fission in Small Groups, 1977",
    splits="train, test",
)
def karate() -> GraphDataset:
    r"""The 34 members of a karate club that split in two: who met whom outside it, and whom each one followed.

    Only the two leaders, node 0 (the instructor) and node 33 (the officer), are in the training part.

    Shapes:
        x: (34, 34) float32, the unit matrix: nothing is known of a member but who it is; y: (34,) int64, 17 and 17
        edges: (2, 156) int64, each of the 78 in both directions; edge_weights: how many activities the two shared

    Label propagation from the leaders gets 33 of the 34 right.
    Source: Zachary 1977.

    >>> karate().classes
    ('instructor', 'officer')
    """
    stored = stored_arrays("karate.npz")
    once, weights = torch.from_numpy(stored["edges"].T.astype(np.int64)), torch.from_numpy(stored["weight"]).float()
    y = torch.from_numpy(stored["y"]).long()
    leads = torch.zeros(34, dtype=torch.bool)
    leads[[0, 33]] = True
    return GraphDataset(
        name="karate",
        parts={"train": labelled(leads, y), "test": labelled(~leads, y)},
        classes=tuple(stored["classes"].tolist()),
        x=torch.eye(34),
        y=y,
        edges=once,
        edge_types=torch.zeros_like(once[0]),
        edge_weights=weights,
        relations=("met",),
        names=("instructor", *map(str, range(1, 33)), "officer"),
    ).undirected()


@dataset(
    "debian",
    title="Packages of Debian 12",
    task="graph",
    origin="embedded",
    size="2,632 nodes, 5,488 edges",
    shape="one node of a directed graph with 600 words and 3 kinds of edges",
    licence="facts, no licence needed",
    credit="Debian project and package maintainers",
    splits="train, validation, test",
)
def debian() -> GraphDataset:
    r"""Source packages of Debian 12 and which of them name each other: tell the section from words and neighbours.

    Of the size and kind of Cora: 20 labels a class to learn from, 500 nodes for validation, 1,000 for the test; the
    other 992 are in no part.

    Shapes:
        x: (2632, 600) float32 of 0 and 1: does the word occur in the description; y: (2632,) int64, the section
        edges: (2, 5488) int64, from the package that names to the one named; edge_types: depends, recommends, suggests
        names: the packages; extra: `words`

    Right on the test part: logistic regression on words 64.7 %, on words averaged twice over neighbours 81.7 %; label
    propagation without words 73.1 %.
    Source: package index of Debian 12; names, sections, relations and occurring words are facts.

    >>> graph = debian()
    >>> graph.train, graph.names[0], graph.classes[int(graph.y[0])]
    (Examples(node=(140,), y=(140,)), '0ad', 'games')
    """
    stored = stored_arrays("debian_graph.npz")
    y, split = torch.from_numpy(stored["y"]).long(), torch.from_numpy(stored["split"])
    x = np.unpackbits(stored["x_bits"], axis=1)[:, : int(stored["n_words"])]
    edges = torch.from_numpy(stored["edges"].T.astype(np.int64))
    return GraphDataset(
        name="debian",
        parts={part: labelled(split == number, y) for number, part in enumerate(("train", "validation", "test"))},
        classes=tuple(stored["classes"].tolist()),
        extra={"words": tuple(stored["words"].tolist())},
        x=torch.from_numpy(x).float(),
        y=y,
        edges=edges,
        edge_types=torch.from_numpy(stored["edge_type"]).long(),
        edge_weights=torch.ones(edges.shape[1]),
        relations=tuple(stored["edge_types"].tolist()),
        names=tuple(stored["names"].tolist()),
    )
