"""ChebNet's layer: PyTorch Geometric's numbers and weights, dtypes, gradients, compilation, and bad input."""

import pytest
import torch
from torch import nn

from lemmata.data import load
from lemmata.geometric import ChebyshevConvolution, Graph, GraphFourier, GraphLaplacian, chebyshev_terms

KARATE = Graph.of(load("karate")).undirected()
# Two components, a node without edges, an edge to oneself and parallel edges, with weights that are no round numbers.
PAIRS = [(0, 1), (1, 0), (1, 2), (2, 1), (1, 2), (2, 1), (2, 2), (3, 4), (4, 3)]
RAGGED_WEIGHTS = torch.tensor([0.3, 0.3, 1.7, 1.7, 0.2, 0.2, 5.0, 2.5, 2.5]).double()
RAGGED = Graph(PAIRS, 6, edge_weights=RAGGED_WEIGHTS)
# One way only: 2 hears and does not speak, 3 speaks and does not hear.
DIRECTED = Graph([(0, 1), (1, 0), (0, 2), (1, 2), (3, 0), (3, 4), (4, 1)], 6)
DIRECTED_WEIGHTED = DIRECTED.replace(edge_weights=torch.tensor([0.3, 1.3, 0.7, 2.0, 0.1, 0.9, 1.1]).double())


def both(degree, bias=True, outputs=3):
    """PyTorch Geometric's layer and ours, whose weights it has got."""
    peers = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is what the layer is held to")
    ours = ChebyshevConvolution(5, outputs, degree, bias=bias, dtype=torch.float64)
    if bias:
        nn.init.normal_(ours.bias)
    theirs = peers.ChebConv(5, outputs, K=degree + 1, bias=bias).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize(
    "graph",
    [KARATE, RAGGED, DIRECTED, DIRECTED_WEIGHTED, Graph([], 4)],
    ids=["karate", "ragged", "directed", "directed weighted", "no edges"],
)
@pytest.mark.parametrize("degree", [0, 1, 2, 7])
@pytest.mark.parametrize("outputs", [3, 5, 8])  # the outputs go along the edges where they are fewer
def test_the_numbers_are_pytorch_geometrics(graph, degree, outputs):
    ours, theirs = both(degree, outputs=outputs)
    x = torch.randn(graph.nodes, 5, dtype=torch.float64)
    bound = torch.tensor(2.0, dtype=torch.float64)
    wanted = theirs(x, graph.edges, graph.edge_weights, lambda_max=bound)
    torch.testing.assert_close(ours(x, graph), wanted, rtol=0, atol=1e-10)


def test_another_bound_on_the_eigenvalues():
    ours, theirs = both(4)
    largest = float(GraphFourier(GraphLaplacian(KARATE, "symmetric")).frequencies[-1])
    ours.eigenvalue_bound = largest
    x = torch.randn(34, 5, dtype=torch.float64)
    wanted = theirs(x, KARATE.edges, lambda_max=torch.tensor(largest, dtype=torch.float64))
    torch.testing.assert_close(ours(x, KARATE), wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
def test_weights_load_both_ways(bias):
    ours, theirs = both(3, bias)
    theirs.reset_parameters()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(34, 5, dtype=torch.float64)
    wanted = theirs(x, KARATE.edges, lambda_max=torch.tensor(2.0, dtype=torch.float64))
    torch.testing.assert_close(ours(x, KARATE), wanted, rtol=0, atol=1e-10)
    assert list(ours.state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("graph", [RAGGED, DIRECTED_WEIGHTED], ids=["ragged", "directed"])
def test_gradients_are_pytorch_geometrics(graph):
    ours, theirs = both(3)
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    weights = graph.edge_weights.clone().requires_grad_()
    towards = torch.randn(6, 3, dtype=torch.float64)
    mine = torch.autograd.grad(ours(x, graph.replace(edge_weights=weights)), [x, weights, *ours.parameters()], towards)
    found = theirs(x, graph.edges, weights, lambda_max=torch.tensor(2.0, dtype=torch.float64))
    for one, other in zip(mine, torch.autograd.grad(found, [x, weights, *theirs.parameters()], towards), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("outputs", [1, 2])
def test_gradients(outputs):
    layer = ChebyshevConvolution(2, outputs, degree=3, dtype=torch.float64)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    weights = RAGGED_WEIGHTS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: layer(x, RAGGED.replace(edge_weights=w)), (x, weights))


def test_a_laplacian_serves_many_layers():
    laplacian = GraphLaplacian(KARATE, "symmetric")
    layer, x = ChebyshevConvolution(2, 3, degree=2), torch.randn(34, 2)
    assert torch.equal(layer(x, laplacian), layer(x, KARATE))


def test_weights_start_by_glorot_and_the_bias_at_zero():
    layer = ChebyshevConvolution(50, 10, degree=2)
    bound = (6 / 60) ** 0.5  # more than twice what a linear layer starts with
    assert all(0.95 * bound < float(lin.weight.detach().abs().max()) <= bound for lin in layer.lins)  # of 500 each
    assert not layer.bias.any()


@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_a_product_for_each_degree_with_the_smaller_side(monkeypatch, outputs, degree):
    widths = []
    heard = GraphLaplacian.neighbours
    monkeypatch.setattr(GraphLaplacian, "neighbours", lambda self, x: widths.append(x.shape[1]) or heard(self, x))
    ChebyshevConvolution(3, outputs, degree)(torch.randn(34, 3), KARATE)
    assert widths == [min(3, outputs)] * degree


def test_no_product_without_a_degree():
    def never(x):
        raise AssertionError("applied")

    assert len(chebyshev_terms(torch.ones(2, 1), 0, never)) == 1


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered():
    layer = ChebyshevConvolution(3, 2, degree=2)
    for shape in ((34, 2), (33, 3), (34,), (1, 34, 3)):
        with pytest.raises(ValueError, match="x must be \\(34, 3\\), got shape"):
            layer(torch.zeros(shape), KARATE)
    with pytest.raises(ValueError, match="must be of kind symmetric, got combinatorial"):
        layer(torch.zeros(34, 3), GraphLaplacian(KARATE))
    with pytest.raises(ValueError, match=r"degree must be .*0, got -1"):
        ChebyshevConvolution(3, 2, degree=-1)
    with pytest.raises(ValueError, match="eigenvalue_bound must be > 0, got 0"):
        ChebyshevConvolution(3, 2, degree=1, eigenvalue_bound=0)
