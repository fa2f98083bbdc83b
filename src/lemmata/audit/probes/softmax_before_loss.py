r"""Does the model normalise what the loss normalises again, or not normalise what the loss takes as normalised?

Both are decided by what happens, not by names of layers. A loss that has its own softmax does not change when a
constant is added to all outputs of an example; the negative log-likelihood falls by that constant. Outputs that are
squashed stay between the same two ends whatever the weights, and pile up there when the weights are large.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.audit.clock import Clock
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.probe import probe
from lemmata.audit.subject import Subject

__all__: list[str] = []

NAME = "outputs and loss"
CLAIMS = ("softmax.definition", "softmax.cross_entropy")
BINARY = ("logistic.bce", "logistic.gradient")
EXAMPLES, FEWEST = 64, 4
NUMBERS = 2**24  # outputs that are held: few examples where each has many
SCALES = (1.0, 1.0, *[10.0] * 6)  # of weights that are drawn anew; one output falls to one side 8 times in 128
Form = Literal["probabilities", "log-probabilities", "squashed", "cut at zero", "free"]
Kind = Literal["own softmax", "own sigmoid", "likelihood", "other"]


@probe("Outputs and loss", value=95, share=0.1, needs=("targets", "classes"))
def softmax_before_loss(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    each = subject.outputs(subject.some(2)).numel() // min(2, len(subject.train))
    passes = len(SCALES) + 1
    affordable = int(clock.left() / 2 / (passes * max(subject.seconds, 1e-9)))
    sample = subject.some(max(FEWEST, min(EXAMPLES, NUMBERS // each, affordable)))
    clock.need(passes * subject.seconds * len(sample), "outputs with other weights")
    outputs, targets = subject.outputs(sample).float(), sample.targets
    assert targets is not None
    kind = _kind_of_loss(subject, outputs, targets)
    if kind == "other":
        yield skipped(NAME, "the loss is neither a cross-entropy nor a likelihood: whether outputs fit it is not known")
        return
    form, ends = _output_form(subject, outputs, sample.tensors, kind)
    said = "" if subject.given_loss else " (the loss was not given: the usual one is assumed)"
    yield _form_verdict(subject, kind, form, ends, said)


def _form_verdict(subject: Subject, kind: Kind, form: Form, ends: "Ends", said: str) -> AuditFinding:
    own = "sigmoid" if kind == "own sigmoid" else "softmax"
    floor, sure = _loss_floor(ends, subject.classes, own), subject.given_loss is not None
    told = alarm if sure else hint  # a loss that was not given may be one that wants probabilities
    numbers = {"floor": floor, "lowest": ends.low, "highest": ends.high}
    claims = BINARY if own == "sigmoid" else CLAIMS
    if kind == "likelihood":
        return _likelihood_finding(subject, form, claims)
    if form in ("probabilities", "squashed"):
        what = "probabilities" if form == "probabilities" else f"squashed into {ends.low:g} to {ends.high:g}"
        return told(
            NAME,
            f"the outputs are {what} before a loss with its own {own}, which then cannot fall below {floor:.3f}{said}",
            measured=f"outputs from {ends.low:.3g} to {ends.high:.3g}, with other weights too",
            predicted=f"with outputs that far apart at most, the loss of a perfect answer is {floor:.3f} instead of 0",
            advice="let the model return the outputs of its last linear layer, and take the probabilities afterwards",
            claims=claims,
            numbers=numbers,
            weight=9,
        )
    if form == "cut at zero":
        return hint(
            NAME,
            "the outputs are never below zero, as after a ReLU: where they are zero nothing is learnt",
            measured=f"{ends.zeros:.0%} of the outputs are exactly zero",
            predicted="a loss with its own softmax wants any real numbers; behind a ReLU a zero has no gradient",
            advice="remove the activation after the last linear layer",
            claims=claims,
            numbers=numbers,
            weight=5,
        )
    if form == "log-probabilities":
        return fine(
            NAME,
            "the outputs are logarithms of probabilities: taking them twice changes nothing, and costs a little time",
            predicted="the softmax of log-probabilities gives the probabilities back",
            advice="loss='nll' says the same without the second logarithm",
            claims=claims,
        )
    return fine(NAME, f"the outputs are free real numbers, and the loss has its own {own}", claims=claims)


def _likelihood_finding(subject: Subject, form: Form, claims: tuple[str, ...]) -> AuditFinding:
    if form == "log-probabilities":
        return fine(NAME, "the outputs are logarithms of probabilities, as the likelihood wants them", claims=claims)
    if form == "probabilities":
        return (alarm if _says_nll(subject) else hint)(
            NAME,
            "the negative log-likelihood is given probabilities without their logarithm: the loss is minus a "
            "probability, between -1 and 0",
            measured="outputs of each example sum to one",
            predicted="the likelihood of a wrong answer is punished without bound only by its logarithm",
            advice="end the model with log_softmax, or give free outputs to cross_entropy",
            claims=claims,
            weight=8,
        )
    return alarm(
        NAME,
        "the negative log-likelihood is given outputs that are not log-probabilities: it falls without bound",
        measured="adding 1 to all outputs lowers the loss by 1",
        predicted="log-probabilities of an example have logarithm of their summed exponentials zero",
        advice="use cross_entropy, or end the model with log_softmax",
        claims=claims,
        weight=10,
    )


def _says_nll(subject: Subject) -> bool:
    loss = subject.given_loss
    return loss in ("nll", functional.nll_loss) or isinstance(loss, torch.nn.NLLLoss)


def _kind_of_loss(subject: Subject, outputs: Tensor, targets: Tensor) -> Kind:
    """What the loss does with its outputs, by its own answers at numbers of order one."""
    free = torch.randn(outputs.shape, device=outputs.device, generator=_seeded_generator(outputs.device))
    try:
        here, moved = (float(subject.loss(values, targets)) for values in (free, free + 3.0))
    except (RuntimeError, ValueError):  # a loss of probabilities refuses other numbers
        return "other"
    near = 1e-4 * (1 + abs(here))  # float32 rounds sums of order one to 1e-7; half precision inside a loss to 1e-3
    if subject.task == "binary":
        aim = targets.to(free.dtype).reshape(free.shape)
        logistic = functional.binary_cross_entropy_with_logits
        same = all(
            abs(float(subject.loss(values, targets)) - float(logistic(values, aim))) < 1e-3
            for values in (free, 3 * free, free + 3)
        )
        return "own sigmoid" if same else "other"
    if abs(moved - here) < near:
        return "other" if _has_margin(subject, free, targets) else "own softmax"
    return "likelihood" if abs(moved - here + 3.0) < near else "other"


def _has_margin(subject: Subject, free: Tensor, targets: Tensor) -> bool:
    """Whether the loss of an answer that is right by 5 is exactly zero, as a hinge's is and no cross-entropy's."""
    if targets.is_floating_point():
        return False
    aims = functional.one_hot(targets.clamp(0, subject.classes - 1), subject.classes).movedim(-1, 1)
    return float(subject.loss(5 * aims.to(free.dtype), targets)) == 0


def _seeded_generator(device: torch.device) -> torch.Generator:
    return torch.Generator(device).manual_seed(0)


class Ends(NamedTuple):
    """Between which ends the outputs lie, and which part of them is exactly zero."""

    low: float
    high: float
    zeros: float = 0.0


def _output_form(subject: Subject, outputs: Tensor, inputs: tuple[Tensor, ...], kind: Kind) -> tuple[Form, Ends]:
    ends = Ends(float(outputs.min()), float(outputs.max()), float((outputs == 0).float().mean()))
    eps = torch.finfo(subject.dtype).eps
    if kind != "own sigmoid" and outputs.shape[1] > 1:
        total = outputs.sum(1)
        # Each probability is rounded once to the model's dtype, and the sum of them to float32.
        if ends.low >= 0 and float((total - 1).abs().max()) < 4 * eps + 1e-6:
            return "probabilities", Ends(0.0, 1.0)
        slack = 8 * eps * (1 + math.log(outputs.shape[1]))
        if ends.high <= slack and float(outputs.logsumexp(1).abs().max()) < slack + 1e-5:
            return "log-probabilities", ends
    elsewhere = _with_other_weights(subject, inputs)
    if len(elsewhere) == 0:
        return "free", ends
    all_ = torch.cat([outputs.flatten(), elsewhere])
    for low, high in ((0.0, 1.0), (-1.0, 1.0)):
        inside = bool(((all_ >= low) & (all_ <= high)).all())
        near = [float(((elsewhere - end).abs() < 1e-2).float().mean()) for end in (low, high)]
        if inside and min(near) > 0.05 and sum(near) > 0.5:
            return "squashed", Ends(low, high)
    # Some zeros are there now and half of them with any weights; free outputs are exactly zero next to never.
    zeros = float((elsewhere == 0).float().mean())
    if float(all_.min()) == 0 and zeros > 0.2:
        return "cut at zero", ends
    return "free", ends


def _with_other_weights(subject: Subject, inputs: tuple[Tensor, ...]) -> Tensor:
    """Outputs where all weights are drawn anew and large: what is squashed then stands at its ends, what is free goes
    far away. Outputs that are not finite say nothing.
    """
    generator, parts = _seeded_generator(subject.device), []
    weights = [(p, p.detach().clone()) for p in subject.model.parameters() if p.is_floating_point()]
    try:
        for scale in SCALES:
            with torch.no_grad():
                for p, before in weights:
                    noise = torch.randn(p.shape, device=p.device, generator=generator)
                    p.copy_(before + scale * noise.to(p.dtype))
                outputs = subject.network(*inputs).float().flatten()
            if bool(outputs.isfinite().all()):
                parts.append(outputs)
    finally:
        with torch.no_grad():
            for p, before in weights:
                p.copy_(before)
    return torch.cat(parts) if parts else torch.empty(0, device=subject.device)


def _loss_floor(ends: Ends, classes: int, own: str) -> float:
    """The smallest mean loss where outputs lie between two ends, and the classes are equally frequent."""
    if own == "sigmoid":
        return (math.log1p(math.exp(-ends.high)) + math.log1p(math.exp(ends.low))) / 2
    return math.log1p((classes - 1) * math.exp(ends.low - ends.high))
