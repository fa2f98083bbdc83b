"""Graphs to other forms and back: edges one way, twice, to oneself, nodes alone, and nothing at all."""

import sys

import numpy as np
import pytest
import scipy.sparse
import torch

from lemmata.geometric import (
    Graph,
    batch_graphs,
    from_dense,
    from_networkx,
    from_pyg,
    from_scipy,
    to_networkx,
    to_pyg,
    to_scipy,
)

NAMES = ("x", "edge_weights", "edge_features", "graph_of")


def graphs():
    """One way, to oneself, weighted or not, with nodes alone; and empty ones."""
    edges = [[0, 1], [1, 0], [2, 2], [3, 2]]
    return [
        Graph(edges, nodes=5),
        Graph(edges, nodes=5, x=torch.randn(5, 2), edge_weights=torch.tensor([0.5, 1.0, -2.0, 4.0])),
        Graph([], nodes=3),
        Graph([], nodes=0),
    ]


def same(one, other, names=NAMES):
    """The same edges in the same order, and the same of everything else."""
    assert one.nodes == other.nodes
    assert torch.equal(one.edges, other.edges)
    for name in names:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        assert mine is None or torch.equal(mine, theirs), name


@pytest.mark.parametrize("number", range(4))
def test_there_and_back_again(number):
    graph = graphs()[number]
    for again in (from_dense(graph.dense(), graph.x), from_scipy(to_scipy(graph), graph.x)):
        same(again, graph)
    same(from_networkx(to_networkx(graph), "x" if graph.x is not None else None), graph)


# --- Matrices ---


def test_matrices_agree_and_gradients_flow():
    graph = graphs()[1]
    assert np.array_equal(to_scipy(graph).toarray(), graph.dense().numpy())
    halves = graph.replace(edge_weights=graph.edge_weights.bfloat16())  # all are bfloat16 numbers; SciPy has none
    assert np.array_equal(to_scipy(halves).toarray(), graph.dense().numpy())
    matrix = graph.dense().double().requires_grad_()
    found = from_dense(matrix)
    assert torch.equal(torch.autograd.grad(found.edge_weights.sum(), matrix)[0], (matrix != 0).double())
    ones = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert from_dense(ones).edge_weights is None
    assert from_dense(ones.requires_grad_()).edge_weights is not None
    assert from_dense(ones.bool()).edge_weights is None
    assert from_dense(torch.tensor([[0, 3], [0, 0]])).edge_weights.tolist() == [3.0]


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array", "lil_matrix", "dia_array"])
def test_every_format_of_scipy_is_read(kind):
    dense = np.array([[0, 2, 0], [0, 0, 3], [0, 0, 1.0]])
    graph = from_scipy(getattr(scipy.sparse, kind)(dense))
    assert graph.edge_weights.dtype is torch.float64
    assert np.array_equal(graph.dense(torch.float64).numpy(), dense)


def test_entries_that_come_twice_stay_two_edges():
    matrix = scipy.sparse.coo_array(([1.0, 1.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert from_scipy(matrix).edges.tolist() == [[0, 0], [1, 1]]
    assert to_scipy(from_scipy(matrix)).toarray().tolist() == [[0.0, 2.0], [0.0, 0.0]]


def test_what_is_not_square_is_refused(unchecked):
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(2, 3\)"):
        from_dense(torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"matrix must be square, got shape \(2, 3\)"):
        from_scipy(scipy.sparse.csr_array((2, 3)))


# --- networkx ---


def test_undirected_graphs_of_networkx_have_both_directions():
    networkx = pytest.importorskip("networkx")
    theirs = networkx.Graph([("b", "a"), ("a", "a")])
    theirs.add_edge("a", "c", weight=5)
    graph = from_networkx(theirs)
    assert graph.edges.tolist() == [[0, 1, 1, 1, 2], [1, 0, 1, 2, 1]]  # b, a, c
    assert graph.edge_weights.tolist() == [1.0, 1.0, 1.0, 5.0, 5.0]
    assert graph.is_undirected
    again = to_networkx(graph, undirected=True)
    expected = networkx.to_numpy_array(theirs)
    assert type(again) is networkx.Graph
    assert np.array_equal(networkx.to_numpy_array(again), expected)
    assert np.array_equal(graph.dense().numpy(), expected)


def test_karate_is_networkx_own():
    networkx = pytest.importorskip("networkx")
    theirs = networkx.karate_club_graph()
    graph = from_networkx(theirs)
    assert graph.is_undirected
    assert np.array_equal(graph.dense().numpy(), networkx.to_numpy_array(theirs, dtype=np.float32))
    assert from_networkx(networkx.Graph(), x="x").x.shape == (0, 0)


def test_parallel_edges_make_a_multigraph():
    networkx = pytest.importorskip("networkx")
    graph = Graph([[0, 1], [0, 1], [1, 0], [1, 0], [1, 1]], edge_features=torch.arange(5.0)[:, None])
    assert type(to_networkx(graph)) is networkx.MultiDiGraph
    undirected = to_networkx(graph.replace(edge_features=None), undirected=True)
    assert type(undirected) is networkx.MultiGraph
    assert undirected.number_of_edges() == 3
    assert torch.equal(from_networkx(undirected).dense(), graph.dense())
    assert sorted(row for _, _, (row,) in to_networkx(graph).edges(data="features")) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_networkx_lacks_is_refused():
    networkx = pytest.importorskip("networkx")
    theirs = networkx.path_graph(2)
    theirs.nodes[0]["x"] = [1.0]
    with pytest.raises(ValueError, match="all nodes must have the attribute 'x', node 1 has not"):
        from_networkx(theirs, x="x")
    with pytest.raises(ValueError, match=r"use graph.undirected\(\)"):
        to_networkx(Graph([[0, 1]]), undirected=True)


# --- PyTorch Geometric ---


@pytest.mark.parametrize("number", range(4))
def test_pyg_data_and_back(number):
    pytest.importorskip("torch_geometric")
    graph = graphs()[number]
    graph = graph.replace(edge_features=torch.rand(graph.edges.shape[1], 3)) if number == 1 else graph
    data = to_pyg(graph)
    assert data.validate()
    assert data.num_nodes == graph.nodes
    same(from_pyg(data), graph)


def test_batches_of_pyg_are_ours():
    pyg = pytest.importorskip("torch_geometric")
    single = [graph.replace(x=torch.ones(graph.nodes, 1), edge_weights=None) for graph in graphs()[:3]]
    theirs = pyg.data.Batch.from_data_list([to_pyg(graph) for graph in single])
    ours = batch_graphs(single)
    same(from_pyg(theirs), ours)
    assert from_pyg(theirs).graphs == 3
    assert torch.equal(to_pyg(ours).batch, theirs.batch)


def test_without_pyg_its_name_and_the_remedy_are_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ModuleNotFoundError, match="pip install torch-geometric"):
        to_pyg(Graph([[0, 1]]))


def test_data_without_edges_of_the_usual_kind_is_refused():
    pyg = pytest.importorskip("torch_geometric")
    with pytest.raises(ValueError, match="data must have edge_index, got none"):
        from_pyg(pyg.data.Data(x=torch.ones(2, 1)))
