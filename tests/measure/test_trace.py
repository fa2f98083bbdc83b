"""Trace estimates: unbiased with the variance that they should have, exact where they must be, bad input."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.curvature_products import GaussNewtonOperator, HessianOperator
from lemmata.measure.trace import hutch_plus_plus, hutchinson_trace


def matrix_operator(matrix):
    return lambda x: x @ matrix


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_mean_and_the_variance_are_those_of_the_formula():
    half = torch.randn(12, 12, generator=drawn(1), dtype=torch.float64)
    matrix, like = (half + half.mT) / 2, torch.ones(12, dtype=torch.float64)
    found = hutchinson_trace(matrix_operator(matrix), probes=20_000, like=like, generator=drawn())
    variance = 2 * (matrix.square().sum() - matrix.diagonal().square().sum()).item()
    # Quadratic forms of signs have a kurtosis below 15, so that the variance of 20,000 is known to 6 %.
    assert found.standard_error == pytest.approx(math.sqrt(variance / 20_000), rel=0.1)
    assert abs(found.value - matrix.trace().item()) <= 6.2 * found.standard_error
    better = hutch_plus_plus(matrix_operator(matrix), products=12, like=like, generator=drawn())
    assert abs(better.value - matrix.trace().item()) <= 20 * better.standard_error


def test_a_diagonal_matrix_needs_one_probe_and_a_small_rank_a_few():
    diagonal, like = torch.rand(30, generator=drawn(), dtype=torch.float64), torch.ones(30, dtype=torch.float64)
    one = hutchinson_trace(lambda x: diagonal * x, probes=1, like=like)
    assert one.value == pytest.approx(diagonal.sum().item())
    assert one.standard_error == math.inf
    factor = torch.randn(4, 30, generator=drawn(), dtype=torch.float64)
    low = hutch_plus_plus(matrix_operator(factor.mT @ factor), products=12, like=like)
    assert low.value == pytest.approx(factor.square().sum().item(), rel=1e-12)
    assert low.standard_error < 1e-10
    assert low.products == 12


@pytest.mark.parametrize("products", [3, 4, 5, 30, 100])
def test_products_are_counted_and_a_whole_space_is_exact(products):
    calls = []

    def counted(x):
        calls.append(len(x))
        return x * torch.arange(1.0, 8.0).double()

    found = hutch_plus_plus(counted, products=products, like=torch.ones(7).double(), generator=drawn())
    assert sum(calls) == found.products <= products
    assert max(calls) <= 8
    if products >= 30:
        assert found.value == pytest.approx(28, rel=1e-12)
        assert found.standard_error == 0.0
    else:
        assert found.products == products


@pytest.mark.parametrize(("decay", "least", "most"), [(2.0, 0.0, 0.1), (0.0, 1.3, 2.4)])
def test_it_is_better_where_few_eigenvalues_stand_out_and_else_worse(decay, least, most):
    """Without any that stands out the subspace is of no use, and a third of the probes errs by the root of 3 more."""
    q = torch.linalg.qr(torch.randn(200, 200, generator=drawn(3), dtype=torch.float64)).Q
    values = torch.arange(1, 201).double() ** -decay * torch.where(
        torch.arange(200) % 2 == 0, 1.0, 0.5 if decay else -1.0
    )
    matrix, like, errors = (q * values) @ q.mT, torch.ones(200).double(), []
    for method in (hutch_plus_plus, hutchinson_trace):
        found = [method(matrix_operator(matrix), 48, like, generator=drawn(seed)) for seed in range(200)]
        errors.append(math.sqrt(sum((one.value - values.sum().item()) ** 2 for one in found) / 200))
    assert least < errors[0] / errors[1] < most


def test_a_network_of_rectifiers_has_the_trace_of_its_gauss_newton_matrix():
    """Outputs are linear in each single parameter, so that the diagonal of what is left out is zero."""
    torch.manual_seed(0)
    parts = [nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)]
    model, x, y = nn.Sequential(*parts).double(), torch.randn(5, 1, 6, 6).double(), torch.arange(5) % 3
    traces = [
        make(model, functional.cross_entropy, (x, y)).dense().trace() for make in (HessianOperator, GaussNewtonOperator)
    ]
    torch.testing.assert_close(*traces, rtol=1e-12, atol=0.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hutchinson_trace(torch.positive), "like must be given for an operator that does not say its size"),
        (lambda: hutchinson_trace(torch.positive, 0, torch.ones(2)), "probes must be >= 1, got 0"),
        (lambda: hutchinson_trace(torch.positive, 2, torch.ones(2, 2)), "like must be a tensor with one axis"),
        (lambda: hutch_plus_plus(torch.positive, 2, torch.ones(2)), "products must be >= 3, got 2"),
        (
            lambda: hutch_plus_plus(torch.positive, 6, torch.ones(9).bfloat16()),
            "operator must take float32 or float64, got torch.bfloat16: use hutchinson_trace",
        ),
    ],
)
def test_bad_choices_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
