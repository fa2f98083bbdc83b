"""Graphs: degrees, loops, duplicates, directions, permutations, kept orders, and bad input."""

import pytest
import torch

from lemmata.data.registry import load
from lemmata.geometric import Graph, batch_graphs, pool_nodes, unbatch_graphs


def drawn(nodes=7, edges=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    weights = torch.rand(edges, generator=generator)
    x = torch.randn(nodes, 3, generator=generator)
    return Graph(pairs, nodes, x, weights)


def test_degrees_are_column_sums_in_the_dtype_asked_for():
    graph = drawn()
    assert torch.allclose(graph.degrees(dtype=torch.float64), graph.dense(torch.float64).sum(0), rtol=0, atol=1e-14)
    assert graph.degrees().dtype == torch.float32
    counted = graph.degrees(weighted=False, dtype=torch.float64)
    assert torch.equal(counted, torch.bincount(graph.edges[1], minlength=7).double())
    assert torch.equal(graph.replace(edge_weights=None).degrees(dtype=torch.float64), counted)


def test_gradients_of_degrees_go_to_the_weights():
    weights = torch.ones(3, requires_grad=True)
    graph = Graph(torch.tensor([[0, 1, 2], [1, 1, 0]]), 3, edge_weights=weights)
    graph.degrees()[1].backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [1, 1, 0]


@pytest.mark.parametrize("order", [[1, 2, 0, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], list(range(7))])
def test_permuted_is_the_matrix_product(order):
    graph, p = drawn(), torch.eye(7)[order]
    turned = graph.permuted(torch.tensor(order))
    assert torch.allclose(turned.dense(), p @ graph.dense() @ p.mT)
    assert torch.equal(turned.x, p @ graph.x)


@pytest.mark.parametrize("order", [[0, 1], [0, 0, 1, 2, 3, 4, 5], [1.0, 0, 2, 3, 4, 5, 6]])
def test_an_order_holds_each_node_once(order, unchecked):
    with pytest.raises(ValueError, match="order must hold each node from 0 to 6 once"):
        drawn().permuted(torch.tensor(order))


def test_several_graphs_are_not_permuted_as_one():
    pair = batch_graphs([drawn(seed=1), drawn(seed=2)])
    with pytest.raises(ValueError, match="permute each one"):
        pair.permuted(torch.arange(14))


def test_undirected_joins_both_directions_and_keeps_the_largest_weight():
    graph = Graph(torch.tensor([[0, 1, 0], [1, 0, 2]]), 3, edge_weights=torch.tensor([1.0, 3.0, 2.0])).undirected()
    assert graph.is_undirected
    assert graph.dense().tolist() == [[0, 3, 2], [3, 0, 0], [2, 0, 0]]
    assert not Graph([[0, 1]]).is_undirected
    uneven = Graph(torch.tensor([[0, 1], [1, 0]]), edge_weights=torch.tensor([1.0, 2.0]))
    assert not uneven.is_undirected
    assert not Graph([[0, 1], [0, 1], [1, 0]]).is_undirected  # twice there, once back


@pytest.mark.parametrize(("reduce", "joined"), [("sum", 5.0), ("amax", 3.0), ("amin", 2.0), ("mean", 2.5)])
def test_parallel_edges_are_joined(reduce, joined):
    graph = Graph(torch.tensor([[1, 0, 1], [0, 1, 0]]), edge_weights=torch.tensor([2.0, 7.0, 3.0])).simple(reduce)
    assert graph.edges.tolist() == [[0, 1], [1, 0]]
    assert graph.edge_weights.tolist() == [7.0, joined]


def test_parallel_edges_without_weights_count_as_often_as_they_come():
    assert Graph([[0, 1], [0, 1]]).simple().edge_weights.tolist() == [2.0]
    assert Graph([[0, 1], [0, 1]]).simple("amax").edge_weights is None


def test_features_of_edges_stay_with_them():
    graph = Graph(torch.tensor([[2, 0, 1], [0, 1, 1]]), edge_features=torch.tensor([[2.0], [0.0], [1.0]])).simple()
    assert graph.edges[0].tolist() == graph.edge_features[:, 0].tolist()
    assert graph.without_self_loops().edge_features[:, 0].tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match="cannot be joined"):
        graph.undirected()
    with pytest.raises(ValueError, match="no edge_features"):
        graph.with_self_loops()
    with pytest.raises(ValueError, match="parallel edges cannot be joined"):
        Graph([[0, 1], [0, 1]]).replace(edge_features=torch.ones(2, 1)).simple()


def test_one_edge_to_oneself_each():
    graph = Graph([[0, 0], [0, 1], [1, 1], [1, 1]], nodes=3).with_self_loops()
    assert graph.dense().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert graph.has_self_loops
    assert not graph.without_self_loops().has_self_loops
    assert Graph([[0, 1]]).with_self_loops(0.5).dense().tolist() == [[0.5, 1], [0, 0.5]]


def test_the_order_by_node_is_kept_where_edges_stay():
    graph = drawn()
    rows = graph.incoming
    assert graph.replace(x=None).incoming is rows
    assert graph.flipped().incoming is not rows
    assert torch.equal(graph.flipped().incoming.columns, graph.outgoing.columns)


def test_graphs_without_edges_or_nodes_work():
    empty, bare = Graph([]), Graph([], nodes=2, x=torch.zeros(2, 1))
    assert (empty.nodes, empty.dense().shape, empty.degrees().shape) == (0, (0, 0), (0,))
    assert bare.undirected().degrees().tolist() == [0, 0]
    assert bare.with_self_loops().dense().tolist() == [[1, 0], [0, 1]]
    assert bare.is_undirected
    assert not bare.has_self_loops


def test_graphs_move_to_another_dtype():
    graph = drawn().to(torch.float64)
    assert (graph.x.dtype, graph.edge_weights.dtype, graph.edges.dtype) == (torch.float64, torch.float64, torch.int64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": torch.zeros(3, 2, dtype=torch.int64)}, "edges must be"),
        ({"edges": torch.zeros(2, 3)}, "whole numbers"),
        ({"edges": torch.zeros(2, 3, dtype=torch.bool)}, "whole numbers"),
        ({"edges": [[0, 3]], "nodes": 2}, "give nodes=4"),
        ({"edges": torch.tensor([[-1], [0]])}, "got -1 to 0"),
        ({"edges": [[0, 1]], "nodes": -1}, "nodes must be >= 0"),
        ({"edges": [[0, 1]], "nodes": 2, "x": torch.zeros(3, 1)}, "x must have a row for each of the 2 nodes"),
        ({"edges": [[0, 1]], "edge_weights": torch.ones(2)}, "edge_weights must have a row"),
        ({"edges": [[0, 1]], "edge_features": torch.ones(2, 1)}, "edge_features must have a row"),
        ({"edges": [[0, 1]], "graph_of": torch.tensor([1, 0])}, "use batch_graphs"),
    ],
)
def test_bad_graphs_are_answered(arguments, message, unchecked):
    with pytest.raises(ValueError, match=message):
        Graph(**arguments)


def test_unknown_parts_and_ways_to_join_are_answered():
    with pytest.raises(TypeError, match="got colour"):
        drawn().replace(colour=1)
    with pytest.raises(ValueError, match="reduce must be one of"):
        drawn().simple("median")


def test_a_data_set_is_a_graph():
    club = Graph.of(load("karate"), weighted=True)
    assert club.is_undirected
    assert float(club.degrees().sum()) == 2 * 231  # Zachary's table: 231 shared activities


def test_graphs_side_by_side_come_back():
    graphs = [drawn(5, 6, 1), drawn(1, 1, 2), drawn(4, 0, 3)]
    pair = batch_graphs(graphs)
    assert torch.equal(pair.dense(), torch.block_diag(*[graph.dense() for graph in graphs]))
    for before, after in zip(graphs, unbatch_graphs(pair), strict=True):
        assert torch.equal(before.dense(), after.dense())
        assert torch.equal(before.x, after.x)
    assert unbatch_graphs(graphs[0]) == [graphs[0]]


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax"])
def test_pools_are_those_of_each_graph(reduce):
    graphs = [drawn(5, 6, 1), Graph([], nodes=0, x=torch.zeros(0, 3), edge_weights=torch.zeros(0)), drawn(4, 0, 3)]
    pair = batch_graphs(graphs)
    by_hand = [getattr(graph.x, reduce)(0) if graph.nodes else torch.zeros(3) for graph in graphs]
    assert torch.allclose(pool_nodes(pair, pair.x, reduce), torch.stack(by_hand), atol=1e-6)
    assert torch.allclose(pool_nodes(graphs[0], graphs[0].x, reduce)[0], by_hand[0], atol=1e-6)


def test_bad_batches_are_answered():
    with pytest.raises(ValueError, match="at least one"):
        batch_graphs([])
    with pytest.raises(ValueError, match="use unbatch_graphs"):
        batch_graphs([batch_graphs([drawn()])])
    with pytest.raises(ValueError, match="all graphs must have x"):
        batch_graphs([drawn(), drawn().replace(x=None)])
