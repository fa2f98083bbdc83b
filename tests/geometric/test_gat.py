"""Graph attention: PyTorch Geometric's numbers, shares and weights, loops, dtypes, gradients, compiled, bad input."""

import pytest
import torch

from lemmata.geometric import GATConvolution, Graph

SAME = 1e-10


def drawn(nodes=10, edges=24, edge_inputs=0, seed=0):
    """Directed, with edges from nodes to themselves; nothing leads to the last node."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, edges), generator=generator)
    pairs[1] %= nodes - 1
    pairs = torch.cat([pairs, torch.tensor([[0, 2], [0, 2]])], 1).unique(dim=1)  # loops, each once
    x = torch.randn(nodes, 5, generator=generator, dtype=torch.float64)
    features = torch.randn(pairs.shape[1], edge_inputs, generator=generator, dtype=torch.float64)
    return x, Graph(pairs, nodes, edge_features=features if edge_inputs else None)


def theirs_and_ours(**settings):
    geometric = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(1)
    names = {"self_loops": "add_self_loops", "edge_inputs": "edge_dim", "slope": "negative_slope"}
    given = {names.get(name, name): value for name, value in settings.items() if value is not None}
    if not given.get("edge_dim", 1):
        del given["edge_dim"]
    theirs = geometric.GATConv(5, 3, **given).double()
    if theirs.bias is not None:
        torch.nn.init.normal_(theirs.bias)
    return theirs, GATConvolution(5, 3, **settings).double()


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("concat", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("edge_inputs", [0, 2])
def test_numbers_are_those_of_pytorch_geometric_with_its_weights(heads, concat, self_loops, edge_inputs):
    theirs, ours = theirs_and_ours(heads=heads, concat=concat, self_loops=self_loops, edge_inputs=edge_inputs)
    ours.load_state_dict(theirs.state_dict())
    x, graph = drawn(edge_inputs=edge_inputs)
    expected = theirs(x, graph.edges, graph.edge_features)
    assert torch.allclose(ours(x, graph), expected, rtol=0, atol=SAME)
    found, attended, shares = ours.with_weights(x, graph)
    assert torch.allclose(found, expected, rtol=0, atol=SAME)
    _, (edges, alpha) = theirs(x, graph.edges, graph.edge_features, return_attention_weights=True)
    assert torch.equal(edges, attended.edges)
    assert torch.allclose(shares, alpha, rtol=0, atol=SAME)


@pytest.mark.parametrize(("slope", "bias"), [(0.0, True), (0.5, False), (1.0, True)])
def test_weights_go_back_to_pytorch_geometric(slope, bias):
    theirs, ours = theirs_and_ours(heads=2, slope=slope, bias=bias)
    theirs.load_state_dict(ours.state_dict())
    x, graph = drawn()
    assert torch.allclose(ours(x, graph), theirs(x, graph.edges), rtol=0, atol=SAME)


@pytest.mark.parametrize("edge_inputs", [0, 2])
def test_gradients_are_those_of_pytorch_geometric(edge_inputs):
    theirs, ours = theirs_and_ours(heads=2, edge_inputs=edge_inputs)
    ours.load_state_dict(theirs.state_dict())
    x, graph = drawn(edge_inputs=edge_inputs)
    ours(x, graph).sin().sum().backward()
    theirs(x, graph.edges, graph.edge_features).sin().sum().backward()
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert torch.allclose(parameter.grad, expected[name], rtol=0, atol=SAME), name


def test_gradients_are_those_of_the_values():
    x, graph = drawn(5, 8, edge_inputs=2)
    layer = GATConvolution(5, 2, heads=2, edge_inputs=2).double()

    def of(x, features):
        return layer(x, graph.replace(edge_features=features))

    leaves = (x.requires_grad_(), graph.edge_features.requires_grad_())
    assert torch.autograd.gradcheck(of, leaves)
    assert torch.autograd.gradgradcheck(of, leaves)


def test_a_node_to_which_no_edge_leads_gets_the_bias_alone():
    x, graph = drawn()
    layer = GATConvolution(5, 3, self_loops=False).double()
    torch.nn.init.normal_(layer.bias)
    assert torch.equal(layer(x, graph)[-1], layer.bias)
    looped = GATConvolution(5, 3).double()
    assert torch.allclose(looped(x, graph)[-1], looped.lin(x[-1]), rtol=0, atol=SAME)  # it hears itself alone


def test_weights_of_edges_are_left_alone():
    x, graph = drawn()
    layer = GATConvolution(5, 3).double()
    weighted = graph.replace(edge_weights=torch.rand(graph.edges.shape[1]))
    assert torch.equal(layer(x, weighted), layer(x, graph))


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("nodes", [0, 1])
def test_the_smallest_graphs_work(nodes, self_loops):
    layer = GATConvolution(5, 3, heads=2, self_loops=self_loops)
    assert layer(torch.zeros(nodes, 5), Graph([], nodes=nodes)).shape == (nodes, 6)


def test_layers_build_without_memory_and_begin_as_pytorch_geometric_does():
    assert GATConvolution(5, 3, edge_inputs=2, device="meta").att_edge.is_meta
    layer = GATConvolution(300, 50, heads=40)
    for values, sizes in ((layer.lin.weight, 2300), (layer.att_src, 90), (layer.att_dst, 90)):
        bound = (6 / sizes) ** 0.5
        assert 0.99 * bound < values.abs().max() <= bound
    assert not layer.bias.any()
    assert "heads=40" in repr(layer)


def test_bad_input_is_answered(unchecked):
    x, graph = drawn()
    with pytest.raises(ValueError, match=r"x must be \(10, 5\), got shape \(10, 4\)"):
        GATConvolution(5, 3)(x[:, :4], graph)
    with pytest.raises(ValueError, match=r"edge_features must be \(edges, 2\), got None"):
        GATConvolution(5, 3, edge_inputs=2).double()(x, graph)
    with pytest.raises(ValueError, match=r"edge_features must be \(edges, 2\), got \(\d+, 4\)"):
        GATConvolution(5, 3, edge_inputs=2).double()(*drawn(edge_inputs=4))
    with pytest.raises(ValueError, match="heads must be >= 1"):
        GATConvolution(5, 3, heads=0)
    with pytest.raises(ValueError, match="slope must be >= 0"):
        GATConvolution(5, 3, slope=-0.1)
    with pytest.raises(TypeError, match="concat must be True or False"):
        GATConvolution(5, 3, concat="yes")
    with pytest.raises(TypeError, match="self_loops must be True or False"):
        GATConvolution(5, 3, self_loops="mean")


def test_first_weights_are_uniform_by_glorot():
    layer = GATConvolution(24, 32, heads=16, edge_inputs=8)
    sides = {"att_src": (16, 32), "att_dst": (16, 32), "att_edge": (16, 32), "lin": (512, 24), "lin_edge": (512, 8)}
    for name, (one, other) in sides.items():
        values = getattr(layer, name)
        values = values if isinstance(values, torch.nn.Parameter) else values.weight
        largest = float(values.detach().abs().max()) / (6 / (one + other)) ** 0.5
        assert 0.9 < largest <= 1 + 1e-6  # of 512 numbers and more; all below with a chance of 1e-23
    assert not layer.bias.any()
