"""Ancestral sampling: diffusers' steps, laws known exactly, skipped times, learned variances, dtypes, bad input."""

from itertools import pairwise

import pytest
import torch
from tests.generative.diffusion.chain import STEPS, known_data, network, noise, stream

from lemmata.generative.diffusion.ancestral import ancestral_sampling, reverse_kernel
from lemmata.generative.diffusion.forward_process import diffuse
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.generative.diffusion.targets import TARGETS, training_target


def scheduler(**settings):
    """That of diffusers, with our float64 numbers in the place of its float32 ones."""
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDPMScheduler(1000, clip_sample=False, **settings)
    theirs.betas, theirs.alphas, theirs.alphas_cumprod = STEPS.noise_rates[1:], STEPS.kept[1:], STEPS.signal[1:]
    theirs.one = torch.ones((), dtype=torch.float64)
    return theirs


@pytest.mark.parametrize(("variance", "name"), [("small", "fixed_small"), ("large", "fixed_large")])
@pytest.mark.parametrize(("target", "kind"), list(zip(TARGETS, ("epsilon", "sample", "v_prediction"), strict=True)))
def test_diffusers_makes_the_same_steps(variance, name, target, kind):
    theirs = scheduler(variance_type=name, prediction_type=kind)
    for t in (1000, 500, 2, 1):
        x = noise(4, 2, seed=t)
        step = theirs.step(network(x, torch.full((4,), t)), t - 1, x, generator=stream()).prev_sample
        ours = ancestral_sampling(network, x, STEPS, [t, t - 1], target=target, variance=variance, generator=stream())
        assert torch.allclose(ours, step, rtol=0, atol=1e-11), t


def test_diffusers_learns_the_same_variance():
    theirs, x = scheduler(variance_type="learned_range"), noise(4, 2)

    def twice(x, t):
        return torch.cat([network(x, t), x.clamp(-1, 1)], dim=1)

    for t in (1000, 3, 1):
        step = theirs.step(twice(x, torch.full((4,), t)), t - 1, x, generator=stream()).prev_sample
        ours = ancestral_sampling(twice, x, STEPS, [t, t - 1], variance="learned", generator=stream())
        assert torch.allclose(ours, step, rtol=0, atol=1e-9), t


@pytest.mark.parametrize("times", [(40, 39), (40, 17), (17, 16), (1000, 40), (2, 1)])
def test_a_step_takes_the_law_of_one_time_to_that_of_another(times):
    """Data at one point: mean and variance of the state at s, whatever steps were skipped; probes, no sample."""
    (t, s), x0 = times, 1.5
    x, z = noise(6, 1), noise(6, 1, seed=3)
    found = ancestral_sampling(known_data(STEPS, x0), x, STEPS, [t, s], generator=stream())
    design = torch.cat([x, torch.ones_like(x), z], dim=1)
    slope, offset, spread = torch.linalg.lstsq(design, found).solution[:, 0]
    assert torch.allclose(slope * STEPS.signal[t].sqrt() * x0 + offset, STEPS.signal[s].sqrt() * x0)
    assert torch.allclose(slope**2 * STEPS.noise[t] + spread**2, STEPS.noise[s], rtol=1e-8)


@pytest.mark.parametrize("variance", ["small", "large"])
def test_the_last_step_adds_nothing_and_one_that_ends_earlier_does(variance):
    x = noise(3, 2)
    mean = reverse_kernel(network, x, 30, STEPS, 0, variance=variance).mean
    assert torch.equal(ancestral_sampling(network, x, STEPS, [30, 0], variance=variance), mean)
    earlier = reverse_kernel(network, x, 30, STEPS, 5, variance=variance)
    assert not torch.equal(ancestral_sampling(network, x, STEPS, [30, 5], variance=variance), earlier.mean)


def test_skipped_steps_have_the_variance_of_the_whole_way():
    kernel = reverse_kernel(network, noise(3, 2), 900, STEPS, 400, variance="large")
    assert torch.allclose(kernel.variance, 1 - STEPS.signal[900] / STEPS.signal[400])
    assert float(kernel.variance) > 30 * float(STEPS.noise_rates[900])


def test_every_step_asks_the_network_for_its_time():
    asked = []
    model = lambda x, t: asked.append(t) or torch.zeros_like(x)  # noqa: E731
    ancestral_sampling(model, noise(3, 2), STEPS, [7, 4, 0])
    assert [t.tolist() for t in asked] == [[7, 7, 7], [4, 4, 4]]
    assert {t.dtype for t in asked} == {torch.int64}


def test_the_stream_decides_and_chains_of_one_step_are_chains():
    x = noise(1, 2)
    twice = [ancestral_sampling(network, x, STEPS, [9, 5, 2, 0], generator=stream()) for _ in range(2)]
    assert torch.equal(*twice)
    one = DiffusionSteps.from_rates([0.9])
    assert ancestral_sampling(network, x, one).shape == (1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("variance", ["small", "large"])
def test_states_keep_their_dtype(dtype, variance):
    x = noise(5, 3, 2, 2, dtype=dtype)
    found = ancestral_sampling(network, x, STEPS, [1000, 500, 1, 0], variance=variance, generator=stream())
    assert found.dtype == dtype
    assert reverse_kernel(network, x, 500, STEPS, variance=variance).mean.dtype == dtype


def test_float32_follows_float64():
    x = noise(5, 2, dtype=torch.float32)
    times = [1000, 800, 300, 20, 1, 0]
    single = reverse_chain(x, times)
    assert torch.allclose(single.double(), reverse_chain(x.double(), times), rtol=1e-3, atol=1e-3)


def reverse_chain(x, times):
    """Without noise, so that dtypes can be compared."""
    for t, s in pairwise(times):
        x = reverse_kernel(network, x, t, STEPS, s).mean
    return x


@pytest.mark.parametrize("target", TARGETS)
def test_a_denoiser_of_any_target_makes_the_same_samples(target):
    x0 = 0.3

    def model(x, t):
        t = int(t[0])
        clean = torch.full_like(x, x0)
        eps = (x - STEPS.signal[t].sqrt() * clean) / STEPS.noise[t].sqrt()
        return training_target(clean, eps, t, STEPS, target)

    x = diffuse(torch.full((4, 2), x0, dtype=torch.float64), 1000, noise(4, 2), STEPS)
    found = ancestral_sampling(model, x, STEPS, [1000, 600, 100, 0], target=target)
    assert torch.allclose(found, torch.full_like(found, x0))


def test_bounds_hold_the_samples():
    found = ancestral_sampling(lambda x, t: -x, noise(50, 2), STEPS, [1000, 500, 0], bounds=(-1.0, 1.0))
    assert float(found.abs().max()) == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: ancestral_sampling(network, x, STEPS, [5, 7]), "times must fall at every step, got 7 after 5"),
        (
            lambda x: ancestral_sampling(network, x, STEPS, variance="fixed"),
            "variance must be one of small, large, learned",
        ),
        (lambda x: ancestral_sampling(network, x, STEPS, target="eps"), "target must be one of noise, data, velocity"),
        (lambda x: ancestral_sampling(network, x * torch.nan, STEPS), "x must be finite"),
        (lambda x: reverse_kernel(network, x, 5, STEPS, 5), "to must be <= 4, got 5"),
        (lambda x: reverse_kernel(network, x, 0, STEPS), "t must be >= 1, got 0"),
        (
            lambda x: reverse_kernel(network, x, 9, STEPS, variance="learned"),
            "model must give 4 channels for a learned",
        ),
        (lambda x: ancestral_sampling(lambda x, t: x / 0, x, STEPS, [2, 0]), "model must answer with finite numbers"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(noise(3, 2))
