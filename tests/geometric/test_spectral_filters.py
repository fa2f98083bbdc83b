"""Filters by frequency: learned ones, shapes and dtypes, and bad input."""

import pytest
import torch

from lemmata.data import load
from lemmata.geometric import (
    Graph,
    GraphFourier,
    GraphLaplacian,
    polynomial_filter,
    spectral_convolution,
    spectral_filter,
)

KARATE = GraphLaplacian(Graph.of(load("karate")).undirected())
FOURIER = GraphFourier(KARATE)


def low_pass(frequencies):
    return 1 / (1 + frequencies)


def test_one_over_one_plus_the_frequency_solves_a_linear_system():
    x = torch.randn(34, 3, dtype=torch.float64)
    solved = torch.linalg.solve(torch.eye(34).double() + KARATE.dense(x), x)
    torch.testing.assert_close(spectral_filter(x, FOURIER, low_pass), solved, rtol=0, atol=1e-12)


def test_the_response_is_learned_by_its_gradient():
    x, rate = torch.randn(34, dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    heat = spectral_filter(x, FOURIER, lambda f: (-rate * f).exp())
    (slope,) = torch.autograd.grad(heat[5], rate)
    torch.testing.assert_close(slope, -KARATE(heat.detach())[5], rtol=0, atol=1e-11)  # the heat equation
    assert torch.autograd.gradcheck(lambda t, x: spectral_filter(x, FOURIER, lambda f: (-t * f).exp()), (rate, x))


def test_a_low_pass_filter_takes_noise_from_a_smooth_signal():
    generator = torch.Generator().manual_seed(0)
    smooth = FOURIER.basis[:, :3].sum(1)
    noisy = smooth + 0.2 * torch.randn(34, dtype=torch.float64, generator=generator)
    cleaned = spectral_filter(noisy, FOURIER, lambda f: (f <= FOURIER.frequencies[2]).double())
    # What is left of the noise is its part in 3 of 34 directions: a share of 0.3 in size, on average.
    assert float((cleaned - smooth).norm()) < 0.6 * float((noisy - smooth).norm())


def test_signals_with_several_axes_and_other_dtypes():
    x = torch.randn(34, 2, 3, dtype=torch.float64)
    whole = spectral_filter(x, FOURIER, low_pass)
    torch.testing.assert_close(whole[:, 1, 2], spectral_filter(x[:, 1, 2], FOURIER, low_pass), rtol=0, atol=1e-13)
    for dtype in (torch.float32, torch.bfloat16):
        found = spectral_filter(x.to(dtype), FOURIER, low_pass)
        assert found.dtype == dtype
        allowed = 2 * 34 * torch.finfo(dtype).eps * 34**0.5 * float(x.abs().max())  # two sums of 34 terms
        torch.testing.assert_close(found.double(), whole, rtol=0, atol=allowed)


def test_a_convolution_with_an_impulse_of_all_waves_changes_nothing():
    x = torch.randn(34, dtype=torch.float64)
    unit = FOURIER.inverse(torch.ones(34).double())
    torch.testing.assert_close(spectral_convolution(x, unit, FOURIER), x, rtol=0, atol=1e-12)


def test_a_polynomial_response_needs_no_basis():
    x = torch.randn(34, 2, dtype=torch.float64) / 1000
    found = spectral_filter(x, FOURIER, lambda f: 1 - 0.1 * f + 0.01 * f**2)
    torch.testing.assert_close(found, polynomial_filter(x, KARATE, [1.0, -0.1, 0.01]), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_answered():
    with pytest.raises(ValueError, match="response must give one number for each frequency, got shape \\(\\)"):
        spectral_filter(torch.zeros(34), FOURIER, torch.sum)
    with pytest.raises(ValueError, match="x must have a row for each of the 34 nodes, got shape \\(3,\\)"):
        spectral_filter(torch.zeros(3), FOURIER, low_pass)
    with pytest.raises(ValueError, match="got shape \\(3,\\)"):
        spectral_convolution(torch.zeros(34), torch.zeros(3), FOURIER)
