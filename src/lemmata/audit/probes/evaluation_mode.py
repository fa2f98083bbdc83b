r"""Is a finished model evaluated in evaluation mode, and does that mode do what it should?

Three ways to lose accuracy after training: the model, or a part of it, was left in training mode; it draws random
numbers in evaluation mode too (a functional dropout that is always on); its running statistics do not fit the data.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from scipy import stats
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.trained import is_trained
from lemmata.train.as_found import kept_as_found

__all__: list[str] = []

NAME = "evaluation mode"
CLAIMS = ("reg.dropout", "reg.dropout.weight_scaling", "norm.batch")
MOST, LEAST = 1000, 50  # examples
BATCH = 128
MODES, PASSES = 4, 8  # passes over the examples: evaluation, as found, with batch statistics; and of random answers
ALPHA = 1e-6  # of each comparison; over a thousand audits of ten comparisons one false alarm in a hundred
POINT, TENTH = 0.01, 0.1  # what a difference must reach to be told: of accuracy, and of the loss


class Scores(NamedTuple):
    """Whether the answer to each example is right (none for numbers), and its loss (the mean alone for classes)."""

    right: Tensor | None
    loss: Tensor

    @property
    def value(self) -> str:
        return f"{float(self.loss.mean()):.3g}" if self.right is None else f"{float(self.right.mean()):.1%}"

    @property
    def told(self) -> str:
        return f"{'loss' if self.right is None else 'accuracy'} {self.value}"


@probe("Evaluation mode", value=90, share=0.15, needs=("targets",))
def evaluation_mode(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    part = subject.test if subject.test is not None and subject.test.targets is not None else subject.train
    affordable = int(clock.left() / 2 / (MODES * max(subject.seconds, 1e-9)))
    sample = subject.some(min(MOST, affordable, 4 * subject.room), part)
    if len(sample) < LEAST or affordable < LEAST:
        clock.need(2 * LEAST * MODES * subject.seconds, "answers in several modes")
        yield skipped(NAME, f"it needs {LEAST} examples, got {len(sample)}")
        return
    outputs = subject.outputs(sample)
    here = _output_scores(subject, outputs, sample)
    if not is_trained(subject, sample):
        yield skipped(NAME, "the model is not trained yet: its loss is not much below that of a constant answer")
        return
    found = [
        *_random_outputs(subject, sample, clock),
        *_left_in_training(subject, sample, outputs, here, part is subject.test),
        *_running_statistics(subject, sample, here),
    ]
    yield from found or [fine(NAME, f"evaluation mode is as good as any: {here.told}", claims=CLAIMS)]


def _left_in_training(
    subject: Subject, sample: Sample, outputs: Tensor, here: Scores, on_test: bool
) -> Iterator[AuditFinding]:
    training = [type(part).__name__ for part, flag in subject.modes if flag]
    if not training:
        return
    there = _outputs_in_modes(subject, sample, as_it_was(subject))
    if torch.equal(there, outputs):
        return
    found = _output_scores(subject, there, sample)
    worse = _points_worse(found, here)
    if worse == 0:
        return
    # A model that is being trained, or that nobody evaluates yet, may well be in training mode.
    finished = on_test and subject.training.running is None
    yield (alarm if finished else hint)(
        NAME,
        f"the model was left in training mode, with {'test ' if on_test else ''}{found.told}, "
        f"where evaluation mode gives {here.value}",
        measured=f"{found.told} as found, {here.told} in evaluation mode, on {len(sample)} examples",
        predicted="dropout and batch statistics are for training; evaluation scales weights and uses running averages",
        advice="call model.eval() before evaluation and use, and model.train() before the next epoch",
        claims=CLAIMS,
        numbers=_score_pairs(found, here),
        where=sorted(set(training)),
        weight=7 if finished else 3,
    )


def _random_outputs(subject: Subject, sample: Sample, clock: Clock) -> Iterator[AuditFinding]:
    """Outputs that are random in evaluation mode, against the mean of several."""
    first = sample[:32]
    one, two = (_outputs_in_modes(subject, first, lambda: None, seed) for seed in (1, 2))
    if not bool((one - two).abs().max() > torch.finfo(subject.dtype).eps ** 0.5 * one.abs().max()):
        return
    affordable = int(clock.left() / 2 / (PASSES * max(subject.seconds, 1e-9)))
    sample = subject.some(max(affordable, 2), sample)
    draws = torch.stack([_outputs_in_modes(subject, sample, lambda: None, seed) for seed in range(PASSES)])
    here, best = (_output_scores(subject, answers, sample) for answers in (draws[0], draws.mean(0)))
    costly = _points_worse(here, best) > 0
    yield (alarm if costly else hint)(
        "random answers",
        f"the answers are random in evaluation mode: {here.told} in one pass, {best.value} by the mean of {PASSES}",
        measured="two passes over the same examples differ",
        predicted="the ensemble that dropout trains is used through its mean, by scaled weights",
        advice="functional.dropout(x, p, training=self.training), or nn.Dropout, which eval() turns off; "
        "if the draws are meant, use the mean of several",
        claims=CLAIMS,
        numbers=_score_pairs(here, best),
        weight=7 if costly else 4,
    )


def _running_statistics(subject: Subject, sample: Sample, here: Scores) -> Iterator[AuditFinding]:
    """Running averages against the statistics of the batch at hand."""
    kept = [part for part in subject.model.modules() if getattr(part, "running_mean", None) is not None]
    if not kept or len(sample) < BATCH:
        return

    def of_the_batch() -> None:
        for part in kept:
            part.train()

    there = _output_scores(subject, _outputs_in_modes(subject, sample, of_the_batch), sample)
    if _points_worse(here, there) < 5:
        return
    yield hint(
        "running statistics",
        f"the running statistics of {len(kept)} layers do not fit: {here.told}, with those of the batch {there.value}",
        measured=f"{here.told} in evaluation mode, {there.told} with batch statistics, on {len(sample)} examples",
        predicted="running averages approach the statistics of the data within about 1/momentum steps",
        advice="train longer, or set them anew: torch.optim.swa_utils.update_bn(loader, model); very small batches "
        "and momentum near 0 or 1 spoil them",
        claims=CLAIMS[2:],
        numbers=_score_pairs(here, there),
        weight=6,
    )


def as_it_was(subject: Subject) -> Callable[[], None]:
    """Every part in the mode in which it was found."""

    def set_modes() -> None:
        for part, flag in subject.modes:
            part.training = flag

    return set_modes


def _outputs_in_modes(subject: Subject, sample: Sample, set_modes: Callable[[], None], seed: int = 0) -> Tensor:
    """Outputs with parts in other modes; running statistics and modes are put back."""
    with kept_as_found(subject.model), torch.no_grad():
        set_modes()
        torch.manual_seed(seed)
        size = max(len(sample) // max(len(sample) // BATCH, 1), 2)
        parts = [part for part in subject.batches(sample, size) if len(part) > 1]
        answers = torch.cat([subject.network(*part.tensors) for part in parts])
    if len(answers) == len(sample):
        return answers
    # One example was left over, which has no batch statistics: it keeps the answer of evaluation mode.
    return torch.cat([answers, subject.outputs(sample)[len(answers) :]])


def _output_scores(subject: Subject, outputs: Tensor, sample: Sample) -> Scores:
    targets = sample.targets
    assert targets is not None
    outputs = outputs.float()
    if subject.task != "classes" or targets.is_floating_point():
        each = [subject.loss(outputs[i : i + 1], targets[i : i + 1]).float() for i in range(len(outputs))]
        return Scores(None, torch.stack(each))
    counted = subject.counted(targets).reshape(len(targets), -1)
    right = (outputs.argmax(1) == targets).reshape(len(targets), -1) & counted
    return Scores(right.sum(1) / counted.sum(1).clamp_min(1), subject.loss(outputs, targets)[None])


def _points_worse(these: Scores, those: Scores) -> float:
    """By how many points of accuracy, or tenths of the loss, these are worse; 0 unless surely and by enough.

    Paired, example by example: a sign test of right and wrong answers, a normal law for the mean difference of losses.
    """
    if these.right is not None and those.right is not None:
        lost, won = int((these.right < those.right).sum()), int((these.right > those.right).sum())
        points = float((those.right - these.right).mean()) / POINT
        sure = lost > won and stats.binomtest(lost, lost + won, 0.5, alternative="greater").pvalue < ALPHA
        return points if sure and points >= 1 else 0.0
    gap = (these.loss - those.loss).double()
    error = float(gap.std()) / math.sqrt(len(gap))
    tenths = float(gap.mean()) / max(float(those.loss.abs().mean()), 1e-30) / TENTH
    sure = float(gap.mean()) > -float(stats.norm.ppf(ALPHA)) * error
    return tenths if sure and tenths >= 1 else 0.0


def _score_pairs(these: Scores, those: Scores) -> dict[str, float]:
    pairs = {"loss": float(these.loss.mean()), "best_loss": float(those.loss.mean())}
    if these.right is not None and those.right is not None:
        pairs |= {"accuracy": float(these.right.mean()), "best_accuracy": float(those.right.mean())}
    return pairs
