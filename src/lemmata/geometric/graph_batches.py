r"""Several graphs side by side as one, and sums over each of them."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.reference import WIDER
from lemmata.fast.sparse.rows import check_rows
from lemmata.geometric.graph import Graph, check_graph

__all__ = ["batch_graphs", "pool_nodes", "unbatch_graphs"]


def batch_graphs(graphs: Sequence[Graph]) -> Graph:
    r"""Several graphs as one without edges between them: everything that acts on a graph acts on all at once.

    >>> pair = batch_graphs([Graph([[0, 1]]), Graph([[0, 1], [1, 2]])])
    >>> pair, pair.graph_of, pair.edges
    (Graph(2 graphs, 5 nodes, 3 edges), tensor([0, 0, 1, 1, 1]), tensor([[0, 2, 3],
            [1, 3, 4]]))
    """
    if not graphs:
        raise ValueError("graphs must be at least one, got none")
    if any(check_graph(graph).graph_of is not None for graph in graphs):
        raise ValueError("graphs must be single ones, got several side by side: use unbatch_graphs")
    sizes = torch.tensor([graph.nodes for graph in graphs])
    starts = [0, *sizes.cumsum(0).tolist()]
    device = graphs[0].device
    return Graph(
        torch.cat([graph.edges + start for graph, start in zip(graphs, starts, strict=False)], 1),
        starts[-1],
        _join_values("x", graphs),
        _join_values("edge_weights", graphs),
        _join_values("edge_features", graphs),
        torch.arange(len(graphs)).repeat_interleave(sizes).to(device),
        len(graphs),
    )


def _join_values(name: str, graphs: Sequence[Graph]) -> Tensor | None:
    parts = [getattr(graph, name) for graph in graphs]
    if all(part is None for part in parts):
        return None
    if any(part is None for part in parts):
        raise ValueError(f"all graphs must have {name}, or none of them")
    return torch.cat(parts)


def unbatch_graphs(graph: Graph) -> list[Graph]:
    """The single graphs of which `batch_graphs` made one."""
    check_graph(graph)
    if graph.graph_of is None:
        return [graph]
    sizes = torch.bincount(graph.graph_of, minlength=graph.graphs)
    starts = sizes.cumsum(0) - sizes
    home = graph.graph_of[graph.edges[0]]
    order = home.argsort(stable=True)  # edges by graph, in each as they came
    numbers = torch.bincount(home, minlength=graph.graphs).tolist()
    edges = (graph.edges - starts[home])[:, order].split(numbers, 1)
    weights, features = (
        [None] * graph.graphs if part is None else part[order].split(numbers)
        for part in (graph.edge_weights, graph.edge_features)
    )
    nodes = sizes.tolist()
    x = [None] * graph.graphs if graph.x is None else graph.x.split(nodes)
    return [Graph(*parts) for parts in zip(edges, nodes, x, weights, features, strict=True)]


def pool_nodes(
    graph: Graph, x: Float[Tensor, "nodes features"], reduce: str = "sum"
) -> Float[Tensor, "graphs features"]:
    """The sum, mean or maximum over the nodes of each graph; of a graph without nodes it is zero.

    Half precision is added up in single precision.
    """
    validate.one_of("reduce", reduce, ("sum", "mean", "amax"))
    check_rows("x", x, check_graph(graph).nodes)
    of = torch.zeros(graph.nodes, dtype=torch.int64, device=x.device) if graph.graph_of is None else graph.graph_of
    empty = x.new_zeros(graph.graphs, x.shape[1])
    if reduce == "amax":
        return empty.scatter_reduce(0, of[:, None].expand_as(x), x, "amax", include_self=False)
    wide = WIDER.get(x.dtype, x.dtype)
    total = empty.to(wide).index_add(0, of, x.to(wide))
    if reduce == "mean":
        total = total / torch.bincount(of, minlength=graph.graphs).clamp(min=1).to(wide)[:, None]
    return total.to(x.dtype)
