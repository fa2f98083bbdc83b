"""Spectral density: moments that Gauss's rule has exactly, the eigenvalues of a network, bad input."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.spectral_density import SpectralDensity, stochastic_spectral_density


def network_hessian():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    return HessianOperator(model, functional.cross_entropy, (torch.randn(8, 5).double(), torch.arange(8) % 3))


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_moments_below_twice_the_steps_are_exact_for_each_start(steps):
    operator = network_hessian()
    start = operator.start(3, generator=torch.Generator().manual_seed(0))
    found, dense = stochastic_spectral_density(operator, start=start, steps=steps), operator.dense()
    assert found.nodes.shape == found.weights.shape == (3, steps)
    power = start
    for degree in range(2 * steps):
        moments = (found.weights * found.nodes**degree).sum(-1)
        expected = (start * power).sum(-1) / (start * start).sum(-1)
        torch.testing.assert_close(moments, expected, rtol=1e-9, atol=1e-12)
        power = power @ dense
    # The next one is not.
    wrong = (found.weights * found.nodes ** (2 * steps)).sum(-1) - (start * power).sum(-1) / (start * start).sum(-1)
    assert (wrong.abs() > 1e-6).all()


def test_all_steps_find_all_eigenvalues_and_their_shares():
    values = torch.tensor([-1.0, 0.0, 0.0, 2.0, 5.0], dtype=torch.float64)
    start = torch.ones(1, 5, dtype=torch.float64)
    found = stochastic_spectral_density(lambda x: values * x, start=start, steps=5)
    assert found.fraction_below(-0.5) == pytest.approx(0.2)
    assert found.fraction_below(1.0) == pytest.approx(0.6)
    assert found.mean(torch.exp) == pytest.approx(values.exp().mean().item())
    assert found.weights.sum(-1).tolist() == pytest.approx([1.0])


def test_the_density_is_one_of_normal_curves():
    values = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = stochastic_spectral_density(lambda x: values * x, start=torch.ones(1, 2).double(), steps=2)
    grid = torch.linspace(-2, 3, 2001).double()
    density = found.on(grid, width=0.1)
    assert torch.trapezoid(density, grid).item() == pytest.approx(1, abs=1e-6)
    assert found.on(torch.zeros(1), width=0.1).item() == pytest.approx(0.5 / (0.1 * math.sqrt(2 * math.pi)), rel=1e-6)


def test_the_density_is_the_mean_over_all_starts_of_mixtures_of_normal_curves():
    nodes = torch.tensor([[1.0, 2.0], [-0.5, 4.0]], dtype=torch.float64)
    weights = torch.tensor([[0.25, 0.75], [0.4, 0.6]], dtype=torch.float64)
    grid, found = torch.linspace(-2, 5, 30), SpectralDensity(nodes, weights)
    curves = torch.distributions.Normal(nodes, 0.3).log_prob(grid.double()[:, None, None]).exp()  # (points, 2, 2)
    expected = torch.einsum("gps,ps->g", curves, weights) / 2
    torch.testing.assert_close(found.on(grid, width=0.3), expected, rtol=1e-12, atol=1e-15)
    assert found.fraction_below(2.0) == pytest.approx((0.25 + 0.4) / 2)  # 2 itself is not below 2
    assert found.mean(torch.square) == pytest.approx((0.25 + 3 + 0.1 + 9.6) / 2)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_scales_do_not_matter(size):
    values = size * torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    found = stochastic_spectral_density(lambda x: values * x, start=torch.ones(1, 3).double(), steps=3)
    torch.testing.assert_close(found.nodes[0], values, rtol=1e-12, atol=0.0)


def test_the_distribution_of_a_network_is_estimated_from_random_starts():
    matrix = network_hessian().dense()
    dense = torch.linalg.eigvalsh(matrix)
    start = torch.randn(200, len(matrix), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = stochastic_spectral_density(lambda x: x @ matrix, steps=20, start=start)
    # A share is a mean of 200 starts, each with a deviation of at most sqrt(2 p (1 - p) / n) < 0.1.
    for value in (dense[10].item() - 1e-6, 0.1, 1.0):
        assert found.fraction_below(value) == pytest.approx((dense < value).double().mean().item(), abs=0.06)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: stochastic_spectral_density(torch.positive), "start must be given"),
        (
            lambda: stochastic_spectral_density(torch.positive, start=torch.ones(3)),
            r"start must be a \(probes, n\) tensor",
        ),
        (lambda: stochastic_spectral_density(torch.positive, probes=0), "probes must be >= 1, got 0"),
        (lambda: stochastic_spectral_density(torch.positive, steps=0, start=torch.ones(1, 3)), "steps must be >= 1"),
        (
            lambda: stochastic_spectral_density(torch.positive, start=torch.ones(1, 3)).on(torch.zeros(1), 0.0),
            "width must be > 0, got 0.0",
        ),
    ],
)
def test_bad_choices_are_answered_in_words(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
