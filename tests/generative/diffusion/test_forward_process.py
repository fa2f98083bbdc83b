"""The forward process and its posterior: times alone and in batches, dtypes, skipped steps, bad input, diffusers."""

import pytest
import torch

from lemmata.generative.diffusion.forward_process import diffuse, posterior
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps, LinearSchedule

STEPS = LinearSchedule().steps(100)


def images(count=4, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 2, 3, 3, generator=generator, dtype=dtype)


def test_one_time_for_all_is_the_same_as_a_time_for_each():
    x, noise = images(), images(seed=1)
    for t in (0, 1, 57, 100):
        times = torch.full((4,), t)
        assert torch.equal(diffuse(x, t, noise, STEPS), diffuse(x, times, noise, STEPS))
        if t:
            alone, each = posterior(x, noise, t, STEPS), posterior(x, noise, times, STEPS)
            assert torch.allclose(alone.mean, each.mean, rtol=1e-13)
            assert torch.allclose(alone.variance.expand(4), each.variance.flatten(), rtol=1e-13)


def test_each_example_has_its_own_time_and_batches_of_one_are_welcome():
    x, noise, times = images(), images(seed=1), torch.tensor([1, 30, 99, 100])
    together = diffuse(x, times, noise, STEPS)
    for k in range(4):
        assert torch.equal(together[k : k + 1], diffuse(x[k : k + 1], int(times[k]), noise[k : k + 1], STEPS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("t", [3, torch.tensor([1, 2, 50, 100])])
def test_states_keep_their_dtype(dtype, t):
    x, noise = images(dtype=dtype), images(dtype=dtype, seed=1)
    found = diffuse(x, t, noise, STEPS)
    exact = diffuse(x.double(), t, noise.double(), STEPS)
    assert found.dtype == dtype
    assert posterior(found, x, t, STEPS).mean.dtype == dtype
    assert torch.allclose(found.double(), exact, atol=8 * torch.finfo(dtype).eps, rtol=8 * torch.finfo(dtype).eps)


def test_time_zero_is_data():
    x = images()
    assert torch.equal(diffuse(x, 0, images(seed=1), STEPS), x)


def test_two_stretches_have_the_law_of_the_whole():
    """Factors of state and noise from 0 to 60, by way of 20; a stretch from a time to itself does nothing."""
    one, none = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    kept = diffuse(one, 60, none, STEPS, since=20) * diffuse(one, 20, none, STEPS)
    later, earlier = diffuse(none, 60, one, STEPS, since=20), diffuse(one, 60, none, STEPS, since=20)
    spread = later**2 + (earlier * diffuse(none, 20, one, STEPS)) ** 2
    assert torch.allclose(kept, diffuse(one, 60, none, STEPS))
    assert torch.allclose(spread, diffuse(none, 60, one, STEPS) ** 2)
    assert torch.equal(diffuse(one, 20, one, STEPS, since=20), one)


def test_the_posterior_of_skipped_steps_is_that_of_the_walk_back():
    """Going back from 9 to 4 at once is as going back step by step, given the data."""
    x_t, x0 = images()[:, 0], images(seed=1)[:, 0]
    mean, spread = x_t, torch.zeros(1, dtype=torch.float64)
    for t in range(9, 4, -1):
        slope = posterior(torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64), t, STEPS).mean
        step = posterior(mean, x0, t, STEPS)
        mean, spread = step.mean, slope**2 * spread + step.variance
    at_once = posterior(x_t, x0, 9, STEPS, to=4)
    assert torch.allclose(at_once.mean, mean, rtol=1e-10)
    assert torch.allclose(at_once.variance, spread, rtol=1e-10)
    each = posterior(x_t, x0, torch.full((4,), 9), STEPS, to=torch.full((4,), 4))
    assert torch.allclose(each.mean, at_once.mean)


def test_tiny_rates_keep_their_digits_for_times_in_batches():
    steps = DiffusionSteps.from_rates([1e-10, 1e-10, 1e-10])
    x = torch.zeros(2, 1, dtype=torch.float64)
    found = diffuse(x, torch.tensor([2, 3]), x + 1, steps, since=torch.tensor([1, 2]))
    assert torch.allclose(found, torch.full_like(x, 1e-5), rtol=1e-12)


def test_gradients_reach_data_and_noise():
    x, noise = images().requires_grad_(), images(seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, noise: diffuse(x, 7, noise, STEPS), (x, noise))
    assert torch.autograd.gradcheck(lambda x, noise: posterior(x, noise, 7, STEPS).mean, (x, noise))


def test_diffusers_adds_the_same_noise():
    diffusers = pytest.importorskip("diffusers")
    theirs, steps = diffusers.DDPMScheduler(1000), LinearSchedule().steps(1000)
    theirs.alphas_cumprod = steps.signal[1:]  # its own are float32
    x, noise, t = images(), images(seed=1), torch.tensor([1, 2, 500, 1000])
    assert torch.allclose(diffuse(x, t, noise, steps), theirs.add_noise(x, noise, t - 1), atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x: diffuse(x, 101, x, STEPS), "t must be <= 100, got 101"),
        (lambda x: diffuse(x, torch.tensor([0, 5, 5, 200]), x, STEPS), "t must hold times from 0 to 100, got 0 to 200"),
        (
            lambda x: diffuse(x, 5, x[:, :1], STEPS),
            r"noise must have the shape of x, \(4, 2, 3, 3\), got \(4, 1, 3, 3\)",
        ),
        (lambda x: posterior(x, x, 0, STEPS), "t must be >= 1, got 0"),
        (lambda x: posterior(x, x, 5, STEPS, to=7), "to must be before t, got a time that is 2 steps after it"),
        (
            lambda x: posterior(x, x, 5, STEPS, to=torch.full((4,), 5)),
            "to must be before t, got a time that is 0 steps",
        ),
    ],
)
def test_times_that_are_none_are_named(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(images())


def test_times_are_integers():
    with pytest.raises(TypeError, match=r"t must hold one integer for each example, .* use t.long\(\)"):
        diffuse(images(), torch.rand(4), images(), STEPS)
