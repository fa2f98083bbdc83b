"""Statistical evidence: how many samples are taken, what is refused, and which side counts."""

import math

import pytest
import torch
from scipy import stats

from lemmata.judge import law_is, mean_is, probability_is
from lemmata.judge.evidence import ALPHA, BETA
from lemmata.judge.statistics import SAMPLE_LIMIT, _accepted_counts, _binomial_miss, cost_class


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20)


@pytest.fixture
def normal(generator):
    return lambda n: torch.randn(n, generator=generator, dtype=torch.float64)


@pytest.fixture
def instant():
    """The judge says which class a claim is in; here it is the cheapest."""
    token = cost_class.set("instant")
    yield
    cost_class.reset(token)


def same(values):
    return values


def alternating(n):
    """-1, 1, -1, ...: a sample whose spread is known, so that the sample size is too."""
    return torch.arange(n).remainder(2).double() * 2 - 1


def taken(evidence):
    return int(evidence.detail.split()[0].replace(",", ""))


def no_sample(n):
    raise AssertionError("no sample should be drawn")


# --- How many ---


@pytest.mark.parametrize("effect", [0.02, 0.05, 0.1, 0.2])
def test_the_sample_size_of_a_mean_is_the_design(effect):
    """(z(alpha/2) + z(beta))^2 = 84.6 spreads over effects squared, and a fifth more for the uncertain pilot."""
    design = (stats.norm.isf(ALPHA / 2) + stats.norm.isf(BETA)) ** 2
    assert design == pytest.approx(84.6, abs=0.1)
    size = taken(mean_is(same, alternating, 0.0, effect=effect))
    assert design / effect**2 <= size <= 1.25 * design / effect**2


def test_one_side_needs_fewer(normal):
    one = taken(mean_is(same, alternating, 0.0, effect=0.05, side="at_least"))
    design = (stats.norm.isf(ALPHA) + stats.norm.isf(BETA)) ** 2 / 0.05**2
    assert design <= one <= 1.25 * design < taken(mean_is(same, alternating, 0.0, effect=0.05))


def test_a_small_pilot_is_part_of_every_sample():
    assert taken(mean_is(same, alternating, 0.0, effect=100.0)) == 1000
    assert taken(mean_is(same, alternating, 0.0, effect=100.0, pilot=50)) == 50


@pytest.mark.parametrize("effect", [0.05, 0.1])
def test_the_sample_size_of_a_law_is_the_design(effect):
    design = (math.sqrt(math.log(2 / ALPHA) / 2) + math.sqrt(math.log(2 / BETA) / 2)) ** 2 / effect**2
    size = taken(law_is(lambda n: torch.linspace(0, 1, n), same, effect=effect))
    assert design <= size <= 1.05 * design


@pytest.mark.parametrize("side", ["both", "at_least", "at_most"])
@pytest.mark.parametrize(("p", "effect"), [(0.5, 0.05), (0.1, 0.05), (0.9, 0.02), (0.01, 0.01)])
def test_the_sample_size_of_a_probability_has_the_power(p, effect, side):
    evidence = probability_is(lambda n: torch.arange(n) < round(n * p), p, effect=effect, side=side)
    n, alpha = taken(evidence), ALPHA
    low, high = _accepted_counts(n, p, alpha, side)
    true = stats.binom(n, p)
    assert true.cdf(low - 1) + true.sf(high) <= alpha
    if side != "at_most":
        assert stats.binom(n, p - effect).sf(low - 1) <= BETA
    if side != "at_least":
        assert stats.binom(n, p + effect).cdf(high) <= BETA
    shorter = int(n * 0.9)
    assert _binomial_miss(shorter, p, effect, alpha, side) > BETA, "a tenth fewer would not do"


def test_samples_are_asked_for_in_chunks(normal):
    asked = []

    def sample(n):
        asked.append(n)
        return normal(n)

    evidence = mean_is(same, sample, 0.0, effect=0.1, chunk=999)
    assert max(asked) == 999
    assert sum(asked) == taken(evidence) + 1000
    asked.clear()
    mean_is(same, sample, 0.0, effect=0.02)
    assert max(asked) == 65_536


# --- Over the limit ---


def test_too_many_samples_make_the_evidence_weak(instant, normal):
    limit = SAMPLE_LIMIT["instant"]
    for evidence in (
        mean_is(same, normal, 0.0, effect=1e-3),
        probability_is(no_sample, 0.5, effect=1e-4),
        law_is(no_sample, same, effect=1e-3),
    ):
        assert not evidence.holds
        assert evidence.undecided
        assert f"of class instant it may take {limit:,}" in evidence.weak
        assert evidence.weak.endswith("draw instances with a larger effect")


def test_a_hopeless_effect_is_noticed_before_the_first_sample(instant):
    assert probability_is(no_sample, 0.5, effect=1e-300).weak
    assert law_is(no_sample, same, effect=1e-300).weak


def test_a_dearer_class_may_take_more(instant, normal):
    assert mean_is(same, normal, 0.0, effect=0.015).weak
    cost_class.set("quick")
    assert mean_is(same, normal, 0.0, effect=0.015).holds


# --- Which side ---


@pytest.mark.parametrize(("side", "below", "above"), [("both", False, False), ("at_least", False, True)])
def test_a_mean_off_its_prediction_falls_on_the_sides_that_count(normal, side, below, above):
    assert mean_is(same, normal, 0.2, effect=0.1, side=side).holds is below
    assert mean_is(same, normal, -0.2, effect=0.1, side=side).holds is above
    assert mean_is(same, normal, 0.0, effect=0.1, side=side).holds
    opposite = {"at_least": "at_most"}.get(side, side)
    assert mean_is(same, normal, -0.2, effect=0.1, side=opposite).holds is below
    assert mean_is(same, normal, 0.2, effect=0.1, side=opposite).holds is above


@pytest.mark.parametrize("side", ["both", "at_least", "at_most"])
def test_a_probability_off_its_prediction_falls_on_the_sides_that_count(generator, side):
    def happens(n):
        return torch.rand(n, generator=generator) < 0.3

    assert probability_is(happens, 0.3, effect=0.1, side=side).holds
    assert probability_is(happens, 0.5, effect=0.1, side=side).holds is (side == "at_most")
    assert probability_is(happens, 0.1, effect=0.1, side=side).holds is (side == "at_least")


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_a_certain_event_allows_no_exception(certain):
    def event(n, exceptions=0):
        return (torch.arange(n) < exceptions) != bool(certain)

    evidence = probability_is(event, certain, effect=0.1)
    assert evidence.holds
    assert evidence.margin == 0
    assert not probability_is(lambda n: event(n, 1), certain, effect=0.1).holds


def test_the_margin_shown_is_the_one_that_was_applied(generator):
    """The binomial law is skewed: a count below p falls earlier than one above."""
    for p in (0.005, 0.02):
        evidence = probability_is(lambda n, p=p: torch.rand(n, generator=generator) < p, 0.01, effect=0.005)
        assert evidence.holds is (abs(evidence.measured - 0.01) <= evidence.margin)


# --- What is refused ---


@pytest.mark.parametrize("effect", [0.0, -1.0, math.nan])
def test_an_effect_is_positive(effect):
    for judge in (
        lambda: mean_is(same, no_sample, 0.0, effect=effect),
        lambda: probability_is(no_sample, 0.5, effect=effect),
        lambda: law_is(no_sample, same, effect=effect),
    ):
        with pytest.raises(ValueError, match=r"effect must be > 0, got .*: state by how much the nearest lie is wrong"):
            judge()


def test_other_arguments_are_checked_before_the_first_sample():
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1, got 1"):
        mean_is(same, no_sample, 0.0, effect=1.0, alpha=1)
    with pytest.raises(ValueError, match="side must be one of both, at_least, at_most, got 'left'"):
        probability_is(no_sample, 0.5, effect=0.1, side="left")
    with pytest.raises(ValueError, match=r"bounds must be \(low, high\) with low < high, got \(1, 1\)"):
        mean_is(same, no_sample, 0.0, effect=1.0, bounds=(1, 1))
    with pytest.raises(ValueError, match=r"no probability is wrong by effect = 0.9 from 0.5 on that side: lower it"):
        probability_is(no_sample, 0.5, effect=0.9)


def test_samples_of_another_shape_are_refused(normal):
    for statistic in (lambda x: x[:-1], lambda x: x[:, None], lambda x: x.mean()):
        with pytest.raises(ValueError, match=r"asked for 1000 draws, got values of shape .*: return one for each"):
            mean_is(statistic, normal, 0.0, effect=0.1)
    with pytest.raises(ValueError, match="cdf gave shape"):
        law_is(normal, lambda x: x[:, None], effect=0.1)


def test_events_are_booleans(normal):
    with pytest.raises(TypeError, match=r"happens must return booleans, one for each trial, got torch\.float64"):
        probability_is(normal, 0.5, effect=0.1)


def test_a_statistic_must_keep_its_bounds(generator):
    def sample(n):
        return torch.rand(n, generator=generator)

    assert mean_is(same, sample, 0.5, effect=0.05, bounds=(0, 1)).holds
    assert not mean_is(same, sample, 0.55, effect=0.05, bounds=(0, 1)).holds
    with pytest.raises(ValueError, match=r"the statistic leaves its bounds \(0, 0.5\): got 0\.\d+ to 0\.\d+"):
        mean_is(same, sample, 0.5, effect=0.05, bounds=(0, 0.5))


def test_bounds_are_watched_after_the_pilot_too(generator):
    seen = []

    def sample(n):
        seen.append(n)
        return torch.rand(n, generator=generator) + (2.0 if len(seen) > 1 else 0.0)

    with pytest.raises(ValueError, match="leaves its bounds"):
        mean_is(same, sample, 0.5, effect=0.05, bounds=(0, 1))


# --- Degenerate samples ---


def test_nan_decides_nothing(normal):
    for evidence in (
        mean_is(lambda x: x * math.nan, normal, 0.0, effect=0.1),
        mean_is(same, normal, math.nan, effect=0.1),
        probability_is(no_sample, math.nan, effect=0.1),
        law_is(lambda n: normal(n).log(), torch.special.ndtr, effect=0.1),
        law_is(normal, lambda x: x * math.nan, effect=0.1),
    ):
        assert not evidence.holds
        assert evidence.undecided


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_constant_has_no_spread_but_rounding(dtype):
    def constant(n):
        return torch.full((n,), 0.1, dtype=dtype)

    assert mean_is(same, constant, 0.1, effect=0.05).holds
    assert not mean_is(same, constant, 0.1 + 1e-4, effect=0.05).holds


def test_whole_numbers_and_booleans_have_means(generator):
    def dice(n):
        return torch.randint(1, 7, (n,), generator=generator)

    assert mean_is(same, dice, 3.5, effect=0.1).holds
    assert mean_is(lambda roll: roll > 3, dice, 0.5, effect=0.05).holds


# --- Laws with atoms ---


def test_laws_may_have_atoms(generator, normal):
    def dice(n):
        return torch.randint(1, 7, (n,), generator=generator)

    assert law_is(dice, lambda x: (x.floor() / 6).clamp(0, 1), effect=0.05).holds
    assert not law_is(dice, lambda x: (x.floor() / 7).clamp(0, 1), effect=0.05).holds

    def rectified(n):
        return normal(n).clamp(min=0)

    assert law_is(rectified, lambda x: torch.special.ndtr(x) * (x >= 0), effect=0.1).holds


def test_a_law_that_overlooks_an_atom_falls(normal):
    """Half the draws are zero; the normal law agrees with them at zero and above, and is wrong just below."""
    evidence = law_is(lambda n: normal(n).clamp(min=0), torch.special.ndtr, effect=0.1)
    assert not evidence.holds
    assert evidence.measured == pytest.approx(0.5, abs=0.02)


def test_a_point_mass_is_not_continuous():
    assert not law_is(torch.zeros, lambda x: (x + 1) / 2, effect=0.1).holds


def test_ties_from_rounding_are_harmless(normal):
    assert law_is(lambda n: normal(n).half(), torch.special.ndtr, effect=0.05).holds


def test_draws_that_are_nan_decide_nothing(generator):
    """A distribution function made of comparisons gives NaN a place: P(X <= NaN) = 0."""

    def sample(n):
        return torch.rand(n, generator=generator).index_fill(0, torch.tensor([0]), math.nan)

    def cdf(x):
        return torch.where(x < 0, 0.0, torch.where(x < 1, x, 1.0))

    assert law_is(sample, cdf, effect=0.1).undecided


def test_a_distribution_function_in_float32_is_refused(generator):
    with pytest.raises(TypeError, match="law_is was given values in float64 beside cdf in float32"):
        law_is(lambda n: torch.rand(n, generator=generator), lambda x: x.float().clamp(0, 1), effect=0.1)
