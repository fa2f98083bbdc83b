"""The reverse process: how normal a step back is, where many lead, the bound, and the sampler as an affine map."""

import torch
from torch.distributions import Normal, kl_divergence

from lemmata.generative.diffusion.ancestral import ancestral_sampling, reverse_kernel
from lemmata.generative.diffusion.chain_bound import diffusion_elbo, noise_error_weights
from lemmata.generative.diffusion.claims.affine_chain import AffineChain
from lemmata.generative.diffusion.claims.gaussian_data import (
    TwoBumps,
    best_noise,
    grid,
    normal_density,
    random_steps,
    signal_of,
)
from lemmata.generative.diffusion.forward_process import posterior
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps, LinearSchedule
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, mean_is


def variation(left, right, width):
    """The total variation distance of two densities on a grid."""
    return float((left - right).abs().sum() * width / 2)


def sampled_back(laws, steps, x, width, kernel):
    """Densities of the chain that samples, from pure noise at T to time 1, where its last draw is."""
    densities = {len(steps): normal_density(x, 0.0, 1.0)}
    for t in range(len(steps), 1, -1):
        mean, variance = kernel(laws.noise, x[:, None], t, steps, variance="large")
        moves = normal_density(x[:, None], mean[:, 0], variance)  # [new, old]
        densities[t - 1] = moves @ densities[t] * width
    return densities


def forwards(model, x, t, steps, variance):
    """The step of the noising chain, in the place of one back."""
    rate = steps.noise_rates[t]
    return (1 - rate).sqrt() * x, rate


@claim("diffusion.chain")
@lie("the chain back begins with the law of index 0", printed="001/1", beginning=min)
@lie("few large steps", count=4, regime="the error falls with the number of steps, and 50 are nearly as good as 100")
@lie("forward kernels applied backwards restore the data", kernel=forwards)
def from_data_to_noise_and_back(draw, count=100, beginning=max, kernel=reverse_kernel):
    """Two bumps on the line: densities of the chain that samples with the best denoiser, pushed along on a grid."""
    steps, (x, width) = LinearSchedule().steps(count), grid(601, reach=5.0)
    laws = TwoBumps(steps.noise_rates[1:], float(draw.uniform(1, low=0.25, high=0.35)))
    back = sampled_back(laws, steps, x, width, kernel)
    gaps = [variation(back[t], laws.density(x, t), width) for t in back]
    first = back[beginning(back)]
    return all_of(
        at_most(gaps, 0.05),
        at_most(variation(back[1], laws.density(x, 0), width), 0.1),
        at_most(variation(first, normal_density(x, 0.0, 1.0), width), 0.01),
        at_most(variation(laws.density(x, count), normal_density(x, 0.0, 1.0), width), 0.02),
        at_least(variation(laws.density(x, 1), normal_density(x, 0.0, 1.0), width), 0.2),
    )


@claim("ddpm.reverse_model")
@lie("a step back is normal, however large the rate", rate=0.5, regime="what is not normal grows as the rate squared")
@lie("the noise is expected with the sign of the score", sign=-1.0)
def how_normal_a_step_back_is(draw, rate=0.01, sign=1.0, kernel=reverse_kernel):
    """Two bumps, at three states: mean of the kernel, and its divergence from the true law, by sums on a grid."""
    x, width = grid(8001, reach=5.0)
    states = torch.tensor([[0.0], [0.3], [0.7]], dtype=torch.float64)

    def apart(rate):
        rates = torch.tensor([0.02, rate], dtype=torch.float64)
        laws, steps = TwoBumps(rates, spread=0.3**0.5), DiffusionSteps.from_rates(rates)
        mean, largest = kernel(lambda x, t: sign * laws.noise(x, t), states, 2, steps, variance="large")
        true = laws.density(x, 1) * normal_density(states, (1 - rate) ** 0.5 * x, rate)
        true = true / (true.sum(1, keepdim=True) * width)
        centre = (true * x).sum(1, keepdim=True) * width
        spread = (true * (x - centre) ** 2).sum(1, keepdim=True) * width
        fitted = -((x - mean) ** 2 / spread + torch.log(2 * torch.pi * spread)) / 2  # its logarithm
        divergence = (torch.special.xlogy(true, true) - true * fitted).sum(1) * width
        return mean, centre, divergence, spread / largest

    mean, centre, divergence, share = apart(rate)
    smaller = apart(rate / 4)
    return all_of(
        close(mean, centre, within=1e-9),
        at_most(divergence, 1e-3),
        at_most(smaller[2], divergence / 4),
        at_most((1 - smaller[3]).abs(), (1 - share).abs()),
        at_least(apart(0.5)[2].max(), 1e-2),
    )


def random_lines(draw, count=3):
    """A chain of a few steps whose network answers with lines, such that a wrong sum is wrong by a tenth at least."""

    def chain():
        rates = draw.uniform(count, low=0.15, high=0.5)
        return AffineChain(
            rates, float(draw.uniform(1, low=-1.5, high=1.5)), draw.uniform(count), draw.normal(count) / 3
        )

    def told_apart(chain):
        true = chain.sum_of_terms(chain.given_the_later)
        wrong = chain.sum_of_terms(chain.given_the_earlier), chain.sum_of_terms(chain.given_the_later, missing=1)
        return min(abs(true - each) for each in wrong) > 0.1

    return draw.until(chain, told_apart)


@claim("ddpm.elbo")
@lie("the law that is wanted is the forward kernel's", printed="000/1", wanted=AffineChain.given_the_earlier)
@lie("the divergence of the step from T is missing", printed="001/2", missing=1)
@lie("the divergences count twice", weight=2.0)
def terms_of_the_bound(draw, wanted=AffineChain.given_the_later, missing=0, weight=1.0, bound=diffusion_elbo):
    """Networks that are lines: the mean of the bound's draws, the sum of its terms, the ratio of paths, and log p."""
    chain = random_lines(draw)
    terms = chain.sum_of_terms(lambda t: wanted(chain, t), missing, weight)
    direct, steps = chain.direct_bound(), DiffusionSteps.from_rates(chain.rates)

    def draws(count):
        return bound(
            chain.model, torch.full((count, 1), chain.x0, dtype=torch.float64), steps, generator=draw.generator
        )

    others = [random_lines(draw) for _ in range(20)]
    sums = torch.stack([each.sum_of_terms(lambda t, each=each: wanted(each, t), missing) for each in others])
    return all_of(
        close(terms, direct, ulps=1e4),
        mean_is(lambda found: found, lambda count: draws(count).elbo, terms, effect=0.05),
        close(draws(1).prior[0], chain.prior(), ulps=1e4),
        at_most(sums, torch.stack([each.log_likelihood() for each in others])),
    )


@claim("ddpm.simplified_kl")
@lie("divided by the variance, not by twice it", divisor=1.0)
@lie("no constant, whatever the variance", constant=0.0)
@lie("the means differ by a distance, not by its square", power=1.0)
def a_divergence_is_a_squared_error(draw, divisor=2.0, constant=1.0, power=2.0, bound=diffusion_elbo):
    """Two networks, both variances: the bound's divergences at the same states, against torch's of normal laws."""
    steps, rates = random_steps(draw, 6, least=0.05, most=0.5)
    signal, x0, seed = signal_of(rates), draw.normal(5, 3), int(draw.integers(0, 10**6, 1))
    noise, evidence = 1 - signal, []
    for which in ("small", "large"):
        for slope in (0.3, 2.0):
            stream = torch.Generator().manual_seed(seed)
            states = [torch.randn(5, 3, generator=stream, dtype=torch.float64) for _ in rates]
            found = bound(lambda x, t, slope=slope: slope * x.sin(), x0, steps, variance=which,
                          generator=torch.Generator().manual_seed(seed)).denoising  # fmt: skip
            stated, known = [], []
            for t in range(2, 7):
                rate, smaller = rates[t - 1], noise[t - 1] / noise[t] * rates[t - 1]
                x = signal[t].sqrt() * x0 + noise[t].sqrt() * states[t - 1]
                mean = signal[t - 1].sqrt() * rate / noise[t] * x0 + noise[t - 1] * (1 - rate).sqrt() / noise[t] * x
                own = (x - rate / noise[t].sqrt() * slope * x.sin()) / (1 - rate).sqrt()
                variance = smaller if which == "small" else rate
                extra = 3 / 2 * (torch.log(variance / smaller) + smaller / variance - 1)
                stated.append((mean - own).norm(dim=1) ** power / (divisor * variance) + constant * extra)
                laws = Normal(mean, smaller.sqrt()), Normal(own, variance.sqrt())
                known.append(kl_divergence(*laws).sum(1))
            evidence += [close(found, torch.stack(known, 1), ulps=1e5), close(found, torch.stack(stated, 1), ulps=1e5)]
    return all_of(*evidence)


def kept_by_one(rate, signal):
    return 1 - rate


def kept_by_all(rate, signal):
    return signal


@claim("ddpm.eps_weight")
@lie("alpha-bar in place of alpha", printed="000/1", before=kept_by_all)
@lie("the minus is missing", printed="001/3", sign=1.0)
@lie("the rate is not squared", power=1.0)
def the_weight_of_a_noise_error(draw, before=kept_by_one, sign=-1.0, power=2.0, weights=noise_error_weights):
    """Errors of two sizes at all times, both variances: minus torch's divergence of normal laws, but for a constant."""
    steps, rates = random_steps(draw, 12, least=1e-3, most=0.4)
    signal = signal_of(rates)
    evidence = []
    for which in ("small", "large"):
        shipped, stated, terms = weights(steps, which)[2:], [], []
        for t in range(2, 13):
            rate, noise = rates[t - 1], draw.normal(2, 4)
            x0 = draw.normal(1, 4).expand(2, 4)  # two errors at the same data, whose constant is the same
            x = signal[t].sqrt() * x0 + (1 - signal[t]).sqrt() * noise
            answer = noise + torch.tensor([[1.0], [0.1]], dtype=torch.float64) * draw.unit(2, 4)
            goal = posterior(x, x0, t, steps)
            found = reverse_kernel(lambda x, t, answer=answer: answer, x, t, steps, variance=which)
            terms.append(-kl_divergence(Normal(goal.mean, goal.variance.sqrt()),
                                        Normal(found.mean, found.variance.sqrt())).sum(1))  # fmt: skip
            divisor = 2 * found.variance * before(rate, signal[t]) * (1 - signal[t])
            stated.append(rate**power / divisor)
        rho, terms = torch.stack(stated), torch.stack(terms)
        gap = terms[:, 0] - terms[:, 1]  # the constant is gone
        evidence += [close(shipped, rho, ulps=1e5), close(gap / (1 - 0.01), sign * rho, ulps=1e6)]
    return all_of(*evidence)


# --- The sampler on normal data: an affine map of its start and of its draws ---


def affine_map(draw, sampler, model, steps, variance):
    """What a sampler makes of its start: slope, intercept, and the factor of each of its draws, solved from probes.

    The draws are known, since they come from a generator; so nothing here is a sample.
    """
    count, seed = len(steps) + 30, int(draw.integers(0, 10**6, 1))
    start, stream = draw.normal(count, 1), torch.Generator().manual_seed(seed)
    draws = torch.cat([torch.randn(count, 1, generator=stream, dtype=torch.float64) for _ in range(len(steps))], dim=1)
    found = sampler(model, start, steps, variance=variance, generator=torch.Generator().manual_seed(seed))
    design = torch.cat([start, torch.ones_like(start), draws], dim=1)
    return torch.linalg.lstsq(design, found).solution[:, 0]


def bar(rates, signal, t):
    return signal[t]


def lost_bar(rates, signal, t):
    return 1 - rates[t - 1]


def rate_or_smaller(variance, kept):
    return variance


def what_is_kept(variance, kept):
    return kept


@claim("ddpm.sampling")
@lie("the chain begins around the data that it should make", printed="004/1", start=1.0)
@lie("the noise has the root of alpha", printed="004/3", scale=what_is_kept)
@lie("one step's alpha under the root, its bar lost", under=lost_bar)
@lie("the last step adds noise as well", last=1.0)
@lie("the noise has its variance for its standard deviation", root=1.0)
def the_sampler_as_an_affine_map(
    draw, start=0.0, scale=rate_or_smaller, under=bar, last=0.0, root=0.5, sampler=ancestral_sampling
):
    """Normal data and the best denoiser, fifty steps: the whole sampler against the printed step, mean and variance."""
    rates, m, v = torch.linspace(1e-3, 0.2, 50, dtype=torch.float64), float(draw.uniform(1, low=2.0, high=4.0)), 0.25
    steps, signal = DiffusionSteps.from_rates(rates), signal_of(rates)
    network, evidence, spreads = best_noise(rates, m, v), [], []
    for which in ("small", "large"):
        slope, offset, factors = torch.ones(()).double(), torch.zeros(()).double(), []
        for t in range(50, 0, -1):
            rate, kept = rates[t - 1], 1 - rates[t - 1]
            smaller = (1 - signal[t - 1]) / (1 - signal[t]) * rate
            time = torch.tensor([t])
            bias = network(torch.zeros(1, 1).double(), time)[0, 0]
            pull = rate / (1 - under(rates, signal, t)).sqrt()
            step = (1 - pull * (network(torch.ones(1, 1).double(), time)[0, 0] - bias)) / kept.sqrt()
            sigma = scale(rate if which == "large" else smaller, kept) ** root * (1.0 if t > 1 else last)
            factors = [step * factor for factor in factors] + [sigma]
            slope, offset = step * slope, step * offset - pull * bias / kept.sqrt()
        stated = torch.stack([slope, offset, *factors])
        mean, variance = slope * start * m + offset, slope**2 + torch.stack(factors).square().sum()
        spreads.append(variance)
        evidence += [
            close(affine_map(draw, sampler, network, steps, which), stated, within=1e-9),
            at_most((mean - m).abs(), slope.abs() * signal[-1].sqrt() * m, attained=True, ulps=1e7),
        ]
    smaller, larger = (float(each) for each in spreads)
    return all_of(*evidence, at_most(smaller, v), at_least(larger, v), at_most([v / smaller, larger / v], 1.25))
