"""Calibration: intervals that cover, no error where there is none, torch's optimum of the temperature, bad input."""

import math

import pytest
import torch
from torch.nn import functional

from lemmata.measure.calibration import calibration_error, fit_temperature, reliability_curve, temperature_evidence


def drawn(number, gap, generator):
    confidence = torch.rand(number, generator=generator, dtype=torch.float64) / 2 + 0.5
    return confidence, torch.rand(number, generator=generator, dtype=torch.float64) < confidence - gap


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_the_interval_covers_the_error(gap):
    generator = torch.Generator().manual_seed(0)
    found = [calibration_error(*drawn(360, gap, generator)) for _ in range(200)]
    covered = sum(one.low <= gap <= one.high for one in found)
    # 95 % of 200 less four standard deviations of a binomial count, 4 sqrt(200 * 0.95 * 0.05) = 12.
    assert covered >= 190 - 12
    assert all(one.low <= one.value <= one.plain + 1e-12 <= one.high + 1e-12 for one in found)


def test_a_calibrated_classifier_has_less_error_than_the_plain_average_says():
    generator = torch.Generator().manual_seed(0)
    found = [calibration_error(*drawn(360, 0.0, generator)) for _ in range(200)]
    plain, value = (sum(getattr(one, name) for one in found) / 200 for name in ("plain", "value"))
    # Of 9 bins of 40 with accuracies about 3/4 the mean of |gap| is sqrt(2 / pi) sqrt(3 / 16 / 40) = 0.055, less at the
    # sure end; the value is cut off at zero.
    assert plain > 0.04
    assert value < plain / 3


@pytest.mark.parametrize("over", [True, False])
def test_with_many_examples_it_is_the_error(over):
    """A known law: right with probability c^2, or with its root, at confidence c uniform in [1/2, 1]."""
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(40_000, generator=generator, dtype=torch.float64) / 2 + 0.5
    rate = confidence.square() if over else confidence.sqrt()
    found = calibration_error(confidence, torch.rand(40_000, generator=generator, dtype=torch.float64) < rate)
    exact = 0.75 - 7 / 12 if over else (1 - 0.5**1.5) * 4 / 3 - 0.75  # E c - E c^2, E sqrt c - E c
    assert found.value == pytest.approx(exact, abs=4 * 0.5 / 200)  # four standard errors of at most 1/2 / sqrt(n)
    assert found.low < exact < found.high


def test_the_order_of_the_examples_does_not_matter_much():
    """Every second example wrong, in a pattern that even and odd positions would see as two data sets."""
    correct = torch.arange(4000) % 2 == 0
    assert calibration_error(torch.full((4000,), 0.9).double(), correct).value == pytest.approx(0.4, abs=1e-6)


def test_bins_hold_equally_many_and_their_intervals_are_wilsons():
    confidence = torch.linspace(0.5, 1.0, 400)
    curve = reliability_curve(confidence, torch.ones(400, dtype=torch.bool), bins=4)
    assert curve.count.tolist() == [100] * 4
    assert (curve.confidence[1:] > curve.confidence[:-1]).all()
    # Without a mistake Wilson's lower limit is n / (n + z^2), and the upper one is 1.
    assert curve.low.tolist() == pytest.approx([100 / (100 + 1.96**2)] * 4)
    assert curve.high.tolist() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_temperature_is_that_of_the_labels_and_of_lbfgs(true, dtype):
    generator = torch.Generator().manual_seed(0)
    honest = 2 * torch.randn(1000, 5, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    logits = (honest * true).to(dtype)
    found = fit_temperature(logits, labels)
    assert found.low < true < found.high
    log_beta = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_beta], max_iter=100, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = functional.cross_entropy(log_beta.exp() * logits.double(), labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    # L-BFGS stops where the loss, of size one, no longer falls: its argument is right to the root of the rounding.
    assert found.value == pytest.approx(math.exp(-log_beta.item()), rel=1e-5)


def test_the_interval_of_the_temperature_covers():
    generator = torch.Generator().manual_seed(0)
    covered = 0
    for _ in range(60):
        logits = 2 * torch.randn(150, 4, generator=generator, dtype=torch.float64)
        labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
        found = fit_temperature(logits, labels)
        covered += found.low <= 1 <= found.high
    assert covered >= 57 - 7  # four standard deviations, 4 sqrt(60 * 0.95 * 0.05)


def test_temperatures_without_an_end():
    logits = torch.tensor([[3.0, 0.0]]).repeat(20, 1)
    right = torch.zeros(20, dtype=torch.long)
    assert fit_temperature(logits, right).value == 0.0  # never wrong: the larger the logits, the better
    assert fit_temperature(logits, 1 - right).value == math.inf  # always wrong: the smaller, the better
    assert fit_temperature(torch.zeros(20, 2), right).low == 0.0  # all equal: nothing follows


def test_no_mistake_among_few_is_no_proof_of_underconfidence():
    """300 examples at 99 %: no mistake has probability 0.05, which the model itself says."""
    logits = torch.tensor([[math.log(99), 0.0]]).repeat(300, 1)
    right = torch.zeros(300, dtype=torch.long)
    assert fit_temperature(logits, right).high > 1
    # The likelihood of no mistake is 0.99^300 against 1: the root of twice its logarithm.
    assert temperature_evidence(logits, right, 1.0) == pytest.approx(-math.sqrt(-600 * math.log(0.99)))


def test_the_evidence_says_on_which_side_the_best_temperature_lies():
    generator = torch.Generator().manual_seed(0)
    honest = 2 * torch.randn(2000, 3, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(honest.softmax(1), 1, generator=generator)[:, 0]
    best = fit_temperature(honest * 3, labels).value
    evidence = [temperature_evidence(honest * 3, labels, best * factor) for factor in (0.5, 1.0, 2.0)]
    assert evidence[0] > 3
    assert evidence[1] == pytest.approx(0, abs=1e-3)
    assert evidence[2] < -3


def test_the_evidence_is_as_rare_as_chernoff_says():
    """Few examples with rare mistakes, where normal laws fail: beyond r in at most exp(-r^2 / 2) of cases a side."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([[3.0, 0.0]], dtype=torch.float64).repeat(30, 1)
    drawn = torch.rand(400, 30, generator=generator, dtype=torch.float64) > torch.sigmoid(logits[0, 0])
    evidence = torch.tensor([temperature_evidence(logits, labels.long(), 1.0) for labels in drawn])
    for level in (1.5, 2.0):
        most = 400 * math.exp(-(level**2) / 2)
        assert (evidence > level).sum() <= most + 4 * math.sqrt(most)
        assert (evidence < -level).sum() <= most + 4 * math.sqrt(most)


def test_huge_logits_stay_finite():
    logits = torch.tensor([[1e30, 0.0], [0.0, 1e30], [1e30, 0.0]])
    found = fit_temperature(logits, torch.tensor([0, 1, 1]))
    assert not math.isnan(found.value)


@pytest.mark.parametrize(
    ("confidence", "correct", "told"),
    [
        (torch.tensor([1.2]), torch.tensor([True]), r"confidence must be in \[0, 1\]"),
        (torch.tensor([0.5, math.nan]), torch.tensor([True, True]), "confidence must be finite"),
        (torch.zeros(0), torch.zeros(0, dtype=torch.bool), "confidence must not be empty"),
        (torch.tensor([0.5]), torch.tensor([2]), "correct must hold only 0 and 1"),
        (torch.tensor([0.5]), torch.tensor([True, False]), "correct must have the shape of confidence"),
    ],
)
def test_bad_input_of_confidences(unchecked, confidence, correct, told):
    for function in (calibration_error, reliability_curve):
        with pytest.raises(ValueError, match=told):
            function(confidence, correct)


@pytest.mark.parametrize(
    ("logits", "labels", "told"),
    [
        (torch.zeros(3), torch.zeros(3, dtype=torch.long), r"logits must be a \(examples, classes\) tensor"),
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.long), "labels must hold one class for each of 3 examples"),
        (torch.zeros(1, 2), torch.tensor([2]), "labels must hold tokens from 0 to 1"),
    ],
)
def test_bad_input_of_logits(unchecked, logits, labels, told):
    with pytest.raises(ValueError, match=told):
        fit_temperature(logits, labels)
