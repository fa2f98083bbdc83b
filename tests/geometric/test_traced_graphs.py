"""Graphs that torch compiles, exports or transforms before anything has sorted them, and what is kept of it."""

import functools
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from lemmata.geometric import (
    GATConvolution,
    GCNConvolution,
    GINConvolution,
    Graph,
    GraphLaplacian,
    MessagePassing,
    NodeClassifier,
    PolynomialConvolution,
    aggregate_neighbours,
    normalized_adjacency,
)

pytestmark = pytest.mark.usefixtures("unchecked")
EDGES = [[0, 1], [1, 2], [2, 2], [2, 0], [1, 3]]  # one of them from a node to itself; the last node is alone
LAYERS = {
    "gcn": functools.partial(GCNConvolution, 3, 2),
    "gcn, wider": functools.partial(GCNConvolution, 3, 4),
    "gat": functools.partial(GATConvolution, 3, 2, 2),
    "gin": lambda: GINConvolution(nn.Linear(3, 2)),
    "max": lambda: MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2), "max"),
    "softmax": lambda: MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2), "softmax"),
    "chebnet": functools.partial(NodeClassifier, "chebnet", 3, 2),
}


def fresh(weighted=False):
    """A graph that nobody has sorted."""
    return Graph(torch.tensor(EDGES).mT, 5, edge_weights=torch.rand(len(EDGES)) if weighted else None)


def test_layers_compile_and_export_on_graphs_that_nobody_has_sorted():
    # In a process of its own, without the shape checks that tests add, which torch cannot compile.
    child = [sys.executable, str(Path(__file__).with_name("compile_fresh_graphs.py"))]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("kind", LAYERS)
def test_functions_are_transformed(kind):
    layer, graph = LAYERS[kind]().double(), fresh()
    x, several = torch.randn(5, 3, dtype=torch.float64), torch.randn(4, 5, 3, dtype=torch.float64)
    weights = dict(layer.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(layer, weights, (x, graph)).square().sum()

    found = torch.func.grad(loss)(weights, x)
    wanted = torch.autograd.grad(layer(x, graph).square().sum(), list(weights.values()))
    for one, other in zip(found.values(), wanted, strict=True):
        torch.testing.assert_close(one, other)
    each = torch.vmap(torch.func.grad(loss), (None, 0))(weights, several)  # gradients of each example by itself
    last = torch.func.grad(loss)(weights, several[-1])
    for name in weights:
        torch.testing.assert_close(each[name][-1], last[name])
    loss_of_x = functools.partial(loss, weights)
    forward_mode = torch.func.hessian(loss_of_x)(x)
    torch.testing.assert_close(forward_mode, torch.autograd.functional.hessian(loss_of_x, x))


def test_weighted_graphs_are_transformed():
    layer, laplacian, x = PolynomialConvolution(3, 2, 2), GraphLaplacian(fresh(weighted=True)), torch.randn(5, 3)
    torch.testing.assert_close(torch.vmap(lambda x: layer(x, laplacian))(x[None])[0], layer(x, laplacian))


def test_scores_and_values_of_one_tensor_have_the_same_gradient_twice():
    # Softmax takes x for both. Asked for together, the values' gradient was once counted for the scores too.
    graph, x = fresh(), torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    y = aggregate_neighbours(x, graph, "softmax").square().sum()
    once, again = torch.autograd.grad(y, x, retain_graph=True), torch.autograd.grad(y, x, create_graph=True)
    torch.testing.assert_close(*once, *again)


def test_whoever_listens_to_the_linear_map_hears_it():
    layer, graph, x, heard = GCNConvolution(3, 2), fresh(), torch.randn(5, 3), []
    wanted = layer(x, graph)
    handle = layer.lin.register_forward_hook(lambda module, given, made: heard.append(made))
    torch.testing.assert_close(layer(x, graph), wanted)
    assert len(heard) == 1
    handle.remove()
    layer.lin = nn.Sequential(layer.lin)  # as a library that wraps linear layers does
    torch.testing.assert_close(layer(x, graph), wanted)


def test_the_former_name_of_the_normalised_adjacency_says_the_new_one():
    from lemmata.geometric import gcn_coupling

    with pytest.warns(DeprecationWarning, match="normalized_adjacency"):
        found = gcn_coupling(fresh())
    assert torch.equal(found.edge_weights, normalized_adjacency(fresh()).edge_weights)
