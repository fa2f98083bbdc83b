"""Laplacians of graphs: agreement with networkx and SciPy, dtypes, gradients, extremes, and bad input."""

from fractions import Fraction

import pytest
import torch
from scipy.sparse import csgraph

from lemmata.data import load
from lemmata.geometric import Graph, GraphLaplacian

WEIGHTED = Graph(
    [[0, 1], [1, 2], [2, 0], [2, 3], [5, 5]], 6, edge_weights=torch.tensor([1.0, 0.5, 2.0, 3.0, 7.0]).double()
).undirected()
KINDS = ["combinatorial", "symmetric", "random_walk"]


def in_networkx(graph):
    networkx = pytest.importorskip("networkx")
    made = networkx.Graph()
    made.add_nodes_from(range(graph.nodes))
    weights = torch.ones(graph.edges.shape[1]) if graph.edge_weights is None else graph.edge_weights
    made.add_weighted_edges_from(
        (int(n), int(m), float(w)) for n, m, w in zip(*graph.edges, weights, strict=True) if n != m
    )
    return networkx, made


@pytest.mark.parametrize("graph", [Graph.of(load("karate")).undirected(), WEIGHTED], ids=["karate", "weighted"])
def test_matrices_are_networkxs(graph):
    networkx, made = in_networkx(graph)
    ours = {kind: GraphLaplacian(graph, kind).dense(torch.empty(0).double()) for kind in KINDS}
    close = {"rtol": 0, "atol": 1e-12}
    plain = torch.from_numpy(networkx.laplacian_matrix(made).toarray()).double()
    torch.testing.assert_close(ours["combinatorial"], plain, **close)
    normalised = torch.from_numpy(networkx.normalized_laplacian_matrix(made).toarray())
    torch.testing.assert_close(ours["symmetric"], normalised, **close)
    degrees = plain.diag()
    walk = plain / torch.where(degrees > 0, degrees, 1.0)[:, None]
    torch.testing.assert_close(ours["random_walk"], walk, **close)


def test_the_normalised_one_is_scipys():
    ours = GraphLaplacian(WEIGHTED, "symmetric").dense()
    theirs = csgraph.laplacian(WEIGHTED.without_self_loops().dense(torch.float64).numpy(), normed=True)
    torch.testing.assert_close(ours, torch.from_numpy(theirs), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_matrix(kind):
    laplacian, x = GraphLaplacian(WEIGHTED, kind), torch.randn(6, 2, 3, dtype=torch.float64)
    matrix = laplacian.dense()
    torch.testing.assert_close(laplacian(x), torch.einsum("nm,mij->nij", matrix, x), rtol=0, atol=1e-13)
    torch.testing.assert_close(laplacian(x[:, 0, 0]), matrix @ x[:, 0, 0], rtol=0, atol=1e-13)
    # What comes along the edges is all of the matrix that does not stand on its diagonal.
    torch.testing.assert_close(laplacian.neighbours(torch.eye(6).double()), matrix.diag().diag() - matrix)


@pytest.mark.parametrize("kind", KINDS)
def test_directed_edges_flow_from_source_to_target(kind):
    laplacian = GraphLaplacian(Graph([[0, 1], [2, 1]]), kind)
    x = torch.tensor([1.0, 5.0, 4.0])
    # The symmetric one divides by the edges that leave, and none leaves node 1.
    wanted = {"combinatorial": 5.0, "random_walk": 2.5, "symmetric": 0.0}[kind]
    assert laplacian.neighbours(x).tolist() == [0.0, wanted, 0.0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "theirs"), [("combinatorial", None), ("symmetric", "sym"), ("random_walk", "rw")])
def test_directed_graphs_are_pytorch_geometrics(kind, theirs, weighted):
    utils = pytest.importorskip("torch_geometric.utils")
    generator = torch.Generator().manual_seed(3)
    pairs = torch.randint(8, (2, 16), generator=generator)  # node 8 has no edge at all
    edges = pairs[:, pairs[0] != pairs[1]]
    weights = torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) + 0.1
    graph = Graph(edges, 9, edge_weights=weights if weighted else None)
    ends, values = utils.get_laplacian(edges, weights if weighted else torch.ones_like(weights), theirs, num_nodes=9)
    wanted = torch.zeros(9, 9, dtype=torch.float64).index_put(tuple(ends), values, accumulate=True)
    leaves = torch.bincount(edges[0], minlength=9) > 0
    assert not leaves.all()
    wanted -= torch.diag((~leaves).double()) if theirs else 0.0  # theirs has ones where ours has zeros
    like = torch.empty(0, dtype=torch.float64)
    if kind == "symmetric":
        found = GraphLaplacian(graph, kind).dense(like).mT
    else:
        found = GraphLaplacian(graph.flipped(), kind).dense(like)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_degrees_are_added_up_in_double_precision():
    star = Graph([(0, i) for i in range(1, 1001)], edge_weights=torch.full((1000,), 0.1)).undirected()
    laplacian = GraphLaplacian(star)
    ones = torch.ones(1001, dtype=torch.float64)
    assert laplacian.degrees.dtype == torch.float64
    assert float(laplacian(ones).abs().max()) < 1e-11  # single precision would leave 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_dtype_is_that_of_the_signal(dtype, kind):
    x = torch.randn(6, 3, dtype=torch.float64)
    found = GraphLaplacian(WEIGHTED, kind)(x.to(dtype))
    assert found.dtype == dtype
    size = 14.0  # twice the largest degree, 5.5, and the largest entries of x, which are below 3
    allowed = 8 * torch.finfo(dtype).eps * size
    torch.testing.assert_close(found.double(), GraphLaplacian(WEIGHTED, kind)(x), rtol=0, atol=allowed)
    assert GraphLaplacian(Graph([[0, 1]])).dense().dtype == torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_signal(kind):
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(GraphLaplacian(WEIGHTED, kind), x)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_weights(kind):
    def applied(weights):
        return GraphLaplacian(WEIGHTED.replace(edge_weights=weights), kind)(x)

    x = torch.randn(6, 2, dtype=torch.float64)
    assert WEIGHTED.edge_weights is not None
    weights = WEIGHTED.edge_weights.clone().requires_grad_()
    # The node with nothing but an edge to itself is left out of the Laplacian, whatever that edge weighs.
    assert torch.autograd.gradcheck(applied, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_without_edges_or_nodes(kind):
    assert not GraphLaplacian(Graph([], 3), kind)(torch.randn(3, 2)).any()
    empty = GraphLaplacian(Graph([], 0), kind)
    assert empty(torch.zeros(0, 2)).shape == (0, 2)
    assert empty.dense().shape == (0, 0)


def test_parallel_edges_count_twice_and_edges_to_oneself_do_not():
    double = GraphLaplacian(Graph([[0, 1], [0, 1], [1, 0], [1, 0], [0, 0]])).dense()
    assert torch.equal(double, torch.tensor([[2.0, -2.0], [-2.0, 2.0]]))


def test_no_eigenvalue_exceeds_the_bound():
    for kind in KINDS:
        laplacian = GraphLaplacian(WEIGHTED, kind)
        largest = float(torch.linalg.eigvals(laplacian.dense()).real.max())
        assert largest <= laplacian.largest_eigenvalue_bound() * (1 + 1e-12)
    assert GraphLaplacian(Graph([], 0)).largest_eigenvalue_bound() == 0
    assert GraphLaplacian(Graph([], 3)).largest_eigenvalue_bound() == 0
    pair = GraphLaplacian(Graph([[0, 1], [1, 0]]))
    assert pair.largest_eigenvalue_bound() == 2 == float(torch.linalg.eigvalsh(pair.dense())[-1].round())


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_bound_holds_where_sums_are_rounded(scale):
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(3000, dtype=torch.float64, generator=generator) * scale
    star = Graph([(0, i) for i in range(1, 3001)], edge_weights=weights).undirected()
    exact = sum(map(Fraction, weights.tolist()))
    assert (
        2 * exact <= Fraction(GraphLaplacian(star).largest_eigenvalue_bound()) <= 2 * exact * (1 + Fraction(1, 10**11))
    )


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered():
    laplacian = GraphLaplacian(WEIGHTED)
    with pytest.raises(ValueError, match="x must have a row for each of the 6 nodes, got shape \\(5, 2\\)"):
        laplacian(torch.zeros(5, 2))
    with pytest.raises(ValueError, match="got shape \\(\\)"):
        laplacian(torch.tensor(1.0))
    with pytest.raises(TypeError, match=r"x must be floating point, got torch\.int64: use x\.double"):
        laplacian(torch.zeros(6, dtype=torch.int64))
    with pytest.raises(TypeError, match="x must be a tensor, got list"):
        laplacian([0.0] * 6)
    with pytest.raises(ValueError, match="kind must be one of combinatorial, symmetric, random_walk, got 'normal'"):
        GraphLaplacian(WEIGHTED, "normal")
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="edge_weights must be >= 0"):
            GraphLaplacian(Graph([[0, 1], [1, 0]], edge_weights=torch.tensor([1.0, bad])))
