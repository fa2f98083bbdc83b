"""Ends of spectra: exact against dense Hessians, residuals at every scale, and what is certified."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.certified.rounding import gamma
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.eigenvalues import extreme_eigenpairs


def network_hessian(dtype=torch.float64):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).to(dtype)
    return HessianOperator(model, functional.cross_entropy, (torch.randn(8, 5).to(dtype), torch.arange(8) % 3))


def symmetric(values, seed=0):
    """A matrix with these eigenvalues, as far as rounding lets it have them."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.linalg.qr(torch.randn(len(values), len(values), generator=generator, dtype=torch.float64)).Q
    matrix = (q * values.double()) @ q.mT
    return ((matrix + matrix.mT) / 2).to(values.dtype)


@pytest.mark.parametrize("end", ["largest", "smallest", "magnitude"])
@pytest.mark.parametrize("count", [1, 4])
def test_the_ends_of_a_networks_hessian_are_those_of_the_dense_one(end, count):
    operator = network_hessian()
    dense = torch.linalg.eigvalsh(operator.dense())
    key = {"largest": dense, "smallest": -dense, "magnitude": dense.abs()}[end]
    expected = dense[key.argsort(descending=True)][:count]
    found = extreme_eigenpairs(
        operator, count=count, end=end, accuracy=1e-9, generator=torch.Generator().manual_seed(0)
    )
    torch.testing.assert_close(found.values, expected, rtol=1e-9, atol=1e-12)
    images = operator(found.vectors)
    residuals = (images - found.values[:, None] * found.vectors).norm(dim=-1)
    torch.testing.assert_close(found.residuals, residuals, rtol=1e-3, atol=1e-13)
    assert (found.residuals <= 2e-9 * dense.abs().max()).all()
    torch.testing.assert_close(found.vectors @ found.vectors.mT, torch.eye(count).double(), rtol=0, atol=1e-9)
    assert not found.certified


def test_it_stops_when_the_residual_is_small_enough():
    operator, calls = network_hessian(), []

    def counted(x):
        calls.append(x.shape[0] if x.ndim > 1 else 1)
        return operator(x)

    start = operator.start(generator=torch.Generator().manual_seed(1))
    coarse, fine = (extreme_eigenpairs(counted, start, accuracy=a) for a in (1e-2, 1e-8))
    assert sum(calls) == coarse.products + fine.products
    assert coarse.products < fine.products < operator.size
    assert coarse.residuals <= 1e-2 * coarse.values.abs()
    assert extreme_eigenpairs(operator, start, accuracy=1e-8, steps=3).products == 4  # three and the one that measures


def test_of_nothing_the_first_step_is_enough():
    found = extreme_eigenpairs(lambda x: 0 * x, torch.ones(50, dtype=torch.float64))
    assert (found.values.item(), found.residuals.item(), found.products) == (0.0, 0.0, 2)


@pytest.mark.parametrize("end", ["largest", "smallest"])
def test_it_stops_at_a_thousandth_of_the_largest_value_and_not_a_step_later(end):
    """Eigenvalues so close together that a step more makes the residual only a little smaller."""
    values = torch.linspace(1, 2, 400).double()
    start = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = extreme_eigenpairs(lambda x: values * x, start, count=2, end=end)
    shorter = extreme_eigenpairs(lambda x: values * x, start, count=2, end=end, steps=found.products - 2 - 1)
    assert found.residuals.max().item() <= 1e-3 * 2 < shorter.residuals.max().item()


def test_in_single_precision_the_same_network_has_the_same_curvature():
    top = torch.linalg.eigvalsh(network_hessian().dense())[-1].item()
    found = extreme_eigenpairs(network_hessian(torch.float32), generator=torch.Generator().manual_seed(0))
    assert found.values.dtype is found.residuals.dtype is torch.float32
    assert abs(found.values.item() - top) <= found.residuals.item() + 1e-5 * top


SPECTRA = {
    "spread": torch.linspace(-3, 7, 40),
    "flat": torch.ones(40),
    "nearly equal": 1 + 1e-7 * torch.linspace(0, 1, 40),
    "one large": torch.cat([torch.ones(1), 1e-6 * torch.ones(39)]),
    "twice": torch.tensor([5.0, 5.0, -1.0, 0.0]),
    "nothing": torch.zeros(3),
    "one": torch.tensor([-2.0]),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_certified_is_true_at_every_scale(name, size, dtype):
    matrix = size * symmetric(SPECTRA[name].to(dtype), seed=len(name))
    n = len(matrix)
    bound = gamma(n, dtype) * float(matrix.double().norm()) * (1 + 1e-6)
    found = extreme_eigenpairs(
        lambda x: (matrix @ x[..., None])[..., 0],
        torch.randn(n, generator=torch.Generator().manual_seed(0)).to(dtype),
        count=2,
        accuracy=1e-6,
        rounding=bound,
    )
    assert found.certified
    assert len(found.values) == min(2, n)
    exact = torch.linalg.eigvalsh(matrix.double())  # itself right up to rounding in double precision
    distance = (found.values.double()[:, None] - exact).abs().amin(-1)
    assert (distance <= found.residuals.double() + 1e-13 * exact.abs().max()).all()
    assert (found.residuals.double() >= bound).all()


def test_from_one_start_an_eigenvalue_is_seen_once():
    diagonal = torch.tensor([5.0, 5.0, 1.0])
    found = extreme_eigenpairs(lambda x: diagonal * x, torch.ones(3), count=2, accuracy=1e-5)
    torch.testing.assert_close(found.values, torch.tensor([5.0, 1.0]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"start": None}, r"start must be given for an operator that does not say its size: use torch.randn\(n\)"),
        ({"start": torch.ones(2, 3)}, "start must be a tensor with one axis"),
        ({"start": torch.zeros(3)}, "without zero vectors"),
        ({"start": torch.ones(3).half()}, "float32 or float64"),
        ({"count": 0}, "count must be >= 1, got 0"),
        ({"steps": 0, "count": 1}, "steps must be >= 1, got 0"),
        ({"end": "middle"}, "end must be one of largest, smallest, magnitude, got 'middle'"),
        ({"accuracy": 0.0}, "accuracy must be > 0, got 0.0"),
        ({"rounding": -1.0}, "rounding must be >= 0, got -1.0"),
    ],
)
def test_bad_choices_are_answered_in_words(words, said):
    with pytest.raises((ValueError, TypeError), match=said):
        extreme_eigenpairs(lambda x: x, **{"start": torch.ones(3), **words})
