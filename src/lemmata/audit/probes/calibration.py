r"""Is a classifier right as often as it says, and which temperature mends it?"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.predictions import Predictions, predictions
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.figure import Figure, Line, Points
from lemmata.measure.calibration import (
    CalibrationError,
    Temperature,
    calibration_error,
    fit_temperature,
    reliability_curve,
    temperature_evidence,
)

LEAST = 50  # examples: with fewer the interval of an accuracy is 0.3 wide
KNOWN = 0.2  # of the labels' entropy that a network must explain before calibration means something
# Training to the end of the cross-entropy leaves the best temperature of the training part at 1, or below where nearly
# all of it is fitted, as the scale of the logits is one of the directions trained: 1.5 does not come from training. On
# new data overfitting raises it: 1 to 2.5 for the networks of Guo et al. (2017), 4 after 250 passes over 2000 pictures.
HOT_TRAIN, HOT_TEST = 1.5, 5.0
SURE = 3.0  # of the evidence: by chance in at most exp(-9 / 2) = 1.1 % of cases at the limit itself
# Where the step is large, or training has just begun, networks swing from class to class and are overconfident for a
# moment. At rest their probabilities have the classes' shares in the mean; in a swing a fifth and more stands wrong.
SWINGS = 0.15
COLD = 0.2  # by which a network says less than it keeps
FITTED = 0.97  # of the training part right: below it an underconfident network may just be young
CLAIMS = ("softmax.cross_entropy", "information.ce_decomposition", "information.ce_minimizer")


@probe("Calibration", value=55, share=0.1, needs=("targets", "classes"))
def calibration(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """Confidence against accuracy on the test part, or on the training part where there is no other."""
    held = subject.test if subject.test is not None and subject.test.targets is not None else None
    sample = subject.train if held is None else held
    said = _some_examples(predictions(subject, sample, clock), clock)
    if len(said) < LEAST:
        yield skipped("calibration", f"{len(said)} labelled examples are too few to tell: it needs {LEAST}")
        return
    found = _measure_calibration(said)
    if not found.knows:
        told = f"it is right in {found.accuracy:.1%} of {len(said)} examples"
        yield fine("calibration", f"the network knows too little yet to be calibrated: {told}", numbers=found.numbers)
        return
    train = said if held is None else _some_examples(predictions(subject, subject.train, clock), clock)
    yield _judge_calibration(found, said, train, held is not None, subject)


def _some_examples(said: Predictions, clock: Clock) -> Predictions:
    """As many as half of the time allows to fit a temperature to: some 50 softmaxes, of up to 100 ns a number."""
    seconds = 5e-6 * said.logits.shape[1]
    number = min(len(said), max(int(clock.left() / 2 / seconds), LEAST))
    clock.need(number * seconds, "fitting a temperature")
    return said[torch.randperm(len(said), generator=torch.Generator().manual_seed(0))[:number].sort().values]


class _Measured(NamedTuple):
    error: CalibrationError
    mended: CalibrationError
    temperature: Temperature
    accuracy: float
    confidence: float
    knows: bool
    numbers: dict[str, float]


def _measure_calibration(said: Predictions) -> _Measured:
    confidence, correct = said.probabilities.amax(1), said.correct
    temperature = fit_temperature(said.logits, said.labels)
    error = calibration_error(confidence, correct)
    other = _cross_fitted(said)
    surprise = other.surprise
    mended = calibration_error(other.probabilities.amax(1), correct)
    shares = torch.bincount(said.labels).double() / len(said)
    entropy = -shares[said.labels].log()  # of always saying how frequent each class is, (examples,)
    gain = entropy - surprise
    sure = gain.mean() - 3 * gain.std() / len(said) ** 0.5
    numbers = {
        "accuracy": correct.double().mean().item(), "confidence": confidence.mean().item(), "ece": error.value,
        "ece_low": error.low, "ece_high": error.high, "ece_mended": mended.value, "temperature": temperature.value,
        "temperature_low": temperature.low, "temperature_high": temperature.high, "examples": len(said),
        "nll": said.surprise.mean().item(), "nll_mended": surprise.mean().item(),
    }  # fmt: skip
    knows = bool(sure > 0) and gain.mean() > KNOWN * entropy.mean()
    return _Measured(error, mended, temperature, numbers["accuracy"], numbers["confidence"], bool(knows), numbers)


def _cross_fitted(said: Predictions) -> Predictions:
    """Each half at the temperature fitted on the other one, so that what it mends is measured on examples it has not
    seen; (examples, classes) in the order given.
    """
    order = torch.randperm(len(said), generator=torch.Generator().manual_seed(0))
    halves, logits = order.chunk(2), said.logits.clone()
    for own, other in (halves, halves[::-1]):
        best = fit_temperature(said.logits[other], said.labels[other], z=0.0).value
        logits[own] /= min(max(best, 1e-3), 1e3)
    return Predictions(logits, said.labels)


def _judge_calibration(
    found: _Measured, said: Predictions, train: Predictions, held: bool, subject: Subject
) -> AuditFinding:
    best, error, numbers = found.temperature, found.error, found.numbers
    where = f"{len(said)} {'test' if held else 'training'} examples"
    measured = f"calibration error {error.value:.3f} ({error.low:.3f} to {error.high:.3f}) on {where}; "
    measured += f"negative log-likelihood {numbers['nll']:.3f}"
    more = {
        "measured": measured, "claims": CLAIMS, "numbers": numbers, "figures": [_reliability_figure(said, found)],
        "predicted": "a calibrated network is right as often as it says: error 0, best temperature 1",
    }  # fmt: skip
    right = f"right in {found.accuracy:.1%} of cases and says {found.confidence:.1%}"
    below = found.confidence < found.accuracy
    fitted = fit_temperature(train.logits, train.labels, z=0.0).value
    hot = fitted > HOT_TRAIN and temperature_evidence(train.logits, train.labels, 1.0) > SURE
    hot = hot or (held and temperature_evidence(said.logits, said.labels, HOT_TEST) > SURE)
    hot = hot and _misplaced_probability(train.at(min(max(fitted, 1e-3), 1e3))) < SWINGS
    cold = below and error.low > COLD and best.low > 0 and train.correct.double().mean() >= FITTED
    loud = alarm if _log_loss(subject, train) else hint
    if hot:
        size = f"{best.value:.2g} times" if best.value < math.inf else "far"
        verdict = f"overconfident: the network is {right}; its logits are {size} too large"
        cause = "Look for a factor on the logits, or stop earlier and regularise more."
        return loud("calibration", verdict, advice=f"{_cure_words(found)} {cause}", weight=5.0, **more)
    if cold:
        verdict = f"underconfident: the network is {right}; its logits are {1 / best.value:.2g} times too small"
        cause = "Look for a temperature or a softmax left before the output, and for strong label smoothing."
        return loud("calibration", verdict, advice=f"{_cure_words(found)} {cause}", weight=4.0, **more)
    apart = temperature_evidence(said.logits, said.labels, 1.0) > SURE and best.value > 1.5
    # To say too little costs less than to say too much, and young networks do.
    if error.low > (0.05 if below else 0.02) or apart:
        how = "" if error.value > 0.1 else "somewhat "
        verdict = f"{how}{'underconfident' if below else 'overconfident'}: the network is {right}"
        young = " It may also just be young: train on." if below else ""
        return hint("calibration", verdict, advice=_cure_words(found) + young, weight=1 + 3 * error.value, **more)
    return fine("calibration", f"calibrated well enough, as far as {where} tell: the network is {right}", **more)


def _cure_words(found: _Measured) -> str:
    best = found.temperature.value
    if not 0 < best < math.inf:  # never wrong, or wrong whenever it is sure
        return "Ask more examples: these do not show how sure it may be."
    told = f"Divide the logits by {best:.2g}: on examples it was not fitted to that gives a calibration error of "
    return told + f"{found.mended.value:.3f} and a negative log-likelihood of {found.numbers['nll_mended']:.3f}."


def _misplaced_probability(said: Predictions) -> float:
    """The share of probability that stands with other classes than the labels do, in the mean over all examples."""
    shares = torch.bincount(said.labels, minlength=said.logits.shape[1]).double() / len(said)
    return (said.probabilities.mean(0) - shares).abs().sum().item() / 2


def _log_loss(subject: Subject, train: Predictions) -> bool:
    """Whether the loss is the negative log-likelihood, or near it: outputs of other losses need not be logits."""
    if not callable(subject.given_loss):
        return True
    part = subject.train[: subject.chunk]
    with torch.no_grad():
        told = float(subject.loss(subject.network(*part.tensors), part.targets))  # type: ignore[arg-type]
    own = train.surprise.mean().item()
    # Weights of classes and smoothed labels change it by less than a factor of two either way.
    return own / 2 - 0.1 <= told <= 2 * own + 0.5


def _reliability_figure(said: Predictions, found: _Measured) -> Figure:
    curve = reliability_curve(said.probabilities.amax(1), said.correct)
    gap = torch.full_like(curve.low, math.nan)  # between one interval and the next
    across = torch.stack([curve.confidence, curve.confidence, gap], 1).flatten()
    along = torch.stack([curve.low, curve.high, gap], 1).flatten()
    start = math.floor(10 * min(curve.confidence.min().item(), curve.low.min().item())) / 10
    marks = [
        Line([start, 1], [start, 1], "calibrated"),
        Line(across, along, "95 % interval"),
        Points(curve.confidence, curve.accuracy, "as it is"),
    ]
    if 0 < found.temperature.value < float("inf"):
        mended = said.at(found.temperature.value)
        after = reliability_curve(mended.probabilities.amax(1), mended.correct)
        marks.append(Points(after.confidence, after.accuracy, f"logits divided by {found.temperature.value:.2g}"))
    return Figure("Reliability", "confidence", "accuracy", marks, note="Bins of equally many examples.")
