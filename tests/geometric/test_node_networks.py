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
    torch.testing.assert_close(network.embed(x, GRAPH), by_hand)
    torch.testing.assert_close(found, network.layers[-1](by_hand, GRAPH))
    again = NodeClassifier(kind, inputs=3, outputs=2, width=8, depth=depth, heads=4, degree=3)
    again.load_state_dict(network.state_dict())
    assert torch.equal(again(x, GRAPH), found)


def test_layers_of_gcn_make_the_network_of_that_name():
    network, other = NodeClassifier("gcn", 3, 2, width=8), GCN(3, [8], 2)
    other.load_state_dict(network.state_dict())
    x = torch.randn(5, 3)
    torch.testing.assert_close(network(x, GRAPH), other(x, GRAPH))


@pytest.mark.parametrize("depth", [1, 2])
def test_networks_inside_gin_layers_have_the_width_of_the_others(depth):
    network = NodeClassifier("gin", 3, 2, width=8, depth=depth)
    assert [layer.nn[0].out_features for layer in network.layers] == [8] * depth


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


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_whole_networks_of_pytorch_geometric_load_both_ways(kind):
    models = pytest.importorskip("torch_geometric.nn.models", reason="PyTorch Geometric is what the network is held to")
    more = {"gcn": {}, "gat": {"heads": 4}}[kind]
    theirs = {"gcn": models.GCN, "gat": models.GAT}[kind](3, 8, num_layers=3, out_channels=2, **more).double()
    ours = NodeClassifier(kind, inputs=3, outputs=2, width=8, depth=3, **more).double()
    ours.load_state_dict({name.replace("convs.", "layers."): values for name, values in theirs.state_dict().items()})
    x = torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(ours(x, GRAPH), theirs(x, GRAPH.edges), rtol=0, atol=1e-10)
    again = type(theirs)(3, 8, num_layers=3, out_channels=2, **more).double()
    again.load_state_dict({name.replace("layers.", "convs."): values for name, values in ours.state_dict().items()})
    assert all(torch.equal(again.state_dict()[name], values) for name, values in theirs.state_dict().items())
