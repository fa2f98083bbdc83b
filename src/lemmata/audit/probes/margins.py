r"""How far are examples from the boundary between classes?"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, fine, hint, skipped
from lemmata.audit.predictions import one_each
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject
from lemmata.figure import Figure, Line

MOST, BATCH = 1024, 64
LEAST = 30
NEAR = 0.01  # of the spread of the inputs: of the size of what rounding a picture to 8 bits does
CLAIMS = ("perceptron.margin_point", "perceptron.margin_sign", "perceptron.margin_dataset")


@probe("Margins", value=30, share=0.1, needs=("targets", "classes"))
def margins(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    """To first order, the distance of each example to the boundary: its margin over the length of its gradient."""
    held = subject.test is not None and subject.test.targets is not None
    sample = subject.test if held else subject.train
    assert sample is not None
    floating = [x for x in sample.tensors if x.is_floating_point()]
    part = subject.some(min(MOST, max(int(clock.left() / (12 * subject.seconds + 1e-9)), BATCH)), sample)
    clock.need(3 * subject.seconds * len(part), f"the gradients of {len(part)} margins")
    spread = _input_spread(floating) if floating else 0.0
    margin, distance = _measure_margins(subject, part, bool(floating))
    if len(margin) < LEAST:
        yield skipped("margins", f"{len(margin)} labelled examples are too few to tell: it needs {LEAST}")
        return
    wrong, ties = (margin < 0).double().mean().item(), (margin == 0).double().mean().item()
    where = f"{len(margin)} {'test' if held else 'training'} examples"
    numbers = {"wrong": wrong, "ties": ties, "examples": float(len(margin))}
    if ties > 0.01:
        verdict = f"ties: for {ties:.1%} of {where} two classes have the same output, so that rounding or order decides"
        advice = "Compute the last layer in float32, and look for outputs that are cut off or constant."
        yield hint("ties of classes", verdict, advice=advice, claims=CLAIMS[1:2], numbers=numbers, weight=3.0)
    right = margin > 0
    if not floating or spread == 0 or not bool(right.any()):
        scale = margin.abs().median().item()
        told = f"{wrong:.1%} of {where} lie on the wrong side; half of the margins are below {scale:.3g} in logits"
        yield fine("margins", told, claims=CLAIMS[1:2], numbers=numbers | {"median_margin": scale})
        return
    relative = distance / spread  # (examples,)
    typical, near = relative[right].median().item(), (relative[right] < NEAR).double().mean().item()
    numbers |= {"median_distance": typical, "near": near, "spread": spread}
    ordered = relative.sort().values
    share = torch.arange(1, len(ordered) + 1) / len(ordered)
    marks = [Line(ordered, share, "examples"), Line([0, 0], [0, 1], "boundary")]
    figure = Figure("Distance to the boundary", "distance in spreads of the inputs", "share below", marks)
    measured = f"{wrong:.1%} of {where} lie on the wrong side; of the others half are nearer to the boundary than "
    measured += f"{typical:.2%} of the inputs' spread {spread:.3g}, and {near:.1%} nearer than {NEAR:.0%}"
    predicted = "an example keeps its class under every change smaller than its distance to the boundary"
    more = {"measured": measured, "predicted": predicted, "claims": CLAIMS, "figures": [figure], "numbers": numbers}
    if typical < NEAR:
        verdict = f"thin margins: half of the examples it gets right change class by a step of {typical:.2%} of the "
        verdict += "inputs' spread, as small as rounding a picture to 8 bits"
        advice = "Where inputs may be disturbed, train with noise, augmentation or weight decay, which widen margins."
        yield hint("margins", verdict, advice=advice, weight=1.5, **more)
    else:
        far = f"{typical:.1%} of" if typical < 10 else "ten times"  # where outputs hardly move, no figure means much
        verdict = f"half of the examples it gets right are further than {far} the inputs' spread from the "
        yield fine("margins", verdict + f"boundary, to first order; {wrong:.1%} of {where} are beyond it", **more)


def _input_spread(inputs: list[Tensor]) -> float:
    """The root of the mean squared distance of examples from their mean."""
    return sum((x.double() - x.double().mean(0)).square().sum().item() / len(x) for x in inputs) ** 0.5


def _measure_margins(subject: Subject, part: Sample, gradients: bool) -> tuple[Tensor, Tensor]:
    """Margins in logits and distances in units of the inputs, each (examples,)."""
    random = torch.Generator().manual_seed(0)
    found: list[tuple[Tensor, Tensor]] = []
    subject.network.eval()
    # cuDNN has no gradients of recurrent layers in evaluation mode.
    with torch.set_grad_enabled(gradients), torch.backends.cudnn.flags(enabled=not gradients):
        for batch in subject.batches(part, min(BATCH, subject.chunk)):
            inputs = [x.detach().clone().requires_grad_(gradients and x.is_floating_point()) for x in batch.tensors]
            logits, labels, rows = one_each(subject.network(*inputs), batch.targets, subject, random)
            others = logits.scatter(1, labels[:, None], -torch.inf).amax(1)
            margin = logits.gather(1, labels[:, None])[:, 0] - others  # (examples,)
            length = torch.ones_like(margin)
            if gradients:
                wanted = [x for x in inputs if x.requires_grad]
                slopes = torch.autograd.grad(margin.sum(), wanted, materialize_grads=True)
                length = sum(g[rows].double().flatten(1).square().sum(1) for g in slopes).sqrt()  # type: ignore[union-attr]
            distance = margin.double() / length.clamp(min=torch.finfo(torch.float64).tiny)
            found.append((margin.detach().double().cpu(), distance.detach().cpu()))
    margin, distance = (torch.cat(values) for values in zip(*found, strict=True))
    return margin, distance
