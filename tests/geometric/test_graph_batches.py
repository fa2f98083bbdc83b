"""Graphs side by side: together as alone, back again, and sums over each; some have no edges or no nodes."""

import pytest
import torch

from lemmata.geometric import GCN, Graph, batch_graphs, pool_nodes, unbatch_graphs


def several():
    graphs = [Graph([[0, 1], [1, 2], [2, 2]]), Graph([], nodes=0), Graph([], nodes=2), Graph([[1, 0], [1, 0]])]
    return [
        graph.replace(x=torch.randn(graph.nodes, 3), edge_weights=torch.rand(graph.edges.shape[1])) for graph in graphs
    ]


def test_there_and_back_again():
    graphs = several()
    graphs = [graph.replace(edge_features=torch.rand(graph.edges.shape[1], 2)) for graph in graphs]
    joined = batch_graphs(graphs)
    assert (joined.graphs, joined.nodes, joined.graph_of.tolist()) == (4, 7, [0, 0, 0, 2, 2, 3, 3])
    again = unbatch_graphs(joined)
    assert len(again) == 4
    for one, other in zip(graphs, again, strict=True):
        assert one.nodes == other.nodes
        for name in ("edges", "x", "edge_weights", "edge_features"):
            assert torch.equal(getattr(one, name), getattr(other, name))


def test_edges_in_any_order_go_back_to_their_graph():
    joined = batch_graphs(several())
    order = torch.randperm(5)
    mixed = joined.replace(edges=joined.edges[:, order], edge_weights=joined.edge_weights[order])
    for one, other in zip(unbatch_graphs(joined), unbatch_graphs(mixed), strict=True):
        assert torch.equal(one.dense(), other.dense())


def test_a_network_sees_each_graph_alone():
    graphs, network = several(), GCN(3, [5], 2)
    alone = torch.cat([network(graph.x, graph) for graph in graphs])
    together = batch_graphs(graphs)
    torch.testing.assert_close(network(together.x, together), alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax"])
def test_pooling_is_that_of_each_graph(reduce):
    graphs = several()
    joined = batch_graphs(graphs)
    expected = torch.zeros(4, 3)
    for number, graph in enumerate(graphs):
        if graph.nodes:
            expected[number] = getattr(graph.x, reduce)(0)
    torch.testing.assert_close(pool_nodes(joined, joined.x, reduce), expected)
    torch.testing.assert_close(pool_nodes(graphs[0], graphs[0].x, reduce), expected[:1])
    x = joined.x.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: pool_nodes(joined, x, reduce), (x,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_pooled_in_single_precision(dtype):
    graph = batch_graphs([Graph([], nodes=1000), Graph([], nodes=1)])
    x = torch.ones(1001, 2, dtype=dtype)  # in halves a sum of ones would stay where adding one is lost
    assert pool_nodes(graph, x).tolist() == [[1000, 1000], [1, 1]]
    assert pool_nodes(graph, x, "mean").tolist() == [[1, 1], [1, 1]]
    assert pool_nodes(graph, x).dtype is dtype


def test_graphs_of_edges_alone_come_back():
    graphs = [Graph([[0, 1]]), Graph([], nodes=0), Graph([[1, 0], [1, 1]])]
    back = unbatch_graphs(batch_graphs(graphs))
    assert [(graph.nodes, graph.edges.tolist()) for graph in back] == [(g.nodes, g.edges.tolist()) for g in graphs]
    assert all(graph.x is graph.edge_weights is graph.edge_features is None for graph in back)


def test_one_graph_is_a_list_of_one():
    graph = Graph([[0, 1]])
    assert unbatch_graphs(graph) == [graph]
    assert batch_graphs([graph]).graphs == 1


def test_what_cannot_stand_side_by_side_is_refused(unchecked):
    with pytest.raises(ValueError, match="graphs must be at least one, got none"):
        batch_graphs([])
    with pytest.raises(ValueError, match="all graphs must have x, or none of them"):
        batch_graphs([Graph([[0, 1]]), Graph([[0, 1]], x=torch.ones(2, 1))])
    with pytest.raises(ValueError, match="graphs must be single ones"):
        batch_graphs([batch_graphs(several())])
    with pytest.raises(ValueError, match="permute each one"):
        batch_graphs(several()).permuted(torch.arange(7))
    with pytest.raises(ValueError, match="reduce must be"):
        pool_nodes(Graph([[0, 1]]), torch.ones(2, 1), "median")
    for shape in ((3, 1), (2,)):
        with pytest.raises(ValueError, match=r"x must be \(2, features\), got shape"):
            pool_nodes(Graph([[0, 1]]), torch.ones(shape))
