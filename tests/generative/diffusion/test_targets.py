"""Noise, data and velocity: each gives the others, in every dtype; bounds, and bad input."""

import pytest
import torch

from lemmata.generative.diffusion.forward_process import diffuse
from lemmata.generative.diffusion.noise_schedule import LinearSchedule
from lemmata.generative.diffusion.targets import TARGETS, estimate, training_target

STEPS = LinearSchedule().steps(50)


def pair(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 3, 4, generator=generator, dtype=dtype)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", [1, 25, 50, torch.tensor([1, 20, 50])])
def test_a_perfect_answer_gives_data_and_noise_back(target, t):
    x0, noise = pair()
    x_t, answer = diffuse(x0, t, noise, STEPS), training_target(x0, noise, t, STEPS, target)
    found = estimate(answer, x_t, t, STEPS, target)
    assert torch.allclose(found.data, x0, atol=1e-9)
    assert torch.allclose(found.noise, noise, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_answers_keep_their_dtype(target, dtype):
    x0, noise = pair(dtype)
    answer = training_target(x0, noise, torch.tensor([1, 2, 3]), STEPS, target)
    found = estimate(answer, x0, 20, STEPS, target)
    assert {answer.dtype, found.data.dtype, found.noise.dtype} == {dtype}


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_clipped_still_makes_up_the_state(target):
    x_t, answer = pair()
    data, noise = estimate(answer, x_t, 30, STEPS, target, bounds=(-0.5, 0.5))
    assert float(data.abs().max()) == 0.5
    assert torch.allclose(diffuse(data, 30, noise, STEPS), x_t)


def test_velocity_is_the_turned_pair():
    """State and velocity are data and noise, turned by one angle: lengths stay."""
    x0, noise = pair()
    state, velocity = diffuse(x0, 20, noise, STEPS), training_target(x0, noise, 20, STEPS, "velocity")
    assert torch.allclose(state**2 + velocity**2, x0**2 + noise**2)


def test_diffusers_has_the_same_velocity():
    diffusers = pytest.importorskip("diffusers")
    theirs, steps = diffusers.DDPMScheduler(1000), LinearSchedule().steps(1000)
    theirs.alphas_cumprod = steps.signal[1:]
    (x0, noise), t = pair(), torch.tensor([1, 300, 1000])
    ours = training_target(x0, noise, t, steps, "velocity")
    assert torch.allclose(ours, theirs.get_velocity(x0, noise, t - 1), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda x: training_target(x, x, 1, STEPS, "epsilon"),
            "target must be one of noise, data, velocity, got 'epsilon'",
        ),
        (lambda x: estimate(x, x, 1, STEPS, "x0"), "target must be one of noise, data, velocity, got 'x0'"),
        (lambda x: estimate(x[:, :2], x, 1, STEPS), r"answer must have the shape of x_t, \(3, 4\), got \(3, 2\)"),
        (lambda x: estimate(x, x, 0, STEPS), "t must be >= 1, got 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(pair()[0])
