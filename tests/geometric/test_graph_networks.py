"""Networks of whole graphs: one row a graph, alone or in company, in any order of nodes; gradients and bad input."""

import pytest
import torch

from lemmata.geometric import Graph, GraphClassifier, batch_graphs

KINDS = ["gcn", "gat", "gin", "chebnet"]
PATH, STAR = Graph([[0, 1], [1, 2], [2, 3]]).undirected(), Graph([[0, 1], [0, 2], [0, 3]]).undirected()


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_side_by_side_are_answered_as_each_alone(kind):
    network = GraphClassifier(kind, inputs=3, outputs=2, width=8, dropout=0.5).double().eval()
    x = torch.randn(9, 3, dtype=torch.float64)
    lone = Graph([], nodes=1)
    found = network(x, batch_graphs([PATH, STAR, lone]))
    alone = [network(part, graph) for part, graph in zip(x.split([4, 4, 1]), (PATH, STAR, lone), strict=True)]
    torch.testing.assert_close(found, torch.cat(alone), rtol=0, atol=1e-12)
    assert not torch.allclose(network(x[:4], PATH), network(x[:4], STAR))


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_nodes_does_not_matter(kind):
    network = GraphClassifier(kind, inputs=3, outputs=2, width=8).double()
    x, order = torch.randn(4, 3, dtype=torch.float64), torch.tensor([2, 0, 1, 3])  # a three-cycle
    torch.testing.assert_close(network(x[order], STAR.permuted(order)), network(x, STAR), rtol=0, atol=1e-12)


def test_more_nodes_of_a_kind_are_told_apart():
    # Two and three nodes without edges and with equal features: a mean would not see a difference.
    network = GraphClassifier("gin", inputs=1, outputs=2)
    found = [network.embed(torch.ones(count, 1), Graph([], nodes=count)) for count in (2, 3)]
    torch.testing.assert_close(3 * found[0], 2 * found[1])
    assert found[0].abs().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_is_learnt(kind):
    network = GraphClassifier(kind, inputs=3, outputs=2, width=8, depth=2)
    network(torch.randn(8, 3), batch_graphs([PATH, STAR])).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


def test_bad_sizes_are_answered():
    with pytest.raises(ValueError, match="layer must be one of gcn, gat, gin, chebnet, got 'mlp'"):
        GraphClassifier("mlp", inputs=3, outputs=2)
    with pytest.raises(ValueError, match="width must be a multiple of the 8 heads, got 12"):
        GraphClassifier("gat", inputs=3, outputs=2, width=12)
    with pytest.raises(ValueError, match=r"x must be \(4, 3\), got shape"):
        GraphClassifier("gcn", inputs=3, outputs=2)(torch.zeros(4, 2), PATH)
