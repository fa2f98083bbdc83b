"""The judge judged: how often statistical evidence is wrong, against the rates it declares.

True claims under 1,000 seeds may be rejected as often as alpha says, and false ones, wrong by exactly `effect`, must be
found more often than 0.999. Counts are compared with the binomial law at level 1e-9, so that these tests do not
raise false alarms themselves.
"""

import functools

import pytest
import torch
from scipy import stats

from lemmata.judge import law_is, mean_is, probability_is, statistics
from lemmata.judge.evidence import ALPHA, BETA

LEVEL = 1e-9
SEEDS = 1000


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The same sample size is asked for 1,000 times; it is worked out once."""
    monkeypatch.setattr(statistics, "_accepted_counts", functools.cache(statistics._accepted_counts))
    monkeypatch.setattr(statistics, "_binomial_miss", functools.cache(statistics._binomial_miss))


def rejections(judge, seeds=SEEDS):
    """How often a judge says no, over independent streams."""
    return sum(not judge(torch.Generator().manual_seed(seed)).holds for seed in range(seeds))


def most(rate, seeds=SEEDS):
    """The count that a rate exceeds with probability 1e-9 at most."""
    return int(stats.binom.isf(LEVEL, seeds, rate))


def least(rate, seeds=SEEDS):
    return int(stats.binom.ppf(LEVEL, seeds, rate))


def mean(generator, alpha=ALPHA, wrong=False, side="both", kind="normal"):
    """A spread of 1 (or 1/2 within bounds). Where it is wrong, the prediction is too high by the effect."""
    draws = {
        "normal": lambda n: torch.randn(n, generator=generator, dtype=torch.float64) + 3,
        "uniform": lambda n: (torch.rand(n, generator=generator) - 0.5) * 12**0.5 + 3,
        "skewed": lambda n: torch.empty(n).exponential_(generator=generator) + 2,
        "bounded": lambda n: (torch.rand(n, generator=generator) < 0.5).double(),
    }
    centre, bounds, effect = (0.5, (0.0, 1.0), 0.1) if kind == "bounded" else (3.0, None, 0.19)
    predicted = centre + effect * wrong
    return mean_is(lambda x: x, draws[kind], predicted, effect=effect, alpha=alpha, side=side, bounds=bounds)


def probability(generator, alpha=ALPHA, wrong=False, side="both", p=0.3, effect=0.2):
    def happens(n):
        return torch.rand(n, generator=generator) < p

    return probability_is(happens, p + effect * wrong, effect=effect, alpha=alpha, side=side)


def law(generator, alpha=ALPHA, wrong=False, effect=0.2):
    """Uniform draws; wrong is the uniform law shifted by the effect, which is its Kolmogorov distance."""

    def sample(n):
        return torch.rand(n, generator=generator, dtype=torch.float64)

    return law_is(sample, lambda x: (x - effect * wrong).clamp(0, 1), effect=effect, alpha=alpha)


JUDGES = {
    "mean": mean,
    "mean, one side": functools.partial(mean, side="at_least"),
    "mean, uniform": functools.partial(mean, kind="uniform"),
    "mean, skewed": functools.partial(mean, kind="skewed"),
    "mean, bounded": functools.partial(mean, kind="bounded"),
    "probability": probability,
    "probability, one side": functools.partial(probability, side="at_least"),
    "probability, rare": functools.partial(probability, p=0.02, effect=0.05),
    "law": law,
}


@pytest.mark.parametrize("name", JUDGES)
def test_the_truth_falls_no_more_often_than_alpha_allows(name):
    assert rejections(lambda g: JUDGES[name](g, alpha=0.01)) <= most(0.01)


@pytest.mark.parametrize("name", JUDGES)
def test_at_the_alpha_of_every_claim_the_truth_never_falls(name):
    assert rejections(JUDGES[name]) == 0


@pytest.mark.parametrize(("name", "alpha"), [*((name, ALPHA) for name in JUDGES), ("mean", 0.01), ("law", 0.01)])
def test_a_claim_wrong_by_the_effect_is_found(name, alpha):
    assert rejections(lambda g: JUDGES[name](g, alpha, wrong=True)) >= SEEDS - most(BETA)


@pytest.mark.parametrize("name", ["mean", "mean, one side", "law"])
def test_alpha_is_spent_and_not_hoarded(name):
    """Far fewer false alarms than declared would mean that samples are wasted, or that nothing can ever fall.

    Student's interval is exact here and the other nearly so; at alpha = 0.1 a thousand seeds can tell.
    """
    assert least(0.1) <= rejections(lambda g: JUDGES[name](g, alpha=0.1)) <= most(0.1)


def test_skewness_moves_the_quantile_out():
    """Student's ratio has one heavier tail when the statistic is skewed, and the more so the smaller alpha is."""
    plain = statistics._student_quantile(1000, ALPHA / 2, 0.0)
    assert plain == pytest.approx(stats.t.isf(ALPHA / 2, 999))
    moved = [statistics._student_quantile(1000, ALPHA / 2, skew) / plain for skew in (0.1, 0.5, 2.0)]
    assert 1 < moved[0] < 1.01 < moved[1] < 1.05 < moved[2] < 1.25
    assert statistics._student_quantile(10**6, ALPHA / 2, 2.0) / plain < 1.01
    assert statistics._student_quantile(30, ALPHA / 2, 2.0) == float("inf"), (
        "thirty skewed draws say nothing so far out"
    )


@pytest.mark.parametrize("judge", [mean, probability])
def test_one_side_does_not_see_the_other(judge):
    assert rejections(lambda g: judge(g, wrong=True, side="at_most"), seeds=50) == 0


@pytest.mark.long
def test_a_skewed_mean_keeps_alpha_far_out():
    """200,000 samples of 1,000 exponential draws; without the correction 1.7 times alpha fall."""
    generator, alpha, fallen = torch.Generator().manual_seed(1), 1e-4, 0
    for _ in range(200):
        draws = torch.empty(1000, 1000).exponential_(generator=generator)
        mean, spread = draws.mean(1), draws.std(1)
        ratio = ((mean - 1) / spread * 1000**0.5).abs()
        skew = ((draws - mean[:, None]) / spread[:, None]).pow(3).mean(1).abs()
        far = torch.nonzero(ratio > 3).flatten().tolist()  # no quantile at this alpha is nearer
        fallen += sum(float(ratio[k]) > statistics._student_quantile(1000, alpha / 2, float(skew[k])) for k in far)
    assert fallen <= stats.binom.isf(1e-3, 200_000, alpha)


@pytest.mark.long
@pytest.mark.parametrize("name", JUDGES)
def test_the_rates_under_ten_thousand_seeds(name):
    seeds, judge = 10_000, JUDGES[name]
    assert rejections(lambda g: judge(g, alpha=0.01), seeds) <= most(0.01, seeds)
    assert rejections(judge, seeds) == 0
    assert rejections(lambda g: judge(g, wrong=True), seeds) >= seeds - most(BETA, seeds)
    assert rejections(lambda g: judge(g, alpha=0.01, wrong=True), seeds) >= seeds - most(BETA, seeds)
