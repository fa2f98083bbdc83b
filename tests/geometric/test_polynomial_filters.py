"""Polynomials of the Laplacian: filters and the layer of them, dtypes, gradients, state, and bad input."""

import pytest
import torch

from lemmata.data import load
from lemmata.geometric import Graph, GraphLaplacian, PolynomialConvolution, polynomial_filter

PATH = GraphLaplacian(Graph([(i, i + 1) for i in range(5)]).undirected(), "symmetric")
KARATE = GraphLaplacian(Graph.of(load("karate")).undirected(), "symmetric")


def test_a_filter_is_the_polynomial_of_the_matrix():
    x, alphas = torch.randn(34, 2, 3, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    matrix = KARATE.dense(x)
    whole = sum(alpha * torch.linalg.matrix_power(matrix, k) for k, alpha in enumerate(alphas))
    wanted = torch.einsum("nm,mij->nij", whole, x)
    torch.testing.assert_close(polynomial_filter(x, KARATE, alphas), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(polynomial_filter(x, KARATE, alphas.tolist()), wanted, rtol=0, atol=1e-12)
    assert torch.equal(polynomial_filter(x, KARATE, [2.0]), 2 * x)


def test_gradients_reach_the_signal_and_the_coefficients():
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    alphas = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, alphas: polynomial_filter(x, PATH, alphas), (x, alphas))


@pytest.mark.parametrize("outputs", [2, 4, 5])  # the outputs go along the edges where they are fewer
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_a_layer_is_a_sum_of_filters(outputs, degree):
    layer = PolynomialConvolution(4, outputs, degree, dtype=torch.float64)
    torch.nn.init.normal_(layer.get_parameter("bias"))
    x = torch.randn(34, 4, dtype=torch.float64)
    powers = torch.stack([torch.linalg.matrix_power(KARATE.dense(x), k) for k in range(degree + 1)])
    wanted = torch.einsum("knm,mi,kio->no", powers, x, layer.weight) + layer.bias
    torch.testing.assert_close(layer(x, KARATE), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_gradients_of_the_layer(outputs):
    layer = PolynomialConvolution(2, outputs, degree=2, dtype=torch.float64)

    def applied(x, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x, PATH))

    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(applied, (x, layer.weight, layer.bias))


def test_one_layer_serves_every_graph():
    layer = PolynomialConvolution(3, 2, degree=2)
    assert layer(torch.randn(6, 3), PATH).shape == (6, 2)
    assert layer(torch.randn(34, 3), KARATE).shape == (34, 2)
    assert layer(torch.randn(1, 3), GraphLaplacian(Graph([], 1))).shape == (1, 2)
    assert layer(torch.zeros(0, 3), GraphLaplacian(Graph([], 0))).shape == (0, 2)


def test_weights_start_within_glorots_bound_and_the_bias_at_zero():
    layer = PolynomialConvolution(50, 70, degree=2)
    bound = (6 / 120) ** 0.5
    assert 0.99 * bound < float(layer.weight.detach().abs().max()) <= bound  # of 10,500 weights
    assert not layer.bias.any()
    without = PolynomialConvolution(2, 3, degree=1, bias=False)
    assert list(without.state_dict()) == ["weight"]
    assert repr(without) == "PolynomialConvolution(inputs=2, outputs=3, degree=1, bias=False)"
    assert without(torch.randn(6, 2), PATH).shape == (6, 3)


def test_weights_start_on_both_sides_of_zero():
    weight = PolynomialConvolution(10, 10, degree=9).weight.detach()
    assert 0.4 < float((weight > 0).double().mean()) < 0.6  # of 1,000 fair signs: six standard deviations


@pytest.mark.parametrize("outputs", [1, 3, 4])
@pytest.mark.parametrize("degree", [0, 1, 4])
def test_a_product_for_each_power_with_the_smaller_side(monkeypatch, outputs, degree):
    widths, apply = [], GraphLaplacian.__call__
    monkeypatch.setattr(GraphLaplacian, "__call__", lambda self, x: widths.append(x.shape[1]) or apply(self, x))
    PolynomialConvolution(3, outputs, degree)(torch.randn(34, 3), KARATE)
    assert widths == [min(3, outputs)] * degree


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered():
    with pytest.raises(ValueError, match="coefficients must be one or more numbers, got shape \\(0,\\)"):
        polynomial_filter(torch.zeros(6), PATH, [])
    with pytest.raises(ValueError, match="coefficients must be one or more numbers, got shape \\(2, 1\\)"):
        polynomial_filter(torch.zeros(6), PATH, torch.zeros(2, 1))
    with pytest.raises(ValueError, match=r"degree must be .*0, got -1"):
        PolynomialConvolution(2, 2, degree=-1)
    layer = PolynomialConvolution(3, 2, degree=0)
    for shape in ((6, 2), (5, 3), (6,), (1, 6, 3)):
        with pytest.raises(ValueError, match="x must be \\(6, 3\\), got shape"):
            layer(torch.zeros(shape), PATH)
