"""Schedules: the classical rates, one law for any number of steps, diffusers' numbers, and what is refused."""

import dataclasses

import pytest
import torch
from torch import nn

from lemmata.generative.diffusion.noise_schedule import CosineSchedule, DiffusionSteps, LinearSchedule, NoiseSchedule

SCHEDULES = (LinearSchedule(), LinearSchedule(1e-3, 0.1), LinearSchedule(0.02, 0.02), CosineSchedule())


def test_a_thousand_linear_steps_have_the_classical_rates_to_the_last_bit():
    rates = LinearSchedule().steps(1000).noise_rates
    assert torch.equal(rates[1:], torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64))


@pytest.mark.parametrize("schedule", SCHEDULES[:3])
def test_the_continuous_law_goes_through_the_classical_steps(schedule):
    walked = NoiseSchedule.steps(schedule, 1000).noise_rates[1:]
    rates = torch.linspace(schedule.first, schedule.last, 1000, dtype=torch.float64)
    assert torch.allclose(walked, rates, rtol=1e-9, atol=0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_is_minus_the_slope_of_the_logarithm(schedule):
    u = torch.linspace(0.001, 0.99, 50, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(schedule.log_signal(u).sum(), u)
    assert torch.allclose(slope, -schedule.rate(u), rtol=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_law_begins_at_data_and_falls_in_float32_too(schedule):
    for dtype in (torch.float32, torch.float64):
        u = torch.linspace(0, 1, 200, dtype=dtype)
        signal = schedule.signal(u)
        assert signal.dtype == dtype
        assert signal[0] == 1
        assert bool((signal.diff() < 0).all())
        assert bool((schedule.log_snr(u[1:]).diff() < 0).all())
        assert torch.allclose(schedule.log_snr(u[5:150]), torch.logit(signal[5:150]), atol=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES[:3])
@pytest.mark.parametrize("count", [1, 2, 13, 200, 3000])
def test_any_number_of_linear_steps_ends_in_the_same_noise(schedule, count):
    steps = schedule.steps(count)
    assert len(steps) == count
    assert torch.allclose(steps.signal[-1], schedule.steps(1000).signal[-1], rtol=1e-8, atol=1e-15)


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_cosine_steps_are_cut_off_below_one(count):
    steps = CosineSchedule(largest=0.9).steps(count)
    assert float(steps.noise_rates.max()) == pytest.approx(0.9)
    assert bool((steps.noise_rates[1:] > 0).all())


def test_the_numbers_are_indexed_by_the_time_and_begin_with_data():
    steps = DiffusionSteps.from_rates([0.1, 0.2, 0.4])
    assert steps.noise_rates.tolist() == [0, 0.1, 0.2, 0.4]
    assert [float(each[0]) for each in (steps.kept, steps.signal)] == [1, 1]
    assert [float(each[0]) for each in (steps.noise, steps.posterior_variance)] == [0, 0]
    assert steps.posterior_variance[1] == 0
    assert float(steps.signal[3]) == pytest.approx(0.9 * 0.8 * 0.6)
    assert torch.allclose(steps.posterior_variance[2:], steps.noise[1:3] / steps.noise[2:] * steps.noise_rates[2:])


def test_little_noise_is_not_lost_beside_one():
    steps = DiffusionSteps.from_rates([1e-18, 1e-18])
    assert steps.noise.tolist() == [0, 1e-18, 2e-18]
    assert steps.posterior_variance.tolist() == [0, 0, 5e-19]


def test_steps_are_float64_whatever_the_rates_are_and_no_state_of_a_module():
    steps = DiffusionSteps.from_rates(torch.tensor([0.5, 0.25], dtype=torch.float32))
    assert {each.dtype for each in vars(steps).values()} == {torch.float64}
    module = nn.Linear(1, 1)
    module.steps = steps
    assert module.half().state_dict().keys() == {"weight", "bias"}
    assert module.steps.signal.dtype == torch.float64
    assert torch.equal(steps.to("cpu").signal, steps.signal)
    with pytest.raises(dataclasses.FrozenInstanceError):
        steps.signal = steps.noise  # type: ignore[misc]


@pytest.mark.parametrize("count", [7, 50, 1000])
def test_diffusers_has_the_same_cosine_steps(count):
    diffusers = pytest.importorskip("diffusers")
    theirs = diffusers.DDPMScheduler(count, beta_schedule="squaredcos_cap_v2")
    ours = CosineSchedule().steps(count)
    assert torch.allclose(ours.noise_rates[1:].float(), theirs.betas, atol=1e-7)
    assert torch.allclose(ours.signal[1:].float(), theirs.alphas_cumprod, rtol=1e-3, atol=1e-6)


def test_diffusers_has_the_same_linear_steps():
    diffusers = pytest.importorskip("diffusers")
    theirs, ours = diffusers.DDPMScheduler(1000), LinearSchedule().steps(1000)
    assert torch.allclose(ours.noise_rates[1:].float(), theirs.betas, rtol=1e-6)
    assert torch.allclose(ours.signal[1:].float(), theirs.alphas_cumprod, rtol=1e-4)
    exact = [float(theirs._get_variance(t - 1)) for t in (2, 500, 1000)]
    assert exact == pytest.approx(ours.posterior_variance[[2, 500, 1000]].tolist(), rel=1e-3)


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ([0.1, 0.0], "noise_rates must be > 0 and < 1, got 0 at t = 2"),
        ([1.0], "noise_rates must be > 0 and < 1, got 1 at t = 1"),
        ([0.1, 0.2, -0.3], "noise_rates must be > 0 and < 1, got -0.3 at t = 3"),
        ([], "noise_rates must not be empty"),
        (torch.ones(1, 1) / 2, "noise_rates must be a tensor with one axis"),
        ([float("nan")], "noise_rates must be finite"),
    ],
)
def test_rates_that_are_none_are_named(rates, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiffusionSteps.from_rates(rates)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LinearSchedule().steps(0), "T must be >= 1, got 0"),
        (lambda: CosineSchedule().steps(-3), "T must be >= 1, got -3"),
        (lambda: LinearSchedule(first=0.0), "first must be > 0 and < 1, got 0.0"),
        (lambda: LinearSchedule(first=0.1, last=0.05), "last must be >= 0.1 and <= 0.5, got 0.05"),
        (lambda: LinearSchedule(last=0.9), "last must be >= 0.0001 and <= 0.5, got 0.9"),
        (lambda: CosineSchedule(offset=0.0), "offset must be > 0, got 0.0"),
        (lambda: CosineSchedule(largest=1.0), "largest must be > 0 and < 1, got 1.0"),
    ],
)
def test_schedules_that_cannot_be_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_number_of_steps_is_an_integer():
    with pytest.raises(TypeError, match="T must be an integer, got bool"):
        LinearSchedule().steps(True)
