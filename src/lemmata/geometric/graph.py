r"""Graphs: nodes with features, edges between them, and the same edges sorted by node."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import moved
from lemmata.data.graphs import GraphDataset
from lemmata.fast.sparse.rows import Rows, rows_of

__all__ = ["Graph"]


class Graph:
    r"""A graph, or several side by side: edges from a source to a target, features of nodes and edges where there are.

    $$ G = (V, E), \qquad a_{uv} = w_e \text{ for the edge } e = (u, v), \qquad d_v = \sum_u a_{uv} $$

    An undirected graph has each edge in both directions (`undirected()`). What flows along an edge flows from its
    source `edges[0]` to its target `edges[1]`, as in PyTorch Geometric. Edges may come twice and then count twice
    (`simple()` joins them); a node may have an edge to itself; a node without any has an empty sum of neighbours.
    Graphs are not changed: each method gives a new one.

    Shapes:
        edges: (2, edges) int64    x: (nodes, features)    edge_weights: (edges,)    edge_features: (edges, ...)
        graph_of: (nodes,) int64, which of several graphs a node belongs to, ascending

    Claims: graph.definition

    >>> path = Graph([[0, 1], [1, 2]]).undirected()
    >>> path, path.degrees(), path.dense()
    (Graph(3 nodes, 4 edges), tensor([1., 2., 1.]), tensor([[0., 1., 0.],
            [1., 0., 1.],
            [0., 1., 0.]]))
    """

    def __init__(
        self,
        edges: Int[Tensor, "2 edges"] | Sequence[Sequence[int]],
        nodes: int | None = None,
        x: Float[Tensor, "nodes ..."] | None = None,
        edge_weights: Float[Tensor, " edges"] | None = None,
        edge_features: Float[Tensor, "edges ..."] | None = None,
        graph_of: Int[Tensor, " nodes"] | None = None,
        graphs: int | None = None,
    ):
        if not isinstance(edges, Tensor):
            # Pairs as one writes them down; tensors have the sources in their first row.
            edges = torch.tensor([list(edge) for edge in edges], dtype=torch.int64).reshape(-1, 2).mT.contiguous()
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point() or edges.dtype is torch.bool:
            seen = f"{tuple(edges.shape)} {edges.dtype}"
            raise ValueError(f"edges must be (2, edges) whole numbers, sources above targets, got {seen}")
        known = nodes if nodes is not None else len(x) if x is not None else None
        if known is None:
            known = int(edges.max()) + 1 if edges.shape[1] else 0
        self.nodes = validate.count("nodes", known, least=0)
        if x is not None and len(x) != self.nodes:
            raise ValueError(f"x must have a row for each of the {self.nodes} nodes, got shape {tuple(x.shape)}")
        if edges.shape[1] and not (int(edges.min()) >= 0 and int(edges.max()) < self.nodes):
            low, high = int(edges.min()), int(edges.max())
            raise ValueError(f"edges must join nodes 0 to {self.nodes - 1}, got {low} to {high}: give nodes={high + 1}")
        for name, values in (("edge_weights", edge_weights), ("edge_features", edge_features)):
            if values is not None and len(values) != edges.shape[1]:
                raise ValueError(f"{name} must have a row for each of {edges.shape[1]} edges, got {len(values)}")
        if graph_of is not None and (graph_of.shape != (self.nodes,) or bool((graph_of.diff() < 0).any())):
            raise ValueError("graph_of must be one ascending number for each node: use batch_graphs")
        self.edges = edges.to(torch.int64)
        self.x, self.edge_weights, self.edge_features, self.graph_of = x, edge_weights, edge_features, graph_of
        last = 0 if graph_of is None or not len(graph_of) else int(graph_of[-1]) + 1
        self.graphs = graphs if graphs is not None else last if graph_of is not None else 1

    # --- What it is ---

    @property
    def device(self) -> torch.device:
        """Where its edges lie."""
        return self.edges.device

    @functools.cached_property
    def incoming(self) -> Rows:
        """For each node, the sources of the edges that lead to it."""
        return rows_of(self.edges[1], self.edges[0], self.nodes)

    @functools.cached_property
    def outgoing(self) -> Rows:
        """For each node, the targets of the edges that leave it."""
        return rows_of(self.edges[0], self.edges[1], self.nodes)

    def degrees(self, weighted: bool = True) -> Float[Tensor, " nodes"]:
        """The sum of the weights of the edges that lead to each node, or their number."""
        values = self.edge_weights if weighted and self.edge_weights is not None else None
        ones = torch.ones(self.edges.shape[1], device=self.device) if values is None else values
        return ones.new_zeros(self.nodes).index_add(0, self.edges[1], ones)

    @property
    def has_self_loops(self) -> bool:
        """Whether some node has an edge to itself."""
        return bool((self.edges[0] == self.edges[1]).any())

    @property
    def is_undirected(self) -> bool:
        """Whether each edge is there in the other direction too, as often and with the same weight."""
        there, back = self.simple(), self.flipped().simple()
        if not torch.equal(there.edges, back.edges):
            return False
        return there.edge_weights is None or torch.equal(there.edge_weights, back.edge_weights)  # type: ignore[arg-type]

    def dense(self, dtype: torch.dtype = torch.float32) -> Float[Tensor, "nodes nodes"]:
        """The adjacency matrix: row u, column v for edges from u to v; parallel edges add up."""
        weights = self.edge_weights
        ones = (
            torch.ones(self.edges.shape[1], dtype=dtype, device=self.device) if weights is None else weights.to(dtype)
        )
        empty = ones.new_zeros(self.nodes, self.nodes)
        return empty.index_put((self.edges[0], self.edges[1]), ones, accumulate=True)

    def __repr__(self) -> str:
        several = f"{self.graphs} graphs, " if self.graph_of is not None else ""
        features = f", x {tuple(self.x.shape)}" if self.x is not None else ""
        return f"Graph({several}{self.nodes} nodes, {self.edges.shape[1]} edges{features})"

    # --- Others made from it ---

    def replace(self, **parts: Any) -> "Graph":
        """The same graph with other parts, such as `x=...`."""
        names = ("edges", "nodes", "x", "edge_weights", "edge_features", "graph_of", "graphs")
        if unknown := sorted(set(parts) - set(names)):
            raise TypeError(f"parts must be among {', '.join(names)}, got {unknown[0]}")
        made = Graph(**{name: parts.get(name, getattr(self, name)) for name in names})
        if "edges" not in parts and "nodes" not in parts:
            # The edges are the same, and so is their order by node, which is dear.
            vars(made).update({name: rows for name, rows in vars(self).items() if name in ("incoming", "outgoing")})
        return made

    def flipped(self) -> "Graph":
        """Every edge in the other direction."""
        return self.replace(edges=self.edges.flip(0))

    def undirected(self) -> "Graph":
        """Each edge in both directions and once; where there are parallel ones, the largest weight stays."""
        both = torch.cat([self.edges, self.edges.flip(0)], 1)
        repeat = None if self.edge_weights is None else torch.cat([self.edge_weights, self.edge_weights])
        if self.edge_features is not None:
            raise ValueError("edge_features cannot be joined: use replace(edge_features=None) first")
        return self.replace(edges=both, edge_weights=repeat).simple("amax")

    def simple(self, reduce: str = "sum") -> "Graph":
        """Edges sorted by source and target and each once, their weights joined by sum, amax, amin or mean."""
        validate.one_of("reduce", reduce, ("sum", "amax", "amin", "mean"))
        edges, which = self.edges.unique(dim=1, return_inverse=True)
        if edges.shape[1] != self.edges.shape[1] and self.edge_features is not None:
            raise ValueError("edge_features of parallel edges cannot be joined: use replace(edge_features=None) first")
        weights, features = self.edge_weights, self.edge_features
        if weights is None and reduce == "sum" and edges.shape[1] != self.edges.shape[1]:
            weights = torch.ones(self.edges.shape[1], device=self.device)
        if weights is not None:
            empty = weights.new_zeros(edges.shape[1])
            weights = empty.scatter_reduce(0, which, weights, reduce, include_self=False)
        if features is not None:
            features = torch.empty_like(features).index_copy(0, which, features)
        return self.replace(edges=edges, edge_weights=weights, edge_features=features)

    def with_self_loops(self, weight: float = 1.0) -> "Graph":
        """One edge from each node to itself added, those that were there left out."""
        alone = self.without_self_loops()
        loops = torch.arange(self.nodes, device=self.device).expand(2, -1)
        weights = alone.edge_weights
        if weights is None and weight != 1.0:
            weights = torch.ones(alone.edges.shape[1], device=self.device)
        if weights is not None:
            weights = torch.cat([weights, weights.new_full((self.nodes,), weight)])
        if self.edge_features is not None:
            raise ValueError("edges to oneself have no edge_features: use replace(edge_features=None) first")
        return self.replace(edges=torch.cat([alone.edges, loops], 1), edge_weights=weights)

    def without_self_loops(self) -> "Graph":
        """Without edges from a node to itself."""
        kept = self.edges[0] != self.edges[1]
        if bool(kept.all()):
            return self
        parts = {name: getattr(self, name) for name in ("edge_weights", "edge_features")}
        return self.replace(edges=self.edges[:, kept], **{k: v if v is None else v[kept] for k, v in parts.items()})

    def permuted(self, order: Int[Tensor, " nodes"]) -> "Graph":
        """Node `order[i]` becomes node i: features $PX$, adjacency $PAP^\\top$."""
        if not torch.equal(order.sort().values, torch.arange(self.nodes, device=order.device)):
            raise ValueError(f"order must hold each node from 0 to {self.nodes - 1} once")
        place = torch.empty_like(order).index_copy(0, order, torch.arange(self.nodes, device=order.device))
        if self.graph_of is not None:
            raise ValueError("several graphs side by side cannot be permuted: permute each one")
        return self.replace(edges=place[self.edges], x=None if self.x is None else self.x[order])

    def to(self, *place: Any, **options: Any) -> "Graph":
        """On a device or in a dtype; whole numbers change their device only."""
        there = {name: getattr(self, name) for name in ("x", "edge_weights", "edge_features", "graph_of")}
        there = {name: None if v is None else moved(v, *place, **options) for name, v in there.items()}
        return Graph(moved(self.edges, *place, **options), self.nodes, graphs=self.graphs, **there)

    @classmethod
    def of(cls, data: GraphDataset, weighted: bool = False) -> "Graph":
        """The graph of a data set such as `karate` or `debian`: its edges and features.

        >>> from lemmata.data import load
        >>> Graph.of(load("karate"))
        Graph(34 nodes, 156 edges, x (34, 34))
        """
        return cls(data.edges, len(data.y), data.x, data.edge_weights if weighted else None)
