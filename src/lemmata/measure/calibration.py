r"""Whether a classifier is right as often as it says: calibration error with an interval, and the temperature."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from torch import Tensor

from lemmata import validate

__all__ = [
    "CalibrationError", "Reliability", "Temperature", "calibration_error", "fit_temperature", "reliability_curve",
    "temperature_evidence",
]  # fmt: skip

EXAMPLES_A_BIN = 40  # fewer leave an accuracy with a standard error of up to 0.08 and more
SHARED_SIGNS = 1.4  # standard error of a sum of five normal gaps with signs from the other four, over that of the gaps
COLDEST, HOTTEST = 1e-3, 1e3  # temperatures looked at


class Reliability(NamedTuple):
    """Bins of equally many examples by rising confidence: means, Wilson's interval of the accuracy, sizes."""

    confidence: Float[Tensor, " bins"]
    accuracy: Float[Tensor, " bins"]
    low: Float[Tensor, " bins"]
    high: Float[Tensor, " bins"]
    count: Int[Tensor, " bins"]


class CalibrationError(NamedTuple):
    """The error without the bias of small bins, the plain average of gaps, and an interval around both."""

    value: float
    plain: float
    low: float
    high: float


class Temperature(NamedTuple):
    """The temperature of least negative log-likelihood and its interval; 0 and infinity where no end is in sight."""

    value: float
    low: float
    high: float


def reliability_curve(
    confidence: Float[Tensor, " examples"], correct: Bool[Tensor, " examples"], bins: int = 15, z: float = 1.96
) -> Reliability:
    r"""Mean confidence and accuracy in bins of equally many examples; fewer bins where there are few examples.

    $$ \frac{\hat p + \frac{z^2}{2n} \pm z\sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{z^2}{4n^2}}}{1 + \frac{z^2}{n}} $$

    is Wilson's interval of an accuracy $\hat p$ among $n$.

    Source: M. Naeini, G. Cooper and M. Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning
    (2015); E. Wilson, Probable inference, the law of succession, and statistical inference (1927).

    >>> curve = reliability_curve(torch.linspace(0.5, 1, 80), torch.arange(80) >= 40)
    >>> curve.accuracy.tolist(), curve.count.tolist()
    ([0.0, 1.0], [40, 40])
    """
    confidence, correct = _checked_pair(confidence, correct)
    order = confidence.argsort(stable=True)
    parts = order.tensor_split(_bin_count(len(order), bins))
    count = torch.tensor([len(part) for part in parts])
    accuracy = torch.stack([correct[part].mean() for part in parts])
    shrunk = 1 + z**2 / count
    centre = (accuracy + z**2 / (2 * count)) / shrunk
    half = z * (accuracy * (1 - accuracy) / count + z**2 / (4 * count**2)).sqrt() / shrunk
    mean = torch.stack([confidence[part].mean() for part in parts])
    return Reliability(mean, accuracy, (centre - half).clamp(min=0), (centre + half).clamp(max=1), count)


def calibration_error(
    confidence: Float[Tensor, " examples"], correct: Bool[Tensor, " examples"], bins: int = 15, z: float = 1.96
) -> CalibrationError:
    r"""The expected calibration error, in bins of equally many examples.

    $$ \mathrm{ECE} = \sum_b \frac{n_b}{n} |\delta_b|, \qquad
       \delta_b = \mathbb E\,[\mathrm{correct} - \mathrm{confidence} \mid b] $$

    The plain average of measured gaps $|\hat\delta_b|$ is too large in the mean, also for a calibrated classifier. Here
    the sign of each fifth of a bin is taken from the other four: $\sum_b w_b \sigma_b \delta_b \le \mathrm{ECE}$ for
    any signs $\sigma_b$, and as they are independent of the gaps the value is zero in the mean for a calibrated
    classifier. So the value lies below and the plain average above the error in the mean; the interval reaches `z`
    standard errors beyond them.

    Source: C. Guo, G. Pleiss, Y. Sun and K. Weinberger, On calibration of modern neural networks (2017). Differs:
    equally many examples a bin, and the fifths.

    >>> error = calibration_error(torch.full((4000,), 0.9), torch.arange(4000) % 4 > 0)
    >>> round(error.value, 3), error.low < 0.15 < error.high
    (0.15, True)
    """
    confidence, correct = _checked_pair(confidence, correct)
    # Examples may come in an order with a pattern: fifths are drawn, always the same ones.
    drawn = torch.randperm(len(confidence), generator=torch.Generator().manual_seed(0)).to(confidence.device)
    order = drawn[confidence[drawn].argsort(stable=True)]
    residual = (correct - confidence)[order]
    plain = value = variance = 0.0
    for part, right in zip(
        *(x.tensor_split(_bin_count(len(order), bins)) for x in (residual, correct[order])), strict=True
    ):
        plain += part.sum().abs().item()
        fifths = torch.stack([part[start::5].sum() for start in range(5)])
        value += (fifths * (fifths.sum() - fifths).sign()).sum().item()
        # Laplace's rule of succession: a bin without a mistake does not prove that mistakes are impossible.
        rate = (right.sum().item() + 1) / (len(right) + 2)
        variance += len(right) * rate * (1 - rate)
    number = len(order)
    value, plain, reach = value / number, plain / number, z * math.sqrt(variance) / number
    value = max(value, 0.0)
    return CalibrationError(value, plain, max(value - SHARED_SIGNS * reach, 0.0), min(plain + reach, 1.0))


def fit_temperature(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"], z: float = 1.96
) -> Temperature:
    r"""The temperature $T$ by which logits are to be divided: that of least negative log-likelihood.

    $$ \ell(\beta) = \frac1n \sum_i \Big(\log \sum_k e^{\beta z_{ik}} - \beta z_{i y_i}\Big), \qquad \beta = 1/T, \qquad
       \ell'' = \frac1n \sum_i \mathrm{Var}_{p_i}(z_i) \ge 0 $$

    Convex in $\beta$, so that the sign of the slope at any temperature says on which side the best one lies: the slope
    is followed to its zero, and the interval holds the temperatures at which it lies within `z` standard errors of it.

    Source: C. Guo, G. Pleiss, Y. Sun and K. Weinberger, On calibration of modern neural networks (2017).

    >>> logits = torch.tensor([[2.0, 0.0]]).repeat(4, 1)
    >>> round(fit_temperature(logits, torch.tensor([0, 0, 0, 1])).value, 4)  # 2 / T = log 3
    1.8205
    """
    logits = _shifted_logits(logits, labels)
    value, low, high = (_level_crossing(logits, labels, level) for level in (0.0, z, -z))
    return Temperature(value, min(low, value), max(high, value))


def temperature_evidence(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"], at: float
) -> float:
    r"""How surely the best temperature lies above a given one (positive) or below it (negative).

    $$ \pm \sqrt{2 n (\ell(1/T) - \min_\beta \ell(\beta))}, \qquad P(\text{beyond } \pm r) \le e^{-r^2/2} $$

    where labels are drawn by the logits at this temperature: an exponential family in $\beta$, whose Chernoff bound
    this is, for any number of examples.

    >>> logits = torch.tensor([[4.0, 0.0]]).repeat(20, 1)
    >>> wrong = torch.zeros(20, dtype=torch.long)
    >>> wrong[:5] = 1  # of twenty that were 98 % sure
    >>> round(temperature_evidence(logits, wrong, at=1.0), 2)
    4.27
    """
    shifted = _shifted_logits(logits, labels)
    best = min(max(_level_crossing(shifted, labels, 0.0), COLDEST), HOTTEST)

    def total(temperature: float) -> float:
        return (shifted / temperature).logsumexp(1).sum().item()  # the label's own logit is zero

    return math.copysign(math.sqrt(max(2 * (total(at) - total(best)), 0.0)), best - at)


def _temperature_score(logits: Tensor, labels: Tensor, at: float) -> float:
    """In standard errors, the slope of the loss in 1 / T at a temperature: positive where the best one lies above. The
    larger of two standard errors is taken, that of the measured slopes and that of the probabilities at this
    temperature: where mistakes are rare, either alone is too small.
    """
    p = (logits / at).softmax(1)
    mean = (p * logits).sum(1)
    slopes = mean - logits.gather(1, labels[:, None])[:, 0]
    said = (p * (logits - mean[:, None]).square()).sum().item()
    seen = (slopes - slopes.mean()).square().sum().item()
    scale = logits.abs().amax().item() * torch.finfo(logits.dtype).eps  # outputs that are all equal have no slope
    return slopes.sum().item() / math.sqrt(max(said, seen, scale**2, torch.finfo(logits.dtype).tiny))


def _level_crossing(logits: Tensor, labels: Tensor, level: float) -> float:
    """The temperature at which the slope, in standard errors, falls to a level."""
    if _temperature_score(logits, labels, COLDEST) <= level:
        return 0.0
    if _temperature_score(logits, labels, HOTTEST) > level:
        return math.inf

    def above(place: float) -> float:
        return _temperature_score(logits, labels, math.exp(place)) - level

    place = brentq(above, math.log(COLDEST), math.log(HOTTEST), xtol=1e-10)  # of a logarithm: a relative tolerance
    return math.exp(float(place))  # type: ignore[arg-type]


def _bin_count(number: int, most: int) -> int:
    return max(min(most, number // EXAMPLES_A_BIN), 1)


def _checked_pair(confidence: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
    validate.vector("confidence", confidence)
    if not bool(((confidence >= 0) & (confidence <= 1)).all()):
        raise ValueError(f"confidence must be in [0, 1], got {confidence.min():g} to {confidence.max():g}: use softmax")
    if validate.bits("correct", correct).shape != confidence.shape:
        raise ValueError(f"correct must have the shape of confidence, got {tuple(correct.shape)}")
    return confidence.detach().double(), correct.detach().to(confidence.device).double()


def _shifted_logits(logits: Tensor, labels: Tensor) -> Tensor:
    validate.matrix("logits", logits, "examples, classes")
    if labels.shape != logits.shape[:1]:
        raise ValueError(f"labels must hold one class for each of {len(logits)} examples, got {tuple(labels.shape)}")
    validate.tokens("labels", labels, logits.shape[1])
    logits = logits.detach().double()
    return logits - logits.gather(1, labels[:, None])  # of the label: zero, so that nothing large cancels
