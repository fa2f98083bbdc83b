"""Graph convolutional networks: PyTorch Geometric's numbers and weights, dtypes, gradients, bad input."""

import pytest
import torch

from lemmata.fast.sparse.paths import checked_sums
from lemmata.geometric import GCN, GCNConvolution, Graph, batch_graphs, normalized_adjacency

SAME = 1e-10


def drawn(nodes=12, edges=30, seed=0, loops=False):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes - 1, (2, edges), generator=generator)  # directed, parallel; the last node is alone
    graph = Graph(pairs if loops else pairs[:, pairs[0] != pairs[1]], nodes)
    x = torch.randn(nodes, 5, generator=generator, dtype=torch.float64)
    return x, graph, torch.rand(graph.edges.shape[1], generator=generator, dtype=torch.float64) + 0.1


def theirs_and_ours(outputs, bias=True):
    geometric = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(1)
    theirs, ours = geometric.GCNConv(5, outputs, bias=bias).double(), GCNConvolution(5, outputs, bias).double()
    if bias:
        torch.nn.init.normal_(theirs.bias)
    return theirs, ours


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("outputs", [3, 8])
@pytest.mark.parametrize("bias", [False, True])
def test_numbers_are_those_of_pytorch_geometric_with_its_weights(outputs, bias, loops):
    theirs, ours = theirs_and_ours(outputs, bias)
    ours.load_state_dict(theirs.state_dict())
    x, graph, _ = drawn(loops=False)
    if loops:  # each once: of several, PyTorch Geometric keeps one
        edges = torch.cat([graph.edges, torch.tensor([[0, 3], [0, 3]])], 1)
        graph = Graph(edges, graph.nodes)
    assert torch.allclose(ours(x, graph), theirs(x, graph.edges), rtol=0, atol=SAME)


def test_weights_of_edges_are_those_of_pytorch_geometric():
    theirs, ours = theirs_and_ours(3)
    theirs.load_state_dict(ours.state_dict())  # and back
    x, graph, weights = drawn()
    found = ours(x, graph.replace(edge_weights=weights))
    assert torch.allclose(found, theirs(x, graph.edges, weights), rtol=0, atol=SAME)


@pytest.mark.parametrize("outputs", [3, 8])
def test_gradients_are_those_of_pytorch_geometric(outputs):
    theirs, ours = theirs_and_ours(outputs)
    ours.load_state_dict(theirs.state_dict())
    x, graph, weights = drawn()
    results = []
    for layer in (theirs, ours):
        inputs, w = x.clone().requires_grad_(), weights.clone().requires_grad_()
        y = theirs(inputs, graph.edges, w) if layer is theirs else ours(inputs, graph.replace(edge_weights=w))
        results.append(torch.autograd.grad(y.sin().sum(), [inputs, w, *layer.parameters()]))
    names = [name for name, _ in theirs.named_parameters()]
    order = [names.index(name) for name, _ in ours.named_parameters()]
    for k in range(2):
        assert torch.allclose(results[1][k], results[0][k], rtol=0, atol=SAME)
    for k, other in enumerate(order):
        assert torch.allclose(results[1][2 + k], results[0][2 + other], rtol=0, atol=SAME)


def test_both_orders_of_mixing_give_the_same():
    x, graph, _ = drawn()
    wide = GCNConvolution(5, 8).double()
    by_hand = normalized_adjacency(graph, torch.float64).dense(torch.float64).mT @ x @ wide.lin.weight.mT + wide.bias
    assert torch.allclose(wide(x, graph), by_hand, rtol=0, atol=SAME)


@pytest.mark.parametrize("outputs", [2, 7])
def test_gradients_are_those_of_the_values(outputs):
    x, graph, weights = drawn(6, 9)
    layer = GCNConvolution(5, outputs).double()

    def of(x, weights):
        return layer(x, graph.replace(edge_weights=weights))

    assert torch.autograd.gradcheck(of, (x.requires_grad_(), weights.requires_grad_()))


def test_the_coupling_has_the_dtype_asked_for_and_is_exact_in_it():
    _, graph, weights = drawn()
    assert normalized_adjacency(graph).edge_weights.dtype == torch.float32
    coupling = normalized_adjacency(graph, torch.float64)
    looped = graph.dense(torch.float64) + torch.eye(12, dtype=torch.float64)
    scale = looped.sum(0).rsqrt()
    assert torch.allclose(coupling.dense(torch.float64), scale[:, None] * looped * scale, rtol=1e-14)
    assert normalized_adjacency(graph.replace(edge_weights=weights)).edge_weights.dtype == torch.float64


def test_weights_may_be_negative_while_one_and_the_degree_is_positive():
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), edge_weights=torch.tensor([-0.5, -0.5]))
    assert torch.allclose(normalized_adjacency(graph).dense(), torch.tensor([[2.0, -1.0], [-1.0, 2.0]]))
    for weight in (-1.0, -3.0):
        with pytest.raises(ValueError, match="sums > -1"):
            normalized_adjacency(graph.replace(edge_weights=torch.full((2,), weight)))


def test_networks_couple_once_and_give_what_their_layers_do():
    x, graph, _ = drawn()
    network = GCN(5, [6, 4], 2).double()
    by_hand = x
    for number, layer in enumerate(network.layers):
        by_hand = layer(by_hand, graph)
        by_hand = by_hand.relu() if number < 2 else by_hand
    assert torch.allclose(network(x, graph), by_hand, rtol=0, atol=SAME)


def test_dropout_is_for_training():
    x, graph, _ = drawn()
    network = GCN(5, [6], 2, dropout=0.9).double()
    assert not torch.equal(network(x, graph), network(x, graph))
    network.eval()
    assert torch.equal(network(x, graph), network(x, graph))


def test_graphs_side_by_side_do_not_mix():
    one, other = drawn(seed=1), drawn(seed=2)
    network = GCN(5, [6], 2).double()
    both = network(torch.cat([one[0], other[0]]), batch_graphs([one[1], other[1]]))
    apart = torch.cat([network(x, graph) for x, graph, _ in (one, other)])
    assert torch.allclose(both, apart, rtol=0, atol=SAME)


@pytest.mark.parametrize("nodes", [0, 1])
def test_the_smallest_graphs_work(nodes):
    network = GCN(5, [6], 2)
    assert network(torch.zeros(nodes, 5), Graph([], nodes=nodes)).shape == (nodes, 2)


def test_layers_build_without_memory_and_begin_as_pytorch_geometric_does():
    assert GCNConvolution(5, 3, device="meta").lin.weight.is_meta
    torch.manual_seed(0)
    layer = GCNConvolution(300, 200)
    bound = (6 / 500) ** 0.5
    assert 0.99 * bound < layer.lin.weight.abs().max() <= bound
    assert not layer.bias.any()
    assert "outputs=200" in repr(layer)


def test_bad_input_is_answered(unchecked):
    layer = GCNConvolution(5, 3)
    with pytest.raises(ValueError, match=r"x must be \(12, 5\), got shape \(12, 4\)"):
        layer(torch.zeros(12, 4), drawn()[1])
    with pytest.raises(ValueError, match=r"x must be \(12, 5\), got shape \(11, 5\)"):
        layer(torch.zeros(11, 5), drawn()[1])
    with pytest.raises(ValueError, match="use normalized_adjacency"):
        layer(torch.zeros(12, 5), drawn()[1], normalized=True)
    with pytest.raises(ValueError, match="inputs must be >= 1"):
        GCNConvolution(0, 3)
    with pytest.raises(ValueError, match="dropout must be in"):
        GCN(5, [6], 2, dropout=1.0)


def test_a_row_of_the_coupling_may_sum_to_one_by_chance():
    """A node of degree 8 whose neighbours have degrees 3, 15, 15 and five times 8, though the graph is not regular."""
    edges, nodes = [], 9
    for neighbour, degree in enumerate([3, 15, 15, 8, 8, 8, 8, 8], 1):
        edges += [[0, neighbour], *[[neighbour, nodes + k] for k in range(degree - 1)]]
        nodes += degree - 1
    rows = normalized_adjacency(Graph(edges).undirected(), torch.float64).dense(torch.float64).sum(1)
    assert rows[0] == pytest.approx(1, rel=1e-14)
    assert (rows[1:] - 1).abs().max() > 0.1


@pytest.mark.parametrize(("outputs", "width"), [(2, 2), (5, 5), (9, 5)])
def test_the_smaller_of_input_and_output_goes_along_the_edges(outputs, width, monkeypatch):
    seen = []

    def noted(x, *rest):
        seen.append(x.shape[1])
        return checked_sums(x, *rest)

    monkeypatch.setattr("lemmata.fast.sparse.linear_sums.checked_sums", noted)
    x, graph, _ = drawn()
    layer = GCNConvolution(5, outputs).double()
    layer(x.requires_grad_(), graph).sum().backward()
    assert seen == [width, width]  # there and back


@pytest.mark.parametrize("weighted", [False, True])
def test_improved_is_pytorch_geometrics_and_its_other_options_have_a_way(weighted):
    geometric = pytest.importorskip("torch_geometric.nn")
    x, graph, weights = drawn()
    weights = weights if weighted else None
    graph = graph.replace(edge_weights=weights)
    ours = GCNConvolution(5, 3, improved=True, dtype=torch.float64)
    theirs = geometric.GCNConv(5, 3, improved=True).double()
    theirs.load_state_dict(ours.state_dict())
    ones = torch.ones(graph.edges.shape[1], dtype=torch.float64) if weights is None else weights
    # Without weights GCNConv forgets that the edges to oneself count 2.
    assert torch.allclose(ours(x, graph), theirs(x, graph.edges, ones), rtol=0, atol=SAME)
    plain = geometric.GCNConv(5, 3, normalize=False, add_self_loops=False).double()
    plain.load_state_dict(ours.state_dict())
    found = ours(x, graph.replace(edge_weights=ones), normalized=True)
    assert torch.allclose(found, plain(x, graph.edges, weights), rtol=0, atol=SAME)
