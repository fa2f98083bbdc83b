"""Stochastic block graphs: simple, undirected, with as many edges in and between blocks as the model says."""

import numpy as np
import pytest
import torch
from scipy import stats

from lemmata.data import block_graph


def dense(graph):
    a = torch.zeros(len(graph.y), len(graph.y))
    a[graph.edges[0], graph.edges[1]] = graph.edge_weights
    return a


def test_the_graph_is_simple_and_undirected():
    graph = block_graph()
    a = dense(graph)
    assert torch.equal(a, a.T)
    assert a.diagonal().sum() == 0
    assert a.sum() == graph.edges.shape[1]
    assert graph.undirected().edges.shape == graph.edges.shape


def test_edges_are_as_frequent_as_the_model_says():
    graph = block_graph(n=500, blocks=4, inside=0.12, between=0.02)
    a, p = dense(graph), graph.extra["probabilities"]
    assert torch.equal(p.diagonal(), torch.full((4,), 0.12, dtype=torch.float64))
    for i in range(4):
        for j in range(i, 4):
            block = a[graph.y == i][:, graph.y == j]
            found, pairs = (int(block.triu(1).sum()), 125 * 124 // 2) if i == j else (int(block.sum()), 125**2)
            assert stats.binomtest(found, pairs, float(p[i, j])).pvalue > 1e-9


@pytest.mark.parametrize(("inside", "between", "edges"), [(0, 0, 0), (1, 0, 4 * 10 * 9), (1, 1, 40 * 39)])
def test_certain_edges_are_certain(inside, between, edges):
    graph = block_graph(n=40, inside=inside, between=between, labels=2)
    assert graph.edges.shape == (2, edges)
    assert graph.edges.dtype is torch.int64


def test_blocks_are_equal_and_the_same_number_of_each_is_labelled():
    graph = block_graph(n=103, blocks=4, labels=6)
    assert graph.y.bincount().tolist() == [26, 26, 26, 25]
    assert graph.train.y.bincount().tolist() == [6] * 4
    assert (graph.masks["train"] ^ graph.masks["test"]).all()
    assert torch.equal(graph.y[graph.test.node], graph.test.y)


def test_features_are_the_mean_of_the_block_and_standard_noise():
    graph = block_graph(n=2000, features=5, signal=2.0)
    noise = graph.x.double() - graph.extra["means"][graph.y]
    assert stats.kstest(noise.flatten().numpy(), "norm").pvalue > 1e-9
    assert graph.extra["means"].norm(dim=1).numpy() == pytest.approx(np.full(4, 2.0))


def test_neighbours_tell_what_features_hide():
    graph = block_graph()
    votes = dense(graph) @ torch.nn.functional.one_hot(graph.y).float()
    assert (votes.argmax(1) == graph.y).float().mean() > 0.9
