"""DDIM: diffusers' samples along the same times, exact marginals for every eta, the way back, bad input."""

import pytest
import torch
from tests.generative.diffusion.chain import STEPS, known_data, network, noise, stream

from lemmata.generative.diffusion.ancestral import ancestral_sampling
from lemmata.generative.diffusion.ddim import ddim_inversion, ddim_sampling
from lemmata.generative.diffusion.sampling_times import spaced_times


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("spacing", ["trailing", "leading"])
def test_diffusers_makes_the_same_samples_along_its_times(eta, spacing):
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDIMScheduler(1000, clip_sample=False, timestep_spacing=spacing)
    theirs.alphas_cumprod, theirs.final_alpha_cumprod = STEPS.signal[1:], torch.ones((), dtype=torch.float64)
    theirs.set_timesteps(20)
    times, x, generator = [int(t) + 1 for t in theirs.timesteps], noise(4, 2), stream()
    for t in times:
        x = theirs.step(network(x, torch.full((4,), t)), t - 1, x, eta=eta, generator=generator).prev_sample
    ours = ddim_sampling(network, noise(4, 2), STEPS, [*times, 0], eta=eta, generator=stream())
    assert torch.allclose(ours, x, rtol=0, atol=1e-10)


def test_times_are_those_of_diffusers_trailing():
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDIMScheduler(1000, timestep_spacing="trailing")
    for count in (1, 7, 50, 1000):
        theirs.set_timesteps(count)
        assert [t + 1 for t in theirs.timesteps.tolist()] == spaced_times(1000, count)[:-1]


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("times", [(40, 39), (40, 17), (1000, 40), (2, 1)])
def test_every_eta_has_the_marginals_of_the_diffusion(eta, times):
    """Data at one point: mean and variance of the state at s, and how much of it is fresh; probes, no sample."""
    (t, s), x0 = times, 1.5
    x, z = noise(6, 1), noise(6, 1, seed=3)
    found = ddim_sampling(known_data(STEPS, x0), x, STEPS, [t, s], eta=eta, generator=stream())
    design = torch.cat([x, torch.ones_like(x), z], dim=1)
    slope, offset, spread = torch.linalg.lstsq(design, found).solution[:, 0]
    fresh = eta**2 * STEPS.noise[s] / STEPS.noise[t] * (1 - STEPS.signal[t] / STEPS.signal[s])
    assert torch.allclose(slope * STEPS.signal[t].sqrt() * x0 + offset, STEPS.signal[s].sqrt() * x0)
    assert torch.allclose(slope**2 * STEPS.noise[t] + spread**2, STEPS.noise[s], rtol=1e-8)
    assert torch.allclose(spread**2, fresh, rtol=1e-7, atol=1e-20)


@pytest.mark.parametrize("times", [[1000, 999, 998], [1000, 700, 20, 0]])
def test_eta_one_is_ancestral_sampling(times):
    x = noise(4, 2)
    ours = ddim_sampling(network, x, STEPS, times, eta=1.0, generator=stream())
    assert torch.allclose(ours, ancestral_sampling(network, x, STEPS, times, generator=stream()), atol=1e-10)


def test_without_fresh_noise_no_stream_is_touched():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    ddim_sampling(network, noise(4, 2), STEPS, [1000, 500, 0])
    assert torch.equal(torch.get_rng_state(), before)


def test_normal_data_keep_their_variance_in_many_steps():
    """The best denoiser of N(0, 1/4) is linear, and so is the sampler: its factor times 1 tends to 1/2."""
    gaps = []
    for count in (10, 100, 1000):
        best = lambda x, t: STEPS.noise[t[0]].sqrt() * x / (STEPS.signal[t[0]] / 4 + STEPS.noise[t[0]])  # noqa: E731
        factor = ddim_sampling(best, torch.ones(1, 1, dtype=torch.float64), STEPS, spaced_times(1000, count))
        gaps.append(abs(float(factor) - 0.5))
    assert gaps[2] < 2e-3
    assert gaps[2] < gaps[1] / 5 < gaps[0] / 25


@pytest.mark.parametrize("target", ["noise", "velocity"])  # answers of data are too far from the state to start there
def test_the_way_back_leads_to_the_same_data(target):
    times, x = spaced_times(1000, 40), noise(3, 2)
    smooth = lambda x, t: network(x, t) / 4  # noqa: E731
    start = ddim_inversion(smooth, x, STEPS, times, rounds=40, target=target)
    assert torch.allclose(ddim_sampling(smooth, start, STEPS, times, target=target), x, atol=1e-8)


def test_one_round_is_the_usual_inversion_and_more_are_better():
    times, x = spaced_times(1000, 40), noise(3, 2)
    misses = []
    for rounds in (1, 2, 20):
        start = ddim_inversion(network, x, STEPS, times, rounds=rounds)
        misses.append(float((ddim_sampling(network, start, STEPS, times) - x).abs().max()))
    assert misses[2] < 1e-6
    assert misses[2] < misses[1] < misses[0] < 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_states_keep_their_dtype(dtype):
    x = noise(2, 3, 2, 2, dtype=dtype)
    assert ddim_sampling(network, x, STEPS, [1000, 500, 0], eta=0.5).dtype == dtype
    assert ddim_inversion(network, x, STEPS, [1000, 500, 0]).dtype == dtype


def test_bounds_hold_the_samples():
    found = ddim_sampling(lambda x, t: -x, noise(50, 2), STEPS, [1000, 500, 0], bounds=(-1.0, 1.0))
    assert float(found.abs().max()) == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: ddim_sampling(network, x, STEPS, [5, 7]), "times must fall at every step, got 7 after 5"),
        (lambda x: ddim_sampling(network, x, STEPS, [1001, 0]), "times must be <= 1000, got 1001"),
        (lambda x: ddim_sampling(network, x, STEPS, eta=1.5), r"eta must be in \[0, 1\], got 1.5"),
        (lambda x: ddim_sampling(network, x, STEPS, eta=-0.1), r"eta must be in \[0, 1\], got -0.1"),
        (lambda x: ddim_inversion(network, x, STEPS, rounds=0), "rounds must be >= 1, got 0"),
        (lambda x: ddim_sampling(lambda x, t: x / 0, x, STEPS, [2, 0]), "model must answer with finite numbers"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(noise(3, 2))
