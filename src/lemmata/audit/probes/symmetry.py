r"""What the outputs do when the input is shifted, flipped or put into another order, where its shape suggests that.

A network of convolutions that averages over all places announces that it does not see where something is. Then the
picture is put into a larger frame, which it takes, and moved inside: nothing leaves, so theory says that nothing
changes. Strides break that: outputs come back only after as many steps as the strides multiply to.
"""

import math
from collections.abc import Callable, Iterator

import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.position_blindness import pooled_places
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.audit.trained import is_trained
from lemmata.figure import Figure, Line

__all__: list[str] = []

SHIFT = ("conv.shift_equivariant", "conv.weight_sharing", "conv.pool.avg")
ORDER = ("attention.equivariance",)
MOST, LEAST = 500, 32  # examples
PASSES = 5  # over the examples: as they are, two flips, a shift and noise
STEPS = 8  # the farthest shift inside the frame
ALPHA = 1e-6
# Outputs of two pictures drawn at random differ by sqrt(2) of the spread, and good networks with strides 2 stay below
# that at their worst shift. A picture that becomes a quarter more different than another one is not the same to them.
OTHER_PICTURE = 1.25 * math.sqrt(2)
UNSTABLE = 1 / 2  # of the pictures, whose class changes
FEW = 0.02  # of the pictures, whose class may change with nothing to tell
DROP = 0.05  # of accuracy that is told
SMALL_STEP = 16  # pixels a side from which one of them is a small step


@probe("Symmetry", value=40, share=0.2)
def symmetry(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    x = subject.train.x
    part = subject.train if subject.test is None else subject.test
    square = x.ndim == 3 and x.shape[1] == x.shape[2] >= 8  # pictures are kept without a channel too
    picture = x.is_floating_point() and (square or (x.ndim == 4 and x.shape[1] <= 4 and min(x.shape[2:]) >= 8))
    sequence = not picture and x.ndim == (3 if x.is_floating_point() else 2) and x.shape[1] > 2
    if not picture and not sequence:
        yield skipped("symmetry", f"inputs of shape {tuple(x.shape[1:])} suggest no symmetry")
        return
    number = min(MOST, len(part), subject.room, int(clock.left() / 3 / (PASSES * max(subject.seconds, 1e-9))))
    if number < min(LEAST, len(part)):
        clock.need(3 * PASSES * LEAST * subject.seconds, "outputs of moved inputs")
    sample = subject.some(max(number, 2), part)
    if sequence:
        yield from _order_findings(subject, sample)
    else:
        yield from _flip_findings(subject, sample)
        yield from _shift_findings(subject, sample, clock)


def _shift_findings(subject: Subject, sample: Sample, clock: Clock) -> Iterator[AuditFinding]:
    outputs = subject.outputs(sample)
    if outputs.ndim != 2:
        return
    inside = _inside_a_frame(subject, sample, clock)
    if inside is not None:
        yield inside
    if inside is None or inside.severity == "fine":
        yield from _one_step(subject, sample, outputs)


def _inside_a_frame(subject: Subject, sample: Sample, clock: Clock) -> AuditFinding | None:
    """The changes of outputs and classes for shifts by 1 to STEPS inside a frame of one colour, the edge's own."""
    around = max(STEPS + 4, min(sample.x.shape[-1] // 2, 32))

    def framed(x: Tensor, by: int) -> Tensor:
        edges = torch.cat([x[..., 0], x[..., -1], x[..., 0, :], x[..., -1, :]], -1)  # (batch, channels, edge)
        colour = edges.median(-1).values[..., None, None]
        return functional.pad(x - colour, (around + by, around - by, around, around)) + colour

    here = pooled_places(subject, sample[:4].tensors)
    size = framed(sample.x[:1], 0).numel() / sample.x[0].numel()
    affordable = int(clock.left() / 2 / ((STEPS + 1) * size * max(subject.seconds, 1e-9)))
    if here is None or affordable < min(LEAST, len(sample)):
        return None
    sample = subject.some(affordable, sample)
    try:
        larger = pooled_places(subject, (framed(sample.x[:4], 0), *sample[:4].tensors[1:]))
        still = _changed_outputs(subject, sample, lambda x: framed(x, 0))
        moved = [_changed_outputs(subject, sample, lambda x, by=by: framed(x, by)) for by in range(1, STEPS + 1)]
    except RuntimeError:  # the network takes no other size
        return None
    # The frame's own places dilute a mean: in the picture's own size outputs move by as much more.
    scale = larger.places / here.places if larger is not None and here.mean and here.linear else 1.0
    outputs = subject.outputs(sample)
    moved = [outputs + scale * (one - still) for one in moved]
    changes = [_output_change(one, outputs) for one in moved]
    classes = [_other_class(one, outputs) for one in moved]
    worst = max(range(STEPS), key=lambda k: (classes[k], changes[k]))
    # Outputs come back where the shift is the product of the strides: what is left there is the frame's own border.
    period = min(range(1, STEPS), key=lambda k: changes[k])
    numbers = {"step": worst + 1, "change": changes[worst], "other_class": classes[worst], "period": period + 1}
    numbers["change_at_period"] = changes[period]
    figure = Figure(
        "A picture moved inside its frame", "pixels", "share",
        [Line(range(STEPS + 1), [0.0, *changes], "change of outputs, in their spread"),
         Line(range(STEPS + 1), [0.0, *classes], "pictures of another class")],
    )  # fmt: skip
    about = {"claims": SHIFT, "figures": [figure], "numbers": numbers}
    about["measured"] = f"outputs move by {changes[worst]:.0%} of their spread, {classes[worst]:.0%} of classes change"
    about["predicted"] = "convolutions follow a shift, and a mean over all places does not see it: 0%"
    if changes[worst] < 0.05 or (subject.classes > 1 and classes[worst] < FEW):
        told = f"moving a picture inside its frame changes the outputs by {max(changes):.1%} of their spread at most"
        told += f", and {classes[worst]:.1%} of the classes" if subject.classes > 1 else ""
        return fine("shift invariance", told, **about)
    returns = f", by {_in_pixels(period + 1)} of {classes[period]:.0%}" if changes[period] < changes[worst] / 3 else ""
    count = round(classes[worst] * len(sample))
    sure = stats.binomtest(count, len(sample), UNSTABLE, alternative="greater").pvalue < ALPHA
    far = changes[worst] > OTHER_PICTURE and bool(returns)
    bad = sure and far and subject.classes > 1 and is_trained(subject, sample)
    return (alarm if bad else hint)(
        "shift invariance",
        f"the network pools over all places, yet moving pictures by {_in_pixels(worst + 1)} inside their frame changes "
        f"the class of {classes[worst]:.0%} of them{returns}",
        advice="smooth before every stride: blur then subsample, stride 1 then average pooling, smaller strides first; "
        "or train with shifted pictures",
        weight=6 if bad else 3,
        **about,
    )


def _in_pixels(number: int) -> str:
    return f"{number} pixel" if number == 1 else f"{number} pixels"


def _one_step(subject: Subject, sample: Sample, outputs: Tensor) -> Iterator[AuditFinding]:
    """One pixel to the right in place, against noise of the same size, and what it costs."""
    x = sample.x

    def moved(x: Tensor) -> Tensor:
        return torch.cat([x[..., :1], x[..., :-1]], -1)

    size = (moved(x) - x).flatten(1).norm(dim=1)
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(x)
    noise = noise * (size / noise.flatten(1).norm(dim=1).clamp_min(1e-12)).reshape(-1, *[1] * (x.ndim - 1))
    noisy_x = Sample({**sample.inputs, next(iter(sample.inputs)): x + noise}, sample.targets)
    there, noisy = _changed_outputs(subject, sample, moved), _changed_outputs(subject, noisy_x)
    change, by_noise = _output_change(there, outputs), _output_change(noisy, outputs)
    numbers = {"change": change, "noise": by_noise, "other_class": _other_class(there, outputs)}
    told = f"one pixel to the right moves the outputs by {change:.0%} of their spread, noise as large by {by_noise:.0%}"
    targets = sample.targets
    labelled = subject.task == "classes" and targets is not None and not targets.is_floating_point()
    if labelled and targets is not None and is_trained(subject, sample):
        before, after = (one.argmax(1) == targets for one in (outputs, there))
        lost, won = int((before & ~after).sum()), int((after & ~before).sum())
        drop = (lost - won) / len(targets)
        numbers |= {"accuracy": float(before.float().mean()), "accuracy_moved": float(after.float().mean())}
        small = x.shape[-1] >= SMALL_STEP
        if small and drop >= DROP and stats.binomtest(lost, lost + won, 0.5, alternative="greater").pvalue < ALPHA:
            yield hint(
                "shift",
                f"one pixel to the right costs {100 * drop:.0f} points of accuracy: {before.float().mean():.1%} "
                f"falls to {after.float().mean():.1%}",
                measured=told,
                predicted="convolutions share weights over places; other layers learn each place from examples of it",
                advice="train with pictures shifted at random, or use convolutions with a mean over all places",
                claims=SHIFT,
                numbers=numbers,
                weight=3,
            )
            return
    yield fine("shift", told, claims=SHIFT, numbers=numbers)


def _flip_findings(subject: Subject, sample: Sample) -> Iterator[AuditFinding]:
    outputs = subject.outputs(sample)
    if outputs.ndim != 2:
        return
    across, down = (_changed_outputs(subject, sample, lambda x, axis=axis: x.flip(axis)) for axis in (-1, -2))
    numbers = {"left_right": _output_change(across, outputs), "up_down": _output_change(down, outputs)}
    told = " and ".join(f"{name.replace('_', '-')} {value:.0%}" for name, value in numbers.items())
    yield fine("flips", f"flips move the outputs by parts of their spread: {told}", measured=told, numbers=numbers)


def _order_findings(subject: Subject, sample: Sample) -> Iterator[AuditFinding]:
    """Another order of the second axis, of all inputs that have it."""
    length = sample.x.shape[1]
    order = torch.randperm(length, generator=torch.Generator().manual_seed(0)).to(sample.x.device)
    outputs = subject.outputs(sample)
    along = outputs.ndim == 3 and outputs.shape[2] == length  # one answer a place: it must follow
    inputs = {
        name: values[:, order] if values.ndim > 1 and values.shape[1] == length else values
        for name, values in sample.inputs.items()
    }
    there = _changed_outputs(subject, Sample(inputs, sample.targets))
    change = _output_change(there, outputs[:, :, order] if along else outputs)
    numbers, rounding = {"change": change}, torch.finfo(subject.dtype).eps ** 0.5
    if change > 2 * rounding:
        told = f"another order moves the outputs by {change:.0%} of their spread: the model sees the order"
        yield fine("order", told, claims=ORDER, numbers=numbers)
    elif sample.x.is_floating_point():
        told = "the order is not seen: right for sets of points, and a loss for sequences"
        yield fine("order", told, measured=f"change {change:.1g}", claims=ORDER, numbers=numbers)
    else:
        yield hint(
            "order",
            "the model does not see the order of its words: any other gives the same answers",
            measured=f"another order moves the outputs by {change:.1g} of their spread",
            predicted="attention and means treat words as a set; only positions tell them apart",
            advice="add positional embeddings, if the order carries meaning",
            claims=ORDER,
            numbers=numbers,
            weight=4,
        )


def _changed_outputs(subject: Subject, sample: Sample, change: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
    """Outputs where the first input is changed."""
    name, parts = next(iter(sample.inputs)), []
    with torch.no_grad():
        for part in subject.batches(sample, 128):
            torch.manual_seed(0)
            parts.append(subject.network(*({**part.inputs, name: change(part.x)}).values()))
    return torch.cat(parts)


def _output_change(there: Tensor, here: Tensor) -> float:
    """The mean change of outputs, in units of their spread between examples, as far as that is more than rounding."""
    eps = torch.finfo(here.dtype).eps
    here, there = here.float(), there.float()
    spread = (here - here.mean(0)).square().mean().sqrt()
    size = here.square().mean().sqrt()
    return float((there - here).square().mean().sqrt() / torch.maximum(spread, eps**0.5 * size).clamp_min(1e-30))


def _other_class(there: Tensor, here: Tensor) -> float:
    if here.ndim < 2 or here.shape[1] < 2:
        return 0.0
    return float((there.argmax(1) != here.argmax(1)).float().mean())
