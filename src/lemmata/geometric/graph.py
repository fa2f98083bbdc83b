r"""Graphs: nodes with features, edges between them, and the same edges sorted by node."""

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.data.examples import moved
from lemmata.data.graphs import GraphDataset
from lemmata.fast.sparse.rows import Rows, has_values, is_looked_at
from lemmata.fast.sparse.sorted_edges import sorted_edges

__all__ = ["Graph"]


class _Pattern:
    """Edges alone. What is dear is computed once, and shared by all graphs that differ only in weights and features.

    `loops` is how many edges lead from a node to itself; None where the edges could not be looked at.
    """

    def __init__(self, edges: Int[Tensor, "2 edges"], nodes: int, loops: int | None):
        self.edges, self.nodes, self.loops = edges, nodes, loops
        self.kept: dict[Hashable, Any] = {}

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Computed once, and kept unless torch traces or transforms, since what it makes there ends with that."""
        if name in self.kept:
            return self.kept[name]
        if not is_looked_at():
            return make()
        with torch.inference_mode(False), torch.no_grad():  # autograd could not save what inference mode has made
            made = make()
        self.kept[name] = made
        return made

    @property
    def sorted(self) -> tuple[Tensor, Rows, Rows]:
        """The edges, by target and by source."""
        return self.once("sorted", lambda: sorted_edges(self.edges, self.nodes))

    @property
    def apart(self) -> Tensor | None:
        """Which edges join different nodes; None if all do."""
        return (
            None
            if self._known_loops() == 0
            else self.once("apart", lambda: _edges_apart(self.edges, self._known_loops()))
        )

    @property
    def alone(self) -> "_Pattern":
        """The edges between different nodes."""
        if self.apart is None:
            return self
        return self.once("alone", lambda: _Pattern(self.edges[:, self.apart], self.nodes, 0))

    @property
    def looped(self) -> "_Pattern":
        """The edges between different nodes and one from each node to itself."""
        return self.once("looped", self._make_looped)

    def _make_looped(self) -> "_Pattern":
        found = sorted_edges(self.edges, self.nodes, looped=True, loops=self._known_loops())
        made = _Pattern(found[0], self.nodes, self.nodes)
        made.kept["sorted"] = found
        return made

    def _known_loops(self) -> int:
        if self.loops is None:
            raise ValueError("graph must be made where its edges can be looked at: outside of what torch compiles")
        return self.loops


def _edges_apart(edges: Int[Tensor, "2 edges"], loops: int) -> Int[Tensor, " kept"]:
    """The indices of the edges between different nodes, whose number is known: no device is waited for."""
    return (edges[0] == edges[1]).to(torch.uint8).argsort(stable=True)[: edges.shape[1] - loops]


class Graph:
    r"""A graph, or several side by side: edges from a source to a target, features of nodes and edges where there are.

    $$ G = (V, E), \qquad a_{uv} = w_e \text{ for the edge } e = (u, v), \qquad d_v = \sum_u a_{uv} $$

    An undirected graph has each edge in both directions (`undirected()`). What flows along an edge flows from its
    source `edges[0]` to its target `edges[1]`, as in PyTorch Geometric. Edges may come twice and then count twice
    (`simple()` joins them); a node may have an edge to itself; a node without any has an empty sum of neighbours.
    Graphs are not changed: each method gives a new one, and those with the same edges share their order by node.

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

    x: Tensor | None
    edge_weights: Tensor | None
    edge_features: Tensor | None
    graph_of: Tensor | None

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
            if hasattr(edges, "edge_index"):
                raise TypeError(f"edges must be pairs or a (2, edges) tensor, {_graph_hint(edges)}")
            # Pairs as one writes them down; tensors have the sources in their first row.
            pairs = [list(edge) for edge in edges]
            if wrong := [pair for pair in pairs if len(pair) != 2]:
                raise ValueError(f"edges must be pairs of a source and a target, got {wrong[0]}")
            edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).mT.contiguous()
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.is_floating_point() or edges.dtype is torch.bool:
            seen = f"{tuple(edges.shape)} {edges.dtype}"
            raise ValueError(f"edges must be (2, edges) integers, sources above targets, got {seen}")
        # A copy: whoever changes the given tensor later must not lead compiled code outside the nodes.
        edges = edges.to(torch.int64, copy=True)
        low, high, loops = _look_at(edges)
        known = nodes if nodes is not None else len(x) if x is not None else high + 1
        self.nodes = validate.count("nodes", known, least=0)
        if low < 0 or high >= self.nodes:
            raise ValueError(f"edges must join nodes 0 to {self.nodes - 1}, got {low} to {high}: give nodes={high + 1}")
        self._pattern = _Pattern(edges, self.nodes, loops)
        self._attach_features(x=x, edge_weights=edge_weights, edge_features=edge_features, graph_of=graph_of)
        last = 0
        if graph_of is not None and len(graph_of):
            last = int(graph_of[-1]) + 1 if has_values(graph_of) else (graphs or 1)
        if graph_of is None and graphs not in (None, 1):
            raise ValueError(
                f"graphs needs graph_of, which says where each node belongs, got {graphs}: use batch_graphs"
            )
        self.graphs = (
            validate.count("graphs", last if graphs is None else graphs, least=last) if graph_of is not None else 1
        )

    def _attach_features(self, **parts: Tensor | None) -> None:
        """Whatever belongs to nodes and edges, where it fits."""
        x, graph_of = parts.get("x"), parts.get("graph_of")
        if x is not None and (x.ndim == 0 or len(x) != self.nodes):
            raise ValueError(f"x must have a row for each of the {self.nodes} nodes, got shape {tuple(x.shape)}")
        for name in ("edge_weights", "edge_features"):
            values, edges = parts.get(name), self.edges.shape[1]
            if values is not None and (values.ndim == 0 or len(values) != edges):
                raise ValueError(f"{name} must have a row for each of {edges} edges, got shape {tuple(values.shape)}")
        weights = parts.get("edge_weights")
        if weights is not None and weights.ndim != 1:
            raise ValueError(f"edge_weights must be one number for each edge, got shape {tuple(weights.shape)}")
        fits = graph_of is None or graph_of.shape == (self.nodes,)
        if not fits or (graph_of is not None and has_values(graph_of) and bool((graph_of.diff() < 0).any())):
            raise ValueError("graph_of must be one ascending number for each node: use batch_graphs")
        vars(self).update(parts)

    # --- What it is ---

    @property
    def device(self) -> torch.device:
        """Where its edges lie."""
        return self.edges.device

    @property
    def edges(self) -> Int[Tensor, "2 edges"]:
        """The source of each edge above its target."""
        return self._pattern.edges

    @property
    def incoming(self) -> Rows:
        """For each node, the sources of the edges that lead to it; sorted once for all graphs of the same edges."""
        return self._pattern.sorted[1]

    @property
    def outgoing(self) -> Rows:
        """For each node, the targets of the edges that leave it."""
        return self._pattern.sorted[2]

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """What depends on the edges alone, computed by the first of all graphs of the same edges that asks for it."""
        return self._pattern.once(name, make)

    def degrees(
        self, weighted: bool = True, dtype: torch.dtype | None = None, leaving: bool = False
    ) -> Float[Tensor, " nodes"]:
        """The sum of the weights of the edges that lead to each node, or their number; added up in `dtype`.

        With `leaving`, of the edges that leave it.
        """
        if not weighted or self.edge_weights is None:
            counts = (self.outgoing if leaving else self.incoming).lengths()  # exact, however many there are
            return counts.to(torch.get_default_dtype() if dtype is None else dtype)
        values = self.edge_weights if dtype is None else self.edge_weights.to(dtype)
        return values.new_zeros(self.nodes).index_add(0, self.edges[0 if leaving else 1], values)

    @property
    def has_self_loops(self) -> bool:
        """Whether some node has an edge to itself."""
        return bool((self.edges[0] == self.edges[1]).any())

    @property
    def is_undirected(self) -> bool:
        """Whether each edge is there in the other direction too, as often and with the same weight."""
        weights = self.edge_weights
        lists = []
        for sources, targets in (self.edges, self.edges.flip(0)):  # sorted by both ends and weight, they are the same
            order = torch.arange(len(sources), device=self.device) if weights is None else weights.argsort()
            order = order[(sources * self.nodes + targets)[order].argsort(stable=True)]
            lists.append([sources[order], targets[order], *([] if weights is None else [weights[order]])])
        return all(torch.equal(there, back) for there, back in zip(*lists, strict=True))

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
        if not {"edges", "nodes", "graph_of", "graphs"} & set(parts):
            made = copy.copy(self)  # the edges are the same, and so is their order by node, which is dear
            made._attach_features(**parts)
            return made
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        own["graphs"] = None if "graph_of" in parts else self.graphs
        return Graph(**own | parts)

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
        # One number for both ends: sorting pairs takes ten times as long.
        size = max(self.nodes, 1)
        ends, which = (self.edges[0] * size + self.edges[1]).unique(return_inverse=True)
        edges = torch.stack([ends // size, ends % size])
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
        if self.edge_features is not None:
            raise ValueError("edges to oneself have no edge_features: use replace(edge_features=None) first")
        if self.edge_weights is None and weight == 1.0:
            return self._with_pattern(self._pattern.looped, None, None)
        alone = self.without_self_loops()
        weights = alone.edge_weights
        if weights is None and weight != 1.0:
            weights = torch.ones(alone.edges.shape[1], device=self.device)
        if weights is not None:
            weights = torch.cat([weights, weights.new_full((self.nodes,), weight)])
        return alone._with_pattern(self._pattern.looped, weights, None)

    def without_self_loops(self) -> "Graph":
        """Without edges from a node to itself."""
        kept = self._pattern.apart
        if kept is None:
            return self
        weights, features = (None if part is None else part[kept] for part in (self.edge_weights, self.edge_features))
        return self._with_pattern(self._pattern.alone, weights, features)

    def _with_pattern(self, pattern: "_Pattern", weights: Tensor | None, features: Tensor | None) -> "Graph":
        """The same nodes with other edges, known to be right."""
        made = copy.copy(self)
        made._pattern, made.edge_weights, made.edge_features = pattern, weights, features
        return made

    def permuted(self, order: Int[Tensor, " nodes"]) -> "Graph":
        r"""Node `order[i]` becomes node i: features $PX$, adjacency $PAP^\top$."""
        if (
            order.shape != (self.nodes,)
            or order.is_floating_point()
            or not torch.equal(order.sort().values, torch.arange(self.nodes, device=order.device))
        ):
            raise ValueError(f"order must hold each node from 0 to {self.nodes - 1} once, got {order.tolist()[:8]}")
        place = torch.empty_like(order).index_copy(0, order, torch.arange(self.nodes, device=order.device))
        if self.graph_of is not None:
            raise ValueError("several graphs side by side cannot be permuted: permute each one")
        return self.replace(edges=place[self.edges], x=None if self.x is None else self.x[order])

    def to(self, *place: Any, **options: Any) -> "Graph":
        """On a device or in a dtype; integers change their device only."""
        there = {name: getattr(self, name) for name in ("x", "edge_weights", "edge_features", "graph_of")}
        there = {name: None if v is None else moved(v, *place, **options) for name, v in there.items()}
        edges = moved(self.edges, *place, **options)
        if edges is not self.edges:
            made = Graph(edges, self.nodes, graphs=self.graphs, **there)
            made._pattern.loops = self._pattern.loops  # which the meta device cannot tell
            return made
        made = copy.copy(self)  # whose edges are sorted already
        made._attach_features(**there)
        return made

    @classmethod
    def of(cls, data: GraphDataset, weighted: bool = False) -> "Graph":
        """The graph of a data set such as `karate` or `debian`: its edges and features.

        >>> from lemmata.data import load
        >>> Graph.of(load("karate"))
        Graph(34 nodes, 156 edges, x (34, 34))
        """
        return cls(data.edges, len(data.y), data.x, data.edge_weights if weighted else None)


def check_graph(graph: Any) -> Graph:
    """Refuse what is no `Graph`, and say how one is made of PyTorch Geometric's `edge_index` and `Data`."""
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a Graph, {_graph_hint(graph)}")
    return graph


def check_nodes(x: Any, graph: Any, inputs: int | None = None) -> None:
    """Refuse features that are not one row of `inputs` for each node of a graph."""
    nodes = check_graph(graph).nodes
    if not isinstance(x, Tensor):
        joined = ": join sources and targets into the nodes of one graph" if isinstance(x, tuple) else ""
        raise TypeError(f"x must be one tensor with a row for each node, got {type(x).__name__}{joined}")
    if x.ndim != 2 or len(x) != nodes or inputs not in (None, x.shape[1]):
        wanted = f"({nodes}, features), a row for each node" if inputs is None else f"({nodes}, {inputs})"
        raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")
    if inputs is not None and not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")


def _look_at(edges: Int[Tensor, "2 edges"]) -> tuple[int, int, int | None]:
    """The first and the last node of any edge, and how many lead to where they come from, which is None if unknown."""
    if not has_values(edges):
        return 0, -1, None
    if not edges.shape[1]:
        return 0, -1, 0
    low, high = edges.aminmax()
    return int(low), int(high), int((edges[0] == edges[1]).sum())


def _graph_hint(given: Any) -> str:
    """What was given in place of a graph, and how it becomes one."""
    if isinstance(given, Tensor):
        return f"got a tensor of shape {tuple(given.shape)}: use Graph(edge_index, nodes=len(x))"
    if hasattr(given, "edge_index"):
        return f"got {type(given).__name__}: use lemmata.geometric.from_pyg(data)"
    return f"got {type(given).__name__}: use Graph(edges, nodes=len(x))"
