"""The Fourier transform on graphs: round trips, order, shapes and dtypes, extremes, and bad input."""

import math

import pytest
import torch

from lemmata.data import load
from lemmata.geometric import Graph, GraphFourier, GraphLaplacian
from lemmata.geometric import graph_fourier as source

KARATE = Graph.of(load("karate")).undirected()


@pytest.mark.parametrize("kind", ["combinatorial", "symmetric"])
def test_back_and_forth_on_a_real_graph(kind):
    fourier, x = GraphFourier(GraphLaplacian(KARATE, kind)), torch.randn(34, 3, dtype=torch.float64)
    torch.testing.assert_close(fourier.inverse(fourier.transform(x)), x, rtol=0, atol=1e-12)
    torch.testing.assert_close(fourier.transform(fourier.inverse(x)), x, rtol=0, atol=1e-12)
    assert bool((fourier.frequencies.diff() >= 0).all())
    assert bool((fourier.frequencies >= 0).all())
    assert fourier.frequencies[1] > 1e-3  # in one piece


def test_waves_of_a_path_change_their_sign_once_more_each():
    n = 8  # a power of two: no wave is zero at a node, so that rounding changes no sign
    fourier = GraphFourier(GraphLaplacian(Graph([(i, i + 1) for i in range(n - 1)]).undirected()))
    wanted = 2 - 2 * torch.cos(math.pi * torch.arange(n).double() / n)
    torch.testing.assert_close(fourier.frequencies, wanted, rtol=0, atol=1e-13)
    assert (fourier.basis[1:] * fourier.basis[:-1] < 0).sum(0).tolist() == list(range(n))


def test_a_signal_may_have_any_number_of_axes():
    fourier, x = GraphFourier(GraphLaplacian(KARATE)), torch.randn(34, 34, 2, dtype=torch.float64)
    one = torch.stack([fourier.transform(x[:, i, j]) for i in range(34) for j in range(2)], 1).reshape(34, 34, 2)
    torch.testing.assert_close(fourier.transform(x), one, rtol=0, atol=1e-12)
    torch.testing.assert_close(fourier.inverse(one), x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex128])
def test_the_dtype_is_that_of_the_signal(dtype):
    fourier, x = GraphFourier(GraphLaplacian(KARATE)), torch.randn(34, 2, dtype=torch.float64)
    spectrum = fourier.transform(x.to(dtype))
    assert spectrum.dtype == dtype
    allowed = 34 * torch.finfo(dtype).eps * float(x.abs().max())  # sums of 34 terms, factors of at most 1
    torch.testing.assert_close(spectrum.real.double(), fourier.transform(x), rtol=0, atol=allowed)


def test_gradients_pass():
    fourier = GraphFourier(GraphLaplacian(Graph([[0, 1], [1, 2]]).undirected()))
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(fourier.transform, x)
    assert torch.autograd.gradcheck(fourier.inverse, x)


def test_graphs_of_no_node_and_of_one():
    none = GraphFourier(GraphLaplacian(Graph([], 0)))
    assert none.transform(torch.zeros(0, 2)).shape == (0, 2)
    one = GraphFourier(GraphLaplacian(Graph([], 1)))
    assert one.frequencies.tolist() == [0.0]
    assert one.transform(torch.tensor([3.0])).abs().tolist() == [3.0]


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered(monkeypatch):
    with pytest.raises(ValueError, match="got kind random_walk: use kind='symmetric'"):
        GraphFourier(GraphLaplacian(KARATE, "random_walk"))
    with pytest.raises(ValueError, match=r"must be undirected: use graph\.undirected"):
        GraphFourier(GraphLaplacian(Graph([[0, 1], [1, 2]])))
    fourier = GraphFourier(GraphLaplacian(KARATE))
    with pytest.raises(ValueError, match="x must have a row for each of the 34 nodes, got shape \\(2, 34\\)"):
        fourier.transform(torch.zeros(2, 34))
    with pytest.raises(ValueError, match="got shape \\(\\)"):
        fourier.inverse(torch.tensor(0.0))
    with pytest.raises(TypeError, match=r"x must be floating point, got torch\.int64"):
        fourier.transform(torch.zeros(34, dtype=torch.int64))
    monkeypatch.setattr(source, "MOST_NODES", 33)
    with pytest.raises(ValueError, match=r"of 34 nodes is too large .* use polynomial_filter"):
        GraphFourier(GraphLaplacian(KARATE))
