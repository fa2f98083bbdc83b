r"""Graphs from and to other forms: dense and SciPy matrices, networkx, PyTorch Geometric."""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.reference import WIDER
from lemmata.geometric.graph import Graph, check_graph

__all__ = ["from_dense", "from_networkx", "from_pyg", "from_scipy", "to_networkx", "to_pyg", "to_scipy"]


def from_dense(matrix: Shaped[Tensor, "nodes nodes"], x: Float[Tensor, "nodes ..."] | None = None) -> Graph:
    r"""The graph of an adjacency matrix: an edge from u to v with weight $a_{uv}$ wherever that is not zero.

    Where all weights are one there are none. Gradients flow to the matrix; `Graph.dense` is the way back.

    >>> from_dense(torch.tensor([[0.0, 2.0], [0.0, 0.0]])).edge_weights
    tensor([2.])
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {tuple(matrix.shape)}")
    edges = matrix.nonzero().mT.contiguous()
    return Graph(edges, len(matrix), x, _edge_weights_of(matrix[edges[0], edges[1]]))


def from_scipy(matrix: Any, x: Float[Tensor, "nodes ..."] | None = None) -> Graph:
    """The graph of a sparse SciPy matrix of any format: an edge for each stored entry, also where one comes twice.

    >>> from scipy.sparse import coo_array
    >>> from_scipy(coo_array(([1.0, 3.0], ([0, 1], [1, 2])), shape=(4, 4)))
    Graph(4 nodes, 2 edges)
    """
    listed = matrix.tocoo()
    if len(listed.shape) != 2 or listed.shape[0] != listed.shape[1]:
        raise ValueError(f"matrix must be square, got shape {tuple(listed.shape)}")
    edges = torch.stack([torch.as_tensor(index, dtype=torch.int64) for index in (listed.row, listed.col)])
    return Graph(edges, listed.shape[0], x, _edge_weights_of(torch.tensor(listed.data)))


def to_scipy(graph: Graph) -> Any:
    """The adjacency matrix as a SciPy CSR array; parallel edges add up.

    >>> to_scipy(Graph([[0, 1], [0, 1]])).toarray()
    array([[0., 2.],
           [0., 0.]], dtype=float32)
    """
    from scipy.sparse import coo_array

    check_graph(graph)
    weights = torch.ones(graph.edges.shape[1]) if graph.edge_weights is None else graph.edge_weights.detach()
    weights = weights.to(WIDER.get(weights.dtype, weights.dtype))  # SciPy has no halves
    sources, targets = graph.edges.cpu().numpy()
    return coo_array((weights.cpu().numpy(), (sources, targets)), shape=(graph.nodes, graph.nodes)).tocsr()


def from_networkx(graph: Any, x: str | None = None, weight: str = "weight") -> Graph:
    """The graph of networkx's: nodes in the order of `graph.nodes`, an undirected edge in both directions.

    `x` names the nodes' attribute that holds their features. Where no edge has the attribute `weight` there are no
    weights; otherwise an edge without it weighs one, as in networkx.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(3)).edges
    tensor([[0, 1, 1, 2],
            [1, 0, 2, 1]])
    """
    number = {node: index for index, node in enumerate(graph.nodes)}
    edges, values = [], []
    for source, target, attributes in graph.edges(data=True):
        ends = [(number[source], number[target])]
        if not graph.is_directed() and source != target:  # an edge to oneself has one direction
            ends.append((number[target], number[source]))
        edges += ends
        values += [attributes.get(weight)] * len(ends)
    weights = None
    if any(value is not None for value in values):
        weights = torch.tensor([1.0 if value is None else float(value) for value in values])
    if x is not None and (bare := [node for node, attributes in graph.nodes(data=True) if x not in attributes]):
        raise ValueError(f"all nodes must have the attribute {x!r}, node {bare[0]!r} has not")
    features = None
    if x is not None:
        rows = [torch.as_tensor(value, dtype=torch.get_default_dtype()) for _, value in graph.nodes(data=x)]
        features = torch.stack(rows) if rows else torch.zeros(0, 0)
    return Graph(edges, len(number), features, weights)


def to_networkx(graph: Graph, undirected: bool = False) -> Any:
    """A networkx graph of the nodes 0, 1, ..., with attributes `x`, `weight` and `features` where there are.

    It is a DiGraph, or with `undirected` a Graph, each pair of opposite edges as one; where edges are parallel, a
    MultiDiGraph or MultiGraph.

    >>> print(to_networkx(Graph([[0, 1], [1, 2]]).undirected(), undirected=True))
    Graph with 3 nodes and 2 edges
    """
    import networkx

    check_graph(graph)
    if undirected and not graph.is_undirected:
        raise ValueError("graph must have each edge in both directions: use graph.undirected()")
    sources, targets = graph.edges.tolist()
    parallel = len(set(zip(sources, targets, strict=True))) < len(sources)
    kinds = {False: (networkx.DiGraph, networkx.MultiDiGraph), True: (networkx.Graph, networkx.MultiGraph)}
    made = kinds[validate.flag("undirected", undirected)][parallel]()
    made.add_nodes_from(range(graph.nodes))
    for node, row in enumerate([] if graph.x is None else graph.x.tolist()):
        made.nodes[node]["x"] = row
    named = {"weight": graph.edge_weights, "features": graph.edge_features}
    listed = {name: values.tolist() for name, values in named.items() if values is not None}
    for edge, ends in enumerate(zip(sources, targets, strict=True)):
        if not undirected or ends[0] <= ends[1]:
            made.add_edge(*ends, **{name: values[edge] for name, values in listed.items()})
    return made


def from_pyg(data: Any) -> Graph:
    """The graph of PyTorch Geometric's `Data` or `Batch`: its edges, nodes, features, weights and `batch`.

    `edge_weight` becomes `edge_weights`, which layers read from the graph without being told: GCN, ChebNet, sums and
    means of messages. GIN and maxima refuse them, as GINConv takes none, and GAT looks at `edge_attr` alone. Where
    PyTorch Geometric is called without `edge_weight`, use `from_pyg(data).replace(edge_weights=None)`.
    """
    if getattr(data, "edge_index", None) is None:
        raise ValueError("data must have edge_index, got none: use torch_geometric.transforms or Graph")
    weights, features, batch = (getattr(data, name, None) for name in ("edge_weight", "edge_attr", "batch"))
    graphs = None if batch is None else getattr(data, "num_graphs", None)
    return Graph(data.edge_index, data.num_nodes, data.x, weights, features, batch, graphs)


def to_pyg(graph: Graph) -> Any:
    """PyTorch Geometric's `Data`, which shares the tensors; several graphs side by side have a `batch`."""
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise ModuleNotFoundError("torch_geometric is not installed: pip install torch-geometric") from None
    check_graph(graph)
    named = {"edge_weight": graph.edge_weights, "batch": graph.graph_of}
    named = {name: part for name, part in named.items() if part is not None}
    return Data(graph.x, graph.edges, graph.edge_features, num_nodes=graph.nodes, **named)  # type: ignore[arg-type]


def _edge_weights_of(values: Tensor) -> Tensor | None:
    """Numbers other than one; none where all are one and nobody asks for their gradient."""
    if not values.requires_grad and bool((values == 1).all()):
        return None
    return values if values.is_floating_point() else values.to(torch.get_default_dtype())
