"""Message passing: every way to join against loops and PyTorch Geometric, gradients, extremes, dtypes, bad input."""

import pytest
import torch
from torch import nn

from lemmata.geometric import Graph, MessagePassing, aggregate_neighbours

REDUCTIONS = ["sum", "mean", "max", "min", "softmax"]
CLOSE = 1e-12  # sums of a dozen terms of size one in double precision


def drawn(nodes=8, edges=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes - 1, (2, edges), generator=generator)  # parallel edges, loops; the last node is alone
    x = torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    return x, Graph(pairs, nodes), torch.rand(edges, generator=generator, dtype=torch.float64)


def joined(messages, reduce):
    if not len(messages):
        return torch.zeros(messages.shape[1], dtype=messages.dtype)
    if reduce == "softmax":
        return (messages.softmax(0) * messages).sum(0)
    return getattr(messages, {"max": "amax", "min": "amin"}.get(reduce, reduce))(0)


def by_hand(x, graph, reduce):
    return torch.stack([joined(x[graph.edges[0][graph.edges[1] == m]], reduce) for m in range(graph.nodes)])


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_neighbours_are_joined_as_written_out(reduce):
    x, graph, _ = drawn()
    assert torch.allclose(aggregate_neighbours(x, graph, reduce), by_hand(x, graph, reduce), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_neighbours_are_joined_as_by_pytorch_geometric(reduce):
    aggr = pytest.importorskip("torch_geometric.nn.aggr")
    x, graph, _ = drawn()
    kinds = {"sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "softmax": "Softmax"}
    theirs = getattr(aggr, f"{kinds[reduce]}Aggregation")()
    expected = theirs(x[graph.edges[0]], graph.edges[1], dim_size=graph.nodes)
    assert torch.allclose(aggregate_neighbours(x, graph, reduce), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e300])
def test_softmax_is_that_of_each_target(far):
    """A target that hears small values alone gets their softmax, whatever others hear."""
    x = torch.tensor([[0.0], [1.0], [far], [-far]], dtype=torch.float64)
    graph = Graph([[0, 3], [1, 3], [2, 1], [3, 2]])
    found = aggregate_neighbours(x, graph, "softmax")[:, 0]
    assert found[1] == far
    assert found[2] == -far
    assert found[3] == pytest.approx(torch.sigmoid(torch.tensor(1.0, dtype=torch.float64)).item(), rel=1e-15)
    assert found[0] == 0


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_are_those_of_the_values(reduce):
    x, graph, _ = drawn()
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: aggregate_neighbours(x, graph, reduce), (x,))
    if reduce == "softmax":
        assert torch.autograd.gradgradcheck(lambda x: aggregate_neighbours(x, graph, reduce), (x,))


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_weights_of_edges_count_and_have_gradients(reduce):
    x, graph, weights = drawn()
    weighted = graph.replace(edge_weights=weights)
    total = weighted.dense(torch.float64).mT @ x
    degrees = weighted.dense(torch.float64).sum(0)[:, None]
    expected = total if reduce == "sum" else total / degrees.where(degrees > 0, 1.0)
    assert torch.allclose(aggregate_neighbours(x, weighted, reduce), expected, rtol=0, atol=CLOSE)
    narrow = graph.replace(edge_weights=weights.float())  # added up as precisely as the features are
    wide = graph.replace(edge_weights=weights.float().double())
    exact = aggregate_neighbours(x, wide, reduce)
    assert torch.allclose(aggregate_neighbours(x, narrow, reduce), exact, rtol=0, atol=CLOSE)

    def of_weights(w):
        return aggregate_neighbours(x, graph.replace(edge_weights=w), reduce)

    assert torch.autograd.gradcheck(of_weights, (weights.requires_grad_(),))


@pytest.mark.parametrize("reduce", ["max", "min", "softmax"])
def test_weights_have_no_meaning_for_extremes(reduce):
    x, graph, weights = drawn()
    with pytest.raises(ValueError, match="edge_weights have no meaning"):
        aggregate_neighbours(x, graph.replace(edge_weights=weights), reduce)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_half_precision_is_joined_in_single(dtype, reduce):
    x, graph, _ = drawn()
    found = aggregate_neighbours(x.to(dtype), graph, reduce)
    assert found.dtype == dtype
    expected = by_hand(x.to(dtype).double(), graph, reduce)
    # One rounding of the result, of size up to about ten, to 24 or 8 bits; and those of single precision before.
    assert torch.allclose(found.double(), expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-5)


def test_a_mean_of_many_half_precision_neighbours_counts_them_all():
    nodes = 1001
    star = Graph(torch.stack([torch.arange(1, nodes), torch.zeros(nodes - 1, dtype=torch.int64)]), nodes)
    ones = torch.ones(nodes, 1, dtype=torch.bfloat16)
    assert aggregate_neighbours(ones, star, "mean")[0] == 1  # 1000 is a number of eight bits


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_layers_work_on_graphs_without_edges_or_nodes(reduce):
    layer = MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2), reduce)
    assert layer(torch.zeros(0, 3), Graph([])).shape == (0, 2)
    assert layer(torch.zeros(1, 3), Graph([], nodes=1)).shape == (1, 2)
    x = torch.randn(2, 3)
    alone = layer.update(torch.cat([x, torch.zeros(2, 4)], 1))
    assert torch.allclose(layer(x, Graph([], nodes=2)), alone)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_layers_learn(reduce):
    x, graph, _ = drawn()
    torch.manual_seed(0)
    layer = MessagePassing(nn.Linear(3, 4), nn.Linear(7, 1), reduce).double()
    layer(x, graph).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())


def test_bad_input_is_answered(unchecked):
    layer = MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2))
    with pytest.raises(ValueError, match=r"x must be \(8, features\).*got shape \(7, 3\)"):
        layer(torch.zeros(7, 3), drawn()[1])
    with pytest.raises(ValueError, match="reduce must be one of sum, mean, max, min, softmax, got 'median'"):
        MessagePassing(nn.Linear(3, 4), nn.Linear(7, 2), "median")
    with pytest.raises(ValueError, match="reduce must be one of"):
        aggregate_neighbours(torch.zeros(8, 3), drawn()[1], "median")
