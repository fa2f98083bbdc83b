"""The PAC-Bayes theorem: its moment, its coverage on problems that are gone through whole, and how it is cheated."""

import itertools
import math

import torch
from scipy import stats

from lemmata.generalization.binary_kl import bernoulli_kl
from lemmata.generalization.pac_bayes import pac_bayes_bound, pac_bayes_objective
from lemmata.judge import all_of, at_least, at_most, claim, close, lie

SIZES, RATES = [1, 2, 8, 64, 400], [0.01, 0.3, 0.5, 0.9]
# Among so many classifiers of risk 0.5, for each of so many variances of the prior, the best of 1,000 examples looks
# much better: to pay for the choice of one of the two alone is not enough.
CLASSIFIERS, VARIANCES, MANY = 10**6, 10**6, 1000


def inverse_failure(n, failure, constant):
    """The logarithm that the theorem adds to the divergence."""
    return math.log(constant * math.sqrt(n) / failure)


def inverted(n, failure, constant):
    """The same with its argument upside down, and the failure under the root."""
    return math.log(1 / (constant * math.sqrt(n * failure)))


def one_minus(failure):
    return 1 - failure


def as_promised(failure):
    return failure


def from_uniform(choices):
    """The divergence of one of them from the uniform prior on all."""
    return math.log(choices)


def from_itself(choices):
    """The divergence from a prior that was put where the data had led."""
    return 0.0


# Three classifiers in five are always right and two always wrong; the posterior draws one, and errs with 0.4.
def mean_error(right=0.6):
    """The mean over the posterior: the errors that may be found, each with its probability."""
    return [(1.0, 1 - right)]


def error_of_the_vote(right=0.6):
    """The majority is right, as the mean of a posterior often is."""
    return [(1.0, 0.0)]


def error_of_one_draw(right=0.6):
    """One draw from the posterior in place of its mean."""
    return [(right, 0.0), (1 - right, 1.0)]


def certifies(errors, n, failure):
    """Whether the bound from each error is at least 0.4, when the posterior is the prior."""
    return (pac_bayes_objective(errors, torch.zeros_like(errors), n, 1 - failure, "kl") >= 0.4).double()


def moments(sizes, rates):
    """E exp(n kl(error, rate)) of the error among n, by the binomial distribution."""
    found = []
    for n, rate in itertools.product(sizes, rates):
        k = torch.arange(n + 1, dtype=torch.float64)
        chance = torch.as_tensor(stats.binom.logpmf(k.numpy(), n, rate))
        found.append(torch.exp(chance + n * bernoulli_kl(k / n, rate)).sum())
    return torch.stack(found)


def coverage_of_all_posteriors(draw, n=6):
    """The chance that no posterior breaks a bound: all samples of n among six outcomes, for eight classifiers.

    At each divergence the posterior that gains most is the prior tilted by risk less error: those are gone through.
    """
    losses = draw.integers(0, 2, 8, 6).double()
    probability = 0.05 + draw.uniform(6)
    probability = probability / probability.sum()
    samples = torch.combinations(torch.arange(6), n, with_replacement=True)  # (multisets, n)
    counts = torch.nn.functional.one_hot(samples, 6).sum(1).double()
    weight = torch.exp(math.lgamma(n + 1) - torch.lgamma(counts + 1).sum(1) + counts @ probability.log())
    risk, error = losses @ probability, counts @ losses.T / n  # (8,), (multisets, 8)
    tilt = torch.logspace(-1, 3, 25, dtype=torch.float64)[:, None, None]
    log_q = torch.log_softmax(tilt * (risk - error), -1)
    q = log_q.exp()  # (tilts, multisets, 8)
    kl = (q * log_q).sum(-1) + math.log(8)
    found = []
    for form, failure in itertools.product(("mcallester", "kl"), (0.05, 0.8)):
        bound = pac_bayes_objective((q * error).sum(-1).clamp(0, 1), kl.clamp(min=0.0), n, 1 - failure, form)
        covered = ((q * risk).sum(-1) <= bound + 1e-12).all(0)
        found.append(float(weight @ covered.double()) - (1 - failure))
    return found


@claim("pac.bound")
@lie("the logarithm is upside down", printed="001/2", raises=ValueError, logarithm=inverted)
@lie("it holds with probability ε or more", printed="000/1", promised=as_promised)
@lie("1.9√n suffices", constant=1.9)
@lie("the prefactor is 1/(16n)", half=16.0)
@lie("the prior may be put where the data lead", divergence=from_itself)
@lie("the variance of the prior may be chosen without a union bound", union=from_itself)
@lie("the error of the mean of the posterior will do", error=error_of_the_vote)
@lie("the error of one draw will do", error=error_of_one_draw)
@lie(
    "losses may be as large as 100",
    regime="the bound is loose: only rare and large losses break it",
    loose="smaller losses only help",
    largest=100.0,
)
def risks_of_all_posteriors(
    draw, constant=2.0, half=2.0, logarithm=inverse_failure, promised=one_minus, divergence=from_uniform,
    union=from_uniform, error=mean_error, largest=1.0,
):  # fmt: skip
    """The moment behind the theorem, exact coverage of single classifiers, of all posteriors, and of three learners."""

    def radius(n, failure, kl=0.0, wider=1.0):
        return math.sqrt(wider * (kl + logarithm(n, failure, constant)) / (half * n))

    def chance(n, rate, reach):
        """That a classifier's risk is at most its error and the radius."""
        return float(stats.binom.sf(math.ceil(n * (rate - reach) - 1e-9) - 1, n, rate))

    # One classifier: at n = 3 with the prefactor 2/n, which is four times as large.
    cases = [(1, 0.6, 0.99, 1.0), (3, 0.92, 0.9999, 4.0), (64, 0.4, 0.05, 1.0), (64, 0.4, 0.5, 1.0)]
    single = [chance(n, rate, radius(n, failure, wider=wider)) for n, rate, failure, wider in cases]
    n, failure, kls = 64, 0.05, [0.0, 1.0, 30.0]
    shipped = [pac_bayes_bound(0.1, kl, n, 1 - failure, "mcallester").value for kl in kls]
    # The best of many, both choices paid for; the posterior's own error; a loss of mean 0.4 that is 0 or the largest.
    reach = radius(MANY, failure, divergence(CLASSIFIERS) + union(VARIANCES))
    beyond = stats.binom.cdf(math.ceil(MANY * (0.5 - reach) - 1e-9) - 1, MANY, 0.5)
    best = math.exp(CLASSIFIERS * VARIANCES * math.log1p(-beyond))
    chances, errors = (torch.tensor(side, dtype=torch.float64) for side in zip(*error(), strict=True))
    certified = chances @ certifies(errors, n, failure)
    times = torch.arange(n + 1, dtype=torch.float64)
    rare = torch.as_tensor(stats.binom.pmf(times.numpy(), n, 0.4 / largest))
    rare = rare @ certifies((largest * times / n).clamp(max=1.0), n, failure)
    return all_of(
        at_least([best, float(certified), float(rare)], 1 - failure),
        at_least(single, [promised(failure) for _, _, failure, _ in cases]),
        at_least(coverage_of_all_posteriors(draw), 0.0, ulps=1e6),
        at_most(moments(SIZES, RATES), [constant * n**0.5 for n in SIZES for _ in RATES], attained=True),
        close(shipped, [0.1 + radius(n, failure, kl) for kl in kls], ulps=256),
    )
