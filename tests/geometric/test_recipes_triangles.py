"""The recipe of graph networks of pairs: right answers, what it reaches soon, and what it is compared with."""

import dataclasses
import itertools

import pytest
import torch

from lemmata.figure import Points
from lemmata.geometric.graph import Graph
from lemmata.geometric.recipes_triangles import (
    BASELINES,
    PACKAGES,
    TriangleConfig,
    count_triangles,
    graph_pieces,
    pieces_side_by_side,
)
from lemmata.marks import usual_settings
from lemmata.train import run_experiment

USUAL = dataclasses.replace(usual_settings(count_triangles, "k_gnn")[1], device="cpu")


def test_pieces_are_connected_and_have_so_many_triangles():
    joined = torch.rand(40, 40, generator=torch.Generator().manual_seed(0)) < 0.12
    joined = (joined | joined.mT).fill_diagonal_(False)
    pieces = graph_pieces(joined, 20, torch.Generator().manual_seed(1))
    assert pieces.x.shape == (20, PACKAGES, PACKAGES)
    assert not pieces.x.diagonal(dim1=1, dim2=2).any()
    for x, y in zip(pieces.x, pieces.y, strict=True):
        assert torch.linalg.matrix_power(x.double() + torch.eye(PACKAGES), PACKAGES).all()
        corners = itertools.combinations(range(PACKAGES), 3)
        assert y == sum(bool(x[i, j] and x[j, k] and x[i, k]) for i, j, k in corners)
    assert pieces.y.max() > 0


def test_pieces_side_by_side_are_the_pieces():
    x = torch.tensor([[[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]]], dtype=torch.bool)
    graph = pieces_side_by_side(x, torch.zeros(1, dtype=torch.float64))
    assert isinstance(graph, Graph)
    assert graph.edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [3, 5], [5, 3]]
    assert graph.graph_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.x.dtype == torch.float64


def test_pairs_count_triangles_better_than_edges_do():
    experiment = count_triangles(config=TriangleConfig(pieces=800), options=dataclasses.replace(USUAL, epochs=12))
    reached = run_experiment(experiment)
    assert reached.scores["mae"] < 0.8 * min(experiment.notes["baselines"].values())
    assert isinstance(experiment.picture(experiment.system).marks[0], Points)
    answers = experiment.predict(experiment.system, experiment.test[:5])["triangles"]
    assert (answers - experiment.test.y[:5]).abs().max() < 3


@pytest.mark.long
@pytest.mark.measures("geometric.recipes_triangles", "messages between nodes")
def test_messages_between_nodes_are_as_good_as_told():
    run = run_experiment(count_triangles(config=TriangleConfig(size=1), options=USUAL))
    assert run.scores["mae"] == pytest.approx(BASELINES["messages between nodes"], abs=0.05)


@pytest.mark.parametrize(
    ("choices", "words"),
    [({"size": 4}, "size must be <= 3, got 4"), ({"pieces": 0}, "pieces must be >= 1, got 0")],
)
def test_bad_choices_are_answered_in_a_sentence(choices, words):
    with pytest.raises(ValueError, match=words):
        TriangleConfig(**choices)
