"""The bound: near the likelihood where the network is perfect, grey values, dtypes, weights, bad input."""

import math

import pytest
import torch
from tests.generative.diffusion.chain import network, noise, stream

from lemmata.generative.diffusion.chain_bound import _log_likelihood, diffusion_elbo, noise_error_weights
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps, LinearSchedule

STEPS = LinearSchedule().steps(20)


def best(steps, variance):
    """The perfect denoiser of normal data."""
    return lambda x, t: steps.noise[t[0]].sqrt() * x / (steps.signal[t[0]] * variance + steps.noise[t[0]])


@pytest.mark.parametrize("spread", [1.0, 0.5])
def test_the_bound_of_a_perfect_denoiser_comes_near_the_likelihood(spread):
    x0 = spread * noise(4000, 1)
    exact = -((x0[:, 0] / spread) ** 2 + math.log(2 * math.pi * spread**2)) / 2
    gaps = []
    for count in (10, 100):
        steps = LinearSchedule().steps(count)
        found = diffusion_elbo(best(steps, spread**2), x0, steps, variance="large", generator=stream())
        gaps.append(float((exact - found.elbo).mean()))
    assert gaps[1] > -0.03
    assert gaps[1] < max(gaps[0] / 2, 0.03)


def test_the_terms_are_one_for_each_example_and_add_up():
    found = diffusion_elbo(network, noise(5, 3, 2, 2), STEPS, generator=stream())
    assert (found.reconstruction.shape, found.denoising.shape, found.prior.shape) == ((5,), (5, 19), (5,))
    assert bool((found.denoising >= 0).all())
    assert bool((found.prior >= 0).all())
    assert torch.equal(found.elbo, found.reconstruction - found.denoising.sum(1) - found.prior)
    assert torch.allclose(found.bits_per_dimension(12), -found.elbo / 12 / math.log(2))


def test_a_chain_of_one_step_has_no_divergences():
    found = diffusion_elbo(network, noise(2, 3), DiffusionSteps.from_rates([0.9]))
    assert found.denoising.shape == (2, 0)
    assert found.elbo.shape == (2,)


@pytest.mark.parametrize("levels", [2, 5, 256])
@pytest.mark.parametrize("variance", [1e-4, 0.05, 10.0])
def test_grey_values_have_probabilities_that_add_up_to_one(levels, variance):
    grey = torch.linspace(-1, 1, levels, dtype=torch.float64)[:, None]
    for mean in (-1.0, 0.013, 0.9, 3.0):
        logs = _log_likelihood(grey, torch.full_like(grey, mean), variance, levels)
        assert bool(logs.isfinite().all()) or variance == 1e-4
        assert float(logs.exp().sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("gap", [5.0, 30.0])
def test_grey_values_far_from_the_mean_are_alike_on_both_sides(gap):
    x = torch.zeros(1, 1, dtype=torch.float64)
    right, left = (_log_likelihood(x, x + sign * gap, 1.0, 256) for sign in (1, -1))
    assert torch.allclose(right, left, rtol=1e-12)
    density = _log_likelihood(x, x + gap, 1.0, None) + math.log(2 / 255)
    assert torch.allclose(right, density, rtol=1e-3)


def test_a_learned_variance_at_either_end_is_the_fixed_one():
    x0 = noise(4, 2)
    for end, name in ((-1.0, "small"), (1.0, "large")):
        twice = lambda x, t, end=end: torch.cat([network(x, t), torch.full_like(x, end)], dim=1)  # noqa: E731
        learned = diffusion_elbo(twice, x0, STEPS, variance="learned", generator=stream())
        fixed = diffusion_elbo(network, x0, STEPS, variance=name, generator=stream())
        assert torch.allclose(learned.elbo, fixed.elbo)


@pytest.mark.parametrize("levels", [None, 256])
def test_float32_follows_float64_and_gradients_reach_the_network(levels):
    x0 = noise(3, 4, dtype=torch.float32).clamp(-1, 1)
    weight = torch.tensor(0.5, requires_grad=True)
    single = diffusion_elbo(lambda x, t: weight * x, x0, STEPS, levels=levels, generator=stream())
    assert single.elbo.dtype == torch.float32
    single.elbo.sum().backward()
    assert weight.grad is not None
    assert bool(weight.grad.isfinite())


def test_the_last_state_is_compared_with_pure_noise():
    half = diffusion_elbo(network, torch.full((1, 1), 2.0, dtype=torch.float64), DiffusionSteps.from_rates([0.5, 0.5]))
    assert float(half.prior) == pytest.approx((0.25 * 4 + 0.75 - 1 - math.log(0.75)) / 2)


def test_weights_are_indexed_by_the_time():
    steps = DiffusionSteps.from_rates([0.1, 0.2, 0.3])
    large = noise_error_weights(steps, "large")
    assert large[:2].tolist() == [0, 0]
    assert float(large[3]) == pytest.approx(0.3 / (2 * 0.7 * (1 - 0.9 * 0.8 * 0.7)))
    assert bool((noise_error_weights(steps)[2:] > large[2:]).all())
    assert noise_error_weights(DiffusionSteps.from_rates([0.5])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: diffusion_elbo(network, x, STEPS, levels=1), "levels must be >= 2, got 1"),
        (lambda x: diffusion_elbo(network, x, STEPS, variance="big"), "variance must be one of small, large, learned"),
        (lambda x: diffusion_elbo(network, x / 0, STEPS), "x0 must be finite"),
        (lambda x: noise_error_weights(STEPS, "learned"), "variance must be one of small, large, got 'learned'"),
        (lambda x: diffusion_elbo(network, x, STEPS).bits_per_dimension(0), "dimensions must be >= 1, got 0"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(noise(3, 2))
