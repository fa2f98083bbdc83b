"""The suite passes what follows its inputs, and fails what does not by exactly the check that it breaks."""

import pytest
import torch
from torch import nn

from lemmata.geometric import GCN, DeepSets, EquivariantDeepSets, Graph, PointNetClassifier, PointNetSegmenter
from lemmata.testing import EquivarianceError, check_equivariance

RING = Graph([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [0, 2]]).undirected()
TRIPLES = torch.tensor([[0.3, 1.0], [0.5, -1.0], [0.7, 2.0], [0.9, 0.5]])


def of(module, group, x=None, **words):
    return check_equivariance(module, group, x, on_fail="report", **words)


def failed(module, group, x=None, **words):
    return of(module, group, x, **words).named("failed")


def why(module, group, x=None, **words):
    return next(finding.why for finding in of(module, group, x, **words).findings if finding.outcome == "failed")


def centred(x):
    return x - x.mean(-2, keepdim=True)


def unbalanced(x):
    """A lever with a fixed weight for each place."""
    return x * torch.arange(1, x.shape[-2] + 1)[:, None]


# --- What keeps the law passes ---


@pytest.mark.parametrize(
    ("module", "output"),
    [
        (DeepSets(nn.Linear(3, 8), nn.Linear(8, 2), "max"), "invariant"),
        (EquivariantDeepSets(nn.Linear(3, 8), nn.Linear(3 + 8, 2), "mean"), "equivariant"),
        (PointNetClassifier(4, width=16), "invariant"),
        (PointNetSegmenter(4, width=16), "equivariant"),
        (nn.MultiheadAttention(3, 1, batch_first=True).forward, None),
        (nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5)), "equivariant"),
    ],
    ids=["deep sets", "equivariant deep sets", "pointnet", "segmenter", "attention returns a pair", "dropout"],
)
def test_permutations(module, output):
    if output is None:
        assert failed(lambda x: module(x, x, x), "permutation", inputs=3) == ["interface"]
        module, output = (lambda x, whole=module: whole(x, x, x)[0]), "equivariant"
    report = check_equivariance(module, "permutation", inputs=3, output=output)
    assert len(report.named("passed")) == 10


def test_modules_keep_their_mode():
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(6), nn.Dropout(0.5).eval())
    check_equivariance(model[0], "permutation")
    assert failed(model, "permutation", inputs=3) == []  # in evaluation mode, and with equal statistics for all rows
    assert [part.training for part in model] == [True, True, False]


def test_translations_and_rotations():
    check_equivariance(centred, "translation", inputs=3, output="invariant")
    check_equivariance(centred, "rotation", inputs=3)
    check_equivariance(lambda x: x.mean(-2), "translation", inputs=2)
    check_equivariance(lambda x: x.mean(-2), "rotation", inputs=4)
    check_equivariance(lambda x: torch.linalg.cross(x, x.roll(1, -2)), "rotation", inputs=3)  # not under reflections
    check_equivariance(lambda x: x.norm(dim=-1), "rotation", inputs=2, output="invariant")


@pytest.mark.parametrize("graph", [RING, RING.edges, RING.dense()], ids=["graph", "edges", "matrix"])
def test_graphs_are_relabelled_with_their_nodes(graph):
    network = GCN(3, (8,), 2)

    def module(x, graph):
        if isinstance(graph, Graph):
            return network(x, graph)
        return network(x, Graph(graph if len(graph) == 2 else graph.nonzero().mT, nodes=5))

    report = check_equivariance(module, "permutation", graph=graph, inputs=3)
    assert report.named("skipped") == ["sizes"]
    assert failed(lambda x, _: network(x, RING), "permutation", graph=graph, inputs=3) == ["swaps", "cycles", "orders"]


def test_a_graph_stays_as_it_is_where_no_node_moves():
    def moved_to_neighbours(x, graph):
        return graph.dense() @ x / graph.dense().sum(1, keepdim=True)

    for group in ("rotation", "translation"):
        assert check_equivariance(moved_to_neighbours, group, graph=RING, inputs=3).passed


def test_two_matrices_of_whole_numbers_are_no_list_of_edges():
    graphs = torch.stack([RING.dense(), torch.eye(5).roll(1, 0)]).long()
    x = torch.randn(2, 5, 3)
    assert check_equivariance(lambda x, graph: graph.to(x) @ x, "permutation", x, graph=graphs).passed


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_differences_are_measured_by_the_size_of_the_outputs(scale):
    assert failed(lambda x: scale * unbalanced(x), "permutation", inputs=2) == ["swaps", "cycles", "orders"]
    assert failed(lambda x: scale * centred(x), "rotation", inputs=3) == []


def test_layers_of_pytorch_geometric():
    layers = pytest.importorskip("torch_geometric.nn")
    assert check_equivariance(layers.GATConv(3, 4), "permutation", graph=RING.edges).passed
    isolated = torch.randn(7, 3)  # two nodes more than the edges name
    assert check_equivariance(layers.GCNConv(3, 4), "permutation", isolated, graph=RING.edges).passed


# --- What breaks it fails, and the message says how ---


def test_a_cycle_tells_a_permutation_from_its_inverse():
    """The printed f(X) = P f(PX): the places of sorted elements in place of their ranks."""

    def places(x):
        return x[..., :1].argsort(-2).double()

    x = TRIPLES.sort(0).values  # in order, so that a swap of neighbours is its own undoing
    assert failed(places, "permutation", x) == ["cycles", "orders"]
    assert "a cycle of elements 0, 1 and 2" in why(places, "permutation", x)
    assert "moved by the inverse permutation" in why(places, "permutation", x)
    assert failed(lambda x: places(x).argsort(-2), "permutation", x) == []


def test_what_is_wrong_is_said():
    assert failed(unbalanced, "permutation", inputs=2) == ["swaps", "cycles", "orders"]
    assert "after a swap of elements 0 and 1 the output at (0, 0, 0) is" in why(unbalanced, "permutation", inputs=2)
    assert failed(nn.Flatten(), "permutation", inputs=2, output="invariant") == ["swaps", "cycles", "orders"]
    assert failed(lambda x: x**3, "rotation", inputs=3) == ["rotations"]  # quarter turns alone do not tell
    assert failed(lambda x: x.abs(), "rotation", inputs=2) == ["quarter_turns", "rotations"]
    assert failed(lambda x: x - x[..., :1], "translation", inputs=2, output="invariant") == ["axes", "translations"]
    assert failed(torch.ones_like, "permutation", inputs=2) == ["dependence"]
    assert failed(torch.rand_like, "permutation", inputs=2) == ["determinism"]
    assert failed(lambda x: x / 0, "permutation", inputs=2) == ["finite"]
    assert failed(lambda x: x.mul_(2), "permutation", inputs=2) == ["untouched"]
    assert "(2, 6, ...)" in why(lambda x: x.sum(-2), "permutation", inputs=2)
    assert "(..., 2)" in why(lambda x: x[..., :1], "rotation", inputs=2)


def test_sizes_and_gradients():
    class Halved(torch.autograd.Function):
        """The identity, with a gradient that is wrong for the first element."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, slope):
            return slope * (1 - 0.5 * (torch.arange(slope.shape[-2]) == 0)[:, None])

    assert failed(Halved.apply, "permutation", inputs=2) == ["gradient"]

    def careless(x):
        return x if x.shape[-2] > 3 else unbalanced(x)

    assert failed(careless, "permutation", inputs=2) == ["sizes"]
    fixed = nn.Sequential(nn.Flatten(), nn.Linear(6 * 2, 1))
    assert "sizes" in of(lambda x: fixed(x.sort(1).values), "permutation", inputs=2, output="invariant").named(
        "skipped"
    )
    report = of(lambda x: x.sum(-1, keepdim=True), "permutation", torch.arange(12).reshape(4, 3))
    assert report.named("skipped") == ["gradient"]
    assert report.passed


def test_errors_hold_the_report():
    with pytest.raises(EquivarianceError, match="unbalanced failed 3 of 10 checks") as caught:
        check_equivariance(unbalanced, "permutation", inputs=2)
    assert caught.value.report.named("skipped") == ["sizes", "gradient"]
    assert check_equivariance(
        unbalanced, "permutation", inputs=2, skip=["swaps", "cycles", "orders", "sizes", "gradient"]
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: of(3, "permutation"), TypeError, "module must be callable, got int"),
        (
            lambda: of(centred, "scaling", inputs=2),
            ValueError,
            "group must be one of permutation, translation, rotation",
        ),
        (lambda: of(centred, "rotation", inputs=2, output="same"), ValueError, "output must be one of"),
        (lambda: of(centred, "rotation"), ValueError, "inputs must be given"),
        (lambda: of(centred, "rotation", [1.0]), TypeError, "x must be a tensor, got list"),
        (lambda: of(centred, "permutation", torch.ones(2, 3)), ValueError, "at least 3 elements, got shape"),
        (lambda: of(centred, "permutation", torch.ones(4, 3)), ValueError, "x must have elements that differ"),
        (lambda: of(centred, "rotation", torch.ones(4, 3) / 0), ValueError, "x must be finite"),
        (lambda: of(nn.Linear(3, 3, device="meta"), "permutation"), ValueError, "x must be on a device that holds"),
        (lambda: of(nn.Linear(1, 1), "rotation"), ValueError, "at least 2 coordinates"),
        (lambda: of(centred, "permutation", inputs=2, graph=RING.dense()[:2, :2]), ValueError, "at least 3 elements"),
        (
            lambda: of(centred, "permutation", inputs=2, graph=RING.dense().to_sparse()),
            TypeError,
            r"use graph.to_dense\(\)",
        ),
        (lambda: of(centred, "translation", torch.ones(4, 3).long()), TypeError, r"use x.float\(\)"),
        (lambda: of(centred, "rotation", torch.ones(4, 1)), ValueError, "at least 2 coordinates"),
        (lambda: of(centred, "permutation", torch.eye(4), graph=RING), ValueError, "a row for each of 5 nodes"),
        (
            lambda: of(centred, "permutation", inputs=2, graph=torch.ones(2, 3)),
            ValueError,
            "a square matrix, got shape",
        ),
        (lambda: of(centred, "permutation", inputs=2, graph="ring"), TypeError, "graph must be a Graph"),
        (lambda: of(centred, "rotation", inputs=2, skip=["swaps"]), ValueError, "skip must name checks among"),
        (lambda: of(centred, "rotation", inputs=2, tolerance=0.0), ValueError, "tolerance must be"),
        (lambda: check_equivariance(centred, "rotation", inputs=2, on_fail="warn"), ValueError, "on_fail must be"),
    ],
)
def test_refusals_name_the_fix(call, error, words):
    with pytest.raises(error, match=words):
        call()
