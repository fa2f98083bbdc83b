r"""What a classifier says about a sample, as logits of independent examples with their labels."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.audit.clock import Clock
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject

__all__ = []  # for probes

MOST = 2**20  # numbers of logits that are kept


@dataclass(frozen=True)
class Predictions:
    """Logits and labels, one row an example; of an example with many labels (pixels, tokens) one is drawn, so that rows
    are independent and intervals hold.

    Shapes:
        logits: float64 (examples, classes)    labels: (examples,)
    """

    logits: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def probabilities(self) -> Tensor:
        """(examples, classes)"""
        return self.logits.softmax(1)

    @property
    def correct(self) -> Tensor:
        """Whether the likeliest class is the label, (examples,)."""
        return self.logits.argmax(1) == self.labels

    @property
    def surprise(self) -> Tensor:
        """The negative log-likelihood of each label, (examples,)."""
        return functional.cross_entropy(self.logits, self.labels, reduction="none")

    def at(self, temperature: float) -> "Predictions":
        """With logits divided by a temperature."""
        return Predictions(self.logits / temperature, self.labels)

    def __getitem__(self, which: Tensor) -> "Predictions":
        return Predictions(self.logits[which], self.labels[which])


def predictions(subject: Subject, sample: Sample, clock: Clock, least: int = 50) -> Predictions:
    """Of as many examples as half of the time that is left allows, but of `least` of them at least."""
    number = min(len(sample), MOST // max(subject.classes, 1))
    affordable = int(clock.left() / 2 / subject.seconds) if subject.seconds > 0 else number
    number = min(len(sample), max(min(number, affordable), least))
    clock.need(number * subject.seconds, f"predicting {number} examples")
    part = subject.some(number, sample)
    random = torch.Generator().manual_seed(0)
    logits, labels = [], []
    if number == len(sample):
        pairs = [(subject.outputs(sample), sample.targets)]  # remembered, for the other probes too
    else:
        with torch.no_grad():
            pairs = ((subject.network(*one.tensors), one.targets) for one in subject.batches(part, subject.chunk))
    with torch.no_grad():
        for outputs, targets in pairs:
            rows, own, _ = one_each(outputs, targets, subject, random)
            logits.append(rows.cpu())
            labels.append(own.cpu())
    joined, own = torch.cat(logits), torch.cat(labels)
    if len(own) == 0:
        raise ValueError("no label of these examples names a class")
    return Predictions(_as_logits(joined, own, subject), own)


def one_each(
    outputs: Tensor, targets: Tensor | None, subject: Subject, random: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (rows, classes), labels (rows,) and which examples they are of: one label of each example, drawn among
    those that count.
    """
    assert targets is not None
    outputs, targets = _flat_predictions(outputs, targets, subject)
    keys = torch.rand(targets.shape, generator=random).to(targets.device)
    best, where = torch.where(subject.counted(targets), keys, -1.0).max(1)
    rows = (best >= 0).nonzero()[:, 0]
    return outputs[rows, where[rows]], targets[rows, where[rows]], rows


def _flat_predictions(outputs: Tensor, targets: Tensor, subject: Subject) -> tuple[Tensor, Tensor]:
    """As (examples, labels of each, classes) and (examples, labels of each)."""
    number = len(outputs)
    if subject.task == "binary":
        one = outputs.reshape(number, -1, 1)
        return torch.cat([torch.zeros_like(one), one], 2), targets.reshape(number, -1).long()
    if targets.is_floating_point() and targets.shape == outputs.shape:
        targets = targets.argmax(1)  # given as probabilities
    return outputs.flatten(2).mT if outputs.ndim > 2 else outputs[:, None], targets.reshape(number, -1).long()


def _as_logits(outputs: Tensor, labels: Tensor, subject: Subject) -> Tensor:
    """Logits, also of a network that gives probabilities; log-probabilities are logits."""
    rounding, tiny = 8 * torch.finfo(outputs.dtype).eps, torch.finfo(torch.float64).tiny
    outputs = outputs.double()
    if subject.task == "binary":
        p = outputs[:, 1]
        if not callable(subject.given_loss) or not bool(((p >= 0) & (p <= 1)).all()):
            return outputs
        # Numbers within [0, 1] may be either: the loss that was given knows.
        try:
            told = float(subject.loss(p[:, None].to(subject.dtype), labels[:, None].to(subject.dtype)))
        except (RuntimeError, ValueError, TypeError):
            return outputs
        as_p = float(functional.binary_cross_entropy(p, labels.double()))
        as_logit = float(functional.binary_cross_entropy_with_logits(p, labels.double()))
        if abs(told - as_logit) <= abs(told - as_p):
            return outputs
        return torch.stack([(1 - p).clamp(min=tiny).log(), p.clamp(min=tiny).log()], 1)
    if bool((outputs >= 0).all()) and bool(((outputs.sum(1) - 1).abs() <= rounding).all()):
        return outputs.clamp(min=tiny).log()
    return outputs
