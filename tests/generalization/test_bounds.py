"""Bounds on a risk: their order, their inverses, Clopper and Pearson against scipy, and what they refuse."""

import itertools
import math
import random

import pytest
import torch
from scipy import stats

from lemmata.generalization import (
    RiskBound,
    bernoulli_kl,
    dkw_bound,
    finite_class_bound,
    kl_inverse,
    pac_bayes_bound,
    pac_bayes_objective,
    sauer_bound,
    test_set_bound,
    vc_bound,
)
from lemmata.generalization.pac_bayes import NAMES, _catoni_bound

ERRORS = [0.0, 1e-6, 0.03, 0.4, 0.9, 1.0]
GRID = [*itertools.product(ERRORS, [0.0, 0.1, 7.0, 1e4], [1, 30, 10**6], [0.01, 0.95])]


@pytest.mark.parametrize(("error", "kl", "n", "confidence"), GRID[::2])
def test_what_is_given_away_is_given_in_this_order(error, kl, n, confidence):
    inverted, quadratic, mcallester = (
        pac_bayes_bound(error, kl, n, confidence, form).value for form in ("kl", "quadratic", "mcallester")
    )
    assert error <= inverted <= 1
    assert inverted <= quadratic * (1 + 1e-9)
    assert inverted <= mcallester * (1 + 1e-9)


@pytest.mark.parametrize(("error", "divergence"), [*itertools.product(ERRORS, [1e-4, 0.03, 0.5, 3.0])])
def test_the_inverse_is_the_least_of_catonis_forms(error, divergence):
    best = float(kl_inverse(error, divergence))
    error, divergence = (torch.tensor(part, dtype=torch.float64) for part in (error, divergence))
    betas = torch.logspace(-3, 2, 400, dtype=torch.float64)
    forms = torch.stack([_catoni_bound(error, divergence, float(beta)) for beta in betas])
    assert float(forms.min()) >= best * (1 - 1e-9)
    if 0 < error < best < 1 - 1e-9:  # its slope is the logarithm of the ratio of the odds
        beta = math.log(best / (1 - best)) - math.log(float(error) / (1 - float(error)))
        assert float(_catoni_bound(error, divergence, beta)) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("form", sorted(NAMES))
@pytest.mark.parametrize(("error", "kl", "n", "confidence"), GRID[::11])
def test_more_examples_and_less_divergence_never_hurt(error, kl, n, confidence, form):
    bound = pac_bayes_bound(error, kl, n, confidence, form).value
    assert pac_bayes_bound(error, kl + 1, n, confidence, form).value >= bound
    assert pac_bayes_bound(error, kl, 2 * n, confidence, form).value <= bound * (1 + 1e-12)
    assert pac_bayes_bound(error, kl, n, (1 + confidence) / 2, form).value >= bound


def test_near_zero_error_the_inverse_is_far_below_mcallester():
    assert 5 * pac_bayes_bound(0.0, 3.0, 1000).value < pac_bayes_bound(0.0, 3.0, 1000, form="mcallester").value


def test_a_vacuous_bound_says_so():
    seen = pac_bayes_bound(0.597, 2.85e6, 1000)  # a bound that was once published as 0.597
    assert seen.vacuous
    assert seen.value == 1.0
    assert str(seen).startswith("vacuous")
    assert RiskBound(float("nan"), 0.95, "nothing").vacuous
    assert not pac_bayes_bound(0.05, 3.0, 719).vacuous
    assert vc_bound(0.0, 2**50, 50).vacuous
    assert finite_class_bound(0.0, 10, 1).vacuous


@pytest.mark.parametrize("form", sorted(NAMES))
def test_the_objective_is_the_bound_and_has_gradients(form):
    error = torch.tensor([0.1, 0.3], dtype=torch.float64, requires_grad=True)
    kl = torch.tensor([5.0, 20.0], dtype=torch.float64, requires_grad=True)
    found = pac_bayes_objective(error, kl, 1000, 0.95, form)
    bounds = [
        pac_bayes_bound(float(e), float(k), 1000, 0.95, form).value
        for e, k in zip(error.tolist(), kl.tolist(), strict=True)
    ]
    assert found.tolist() == pytest.approx(bounds, rel=1e-12)
    assert torch.autograd.gradcheck(
        lambda e, k: pac_bayes_objective(e, k, 1000, 0.95, form), (error, kl), eps=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(40))
def test_clopper_and_pearson_are_those_of_scipy(seed):
    rng = random.Random(seed)
    n, confidence = rng.randint(1, 3000), rng.uniform(0.01, 0.999)
    errors = rng.choice([0, n, rng.randint(0, n)])
    interval = stats.binomtest(errors, n, alternative="less").proportion_ci(confidence, method="exact")
    ours = test_set_bound(errors, n, confidence).value
    assert ours == pytest.approx(interval.high, rel=1e-6)  # theirs is a root with a tolerance of its own
    if errors < n:  # by the tail itself, which is exact
        assert stats.binom.cdf(errors, n, ours) <= (1 - confidence) * (1 + 1e-11)
        assert stats.binom.cdf(errors, n, ours * (1 - 1e-9)) >= 1 - confidence


def test_nothing_beats_the_test_set_on_its_own_examples():
    for errors, n in [(0, 10), (36, 719), (300, 1000)]:
        best = test_set_bound(errors, n).value
        assert best <= pac_bayes_bound(errors / n, 0.0, n).value
        assert best <= finite_class_bound(errors / n, 1, n).value
        # Chernoff's bound, which without errors is the same.
        assert best <= float(kl_inverse(errors / n, math.log(1 / 0.05) / n)) * (1 + 1e-10)


def test_bounds_are_the_formulas_read_backwards():
    value = vc_bound(0.0, 101, 100_000, 0.9).value
    assert 8 * 101 * math.exp(-100_000 * value**2 / 32) == pytest.approx(0.1)
    value = dkw_bound(0.0, 50, 0.9).value
    assert 2 * math.exp(-2 * 50 * value**2) == pytest.approx(0.1)
    value = finite_class_bound(0.2, 30, 50, 0.9).value - 0.2
    assert 2 * 30 * math.exp(-2 * 50 * value**2) == pytest.approx(0.1)
    value = pac_bayes_bound(0.1, 7.0, 400, 0.9).value
    assert 400 * float(bernoulli_kl(0.1, value)) == pytest.approx(7 + math.log(2 * 20 / 0.1))


def test_sauers_sum():
    assert [sauer_bound(n, 2) for n in range(5)] == [1, 2, 4, 7, 11]
    assert sauer_bound(200, 200) == 2**200


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pac_bayes_bound(1.3, 1.0, 10), "error must lie between 0 and 1, got 1.3: clip or rescale the loss"),
        (lambda: pac_bayes_bound(0.1, -1.0, 10), "kl must be >= 0, got -1.0"),
        (lambda: pac_bayes_bound(0.1, 1.0, 0), "n must be"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, 1.0), "confidence must be > 0 and < 1, got 1.0"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, 0.0), "confidence must be > 0 and < 1, got 0.0"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, form="seeger"), "form must be one of"),
        (lambda: pac_bayes_bound(0.1, 1.0, 10, form="catoni", beta=0.0), "beta must be > 0"),
        (lambda: finite_class_bound(0.1, 0, 10), "classifiers must be"),
        (lambda: finite_class_bound(-0.1, 3, 10), "error must lie between 0 and 1, got -0.1"),
        (lambda: vc_bound(0.1, 0, 10), "growth must be"),
        (lambda: dkw_bound(0.1, 0), "n must be"),
        (lambda: test_set_bound(11, 10), "errors must be"),
        (lambda: test_set_bound(0, 0), "n must be"),
        (lambda: sauer_bound(-1, 2), "n must be"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message) as found:
        call()
    assert "\n" not in str(found.value)
