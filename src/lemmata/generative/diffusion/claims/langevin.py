"""Langevin sampling without adjustment: the law of its chains step by step, its limit, its bias, and where it fails."""

import math

import sympy
import torch

from lemmata.generative.diffusion.langevin import langevin_samples, score_of
from lemmata.judge import all_of, always, claim, close, law_is, lie, mean_is, slope_is, symbolic

LINE = torch.linspace(
    -6, 6, 601, dtype=torch.float64
)  # wide enough for all that is started on it, fine enough for all steps


def two_humps(x):
    """An unequal mixture of two Gaussians; its score is Lipschitz and points back from far out."""
    x = x[:, 0]
    return torch.logaddexp(math.log(0.6) - 2 * (x + 0.8) ** 2, math.log(0.4) - 2 * (x - 0.9) ** 2)


def quartic(x):
    """Lighter tails than every Gaussian: a score that grows faster than any line."""
    return -(x[:, 0] ** 4)


def on_the_line(log_density):
    weight = (log_density(LINE[:, None]) - log_density(LINE[:, None]).max()).exp()
    return weight / weight.sum()


def transition(log_density, step, noise, drift):
    """From each point of the line to each other, by the density of a normal step; rows sum to 1."""
    mean = LINE + drift * step * score_of(log_density)(LINE[:, None])[:, 0].detach()
    return (-((LINE - mean[:, None]) ** 2) / (2 * noise * step)).softmax(1)


def law_after(kernel, steps, start):
    """The law of chains that begin at one point, by powers of the transition."""
    law = torch.zeros_like(LINE)
    law[(LINE - start).abs().argmin()] = 1.0
    for _ in range(steps):
        law = law @ kernel
    return law


def after_very_many(kernel):
    """The laws from every start, after 8,192 steps."""
    for _ in range(13):
        kernel = kernel @ kernel
        kernel = kernel / kernel.sum(1, keepdim=True)
    return kernel


def distance(one, other):
    return 0.5 * (one - other).abs().sum()


@claim("langevin.ula")
@lie("noise of half the variance", noise=1.0)
@lie("half the drift", drift=0.5)
@lie("from any initial law, whatever the score", density=quartic)
@lie("the bias falls with the square of the step", order=2.0)
def small_steps_and_many(draw, noise=2.0, drift=1.0, order=1.0, density=two_humps, sampler=langevin_samples):
    """Chains from both ends against the law that integrals give; how far it stays from the density; and a leap."""
    score, truth, evidence = score_of(density), on_the_line(density), []
    for start, steps in ((-5.0, 3), (5.0, 12)):
        predicted = law_after(transition(density, 0.1, noise, drift), steps, start).cumsum(0)
        begin = torch.tensor([[start]]).double()
        evidence.append(
            law_is(
                lambda n, x=begin, k=steps: sampler(score, x.repeat(n, 1), 0.1, k, generator=draw.generator)[:, 0],
                lambda x, law=predicted: interpolated(law, x),
                effect=0.02,
                alpha=1e-9 / 2,
            )
        )
    steps = torch.tensor([0.02, 0.01, 0.005]).double()
    laws = [after_very_many(transition(density, float(each), noise, drift)) for each in steps]
    evidence.append(close(laws[0][0], laws[0][-1], within=1e-9, detail="laws from either end, in the long run"))
    evidence.append(slope_is(steps, torch.stack([distance(law[150], truth) for law in laws]), order, within=0.015))
    leaps = [sampler(score_of(quartic), torch.full((20, 1), 5 / e**0.5).double(), e, 60) for e in (0.1, 0.01, 1e-4)]
    return all_of(*evidence, always(~torch.stack(leaps).isfinite(), detail="lighter tails: chains that explode"))


def interpolated(law, x):
    """The distribution function between the points of the line, whose masses belong to cells around them."""
    place = ((x - LINE[0]) / (LINE[1] - LINE[0]) + 0.5).clamp(0, len(LINE) - 1)
    low = place.floor().clamp(max=len(LINE) - 2).long()
    before = torch.cat([law.new_zeros(1), law])
    return before[low] + (place - low) * (before[low + 1] - before[low])


@claim("langevin.ula_bias")
@lie("no bias at any step", half=0.0)
@lie("the bias of half the step", half=0.25)
@lie("a start is forgotten twice as fast", rate=2.0)
@lie("stable up to a step of 1", limit=1.0)
@lie("stable up to a step of 4", limit=4.0)
def the_variance_of_a_chain(draw, half=0.5, rate=1.0, limit=2.0, sampler=langevin_samples):
    """A standard normal: what one step makes of a start; its fixed point; chains from zero; both sides of the limit."""
    v, e = sympy.symbols("v e", positive=True)
    (fixed,) = sympy.solve(sympy.Eq(v, (1 - e) ** 2 * v + 2 * e), v)
    settled, steps = [], torch.tensor([0.05, 0.3, 1.0, 1.7]).double()
    for step, many in zip(steps.tolist(), (90, 20, 2, 20), strict=True):  # until zero is forgotten to one part in 1,000
        settled.append(
            mean_is(
                lambda x: x.square(),
                lambda n, s=step, k=many: chains(sampler, torch.zeros(n), s, k, draw.generator),
                1 / (1 - half * step),
                effect=0.06 / (1 - half * step),
                alpha=1e-9 / 4,
            )
        )
    seeds = [torch.Generator().manual_seed(draw.seed) for _ in range(8)]
    moved = [chains(sampler, torch.ones(9), float(s), 1, g) for s, g in zip(steps, seeds[:4], strict=True)]
    resting = [chains(sampler, torch.zeros(9), float(s), 1, g) for s, g in zip(steps, seeds[4:], strict=True)]
    below, above = (chains(sampler, torch.zeros(99), c * limit, 2000, draw.generator).abs().max() for c in (0.98, 1.02))
    return all_of(
        symbolic(fixed, 1 / (1 - sympy.nsimplify(half) * e)),
        close(torch.stack(moved) - torch.stack(resting), (1 - rate * steps)[:, None].expand(4, 9), ulps=1000),
        always([bool(below < 100), bool(above > 1e6)], detail="bounded below the limit, and not above"),
        *settled,
    )


def chains(sampler, start, step, steps, generator):
    return sampler(lambda x: -x, start.double()[:, None], step, steps, generator=generator)[:, 0]
