r"""How noisy the gradients of batches are, and which batch size pays."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from scipy import stats

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, fine, hint, skipped
from lemmata.audit.learning_form import LearningForm, examples_for, learning_form
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.figure import Band, Figure, Line
from lemmata.measure.gradient_noise import gradient_noise_scale

NAME = "batch size"
GROUPS, BATCHES = 8, 4  # estimates that do not depend on each other, each from so many batches
SIZE = 8  # examples of a batch, where there are enough: small ones tell most about noise
PASSES = 4  # forwards, for one example: a gradient and its square
CONFIDENCE = 0.95
FAR = 10.0  # times the noise scale, beyond which the batch size is worth a word


class NoiseInterval(NamedTuple):
    """The batch size at which noise and gradient are equally large, and an interval for it."""

    scale: float
    low: float
    high: float


@probe("Noise of the gradients", value=50, share=0.1, needs=("targets",))
def gradient_noise(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """The gradient noise scale, with an interval, against the batch size."""
    least = 2 * GROUPS * BATCHES
    if not any(value.requires_grad for value in subject.model.parameters()):
        yield skipped(NAME, "the model has no parameters that learn")
        return
    if len(subject.train) < least:
        yield skipped(NAME, f"{least} examples are the fewest that tell noise from gradient, got {len(subject.train)}")
        return
    examples = max(examples_for(subject, 0.8 * clock.left(), PASSES), least)
    clock.need(PASSES * subject.seconds * examples, "the noise of the gradients")
    with learning_form(subject, examples) as form:
        yield _judge_noise(form, _noise_interval(form, least, clock))


def _noise_interval(form: LearningForm, least: int, clock: Clock) -> NoiseInterval:
    """Means of independent unbiased estimates of both parts, each with an interval by Student's law."""
    sample = form.subject.some(max(len(form.sample), least)) if len(form.sample) < least else form.sample
    size = min(SIZE, len(sample) // (GROUPS * BATCHES))
    batches = form.batches_of(sample, size)
    before = clock.left()
    gradient_noise_scale(form.network, form.subject.loss, batches[:2])
    taken = max((before - clock.left()) / 2, 1e-9)  # small batches take longer for an example than large ones
    clock.need(2 * GROUPS * taken, "the noise of the gradients")
    each = max(min(len(batches), int(0.8 * clock.left() / taken)) // GROUPS, 2)
    groups = [batches[i * each : (i + 1) * each] for i in range(GROUPS)]
    found = [gradient_noise_scale(form.network, form.subject.loss, group) for group in groups]
    # Both intervals hold together with CONFIDENCE: each misses on either side with a quarter of the rest.
    times = float(stats.t.ppf(1 - (1 - CONFIDENCE) / 4, GROUPS - 1)) / math.sqrt(GROUPS)

    def ends(values: list[float]) -> tuple[float, float, float]:
        numbers = torch.tensor(values, dtype=torch.float64)
        mean, error = numbers.mean().item(), times * numbers.std().item()
        return mean, max(mean - error, 0.0), mean + error

    square, square_low, square_high = ends([one.gradient_square for one in found])
    noise, noise_low, noise_high = ends([one.variance for one in found])
    return NoiseInterval(
        _noise_over_gradient(noise, square),
        _noise_over_gradient(noise_low, square_high),
        _noise_over_gradient(noise_high, square_low),
    )


def _noise_over_gradient(above: float, below: float) -> float:
    return above / below if below > 0 else math.inf if above > 0 else 0.0


def _judge_noise(form: LearningForm, found: NoiseInterval) -> AuditFinding:
    size = form.subject.training.batch_size
    told = f"{_in_digits(found.scale)} ({_in_digits(found.low)} to {_in_digits(found.high)})"
    if math.isinf(found.high):
        told = f"at least {_in_digits(found.low)}" if found.low > 0 else "too uncertain to tell"
    more = {
        "measured": f"noise scale {told} on {len(form.sample)} examples, {form.words}",
        "predicted": "a batch of B examples has a gradient of length |G| with noise of variance tr Σ/B; both are "
        "equal at B = tr Σ/|G|², the noise scale",
        "claims": ("optim.sgd.variance", "optim.sgd.basin_width"),
        "numbers": {"scale": found.scale, "low": found.low, "high": found.high, "batch_size": size or math.nan},
        "figures": [_noise_figure(found, size)],
    }
    if size is None:
        return fine(NAME, f"the gradient noise scale is {told}; give batch_size=... and yours is compared",
                    **more)  # fmt: skip
    if size > FAR * found.high:
        verdict = f"batches of {size} are {size / max(found.high, 1):.2g} times the noise scale {told} and more"
        cure = (
            f"at these weights batches of {_in_digits(max(found.high, 1))} would take you as far per step, at less cost"
        )
        return hint(NAME, verdict, advice=cure, weight=1.5, **more)
    if size * FAR < found.low:
        verdict = f"batches of {size} are far below the noise scale {told}: their gradients are mostly noise"
        cure = (
            f"up to about {_in_digits(found.low)} examples, doubling the batch nearly halves the steps that are needed"
        )
        return hint(NAME, verdict, advice=cure, weight=1.0, **more)
    if math.isinf(found.high):  # near a minimum the gradient is lost in its noise
        return fine(NAME, f"your batches hold {size} examples; the noise scale is {told}", **more)
    return fine(NAME, f"batches of {size} suit the noise scale {told}", **more)


def _noise_figure(found: NoiseInterval, size: int | None) -> Figure:
    """Noise over gradient as a function of the batch size."""
    ends = [value for value in (found.low, found.scale, found.high, float(size or 0)) if 0 < value < math.inf]
    most = max([*ends, 64.0])
    sizes = torch.logspace(0, math.ceil(math.log10(2 * most)), 40)
    marks: list[Band | Line] = []
    if math.isfinite(found.high):
        low, high = (torch.sqrt(end / sizes) for end in (found.low, found.high))
        marks.append(Band(sizes, low, high, f"with confidence {CONFIDENCE}"))
    if math.isfinite(found.scale):
        marks.append(Line(sizes, torch.sqrt(found.scale / sizes), "noise over gradient"))
    elif found.low > 0:
        marks.append(Line(sizes, torch.sqrt(found.low / sizes), "noise over gradient, at least"))
    if size:
        marks.append(Line([size, size], [0.1, 10.0], "your batch size"))
    return Figure("Noise of a batch's gradient", "batch size", "noise over gradient", marks, x_log=True, y_log=True)


def _in_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
