"""Diffusion in continuous time: its law forwards, and that it can be run backwards; all on laws known exactly."""

import math

import torch
from scipy.integrate import quad, solve_ivp

from lemmata.generative.diffusion.noise_schedule import CosineSchedule, DiffusionSteps, LinearSchedule
from lemmata.generative.diffusion.reverse_time import descending_times, forward_sde, reverse_sde
from lemmata.judge import ALPHA, all_of, claim, close, law_is, lie, mean_is, slope_is


def decay_and_variance(clock, drift, noise):
    """Of the linear equation dx = -drift x dB + sqrt(noise) dw, after the clock has gone from 0 to B."""
    return math.exp(-drift * clock), noise * -math.expm1(-2 * drift * clock) / (2 * drift)


@claim("diffusion.sde_forward")
@lie("the drift without its factor 1/2: a unit variance is lost", drift=1.0)
@lie("the noise of Langevin dynamics, twice the variance", noise=2.0)
def the_limit_of_small_noising_steps(draw, drift=0.5, noise=1.0):
    """The schedules' clocks by quadrature, the limit of a discrete chain, and paths, against the linear equation."""
    checks = []
    for schedule, end in ((LinearSchedule(), 0.6), (CosineSchedule(), 0.9)):
        found = schedule.log_signal(torch.tensor([end / 3, end]).double())
        clock = [quad(lambda u, s=schedule: float(s.rate(torch.tensor(u).double())), 0, u)[0] for u in (end / 3, end)]
        checks.append(
            close(-found, torch.tensor(clock).double(), within=1e-6, detail="B, and the integral of its rate")
        )
        mean, variance = decay_and_variance(clock[-1], drift, noise)
        counts, gaps = [100, 200, 400, 800], []
        for T in counts:
            middles = end * (torch.arange(T).double() + 0.5) / T
            left = DiffusionSteps.from_rates(schedule.rate(middles) * end / T).signal[-1]
            gaps.append((left.sqrt() - mean).abs() + (1 - left - variance).abs())
        checks.append(slope_is(counts, torch.stack(gaps), -1.0, within=0.2))
    x0, end = 1.5, 0.45
    mean, variance = decay_and_variance(-float(LinearSchedule().log_signal(torch.tensor(end).double())), drift, noise)

    def paths(n):
        return forward_sde(
            torch.full((n,), x0).double(),
            LinearSchedule(),
            torch.linspace(0, end, 201).double(),
            generator=draw.generator,
        )

    return all_of(
        *checks,
        mean_is(lambda x: x, paths, mean * x0, effect=0.05, alpha=ALPHA / 2),
        mean_is(torch.square, paths, (mean * x0) ** 2 + variance, effect=0.06, alpha=ALPHA / 2),
    )


class Bumps:
    """Data on the line from a mixture of two normal laws, and what is known of them at any time."""

    def __init__(self, schedule, weight, means, spreads):
        self.schedule, self.weights = schedule, torch.tensor([weight, 1 - weight]).double()
        self.means, self.spreads = torch.tensor(means).double(), torch.tensor(spreads).double()

    def parts(self, time):
        """Mean and variance of both at one time."""
        signal = float(self.schedule.signal(time.double().flatten()[0]))
        return math.sqrt(signal) * self.means, signal * self.spreads**2 + 1 - signal

    def draws(self, n, time, generator):
        mean, variance = self.parts(time)
        which = (torch.rand(n, generator=generator, dtype=torch.float64) > self.weights[0]).long()
        return mean[which] + variance.sqrt()[which] * torch.randn(n, generator=generator, dtype=torch.float64)

    def score(self, x, time):
        mean, variance = self.parts(time)
        apart = (mean - x[:, None]) / variance  # (points, 2)
        logs = self.weights.log() - variance.log() / 2 - apart.square() * variance / 2
        return (logs.softmax(1) * apart).sum(1)

    def distribution(self, x, time):
        mean, variance = self.parts(time)
        return torch.special.ndtr((x[:, None] - mean) / variance.sqrt()) @ self.weights


def carried_through(data, times):
    """What becomes of a distance at the first time until the last, by the linear equation of the means."""
    signal = data.schedule.signal(times[[0, -1]]).log().neg().tolist()  # the clock at both

    def slope(clock, distance):
        signal = math.exp(-clock)
        return -(0.5 - 1 / (signal * float(data.spreads[0]) ** 2 + 1 - signal)) * distance

    return float(solve_ivp(slope, signal, [1.0], rtol=1e-10, atol=1e-12).y[0, -1])


@claim("diffusion.sde_reverse")
@lie("half the score, as in the flow without noise", pull=0.5)
@lie("the signs of the printed drift with a step above zero", sign=-1.0)
def the_same_marginals_backwards(draw, pull=1.0, sign=1.0, walk=reverse_sde):
    """Two mixtures, from the law at one time to that at two others; and how a normal law is drawn together."""

    def drawn_back(data, times):
        """The step is x / 2 plus what it is given; a lie's score makes it another drift."""
        score = lambda x, time: sign * (x / 2 + pull * data.score(x, time)) - x / 2  # noqa: E731
        return lambda x, generator: walk(score, x, data.schedule, times, generator=generator)

    checks = []
    far = Bumps(CosineSchedule(), 0.3, [-1.5, 1.0], [0.2, 0.4])
    near = Bumps(LinearSchedule(), 0.6, [-0.4, 2.0], [1.0, 0.3])
    for data, cleanest in ((far, 8.0), (near, 1.0)):
        times = descending_times(data.schedule, 120, cleanest=cleanest)
        back = drawn_back(data, times)
        sample = lambda n, d=data, b=back, t=times: b(d.draws(n, t[0], draw.generator), draw.generator)  # noqa: E731
        checks.append(law_is(sample, lambda x, d=data, t=times: d.distribution(x, t[-1]), effect=0.04, alpha=ALPHA / 2))
    normal, counts, gaps = Bumps(LinearSchedule(), 1.0 - 1e-300, [0.0, 0.0], [0.5, 0.5]), [200, 400, 800, 1600], []
    for count in counts:
        times = descending_times(normal.schedule, count, noisiest=-5.0, cleanest=5.0)
        seed = draw.seed
        ends = drawn_back(normal, times)(torch.tensor([0.0]).double(), torch.Generator().manual_seed(seed))
        moved = drawn_back(normal, times)(torch.tensor([1.0]).double(), torch.Generator().manual_seed(seed))
        gaps.append((moved - ends - carried_through(normal, times)).abs()[0])
    return all_of(*checks, slope_is(counts, torch.stack(gaps), -1.0, within=0.1))
