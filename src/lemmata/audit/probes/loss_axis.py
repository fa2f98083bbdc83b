r"""Does each example stand for itself: in the network, and in the loss?

Mistakes of axes make examples of one batch mix: a recurrent or attention layer that takes the first axis for time, a
softmax over the batch, targets (batch,) against outputs (batch, 1), which torch broadcasts to every pair. They are
found by what must not matter: other examples beside one's own, and by what must: which target belongs to which output.
"""

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject

__all__: list[str] = []

TOGETHER = 8  # examples in a batch that is tried
LOSS = ("softmax.cross_entropy", "loss.squared")
MEAN = ("optim.sgd.unbiased", "optim.sgd")
APART = ("norm.batch", "norm.layer.vs_batch", "attention.equivariance")
# Quantised layers take their scale from the whole batch, and move outputs by a percent; mixing moves them much more.
MIXED = 0.05


@probe("Loss and axes", value=94, share=0.1)
def loss_axis(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    clock.need(4 * TOGETHER * subject.seconds, "batches of other examples")
    if len(subject.train) >= 4:
        yield _mixed_outputs(subject)
        yield from _one_alone(subject)
    targets = subject.train.targets
    if targets is None or subject.unusable:
        return
    if callable(subject.given_loss):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of shapes that it broadcasts, which is what is asked here
            yield from _own_loss(subject)
    elif subject.task == "numbers":
        yield from _broadcast_shapes(subject)


def _mixed_outputs(subject: Subject) -> AuditFinding:
    """Outputs of the last examples of a batch, beside other first ones. The last: recurrence looks backwards."""
    number = min(TOGETHER, len(subject.train) // 2)
    rows = subject.some(2 * number)
    half = number // 2
    answers = []
    for first in (rows[: number - half], rows[number : 2 * number - half]):
        inputs = [torch.cat([x, y]) for x, y in zip(first.tensors, rows[number - half : number].tensors, strict=True)]
        torch.manual_seed(0)  # a network that draws numbers draws the same ones
        with torch.no_grad():
            answers.append(subject.network(*inputs).float())
    change = float((answers[0][-half:] - answers[1][-half:]).square().mean().sqrt())
    size = float(answers[0].square().mean().sqrt())
    spread = float((answers[0] - answers[0].mean(0)).square().mean().sqrt())
    share = change / max(spread, 1e-30)
    numbers = {"change": change, "spread": spread}
    measured = f"outputs move by {change:.2g} beside other examples; between examples they differ by {spread:.2g}"
    # Batches of one shape go through the same sums in the same order: what differs by more than a last bit or two, or
    # by more than sums of a GPU that have no order, is no rounding.
    if change <= max(2 * torch.finfo(subject.dtype).eps, 1e-4) * size:
        told = "in evaluation mode the outputs of an example do not depend on the others in its batch"
        return fine("examples apart", told, measured=measured, claims=APART, numbers=numbers)
    return (alarm if share > MIXED else hint)(
        "examples apart",
        f"outputs of an example depend on the others in its batch in evaluation mode, by {share:.0%} of their spread",
        measured=measured,
        predicted="a prediction is a function of its own input: 0",
        advice="look for a softmax, mean or norm over axis 0, batch statistics in evaluation mode "
        "(track_running_stats=False), or a recurrent or attention layer that needs batch_first=True",
        claims=APART,
        numbers=numbers,
        weight=9 if share > MIXED else 3,
    )


def _one_alone(subject: Subject) -> Iterator[AuditFinding]:
    try:
        with torch.no_grad():
            one, two = (subject.network(*subject.train[:number].tensors) for number in (1, 2))
        if one.shape == (1, *two.shape[1:]):
            return
        told = f"gives outputs of shape {tuple(one.shape)} instead of {(1, *two.shape[1:])}"
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        told = f"fails: {' '.join(str(error).split())[:120]}"
    yield hint(
        "batch of one",
        f"a batch of one example {told}",
        advice="name the axis that is removed, squeeze(1) for squeeze(): the last batch of an epoch may be of one",
        weight=4,
    )


def _own_loss(subject: Subject) -> Iterator[AuditFinding]:
    sample = subject.some(2 * TOGETHER)
    targets, outputs = sample.targets, subject.outputs(sample)
    assert targets is not None
    generator = torch.Generator(outputs.device).manual_seed(0)
    free = torch.randn(outputs.shape, generator=generator, device=outputs.device)
    try:
        try:
            here = subject.loss(free, targets)
        except RuntimeError:
            free = free.sigmoid()  # a loss of probabilities takes no others
            here = subject.loss(free, targets)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        yield skipped("loss axes", f"the loss cannot be asked: {' '.join(str(error).split())[:200]}")
        return
    if here.numel() != 1:
        yield alarm(
            "loss axes",
            f"the loss gives {here.numel()} numbers for {len(targets)} examples, and a gradient needs one",
            measured=f"shape {tuple(here.shape)}",
            advice="average it: loss.mean()",
            claims=MEAN,
            weight=8,
        )
        return
    found = [*_shuffled_targets(subject, free, targets, generator), *_constant_axes(subject, free, targets, generator)]
    found += _loss_reduction(subject, free, targets)
    told = "each output meets its own target, and the loss is not a sum over the batch"
    yield from found or [fine("loss axes", told, claims=(*LOSS, *MEAN))]


def _shuffled_targets(
    subject: Subject, free: Tensor, targets: Tensor, generator: torch.Generator
) -> Iterator[AuditFinding]:
    """A loss must notice when targets are dealt to other examples."""
    if bool((targets == targets[:1]).all()) or len(targets) < 4:
        return
    here = float(subject.loss(free, targets))
    dealt = [targets[torch.randperm(len(targets), generator=generator, device=free.device)] for _ in range(5)]
    moves = max(abs(float(subject.loss(free, other)) - here) for other in dealt)
    if moves > 1e-5 * (1 + abs(here)):
        return
    shapes = f"outputs {_dims_text(subject.network.as_answered(free))} and targets {_dims_text(targets)}"
    yield alarm(
        "loss axes",
        f"the loss does not see which target belongs to which output: {shapes} are compared as all pairs or as means",
        measured=f"with the targets dealt to other examples the loss {here:.4g} moves by {moves:.1g}",
        predicted="torch broadcasts (batch, 1) against (batch,) to (batch, batch); the best answer is then a constant",
        advice="bring both to one shape before the loss: outputs.squeeze(1), or targets.reshape(outputs.shape)",
        claims=LOSS,
        numbers={"loss": here, "moves": moves},
        weight=10,
    )


def _constant_axes(
    subject: Subject, free: Tensor, targets: Tensor, generator: torch.Generator
) -> Iterator[AuditFinding]:
    """Along which axis a constant may be added to the outputs: a softmax does not see it along its own."""
    if subject.task != "classes":
        return
    here = float(subject.loss(free, targets))
    blind = []
    for axis in range(free.ndim):
        shape = [1 if one == axis else size for one, size in enumerate(free.shape)]
        if free.shape[axis] == 1:
            continue
        added = 3 * torch.randn(shape, generator=generator, device=free.device)
        if abs(float(subject.loss(free + added, targets)) - here) < 1e-4 * (1 + abs(here)):
            blind.append(axis)
    if not blind or 1 in blind:
        return
    along = "the batch" if blind[0] == 0 else f"axis {blind[0]}"
    yield alarm(
        "loss axes",
        f"the loss takes its softmax over {along}, not over the classes",
        measured=f"adding a number to all outputs along {along} does not change it; along the classes it does",
        predicted="probabilities of an example sum to one over its classes",
        advice="take softmax and log_softmax with dim=1 for outputs (batch, classes, ...), dim=-1 for (..., classes)",
        claims=("softmax.definition", "softmax.cross_entropy"),
        numbers={"axis": blind[0]},
        weight=9,
    )


def _loss_reduction(subject: Subject, free: Tensor, targets: Tensor) -> Iterator[AuditFinding]:
    """The same batch twice has the same mean and twice the sum."""
    once = float(subject.loss(free, targets))
    twice = float(subject.loss(torch.cat([free, free]), torch.cat([targets, targets])))
    if abs(once) < 1e-6 or abs(twice / once - 2) > 1e-3:
        return
    size = subject.training.batch_size
    yield hint(
        "loss axes",
        "the loss is a sum over the batch: steps grow with the batch size" + (f", here by {size}" if size else ""),
        measured=f"the same examples twice give {twice / once:.3f} times the loss",
        predicted="the mean keeps the size of gradients, and so the meaning of a learning rate, whatever the batch",
        advice="reduction='mean', and the learning rate times the batch size",
        claims=MEAN,
        numbers={"ratio": twice / once},
        weight=5,
    )


def _broadcast_shapes(subject: Subject) -> Iterator[AuditFinding]:
    """Outputs and targets that torch's own losses would broadcast; the audit brings them to one shape."""
    outputs, targets = subject.outputs(subject.some(2)), subject.train.targets
    assert targets is not None
    if outputs.ndim == targets.ndim or len(outputs) < 2:
        return
    yield hint(
        "target shape",
        f"outputs are {_dims_text(outputs)} and targets {_dims_text(targets)}: torch's losses would compare all pairs",
        predicted="torch broadcasts them to (batch, batch), with a warning; the best answer is then a constant",
        advice="bring both to one shape before the loss: outputs.squeeze(1), or targets.reshape(outputs.shape)",
        claims=("loss.squared",),
        weight=4,
    )


def _dims_text(values: Tensor) -> str:
    rest = "".join(f" {size}," for size in values.shape[1:])
    return f"(batch,{rest})".replace(" 1,)", " 1)") if rest else "(batch,)"
