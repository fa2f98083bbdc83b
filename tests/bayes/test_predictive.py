"""Predictive distributions against torch's mixtures: moments, log scores, bands; entropies; and bad input."""

import math

import pytest
import torch
from torch.distributions import Categorical, MixtureSameFamily, Normal

from lemmata.bayes import ClassificationPredictive, RegressionPredictive, gaussian_nll


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


MEANS, VARIANCES = 2 * drawn(5, 7), drawn(5, 7, seed=1).exp()
WEIGHTS = drawn(5, seed=2).softmax(0)
MIXTURE = MixtureSameFamily(Categorical(WEIGHTS.expand(7, 5)), Normal(MEANS.mT, VARIANCES.sqrt().mT))
OURS = RegressionPredictive(MEANS, VARIANCES, WEIGHTS)


def test_moments_and_log_scores_are_those_of_torchs_mixture():
    y = 3 * drawn(7, seed=3)
    assert torch.allclose(OURS.mean, MIXTURE.mean, rtol=1e-13)
    assert torch.allclose(OURS.variance, MIXTURE.variance, rtol=1e-12)
    assert torch.allclose(OURS.nll(y), -MIXTURE.log_prob(y), rtol=1e-12)
    assert torch.allclose(OURS.cdf(y), MIXTURE.cdf(y), rtol=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.05, 0.5, 0.95, 1 - 1e-6])
def test_quantiles_turn_the_distribution_function_back(p):
    assert torch.allclose(OURS.cdf(OURS.quantile(p)), torch.full((7,), p, dtype=torch.float64), rtol=1e-9)


def test_a_single_member_has_a_normal_band_and_no_doubt_of_its_own():
    one = RegressionPredictive(MEANS[:1], VARIANCES[:1])
    low, high = one.band(0.9)
    reach = 1.6448536269514722 * VARIANCES[0].sqrt()
    assert torch.allclose(low, MEANS[0] - reach, rtol=1e-12)
    assert torch.allclose(high, MEANS[0] + reach, rtol=1e-12)
    assert torch.equal(one.model_variance, torch.zeros(7, dtype=torch.float64))


def test_bands_hold_as_many_as_they_say_and_narrower_ones_do_not():
    count = 4000
    torch.manual_seed(0)
    y = MIXTURE.sample((count,)).flatten()
    many = RegressionPredictive(MEANS.repeat(1, count), VARIANCES.repeat(1, count), WEIGHTS)
    found = many.coverage(y, level=0.9)
    assert abs(found.value - 0.9) < 6.1 * math.sqrt(0.09 / len(y))
    assert found.low < found.value < found.high
    sure = RegressionPredictive(MEANS.repeat(1, count), VARIANCES.repeat(1, count) / 4, WEIGHTS)
    assert sure.coverage(y, level=0.9).value < 0.87


def test_far_away_the_log_score_stays_finite_and_a_lost_member_says_nothing():
    far = RegressionPredictive(torch.tensor([[0.0], [1.0]]), 1e-4).nll(torch.tensor([1e4]))
    assert math.isclose(float(far), (1e4 - 1) ** 2 / 2e-4, rel_tol=1e-3)
    weights = torch.tensor([0.0, 1.0])
    lost = RegressionPredictive(torch.tensor([[5.0], [1.0]]), 1.0, weights)
    assert float(lost.mean) == 1.0
    assert torch.equal(lost.nll(torch.tensor([1.0])), RegressionPredictive(torch.ones(1, 1), 1.0).nll(torch.ones(1)))


def test_gaussian_nll_is_torchs_log_probability():
    output, y = drawn(4, 9, 2), drawn(9, seed=5)
    expected = -Normal(output[..., 0], (output[..., 1] / 2).exp()).log_prob(y)
    assert torch.allclose(gaussian_nll(output, y), expected, rtol=1e-12)


def test_class_probabilities_are_averaged_and_their_entropy_split():
    logits, y = 3 * drawn(5, 11, 4), torch.arange(11) % 4
    ours = ClassificationPredictive(logits, WEIGHTS)
    mean = torch.einsum("m,mbc->bc", WEIGHTS, logits.softmax(-1))
    assert torch.allclose(ours.probability, mean, rtol=1e-12)
    assert torch.allclose(ours.nll(y), -Categorical(mean).log_prob(y), rtol=1e-12)
    assert torch.allclose(ours.entropy, Categorical(mean).entropy(), rtol=1e-12)
    # The model's part is the mean divergence of the members from their mean.
    apart = (logits.log_softmax(-1).exp() * (logits.log_softmax(-1) - mean.log())).sum(-1)
    assert torch.allclose(ours.model_entropy, WEIGHTS @ apart, rtol=1e-10)
    same = ClassificationPredictive(logits[:1].expand(3, -1, -1))
    assert float(same.model_entropy.max()) < 1e-14
    assert torch.allclose(same.noise_entropy, Categorical(logits=logits[0]).entropy(), rtol=1e-12)


def test_calibration_is_measured_of_the_mean():
    torch.manual_seed(0)
    logits = torch.randn(1, 4000, 3, dtype=torch.float64)
    y = Categorical(logits=logits[0]).sample()
    right, sure = (ClassificationPredictive(factor * logits).calibration_error(y) for factor in (1.0, 4.0))
    assert right.low == 0.0
    assert sure.low > 0.1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RegressionPredictive(MEANS, 0.0), "variances must be finite and > 0, got 0"),
        (lambda: RegressionPredictive(MEANS * math.nan, 1.0), "means must be finite"),
        (
            lambda: RegressionPredictive(MEANS, VARIANCES, WEIGHTS * 2),
            "weights must be >= 0 and sum to 1, got a sum of 2",
        ),
        (lambda: OURS.band(1.0), "level must be > 0 and < 1, got 1.0"),
        (
            lambda: ClassificationPredictive(drawn(2, 3, 4)).nll(torch.tensor([0, 1, 4])),
            "y must hold tokens from 0 to 3",
        ),
    ],
)
def test_bad_input_meets_one_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
