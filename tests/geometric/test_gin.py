"""Graph isomorphism layers: PyTorch Geometric's numbers and weights, epsilon, dtypes, gradients, bad input."""

import pytest
import torch
from torch import nn

from lemmata.geometric import GINConvolution, Graph

SAME = 1e-10


def perceptron(dtype=torch.float64):
    return nn.Sequential(nn.Linear(5, 7, dtype=dtype), nn.ReLU(), nn.Linear(7, 3, dtype=dtype))


def drawn(nodes=10, edges=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes - 1, (2, edges), generator=generator)  # loops and parallel edges; the last is alone
    x = torch.randn(nodes, 5, generator=generator, dtype=torch.float64)
    return x, Graph(pairs, nodes)


@pytest.mark.parametrize("train_eps", [False, True])
@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_numbers_are_those_of_pytorch_geometric_and_weights_go_both_ways(eps, train_eps):
    geometric = pytest.importorskip("torch_geometric.nn")
    theirs, ours = (
        geometric.GINConv(perceptron(), eps, train_eps).double(),
        GINConvolution(perceptron(), eps, train_eps),
    )
    x, graph = drawn()
    for source, target in ((theirs, ours), (ours, theirs)):
        for parameter in source.parameters():
            nn.init.normal_(parameter)
        target.load_state_dict(source.state_dict())
        found, expected = ours(x, graph), theirs(x, graph.edges)
        assert torch.allclose(found, expected, rtol=0, atol=SAME)
    gradients = [
        torch.autograd.grad(y.sin().sum(), list(of.parameters())) for y, of in ((found, ours), (expected, theirs))
    ]
    names = [[name for name, _ in of.named_parameters()] for of in (ours, theirs)]
    by_name = [dict(zip(order, values, strict=True)) for order, values in zip(names, gradients, strict=True)]
    for name, gradient in by_name[0].items():
        assert torch.allclose(gradient, by_name[1][name], rtol=0, atol=SAME * gradient.abs().max().clamp(min=1)), name


def test_weights_of_edges_are_refused_as_pytorch_geometric_has_none():
    x, graph = drawn()
    weighted = graph.replace(edge_weights=torch.rand(graph.edges.shape[1]))
    with pytest.raises(ValueError, match=r"edge_weights have no meaning for GIN: use graph\.replace"):
        GINConvolution(nn.Identity())(x, weighted)


def test_epsilon_learns_where_it_may():
    x, graph = drawn()
    fixed, free = GINConvolution(perceptron()), GINConvolution(perceptron(), train_eps=True)
    assert "eps" not in dict(fixed.named_parameters())
    assert "eps" in fixed.state_dict()
    assert fixed.eps.dtype == torch.float64
    free(x, graph).sum().backward()
    assert free.eps.grad is not None


@pytest.mark.parametrize("nodes", [0, 1])
def test_the_smallest_graphs_work(nodes):
    assert GINConvolution(perceptron())(torch.zeros(nodes, 5).double(), Graph([], nodes=nodes)).shape == (nodes, 3)


def test_bad_input_is_answered(unchecked):
    x, graph = drawn()
    with pytest.raises(ValueError, match=r"x must be \(10, features\).*got shape \(9, 5\)"):
        GINConvolution(perceptron())(x[:9], graph)
    with pytest.raises(ValueError, match="eps must be finite"):
        GINConvolution(perceptron(), eps=float("nan"))
