"""What takes a graph says how one is made of PyTorch Geometric's arguments, and keeps its edges safe."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from lemmata import geometric
from lemmata.geometric import GATConvolution, GCNConvolution, Graph

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])
X = torch.randn(3, 4)

TAKE_FEATURES = {
    "GCNConvolution": GCNConvolution(4, 2),
    "GCN": geometric.GCN(4, [3], 2),
    "GATConvolution": GATConvolution(4, 2),
    "with_weights": GATConvolution(4, 2).with_weights,
    "GINConvolution": geometric.GINConvolution(nn.Linear(4, 2)),
    "ChebyshevConvolution": geometric.ChebyshevConvolution(4, 2, degree=1),
    "MessagePassing": geometric.MessagePassing(nn.Identity(), nn.Identity()),
    "NodeClassifier": geometric.NodeClassifier("gcn", 4, 2),
    "GraphClassifier": geometric.GraphClassifier("gin", 4, 2),
    "GraphConvolution": geometric.GraphConvolution(4, 2),
    "KGNN": geometric.KGNN(4, 2),
    "aggregate_neighbours": geometric.aggregate_neighbours,
    "pool_nodes": lambda x, graph: geometric.pool_nodes(graph, x),
}
TAKE_A_GRAPH = {
    name: getattr(geometric, name)
    for name in ("normalized_adjacency", "GraphLaplacian", "refine_colours", "unbatch_graphs", "to_scipy", "to_pyg")
} | {
    "to_networkx": geometric.to_networkx,
    "batch_graphs": lambda graph: geometric.batch_graphs([graph]),
    "same_colours": lambda graph: geometric.same_colours(graph, graph),
    "same_set_colours": lambda graph: geometric.same_set_colours(graph, graph),
    "node_sets": geometric.node_sets,
    "sample_neighbours": lambda graph: geometric.sample_neighbours(graph, torch.tensor([0]), [2]),
}
GIVEN = [
    (EDGES, r"graph must be a Graph, got a tensor of shape \(2, 3\): use Graph\(edge_index, nodes=len\(x\)\)"),
    (SimpleNamespace(edge_index=EDGES, x=X), r"graph must be a Graph, got SimpleNamespace: use .*from_pyg\(data\)"),
    ([[0, 1]], r"graph must be a Graph, got list: use Graph\(edges, nodes=len\(x\)\)"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("given", "message"), GIVEN, ids=["edge_index", "Data", "list"])
@pytest.mark.parametrize("name", [*TAKE_FEATURES, *TAKE_A_GRAPH])
def test_other_forms_of_a_graph_lead_to_one(name, given, message):
    with pytest.raises(TypeError, match=message):
        TAKE_FEATURES[name](X, given) if name in TAKE_FEATURES else TAKE_A_GRAPH[name](given)


@pytest.mark.usefixtures("unchecked")
def test_data_in_place_of_edges_leads_to_from_pyg():
    with pytest.raises(TypeError, match=r"edges must be pairs .* use lemmata\.geometric\.from_pyg\(data\)"):
        Graph(SimpleNamespace(edge_index=EDGES))


@pytest.mark.usefixtures("unchecked")
def test_data_of_pytorch_geometric_itself():
    data = pytest.importorskip("torch_geometric.data").Data(X, EDGES)
    with pytest.raises(TypeError, match="got Data: use"):
        GCNConvolution(4, 2)(data.x, data)
    assert GCNConvolution(4, 2)(data.x, geometric.from_pyg(data)).shape == (3, 2)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", [name for name in TAKE_FEATURES if name != "pool_nodes"])
def test_sources_and_targets_apart_are_refused_with_words(name):
    with pytest.raises(TypeError, match=r"x must be one tensor .* got tuple: join sources and targets into"):
        TAKE_FEATURES[name]((X, X), Graph(EDGES))


@pytest.mark.usefixtures("unchecked")
def test_sizes_in_place_of_networks_are_refused_when_given():
    for build in (geometric.DeepSets, geometric.EquivariantDeepSets, geometric.MessagePassing):
        with pytest.raises(TypeError, match=r"(phi|message) must be a network such as nn\.Linear\(8, 4\), got 8"):
            build(8, 4)
    with pytest.raises(TypeError, match="network must be a network"):
        geometric.GINConvolution(8)


# --- Edges that the caller still holds ---


@pytest.mark.parametrize("shared", ["tensor", "array"])
def test_edges_changed_by_the_caller_do_not_change_the_graph(shared):
    array = np.array([[0, 1], [1, 2]])
    edges = torch.from_numpy(array) if shared == "array" else torch.tensor(array.tolist())
    graph = Graph(edges)
    if shared == "array":
        array[:] = 10_000_000
    else:
        edges[:] = 10_000_000
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.incoming.columns.tolist() == [0, 1]


@pytest.mark.parametrize("value", [-1, 10_000_000])
@pytest.mark.parametrize("rows", ["incoming", "outgoing"])
def test_a_graph_whose_edges_were_written_into_is_refused(rows, value):
    graph = Graph([[0, 1], [1, 2]])
    graph.edges[0 if rows == "incoming" else 1] = value  # columns of the rows, which compiled code would follow
    with pytest.raises(ValueError, match=r"edges were changed and must join nodes below 3, got .*: make a new Graph"):
        getattr(graph, rows)
