"""The forward process in closed form: its law, its schedules, and what is known of the step before."""

import math
from fractions import Fraction

import torch

from lemmata.generative.diffusion.ancestral import reverse_kernel
from lemmata.generative.diffusion.claims.gaussian_data import random_steps, signal_of
from lemmata.generative.diffusion.forward_process import diffuse, posterior
from lemmata.generative.diffusion.noise_schedule import CosineSchedule, DiffusionSteps, LinearSchedule
from lemmata.generative.diffusion.targets import estimate
from lemmata.judge import all_of, always, at_least, at_most, claim, close, law_is, lie, mean_is

ONE = torch.ones(1, 1, dtype=torch.float64)


def factors(process, steps, t, since):
    """What a step does to its state and to its noise: both enter linearly."""
    return process(ONE, t, 0 * ONE, steps, since)[0, 0], process(0 * ONE, t, ONE, steps, since)[0, 0]


def standard_normal(draw, *shape):
    return torch.randn(shape, generator=draw.generator, dtype=torch.float64)


@claim("ddpm.forward")
@lie("the state is multiplied by 1 - beta, without the root", power=1.0)
@lie("the noise is multiplied by beta, without the root", root=1.0)
def one_step_of_noise(draw, power=0.5, root=0.5, process=diffuse):
    """Fifty steps of one number: the factors of each, the law at the end, and rates from tiny to nearly 1."""
    steps, rates = random_steps(draw, 50, least=1e-3, most=0.1)
    extreme = DiffusionSteps.from_rates([1e-8, 0.5, 1 - 1e-8])
    found = [factors(process, which, t, t - 1) for which in (steps, extreme) for t in range(1, len(which) + 1)]
    kept, added = (torch.stack(each) for each in zip(*found, strict=True))
    all_rates = torch.cat([rates, torch.tensor([1e-8, 0.5, 1 - 1e-8], dtype=torch.float64)])
    data = float(draw.uniform(1, low=2.0, high=3.0))
    mean = data * float((1 - rates).prod()) ** power

    def after_fifty(count):
        x = torch.full((count, 1), data, dtype=torch.float64)
        for t in range(1, 51):
            x = process(x, t, standard_normal(draw, count, 1), steps, t - 1)
        return x[:, 0]

    spread = (1 - float((1 - rates).prod())) ** 0.5
    return all_of(
        close(kept, (1 - all_rates) ** power, ulps=1e4),
        close(added, all_rates**root, ulps=1e4),
        law_is(after_fifty, lambda x: torch.special.ndtr((x - mean) / spread), effect=0.02),
    )


@claim("ddpm.energy")
@lie("conserved whatever it is at first", initial=2.0)
@lie("the noise has the energy of one number, whatever the dimension", trace=1.0)
@lie("what is kept of the energy is the root of 1 - beta", power=0.5)
def energy_of_a_step(draw, initial=1.0, trace=6.0, power=1.0, process=diffuse):
    """The mean square after a step from a point in six dimensions, and that of a law after each of forty steps."""
    steps, rates = random_steps(draw, 40, least=1e-2, most=0.5)
    t = int(rates.argmax()) + 1
    rate, x = float(rates[t - 1]), 2 * draw.unit(6)
    share = (1 - rate) ** power

    def stepped(count):
        return process(x.expand(count, 6), t, standard_normal(draw, count, 6), steps, t - 1)

    energies = [torch.tensor(6 * initial, dtype=torch.float64)]
    for t_ in range(1, 41):
        kept, added = factors(process, steps, t_, t_ - 1)
        energies.append(kept**2 * energies[-1] + added**2 * 6)
    return all_of(
        mean_is(lambda x: x.square().sum(1), stepped, share * 4 + rate * trace, effect=0.03),
        close(torch.stack(energies), 6.0 * initial),
    )


def with_the_data(x):
    return x


def without_the_data(x):
    return torch.ones_like(x)


def of_all_steps(rates, t):
    return (1 - rates[:t]).prod()


def of_the_last_step(rates, t):
    return 1 - rates[t - 1]


@claim("ddpm.closed_form")
@lie("the mean is without the data", printed="000/1", carried=without_the_data)
@lie("what the last step keeps, in place of the product of all", product=of_the_last_step)
@lie("the product in place of its root", power=1.0)
def many_steps_at_once(draw, carried=with_the_data, product=of_all_steps, power=0.5, process=diffuse):
    """Chains of 1 to 1,000 steps with rates of all sizes: the law of each time against a chain walked step by step."""
    evidence = []
    for count, most in ((1, 0.9), (3, 0.99), (40, 0.3), (1000, 0.02)):
        steps, rates = random_steps(draw, count, least=1e-5, most=most)
        times = sorted({1, (count + 1) // 2, count} | ({2} if count > 1 else set()))
        walked, mean, variance = {}, torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for t, rate in enumerate(rates, start=1):
            mean, variance = (1 - rate).sqrt() * mean, (1 - rate) * variance + rate
            walked[t] = torch.stack([mean, variance])
        x0, noise = 3 * draw.signs(len(times), 4) + draw.normal(len(times), 4), draw.normal(len(times), 4)
        found = process(x0, torch.tensor(times), noise, steps)
        left = torch.stack([product(rates, t) for t in times])
        stated = (left**power)[:, None] * carried(x0) + (1 - left).sqrt()[:, None] * noise
        once = torch.stack(
            [torch.stack([kept, added**2]) for kept, added in (factors(process, steps, t, 0) for t in times)]
        )
        evidence += [close(found, stated, ulps=1e5), close(once, torch.stack([walked[t] for t in times]), ulps=1e5)]
    return all_of(*evidence)


def forgotten(steps, x0=3.0):
    """The divergence of the last state from pure noise, for one number of this size."""
    signal = steps.signal[-1]
    return (signal * (x0**2 - 1) - torch.log1p(-signal)) / 2


@claim("ddpm.schedule")
@lie("rates in (0, 1) suffice, also if their sum is finite", power=2.0)
@lie("what is left falls with the sum of the rates, twice as fast", speed=2.0)
def what_is_left_in_the_end(draw, power=1.0, speed=1.0, linear=LinearSchedule, cosine=CosineSchedule):
    """Rates 1/(t+1), whose sum is infinite; the usual schedules in few and many steps; both bounds by the sum."""
    count = 3000
    harmonic = DiffusionSteps.from_rates(torch.arange(2, count + 2, dtype=torch.float64) ** -power)
    usual = [which.steps(T) for T in (1000, 250, 20) for which in (linear(), cosine(), linear(0.02, 0.02))]
    bounded, sums = [], []
    for _ in range(4):
        steps, rates = random_steps(draw, 30, least=1e-3, most=0.3)
        bounded.append(-steps.signal.log()[1:])
        sums.append(torch.stack([rates.cumsum(0), (rates / (1 - rates)).cumsum(0)]))
    lost, (low, high) = torch.cat(bounded), torch.cat(sums, dim=1)
    summable = DiffusionSteps.from_rates(0.5 ** torch.arange(2.0, 60.0, dtype=torch.float64))
    return all_of(
        close(harmonic.signal[1:], 1 / torch.arange(2, count + 2, dtype=torch.float64), ulps=1e5),
        at_most(torch.stack([forgotten(steps) for steps in usual]), 0.01),
        close(usual[0].signal[-1], 4.0358e-5, within=1e-9),
        at_least(lost, speed * low),
        at_most(lost, high),
        at_least(summable.signal, 0.5),
    )


def in_this_order(small, large):
    return small, large


def the_other_way_round(small, large):
    return large, small


@claim("ddpm.sigma_choice")
@lie("the posterior's variance is the larger one", ordered=the_other_way_round)
@lie("beta is right for wide data too", wide=2.0)
@lie("the posterior's variance is right for data that vary", narrow=0.5)
def variances_of_a_step_back(draw, ordered=in_this_order, wide=1.0, narrow=0.0, kernel=reverse_kernel):
    """Steps of all sizes: what a normal law of the data makes of the step before, and the two fixed choices."""
    steps, rates = random_steps(draw, 25, least=1e-6, most=0.95)
    signal, x = signal_of(rates), ONE

    def chosen(which):
        return torch.stack([kernel(lambda x, t: 0 * x, x, t, steps, variance=which).variance for t in range(2, 26)])

    def exact(spread):
        before = signal[1:-1] * spread**2 + 1 - signal[1:-1]  # of the state at t - 1
        return rates[1:] * before / ((1 - rates[1:]) * before + rates[1:])

    small, large = chosen("small"), chosen("large")
    low, high = ordered(small, large)
    between = torch.stack([exact(spread) for spread in (0.1, 0.5, 0.9)])
    return all_of(
        close(large, exact(wide), ulps=1e6, scale=rates[1:]),
        close(small, exact(narrow), ulps=1e6, scale=rates[1:]),
        at_most(low, high),
        at_least(low, 0.0),
        always([bool((between > small).all()), bool((between < large).all())]),
    )


def conditioned(rates, t, s, x0, x_t):
    """Mean and variance of the state at s given that at t and the data, by conditioning a normal law in fractions.

    The only numbers that are not rational are roots, taken at the end of products of rationals.
    """
    left = [Fraction(1)]
    for rate in rates.tolist():
        left.append(left[-1] * (1 - Fraction(rate)))
    between = left[t] / left[s]
    gain = (1 - left[s]) / (1 - left[t])  # of the root of `between`
    mean = math.sqrt(left[s]) * float(1 - between * gain) * x0 + math.sqrt(between) * float(gain) * x_t
    return mean, float((1 - left[s]) * (1 - between * gain))


def posterior_rate(rate, smaller):
    return rate


def posterior_variance(rate, smaller):
    return smaller


def with_parentheses(signal, rate):
    return (1 - signal) * rate


def without_parentheses(signal, rate):
    return 1 - signal * rate


@claim("ddpm.posterior")
@lie("the factor of the data has the posterior's variance for beta", printed="000/1", rate_of=posterior_variance)
@lie("the root covers beta as well", printed="001/2", root=0.5)
@lie("the parentheses around 1 - alpha-bar are missing", printed="001/3", over=without_parentheses)
def the_step_before(draw, rate_of=posterior_rate, root=1.0, over=with_parentheses, of=posterior):
    """Rates from a millionth to 0.9: mean and variance against a normal law conditioned in exact fractions."""
    steps, rates = random_steps(draw, 24, least=1e-6, most=0.9)
    signal, noise = signal_of(rates), steps.noise
    evidence, stated, wanted = [], [], []
    for t in (2, 3, 9, 24):
        x0, x_t, rate = draw.normal(1, 3) + 2, draw.normal(1, 3) - 2, rates[t - 1]
        mean, variance = conditioned(rates, t, t - 1, x0, x_t)
        found = of(x_t, x0, t, steps)
        smaller = noise[t - 1] / noise[t] * rate
        printed = (signal[t - 1].sqrt() * rate_of(rate, smaller) ** root / noise[t]) * x0
        printed = printed + noise[t - 1] * (1 - rate).sqrt() / noise[t] * x_t
        stated += [*printed[0], over(signal[t - 1], rate) / noise[t]]
        wanted += [*mean[0], torch.tensor(variance, dtype=torch.float64)]
        evidence.append(
            close(torch.cat([found.mean[0], found.variance.reshape(1)]), torch.stack(wanted[-4:]), ulps=1e4)
        )
    skipped, alone = of(ONE, 2 * ONE, 20, steps, to=4), conditioned(rates, 20, 4, 2 * ONE, ONE)
    return all_of(
        *evidence,
        close(torch.stack(stated), torch.stack(wanted), ulps=1e4),
        close(skipped.mean, alone[0], ulps=1e4),
        close(skipped.variance, alone[1], ulps=1e4),
    )


@claim("ddpm.x0_from_xt")
@lie("the noise is divided by alpha-bar, without the root", printed="000/1", power=1.0)
@lie("the noise is added", sign=1.0)
def data_back_from_a_state(draw, power=0.5, sign=-1.0, of=estimate):
    """States made of known data and noise, at every time of random chains: what is found in them are the data."""
    steps, rates = random_steps(draw, 30, least=1e-3, most=0.3)
    signal, t = signal_of(rates)[1:, None], torch.arange(1, 31)
    x0, noise = draw.normal(30, 4), draw.signs(30, 4) + draw.normal(30, 4) / 10
    x_t = signal.sqrt() * x0 + (1 - signal).sqrt() * noise
    stated = x_t / signal.sqrt() + sign * (1 - signal).sqrt() / signal**power * noise
    tolerance = 1e-12 / signal.min().sqrt()
    return all_of(close(of(noise, x_t, t, steps).data, x0, within=tolerance), close(stated, x0, within=tolerance))


def one_step_kept(rates, signal):
    return 1 - rates


def all_steps_kept(rates, signal):
    return signal


@claim("ddpm.mean_eps")
@lie("divided by the root of alpha-bar", printed="000/1", before=all_steps_kept)
@lie("divided by what is kept, without the root", power=1.0)
def the_mean_by_the_noise(draw, before=one_step_kept, power=0.5, of=posterior, kernel=reverse_kernel):
    """The mean of the step before, from data and from noise: of the posterior, and of the kernel that samples."""
    steps, rates = random_steps(draw, 20, least=1e-3, most=0.4)
    signal = signal_of(rates)
    stated, known, sampled = [], [], []
    for t in range(2, 21):
        x0, noise = draw.normal(1, 4), draw.normal(1, 4)
        x_t = signal[t].sqrt() * x0 + (1 - signal[t]).sqrt() * noise
        rate = rates[t - 1]
        stated.append((x_t - rate / (1 - signal[t]).sqrt() * noise) / before(rate, signal[t]) ** power)
        known.append(of(x_t, x0, t, steps).mean)
        sampled.append(kernel(lambda x, _, noise=noise: noise, x_t, t, steps).mean)
    return all_of(
        close(torch.cat(known), torch.cat(stated), ulps=1e5), close(torch.cat(sampled), torch.cat(stated), ulps=1e5)
    )
