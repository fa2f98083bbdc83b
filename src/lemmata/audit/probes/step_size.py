r"""The step size against the limit that the curvature of the loss sets."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.learning_form import SMALLEST, LearningForm, examples_for, learning_form, vectors_for
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject
from lemmata.audit.trial_steps import Trial, tried
from lemmata.audit.update_rule import UpdateRule, update_rule
from lemmata.figure import Figure, Line
from lemmata.measure.eigenvalues import extreme_eigenpairs

NAME = "step size"
PASSES = 200  # forwards, for one example: 15 products at 6, 30 steps of a trial at 3, the rest for moments and tests
LEAST = 80  # with 10 products and a short trial
PRODUCTS, USUAL = 40, 15  # at most and mostly, of Lanczos's iteration: the largest eigenvalue stands out
SHORTEST = 6  # steps of a trial: an unstable direction grows by 700 in as many
ACCURACY = 0.01  # residual over eigenvalue at which the iteration ends: far below the factor 2 that is asked about
TOO_LARGE = 2.0  # times the limit: full-batch training settles at the limit itself and oscillates around it
TOO_SMALL = 0.01
LARGER, FASTER, NOTICED = 10, 3.0, 1e-3  # steps so many times as large must gain three times as much, and not nothing
EDGE = 0.8  # of the limit, from which on it is worth saying
CHUNKS, FEWEST = 8, 4  # parts of the fresh examples, of which one interval is made
CONFIDENCE = 0.999  # that the interval holds, on its one side
CLAIMS = {
    "sgd": ("optim.gd",),
    "nesterov": ("optim.nesterov",),
    "adam": ("optim.adam",),
    "adamw": ("optim.adam",),
    "rmsprop": ("optim.rmsprop",),
    "adagrad": ("optim.adagrad",),
}


@dataclass(frozen=True)
class Steepness:
    """The largest eigenvalue of the scaled Hessian over its limit: 1 is the edge of stability."""

    ratio: float
    at_least: float  # with confidence, for the examples that were not measured too
    residual: float
    examples: int
    products: int


@probe("Step size against the curvature", value=90, share=0.25, needs=("targets",))
def step_size(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """How the learning rate compares with the largest stable one, and what a few steps of it do."""
    if not any(value.requires_grad for value in subject.model.parameters()):
        yield skipped(NAME, "the model has no parameters that learn")
        return
    if subject.training.running is not None and not _optimizer_holds(subject.training.running, subject):
        verdict = "the optimiser holds none of the model's parameters: its steps leave the model as it is"
        advice = "make it from model.parameters(), after the model was copied or moved"
        yield hint(NAME, verdict, advice=advice, claims=("optim.gd",), weight=8.0)
        return
    examples = examples_for(subject, 0.6 * clock.left(), PASSES)
    clock.need(LEAST * subject.seconds * examples, "the largest curvature")
    with learning_form(subject, examples) as whole:
        form = whole.within(0.4 * clock.left(), USUAL)
        rule = update_rule(form, subject.training)
        steepness = rule and _measure_steepness(form, rule)
        if subject.training.lr is None:
            if rule is not None and steepness is not None:
                yield _limit_alone(form, rule, steepness)
            return
        trial = _try_steps(form, clock)
        if rule is None or steepness is None:
            yield _by_trial(form, trial)
        else:
            yield _judge_step(form, rule, steepness, trial, clock)


def _optimizer_holds(optimizer: torch.optim.Optimizer, subject: Subject) -> bool:
    held = {id(value) for group in optimizer.param_groups for value in group["params"]}
    return any(id(value) in held for value in subject.model.parameters() if value.requires_grad)


def _try_steps(form: LearningForm, clock: Clock, factor: float = 1.0) -> Trial | None:
    """Steps on a copy, unless time is short or the model or its optimiser cannot be copied."""
    # Some optimisers, such as torch's LBFGS, keep what a copy loses.
    with contextlib.suppress(RuntimeError, TypeError, AttributeError, OutOfTime):
        clock.need(3 * SHORTEST * form.subject.seconds * len(form.sample), "a trial")
        return tried(form, form.subject.training, clock, factor)
    return None


def _measure_steepness(form: LearningForm, rule: UpdateRule) -> Steepness:
    hessian = form.hessian(rule.rates)
    flat = _flat_rates(rule, hessian.split(torch.zeros(hessian.size, device=hessian.device)), hessian.dtype)
    product = rule.scaled(hessian, flat)
    start = hessian.start(generator=torch.Generator(hessian.device).manual_seed(0))
    found = extreme_eigenpairs(product, start, accuracy=ACCURACY, steps=vectors_for(hessian.size, PRODUCTS))
    ratio, residual = found.values.item() / rule.limit, found.residuals.item() / rule.limit
    at_least = ratio
    # Batch statistics of fewer examples make another function: then batches must be as large as those measured.
    size = form.size if form.mixes else max(len(form.fresh or ()) // CHUNKS, SMALLEST // 4)
    if form.fresh is not None and len(form.fresh) >= FEWEST * size:
        at_least = min(ratio, _lower_end(form, rule, found.vectors[0], flat, size) / rule.limit)
    return Steepness(ratio, at_least, residual, len(form.sample), found.products)


def _lower_end(form: LearningForm, rule: UpdateRule, vector: Tensor, flat: Tensor, size: int) -> float:
    """The lower end of an interval for the curvature of all examples along a vector that did not see the fresh ones.

    The largest eigenvalue of a sample is too large in the mean, as the largest of a mean is at most the mean of the
    largest. The curvature of fresh examples along the vector that was found is not, and is at most the eigenvalue.
    """
    assert form.fresh is not None
    curvatures = []
    for part in form.subject.batches(form.fresh, size, whole=True):
        product = rule.scaled(form.hessian(rule.rates, part), flat)
        curvatures.append(float((vector.double() * product(vector).double()).sum()))
    values = torch.tensor(curvatures, dtype=torch.float64)
    error = values.std().item() / math.sqrt(len(values))
    return values.mean().item() - float(stats.t.ppf(CONFIDENCE, len(values) - 1)) * error


def _flat_rates(rule: UpdateRule, shapes: dict[str, Tensor], dtype: torch.dtype) -> Tensor:
    return torch.cat([(torch.zeros_like(shape) + rule.rates[name]).flatten() for name, shape in shapes.items()]).to(
        dtype
    )


def _judge_step(
    form: LearningForm, rule: UpdateRule, found: Steepness, trial: Trial | None, clock: Clock
) -> AuditFinding:
    """The verdict where both the limit and the steps that were tried are known."""
    more = _rule_evidence(form, rule, found, trial)
    limit = rule.lr / found.ratio if found.ratio > 0 else math.inf
    step = f"your step {rule.lr:.3g}"
    happened = f": {_trial_in_words(trial)}" if trial is not None else ""
    # Rates that are guessed prove nothing by themselves.
    shown = trial.rises if rule.known and trial is not None else rule.known if trial is None else trial.destroys
    if found.ratio > TOO_LARGE and found.at_least > 1 and shown:
        verdict = f"{step} is {found.ratio:.3g} times the stable limit {limit:.2g}{happened}"
        calmer = _try_steps(form, clock, 0.5 / found.ratio) if trial is not None else None
        more["figures"] = [_trial_figure(trial, calmer, rule.lr, limit / 2)]
        return alarm(NAME, verdict, advice=_smaller_step_advice(limit), weight=9.0, **more)
    if trial is not None and trial.ruins:
        return _ruined_finding(form, trial, more)
    if found.ratio > TOO_LARGE:
        verdict = f"{step} is {found.ratio:.3g} times the stable limit {limit:.2g} of these weights{happened}"
        if trial is not None and not trial.rises:  # the network moves to where the loss is less curved
            advice = f"keep it while the loss falls; should it spike, warm up, or use a learning rate below {limit:.2g}"
            return hint(NAME, verdict, advice=advice, weight=1.0, **more)
        return hint(NAME, verdict, advice=_smaller_step_advice(limit), weight=4.0, **more)
    if found.ratio < TOO_SMALL and trial is not None:
        faster = _try_steps(form, clock, LARGER)
        if faster is not None and _trial_gains(trial, faster):
            verdict = f"{step} is {found.ratio:.1g} of the stable limit {_number_in_words(limit)}{happened}; "
            verdict += f"with {LARGER * rule.lr:.2g} to {faster.losses[-1]:.3g}"
            more["figures"] = [_trial_figure(trial, faster, rule.lr, LARGER * rule.lr)]
            advice = f"try larger steps, such as {LARGER * rule.lr:.2g}"
            return hint(NAME, verdict, advice=advice, weight=2.0, **more)
    if found.ratio > EDGE:
        verdict = f"{step} is at the edge of stability, {found.ratio:.2g} times the limit {limit:.2g}"
    else:
        verdict = f"{step} is {found.ratio:.2g} of the stable limit {limit:.2g}"
    return fine(NAME, verdict, **more)


def _trial_gains(trial: Trial, larger: Trial) -> bool:
    """Whether larger steps lower the loss much more."""
    ours, theirs = (one.losses[0] - one.losses[-1] for one in (trial, larger))
    return theirs > FASTER * ours and theirs > NOTICED * abs(trial.constant)


def _rule_evidence(form: LearningForm, rule: UpdateRule, found: Steepness, trial: Trial | None) -> dict:
    """What every verdict on a known rule rests on."""
    curvature, residual = found.ratio * rule.limit / rule.lr, found.residual * rule.limit / rule.lr
    which = "scaled curvature" if rule.adaptive else "curvature"
    measured = (
        f"largest {which} λ = {curvature:.3g} (residual {residual:.1g}, {found.products} products) "
        f"on {found.examples} examples, {form.words}"
    )
    if found.at_least < found.ratio:
        least = max(found.at_least * rule.limit / rule.lr, 0.0)
        measured += f"; at least {least:.3g} on all, with confidence {CONFIDENCE}"
    of = f", divided by the root mean square of {rule.source}" if rule.adaptive else ""
    numbers = {
        "lr": rule.lr,
        "limit": rule.lr / found.ratio if found.ratio > 0 else math.inf,
        "ratio": found.ratio,
        "ratio_at_least": found.at_least,
        "curvature": curvature,
        "residual": residual,
        "examples": found.examples,
    }
    if trial is not None:
        numbers |= {"loss_start": trial.losses[0], "loss_peak": trial.peak, "loss_end": trial.losses[-1]}
    figures = [_trial_figure(trial, None, rule.lr)] if trial is not None else []
    claims = ("optim.stepsize.two_over_beta", *CLAIMS[rule.kind])
    value = "" if rule.formula == "2/λ" else f" = {rule.limit:.3g}/λ"
    predicted = f"steps are stable below {rule.formula}{value}{of}"
    return {"measured": measured, "predicted": predicted, "numbers": numbers, "claims": claims, "figures": figures}


def _limit_alone(form: LearningForm, rule: UpdateRule, found: Steepness) -> AuditFinding:
    """No learning rate was given: the rule has the rate 1, and the limit is told."""
    more = _rule_evidence(form, rule, found, None)
    if found.ratio <= 0:
        return fine(NAME, "no direction curves upwards here: no step is too large for that reason", **more)
    limit = rule.lr / found.ratio
    return fine(NAME, f"steps up to {limit:.2g} are stable here; give lr=... and yours is compared", **more)


def _by_trial(form: LearningForm, trial: Trial | None) -> AuditFinding:
    """An optimiser whose limit no formula here gives: only what its steps do."""
    which = form.subject.training.optimizer or "the optimiser"
    if which == "adagrad":
        which += " without the sum of its past gradients (give the optimiser itself)"
    if trial is None:
        return skipped(NAME, f"no limit is known for {which}, and its steps cannot be tried on a copy")
    numbers = {"loss_start": trial.losses[0], "loss_peak": trial.peak, "loss_end": trial.losses[-1]}
    claims = ("optim.stepsize.taylor_step",)
    figures = [_trial_figure(trial, None, form.subject.training.lr or math.nan)]
    more = {
        "numbers": numbers,
        "claims": claims,
        "figures": figures,
        "measured": f"{_trial_in_words(trial)}, {form.words}",
    }
    if trial.ruins:
        return _ruined_finding(form, trial, more)
    return fine(NAME, f"no limit is known for {which}; {_trial_in_words(trial)}", **more)


def _ruined_finding(form: LearningForm, trial: Trial, more: dict) -> AuditFinding:
    lr = form.subject.training.lr
    verdict = f"{_steps_in_words(len(trial.losses) - 1)} of {lr:.3g} leave the loss at {trial.losses[-1]:.3g}, "
    verdict += f"from {trial.losses[0]:.3g}; a constant answer costs {trial.constant:.3g}"
    return alarm(NAME, verdict, advice="use a learning rate ten times smaller, and raise it while the loss falls",
                 weight=9.0, **more)  # fmt: skip


def _smaller_step_advice(limit: float) -> str:
    cure = f"use a learning rate below {limit:.2g}; half of it, {limit / 2:.2g}, leaves room for sharper places"
    return f"{cure}. If a schedule has lowered the rate since, give the present one"


def _trial_in_words(trial: Trial) -> str:
    """What the trial did, in words."""
    start, end, steps = trial.losses[0], trial.losses[-1], len(trial.losses) - 1
    if trial.rises:
        place = next(i for i, value in enumerate(trial.losses) if value == trial.peak or not math.isfinite(value))
        peak = f"{trial.peak:.3g}" if math.isfinite(trial.peak) else "infinity"
        return f"in a trial the loss rises from {start:.3g} to {peak} within {_steps_in_words(place)}"
    return f"in a trial of {_steps_in_words(steps)} the loss goes from {start:.3g} to {end:.3g}"


def _trial_figure(trial: Trial | None, other: Trial | None, lr: float, other_lr: float = math.nan) -> Figure:
    marks = []
    for one, label in ((trial, f"step {lr:.2g}"), (other, f"step {other_lr:.2g}")):
        if one is not None:
            marks.append(Line(range(len(one.losses)), one.losses, label))
    values = [value for one in (trial, other) if one is not None for value in one.losses if math.isfinite(value)]
    wide = bool(values) and min(values) > 0 and max(values) > 20 * min(values)
    return Figure("Loss in a trial", "step", "loss", marks, y_log=wide)


def _steps_in_words(number: int) -> str:
    return f"{number} step" if number == 1 else f"{number} steps"


def _number_in_words(value: float) -> str:
    return f"{value:.2g}" if value < 1e4 else f"{value:.0e}"
