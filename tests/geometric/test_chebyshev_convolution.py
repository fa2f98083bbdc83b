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


def both(degree, bias=True, outputs=3):
    """PyTorch Geometric's layer and ours, whose weights it has got."""
    peers = pytest.importorskip("torch_geometric.nn", reason="PyTorch Geometric is what the layer is held to")
    ours = ChebyshevConvolution(5, outputs, degree, bias=bias, dtype=torch.float64)
    if bias:
        nn.init.normal_(ours.bias)
    theirs = peers.ChebConv(5, outputs, K=degree + 1, bias=bias).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("graph", [KARATE, RAGGED, Graph([], 4)], ids=["karate", "ragged", "no edges"])
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


def test_gradients_are_pytorch_geometrics():
    ours, theirs = both(3)
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    towards = torch.randn(6, 3, dtype=torch.float64)
    mine = torch.autograd.grad(ours(x, RAGGED), [x, *ours.parameters()], towards)
    found = theirs(x, RAGGED.edges, RAGGED.edge_weights, lambda_max=torch.tensor(2.0, dtype=torch.float64))
    for one, other in zip(mine, torch.autograd.grad(found, [x, *theirs.parameters()], towards), strict=True):
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes(dtype):
    exact = ChebyshevConvolution(4, 2, degree=3, dtype=torch.float64)
    layer = ChebyshevConvolution(4, 2, degree=3, dtype=dtype)
    layer.load_state_dict(exact.state_dict())
    x = torch.randn(34, 4, dtype=torch.float64)
    found = layer(x.to(dtype), KARATE)
    assert found.dtype == dtype
    # Four terms no larger than the signal's norm, 34 entries and 4 channels; errors of a recursion grow like k².
    allowed = 3**2 * 4 * 4 * torch.finfo(dtype).eps * float(x.abs().max())
    torch.testing.assert_close(found.double(), exact(x, KARATE), rtol=0, atol=allowed)


@pytest.mark.usefixtures("unchecked")
def test_a_compiled_layer_gives_the_same():
    layer, x = ChebyshevConvolution(3, 2, degree=3), torch.randn(34, 3)
    laplacian = GraphLaplacian(KARATE, "symmetric")
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, laplacian), layer(x, laplacian))
    wanted = torch.autograd.grad(layer(x, laplacian).square().sum(), list(layer.parameters()))
    found = torch.autograd.grad(compiled(x, laplacian).square().sum(), list(layer.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_weights_start_by_glorot_and_the_bias_at_zero():
    layer = ChebyshevConvolution(50, 10, degree=2)
    bound = (6 / 60) ** 0.5  # more than twice what a linear layer starts with
    assert all(0.95 * bound < float(lin.weight.detach().abs().max()) <= bound for lin in layer.lins)  # of 500 each
    assert not layer.bias.any()


def test_built_without_memory_and_filled_later():
    layer = ChebyshevConvolution(3, 2, degree=1, device="meta")
    assert all(p.is_meta for p in layer.parameters())
    layer.to_empty(device="cpu").reset_parameters()
    assert bool(layer(torch.randn(34, 3), KARATE).isfinite().all())
    assert not layer.bias.any()
    assert repr(layer).startswith("ChebyshevConvolution(\n  inputs=3, outputs=2, degree=1, bias=True")


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
