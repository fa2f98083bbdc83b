"""Networks of graph layers: their kinds, what they are made of, dropout, restoring, bad input."""

import pytest
import torch

from lemmata.geometric import (
    GCN,
    ChebyshevConvolution,
    GATConvolution,
    GCNConvolution,
    GINConvolution,
    Graph,
    NodeClassifier,
)

KINDS = {"gcn": GCNConvolution, "gat": GATConvolution, "gin": GINConvolution, "chebnet": ChebyshevConvolution}
GRAPH = Graph([[0, 1], [1, 2], [2, 3]], nodes=5).undirected()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_layers_are_of_one_kind_and_sizes_fit(kind, depth):
    network = NodeClassifier(kind, inputs=3, outputs=2, width=8, depth=depth, heads=4, degree=3)
    assert [type(layer) for layer in network.layers] == [KINDS[kind]] * depth
    x = torch.randn(5, 3)
    found = network(x, GRAPH)
    assert found.shape == (5, 2)
    by_hand = x
    for layer in network.layers[:-1]:
        by_hand = layer(by_hand, GRAPH).relu()
    torch.testing.assert_close(found, network.layers[-1](by_hand, GRAPH))
    again = NodeClassifier(kind, inputs=3, outputs=2, width=8, depth=depth, heads=4, degree=3)
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(x, GRAPH), found)


def test_layers_of_gcn_make_the_network_of_that_name():
    network, other = NodeClassifier("gcn", 3, 2, width=8), GCN(3, [8], 2)
    other.load_state_dict(network.state_dict())
    x = torch.randn(5, 3)
    torch.testing.assert_close(network(x, GRAPH), other(x, GRAPH))


def test_heads_share_the_width_and_the_last_are_averaged():
    first, last = NodeClassifier("gat", 3, 2, width=8, heads=4).layers
    assert (first.outputs, first.heads, first.concat) == (2, 4, True)
    assert (last.outputs, last.heads, last.concat) == (2, 4, False)
    usual, _ = NodeClassifier("gat", 3, 2).layers
    assert (usual.outputs, usual.heads) == (2, 8)


def test_dropout_is_for_training():
    network, x = NodeClassifier("gin", 3, 2, dropout=0.9), torch.randn(5, 3)
    assert not torch.equal(network(x, GRAPH), network(x, GRAPH))
    network.eval()
    assert torch.equal(network(x, GRAPH), network(x, GRAPH))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layer": "mlp"}, "layer must be one of gcn, gat, gin, chebnet, got 'mlp'"),
        ({"depth": 0}, "depth must be >= 1"),
        ({"layer": "gat", "width": 10, "heads": 4}, "width must be a multiple of the 4 heads, got 10"),
        ({"dropout": 1.0}, "dropout must be in"),
        ({"layer": "chebnet", "degree": -1}, "degree must be >= 0"),
    ],
)
def test_bad_sizes_are_answered(given, message):
    with pytest.raises(ValueError, match=message):
        NodeClassifier(**{"layer": "gcn", "inputs": 3, "outputs": 2} | given)
