"""Graphs beyond their claim: isolated nodes, edges to oneself, twice or one way, nothing at all, and bad input."""

import pytest
import torch

from lemmata.data import load
from lemmata.geometric import GCN, GATConvolution, Graph

NONE = torch.zeros(2, 0, dtype=torch.int64)


def mixed():
    """An edge twice, an edge to oneself, one way only, and node 4 alone."""
    return Graph([[0, 1], [1, 0], [0, 1], [2, 2], [3, 2]], nodes=5)


def weighted():
    return mixed().replace(edge_weights=torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0]))


# --- What it is ---


def test_edges_come_as_pairs_or_as_a_tensor_of_any_whole_numbers():
    pairs = Graph([(0, 1), (2, 1)])
    assert torch.equal(pairs.edges, Graph(torch.tensor([[0, 2], [1, 1]], dtype=torch.int32)).edges)
    assert pairs.edges.dtype is torch.int64
    assert (pairs.nodes, pairs.graphs) == (3, 1)
    assert Graph(NONE, x=torch.ones(4, 2)).nodes == 4


def test_incoming_and_outgoing_are_rows_and_columns_of_the_matrix():
    graph = mixed()
    dense = graph.dense()
    assert dense.tolist() == [[0, 2, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0] * 5]
    for rows, matrix in ((graph.outgoing, dense), (graph.incoming, dense.mT)):
        found = torch.zeros(5, 5).index_put((rows.row_of_each(), rows.columns), torch.ones(5), accumulate=True)
        assert torch.equal(found, matrix)
    assert torch.equal(graph.degrees(), dense.sum(0))
    assert torch.equal(weighted().degrees(), weighted().dense().sum(0))
    assert torch.equal(weighted().degrees(weighted=False), dense.sum(0))


def test_degrees_are_added_up_in_the_dtype_asked_for_and_have_gradients():
    weights = torch.rand(5, requires_grad=True)
    graph = mixed().replace(edge_weights=weights)
    exact = graph.dense(torch.float64).sum(0)
    torch.testing.assert_close(graph.degrees(dtype=torch.float64), exact, rtol=0, atol=1e-14)
    assert graph.degrees().dtype is torch.float32
    assert mixed().degrees(dtype=torch.float64).dtype is torch.float64
    assert torch.autograd.grad(graph.degrees()[1], weights)[0].tolist() == [1, 0, 1, 0, 0]


def test_it_says_whether_it_is_undirected_and_has_edges_to_oneself():
    assert mixed().has_self_loops
    assert not Graph([[0, 1]]).has_self_loops
    assert not mixed().is_undirected
    assert not Graph([[0, 1], [0, 1], [1, 0]]).is_undirected  # not as often
    assert Graph([[0, 1], [1, 0], [2, 2]]).is_undirected
    both = Graph([[0, 1], [0, 1], [1, 0], [1, 0]])
    assert both.replace(edge_weights=torch.tensor([1.0, 3.0, 3.0, 1.0])).is_undirected
    assert not both.replace(edge_weights=torch.tensor([1.0, 3.0, 3.0, 2.0])).is_undirected
    assert both.replace(edge_features=torch.ones(4, 2)).is_undirected
    assert Graph(NONE, nodes=3).is_undirected


# --- Others made from it ---


@pytest.mark.parametrize("make", [mixed, weighted])
def test_undirected_has_each_edge_both_ways_and_once(make):
    graph = make().undirected()
    assert graph.is_undirected
    assert graph.edges.tolist() == [[0, 1, 2, 2, 3], [1, 0, 2, 3, 2]]
    if make is weighted:
        assert graph.edge_weights.tolist() == [4.0, 4.0, 8.0, 16.0, 16.0]


def test_simple_joins_parallel_edges():
    assert mixed().simple().edge_weights.tolist() == [2.0, 1.0, 1.0, 1.0]
    assert torch.equal(mixed().simple().dense(), mixed().dense())
    for reduce, expected in {"sum": 5.0, "amax": 4.0, "amin": 1.0, "mean": 2.5}.items():
        assert weighted().simple(reduce).edge_weights.tolist() == [expected, 2.0, 8.0, 16.0]
    once = Graph([[1, 0], [0, 1]], edge_features=torch.tensor([[1.0], [2.0]])).simple()
    assert (once.edges.tolist(), once.edge_features.tolist()) == ([[0, 1], [1, 0]], [[2.0], [1.0]])
    assert once.edge_weights is None


def test_edges_to_oneself_are_put_in_place_of_those_that_were_there():
    looped = weighted().with_self_loops(weight=0.5)
    assert looped.edges.tolist() == [[0, 1, 0, 3, 0, 1, 2, 3, 4], [1, 0, 1, 2, 0, 1, 2, 3, 4]]
    assert looped.edge_weights.tolist() == [1.0, 2.0, 4.0, 16.0] + 5 * [0.5]
    assert mixed().with_self_loops().edge_weights is None
    assert mixed().with_self_loops(2.0).edge_weights.tolist() == [1.0] * 4 + [2.0] * 5
    apart = weighted().replace(edge_features=torch.arange(5.0)[:, None]).without_self_loops()
    assert apart.edge_weights.tolist() == [1.0, 2.0, 4.0, 16.0]
    assert apart.edge_features.tolist() == [[0.0], [1.0], [2.0], [4.0]]
    assert apart.without_self_loops() is apart


def test_permuted_nodes_take_their_features_and_edges_along():
    graph = mixed().replace(x=torch.arange(10.0).reshape(5, 2))
    order = torch.tensor([3, 0, 4, 1, 2])
    turned = graph.permuted(order)
    assert torch.equal(turned.x, graph.x[order])
    assert torch.equal(turned.dense(), graph.dense()[order][:, order])


def test_flipped_is_the_transposed_matrix():
    assert torch.equal(weighted().flipped().dense(), weighted().dense().mT)


def test_gradients_flow_to_the_weights():
    weights = torch.ones(5, requires_grad=True)
    graph = mixed().replace(edge_weights=weights)
    for made in (graph.simple(), graph.undirected(), graph.with_self_loops(), graph.flipped()):
        assert made.edge_weights is not None
        assert torch.autograd.grad(made.edge_weights.sum(), weights)[0].any()


def test_graphs_with_the_same_edges_share_their_order_and_others_do_not():
    graph = mixed()
    again = graph.replace(x=torch.ones(5, 1), edge_weights=torch.ones(5))
    assert again.incoming is graph.incoming
    assert again.with_self_loops().incoming is graph.with_self_loops().incoming
    assert graph.x is None
    assert graph.replace(edges=graph.edges.flip(0)).incoming is not graph.incoming
    assert graph.replace(graph_of=torch.tensor([0, 0, 1, 1, 2])).graphs == 3
    assert graph.replace(nodes=7).incoming.number == 7


@pytest.mark.parametrize("layer", [GCN(3, [4], 2), GATConvolution(3, 2, heads=2)])
@pytest.mark.parametrize("make", [mixed, weighted])
def test_what_was_kept_under_inference_mode_serves_training(layer, make):
    graph, x = make(), torch.randn(5, 3)
    if graph.edge_weights is not None:
        graph = graph.replace(edge_weights=graph.edge_weights.requires_grad_())
    with torch.inference_mode():
        evaluated = layer(x, graph)
    trained = layer(x, graph)
    assert torch.equal(evaluated, trained)
    trained.sum().backward()  # which needs the order of the edges again


def test_what_depends_on_the_edges_alone_is_computed_once():
    graph, asked = mixed(), []

    def make():
        asked.append(1)
        return graph.degrees()

    again = graph.replace(x=torch.ones(5, 2), edge_weights=torch.ones(5))
    assert graph.once("name", make) is again.once("name", make)
    assert len(asked) == 1
    assert graph.once("other", make) is not graph.once("name", make)
    assert graph.flipped().once("name", make) is not graph.once("name", make)


def test_another_dtype_keeps_the_order_of_the_edges():
    graph = weighted().replace(x=torch.ones(5, 2))
    assert graph.to(torch.float64).incoming is graph.incoming
    assert graph.to(torch.float64).x.dtype is torch.float64
    assert graph.x.dtype is torch.float32


def test_dtype_and_device():
    graph = weighted().replace(x=torch.ones(5, 2)).to(torch.float64)
    assert (graph.x.dtype, graph.edge_weights.dtype, graph.edges.dtype) == (torch.float64, torch.float64, torch.int64)
    assert torch.equal(graph.dense(torch.float64), weighted().dense().double())


# --- Nothing at all ---


@pytest.mark.parametrize("nodes", [0, 3])
def test_graphs_without_edges_or_nodes(nodes):
    graph = Graph([], nodes=nodes, x=torch.ones(nodes, 2))
    assert torch.equal(graph.dense(), torch.zeros(nodes, nodes))
    assert not graph.degrees().any()
    assert not graph.has_self_loops
    for made in (graph.undirected(), graph.simple(), graph.flipped(), graph.permuted(torch.arange(nodes).flip(0))):
        assert (made.nodes, made.edges.shape) == (nodes, (2, 0))
    assert torch.equal(graph.with_self_loops().dense(), torch.eye(nodes))
    for layer in (GCN(2, [4], 3), GATConvolution(2, 3)):
        assert layer(graph.x, graph).shape == (nodes, 3)
    assert repr(graph) == f"Graph({nodes} nodes, 0 edges, x ({nodes}, 2))"


def test_a_data_set_is_a_graph():
    data = load("karate")
    club = Graph.of(data, weighted=True)
    assert torch.equal(club.edge_weights, data.edge_weights)
    assert club.is_undirected
    assert float(club.degrees().sum()) == 2 * 231  # Zachary's table: 231 shared activities
    assert Graph.of(data).edge_weights is None


# --- Bad input ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"edges": [[0, 1, 2], [3, 4, 5]]}, r"edges must be pairs of a source and a target, got \[0, 1, 2\]"),
        ({"edges": torch.ones(2, 3)}, r"edges must be \(2, edges\) integers.* got \(2, 3\) torch.float32"),
        ({"edges": torch.ones(3, 2, dtype=torch.int64)}, r"sources above targets, got \(3, 2\)"),
        ({"edges": torch.ones(2, 2, dtype=torch.bool)}, "integers"),
        ({"edges": [[0, 5]], "nodes": 3}, "edges must join nodes 0 to 2, got 0 to 5: give nodes=6"),
        ({"edges": [[-1, 0]], "nodes": 3}, "edges must join nodes 0 to 2, got -1 to 0"),
        ({"edges": [[-1, 0]]}, "edges must join nodes 0 to 0, got -1 to 0"),
        ({"edges": [], "nodes": -1}, "nodes must be"),
        ({"edges": [[0, 1]], "x": torch.ones(3, 2), "nodes": 2}, r"a row for each of the 2 nodes, got shape \(3, 2\)"),
        ({"edges": [[0, 1]], "edge_weights": torch.ones(2)}, r"edge_weights must have a row for each of 1 edges"),
        ({"edges": [[0, 1]], "edge_weights": torch.ones(1, 1)}, "edge_weights must be one number for each edge"),
        ({"edges": [[0, 1]], "edge_features": torch.ones(())}, "edge_features must have a row for each of 1 edges"),
        ({"edges": [[0, 1]], "graph_of": torch.tensor([1, 0])}, "graph_of must be one ascending number for each node"),
        ({"edges": [[0, 1]], "graph_of": torch.tensor([0, 2]), "graphs": 2}, "graphs must be"),
    ],
)
def test_what_is_no_graph_is_refused(unchecked, given, message):
    with pytest.raises(ValueError, match=message):
        Graph(**given)


def test_how_many_graphs_needs_to_know_which_nodes_are_whose():
    with pytest.raises(ValueError, match=r"graphs needs graph_of, .* got 3: use batch_graphs"):
        Graph([[0, 1]], graphs=3)
    assert Graph([[0, 1]], graphs=1).graphs == 1


@pytest.mark.parametrize("order", [[0, 1], [0, 0, 1, 2, 3], [1.0, 0, 2, 3, 4], [1, 2, 3, 4, 5]])
def test_an_order_holds_each_node_once(order, unchecked):
    with pytest.raises(ValueError, match="order must hold each node from 0 to 4 once"):
        mixed().permuted(torch.tensor(order))


def test_what_cannot_be_done_is_refused():
    graph = mixed().replace(edge_features=torch.ones(5, 2))
    for method in (graph.undirected, graph.simple, graph.with_self_loops):
        with pytest.raises(ValueError, match=r"use replace\(edge_features=None\) first"):
            method()
    with pytest.raises(TypeError, match=r"parts must be among edges, nodes, x, .* got y"):
        graph.replace(y=1)
    with pytest.raises(ValueError, match="reduce must be"):
        graph.simple("median")
    with pytest.raises(ValueError, match="edge_weights must have a row for each of 5 edges"):
        graph.replace(edge_weights=torch.ones(4))
