"""What the checks of this chapter must notice beyond their own lies, and how remarks on the sources are settled."""

import pytest
import torch

from lemmata.catalog import load
from lemmata.geometric.chebyshev_convolution import ChebyshevConvolution
from lemmata.geometric.claims import gat, graph_filters, pointnet, weisfeiler_lehman
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gin import GINConvolution
from lemmata.geometric.pointnet import PointNetFeatures
from lemmata.geometric.weisfeiler_lehman import GOLDEN, ColourRefinement, mixed
from lemmata.judge.runner import attempt


def holds(claim, seed=0, **changed):
    found = attempt(claim, seed, changed)
    if isinstance(found, BaseException):
        raise found
    return found.holds


class AlwaysTwo(ChebyshevConvolution):
    """A layer that takes 2 for the largest eigenvalue, whatever it is told."""

    def __init__(self, *given, eigenvalue_bound=2.0, **named):
        super().__init__(*given, eigenvalue_bound=2.0, **named)


def test_the_largest_eigenvalue_of_chebnet_counts():
    assert not holds(graph_filters.chebyshev_layers, layer=AlwaysTwo)


def test_a_hash_without_the_own_colour_is_noticed(monkeypatch):
    def forgetful(graph, colours=None, rounds=None):
        found = mixed(torch.zeros(graph.nodes, dtype=torch.int64) if colours is None else colours)
        for _ in range(6 if rounds is None else rounds):  # as many as the largest of these graphs has nodes
            messages = mixed(found + GOLDEN)[graph.edges[0]]
            found = mixed(torch.zeros_like(found).index_add_(0, graph.edges[1], messages))
        return ColourRefinement(found, 0)

    monkeypatch.setattr(weisfeiler_lehman, "refine_colours", forgetful)
    assert not holds(weisfeiler_lehman.colours_prove_that_graphs_differ)


class WithoutEpsilon(GINConvolution):
    def forward(self, x, graph):
        return self.nn(x + graph.dense(x.dtype).mT @ x)


class Averaged(GINConvolution):
    """Means over the neighbours in place of sums."""

    def forward(self, x, graph):
        heard = graph.dense(x.dtype).mT @ x / graph.degrees().clamp(min=1)[:, None]
        return self.nn((1 + self.eps) * x + heard)


@pytest.mark.parametrize("gin", [WithoutEpsilon, Averaged])
def test_the_formula_of_gin_is_looked_at(gin):
    assert not holds(weisfeiler_lehman.networks_tell_no_more_than_colours, gin=gin)


class WithoutLoops(GATConvolution):
    """A layer that never counts a node among its neighbours, and says so of the edges that it attended to."""

    def __init__(self, *given, self_loops=True, **named):
        super().__init__(*given, self_loops=False, **named)


def test_who_hears_whom_is_known_without_the_layer():
    assert not holds(gat.neighbours_share_attention, layer=WithoutLoops)


@pytest.mark.parametrize(("id", "source", "number", "how"), [
    ("sets.deep_sets", "002", 2, "imprecise"),
    ("graph.gcn", "001", 2, "notation"),
])  # fmt: skip
def test_loose_words_and_letters_used_twice_are_not_refuted(id, source, number, how):
    catalog = load()
    (erratum,) = [e for e in catalog.statements[id].errata if (e.source, e.number) == (source, number)]
    assert catalog.settled(id, erratum) == how


class IgnoresItsMatrices(PointNetFeatures):
    """The matrices of the T-Nets are found and not applied."""

    def forward(self, x):
        found = super().forward(x)
        local = self.local(x.mT)
        return found._replace(local=local.mT, whole=self.deep(local).amax(-1))


def test_the_matrices_of_pointnet_are_applied():
    assert not holds(pointnet.few_points_decide, network=IgnoresItsMatrices)
