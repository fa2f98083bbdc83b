"""Diffusion models: what they refuse, their samplers, and what averages and lower precision leave alone."""

import math

import pytest
import torch
from torch import nn

from lemmata import fit
from lemmata.generative.diffusion.ddpm import DDPM
from lemmata.generative.diffusion.ddpm_networks import ImageDDPM, PointDDPM
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLP
from lemmata.generative.diffusion.denoiser_unet import DenoiserUNet
from lemmata.generative.diffusion.flow_ode import flow_log_prob, probability_flow
from lemmata.generative.diffusion.noise_schedule import CosineSchedule, LinearSchedule
from lemmata.generative.diffusion.reverse_time import descending_times, forward_sde, reverse_sde
from lemmata.generative.diffusion.score_matching import NoiseLevelScore, noise_ladder
from lemmata.optim import PolyakAverage


class Perfect(nn.Module):
    """The expected noise in states of normal data; no parameters."""

    def __init__(self, schedule, variance):
        super().__init__()
        self.schedule, self.variance = schedule, variance

    def forward(self, x, time):
        signal = self.schedule.signal(time.double())[:, None].to(x)
        return (1 - signal).sqrt() * x / (signal * self.variance + 1 - signal)


def perfect(variance=0.25, steps=200, **named):
    return DDPM(Perfect(LinearSchedule(), variance), (1,), noising_steps=steps, noise_schedule="linear", **named)


def seeded():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize(("sampler", "steps"), [("ancestral", None), ("ddim", 50), ("ode", 20)])
def test_samplers_find_the_variance_of_normal_data(sampler, steps):
    drawn = perfect().sample(4000, generator=seeded(), sampler=sampler, steps=steps)
    assert float(drawn.var()) == pytest.approx(0.25, rel=0.15)
    again = perfect().sample(4000, generator=seeded(), sampler=sampler, steps=steps)
    assert torch.equal(drawn, again)


def test_log_densities_and_ways_back():
    x = torch.linspace(-1, 1, 7).double()[:, None]
    exact = -(x[:, 0] ** 2 / 0.25 + math.log(2 * math.pi * 0.25)) / 2
    assert torch.allclose(perfect().log_prob(x, steps=60), exact, atol=0.05)
    model = perfect()
    assert torch.allclose(model.decode(model.encode(x, steps=60), steps=60), x, atol=2e-3)
    assert torch.allclose(model.encode(x, steps=60), x / 0.5, atol=0.02)


def test_the_bound_is_below_the_log_density():
    x = 0.5 * torch.randn(400, 1, generator=seeded()).double()
    exact = float((-(x[:, 0] ** 2 / 0.25 + math.log(2 * math.pi * 0.25)) / 2).mean())
    found = perfect(steps=50).elbo(x, samples=2, generator=seeded())
    assert found.shape == (400,)
    assert exact - 1.2 < float(found.mean()) < exact + 0.05


@pytest.mark.parametrize("target", ["data", "velocity"])
def test_noise_and_score_from_every_target(target):
    linear, x, time = LinearSchedule(), torch.randn(50, 1).double(), torch.full((50,), 0.3).double()
    signal = linear.signal(time)[:, None]

    class Asked(Perfect):
        def forward(self, x, time):
            noise = super().forward(x, time)
            data = (x - (1 - signal).sqrt() * noise) / signal.sqrt()
            return data if target == "data" else signal.sqrt() * noise - (1 - signal).sqrt() * data

    model = DDPM(Asked(linear, 0.25), (1,), noising_steps=10, schedule=linear, target=target)
    assert torch.allclose(model.noise(x, time), Perfect(linear, 0.25)(x, time))
    assert torch.allclose(model.score(x, time), -x / (signal * 0.25 + 1 - signal))


def test_the_schedule_is_no_state():
    model = PointDDPM(2, widths=(8,), noising_steps=10)
    before = model.steps.signal.clone()
    assert not list(model.buffers())
    average = PolyakAverage(model.parameters(), ema_decay=0.9)
    average.update()
    average.copy_to_parameters()
    assert torch.equal(model.to(torch.bfloat16).steps.signal, before)
    drawn = model.sample(4)
    assert drawn.dtype == torch.float32
    assert bool(drawn.isfinite().all())


def test_learning_lowers_the_loss():
    model, x = PointDDPM(2, widths=(16,), noising_steps=20), 0.1 * torch.randn(256, 2)
    before = model.loss(x, generator=seeded()).item()
    fit(model, x, epochs=5, batch_size=32, lr=1e-2, device="cpu", progress=False)
    assert model.loss(x, generator=seeded()).item() < 0.8 * before


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: DDPM(nn.Linear(2, 2), (2,), target="score"), ValueError, "target must be one of"),
        (lambda: DDPM(nn.Linear(2, 2), (2,), noise_schedule="sine"), ValueError, "noise_schedule must be one of"),
        (lambda: perfect().loss(torch.zeros(3, 2)), ValueError, r"x must be \(batch, 1\), got \(3, 2\)"),
        (lambda: perfect().sample(2, sampler="euler"), ValueError, "sampler must be one of"),
        (lambda: perfect().sample(0), ValueError, "n must be >= 1"),
        (lambda: ImageDDPM(1, 9, 9).log_prob(torch.zeros(1, 1, 9, 9)), ValueError, "use elbo"),
        (lambda: DenoiserUNet(widths=(6,)), ValueError, "widths must be even multiples of groups=8, got 6"),
        (lambda: DenoiserUNet(patch=2)(torch.zeros(1, 1, 5, 4), torch.zeros(1)), ValueError, "multiples of patch=2"),
        (lambda: DenoiserMLP(2, time_width=3), ValueError, "time_width must be even"),
        (lambda: NoiseLevelScore(nn.Identity(), (2,), (1.0, 2.0)), ValueError, "levels must be two or more and fall"),
        (lambda: noise_ladder(1.0, 0.5, 3), ValueError, "largest must be > 1"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_denoiser_of_another_shape_and_one_that_diverged_are_refused():
    class Narrow(nn.Module):
        def forward(self, x, time):
            return x[:, :1]

    class Endless(nn.Module):
        def forward(self, x, time):
            return x / 0

    with pytest.raises(ValueError, match="denoiser must answer with the shape of its input"):
        DDPM(Narrow(), (2,)).loss(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="finite numbers"):
        DDPM(Endless(), (2,), noising_steps=3).sample(2)


@pytest.mark.parametrize("sides", [(8, 8), (7, 5), (1, 3), (28, 27)])
def test_images_of_any_size(sides):
    network = DenoiserUNet(1, widths=(8, 16), groups=4)
    assert torch.equal(network(torch.randn(2, 1, *sides), torch.rand(2)), torch.zeros(2, 1, *sides))  # at first
    assert not any(isinstance(part, nn.BatchNorm2d) for part in network.modules())


def test_sizes_of_the_usual_networks():
    sizes = [
        sum(p.numel() for p in DenoiserUNet(1, widths, blocks, device="meta").parameters())
        for widths, blocks in (((16, 32), 1), ((48, 96, 192), 2))
    ]
    assert 0.15e6 < sizes[0] < 0.25e6
    assert 5e6 < sizes[1] < 10e6


# --- Continuous time ---


def test_heuns_steps_are_of_second_order():
    schedule, gaps = CosineSchedule(), []
    noise = Perfect(schedule, 4.0)
    for count in (20, 40, 80):
        times = descending_times(schedule, count)
        signal = schedule.signal(times[[0, -1]])
        variance = signal * 4 + 1 - signal
        found = probability_flow(noise, torch.ones(1, 1).double(), schedule, times)
        gaps.append(abs(float(found) - float((variance[1] / variance[0]).sqrt())))
    assert gaps[0] / gaps[1] > 3.5
    assert gaps[1] / gaps[2] > 3.5


def test_the_density_of_the_flow_integrates_to_one():
    schedule = LinearSchedule()
    x = torch.linspace(-4, 4, 161).double()[:, None]
    times = descending_times(schedule, 60).flip(0)
    found = flow_log_prob(Perfect(schedule, 0.5), x, schedule, times).exp().sum() * 0.05
    assert float(found) == pytest.approx(1.0, abs=0.02)


def test_times_are_those_asked_for():
    for schedule in (LinearSchedule(), CosineSchedule()):
        times = descending_times(schedule, 10, noisiest=-5.0, cleanest=5.0)
        assert torch.allclose(schedule.log_snr(times), torch.linspace(-5, 5, 11).double(), atol=1e-6)
    assert float(descending_times(LinearSchedule(), 3, noisiest=-99.0)[0]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="cleanest must be above noisiest"):
        descending_times(LinearSchedule(), 3, noisiest=1.0, cleanest=0.0)


def test_times_that_run_the_wrong_way_are_refused():
    x, schedule = torch.zeros(1, 1), LinearSchedule()
    with pytest.raises(ValueError, match="times must rise from 0 to 1"):
        forward_sde(x, schedule, torch.tensor([0.5, 0.2]))
    with pytest.raises(ValueError, match="times must fall from 1 to 0"):
        reverse_sde(lambda x, time: x, x, schedule, torch.tensor([0.2, 0.5]))
    with pytest.raises(ValueError, match="times must be two or more above 0"):
        probability_flow(lambda x, time: x, x, schedule, torch.tensor([0.5, 0.0]))


# --- Noise levels ---


def test_annealed_langevin_finds_normal_data():
    class Exact(nn.Module):
        def forward(self, x, time):
            sigma = torch.tensor(model.levels)[((1 - time) * 9).round().long()][:, None]
            return x * (1 + sigma**2).sqrt() * sigma / (0.25 + sigma**2)

    model = NoiseLevelScore(Exact(), (1,), noise_ladder(0.02, 3.0, 10))
    assert float(model.sample(4000, generator=seeded(), steps=60).var()) == pytest.approx(0.25, rel=0.2)
    assert model(torch.ones(1, 1), torch.tensor([9])).item() == pytest.approx(-1 / (0.25 + 0.02**2), rel=1e-4)
    best = sum(0.25 / (0.25 + s**2) for s in model.levels) / 10  # what remains of the noise when the state is known
    assert model.loss(0.5 * torch.randn(20_000, 1), generator=seeded()).item() == pytest.approx(best, rel=0.05)
