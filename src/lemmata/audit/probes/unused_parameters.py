r"""Does every parameter learn: is it free, used, in the optimiser, and reached by a gradient?

The gradient of a random combination of all outputs reaches what the outputs depend on, whatever the loss and however
well it is fitted. A parameter without one is changed on its own: where the outputs then move, something on the way lets
no gradient through (detach, no_grad, argmax, sign); where they do not, it is not used.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.finding import AuditFinding, alarm, fine, hint, skipped
from lemmata.audit.operation_count import affordable
from lemmata.audit.probe import probe
from lemmata.audit.sample import Sample
from lemmata.audit.subject import Subject

__all__: list[str] = []

CLAIMS = ("backprop.delta_recurrence", "backprop.param_gradient")
FEW, MANY = 4, 256  # examples: an expert or a word that few of them use has a gradient only among many
CHANGES = (0.1, 1.0)  # of a parameter alone, in units of its own size and of 0.1


@probe("Parameters that learn", value=92, share=0.15)
def unused_parameters(subject: Subject, clock: Clock) -> Iterator[AuditFinding]:
    named = {name: p for name, p in subject.model.named_parameters() if p.is_floating_point()}
    if not named:
        yield skipped("parameters", "the model has no parameters")
        return
    yield from _frozen_findings(subject, named)
    yield from _in_optimizer(subject, {name: p for name, p in named.items() if p.requires_grad})
    yield from _loss_gradient(subject)
    free = {name: p for name, p in named.items() if p.requires_grad}
    if not free:
        return
    in_time = int(clock.left() / 3 / (2 * 3 * max(subject.seconds, 1e-9)))
    sample = subject.some(affordable(subject, max(FEW, min(MANY, in_time)), FEW))
    clock.need(2 * 3 * subject.seconds * len(sample), "gradients of all parameters")
    unreached = _unreached_parameters(subject, sample, free)
    yield from _parameter_findings(subject, named, free, unreached, sample[:8], clock)


def _parameter_findings(
    subject: Subject,
    named: Mapping[str, Tensor],
    free: Mapping[str, Tensor],
    unreached: Mapping[str, bool],
    sample: Sample,
    clock: Clock,
) -> Iterator[AuditFinding]:
    cut, unused, unasked = [], [], 0
    for name, in_graph in unreached.items():
        try:
            clock.need(8 * subject.seconds * len(sample), "the outputs with another value of a parameter")
        except OutOfTime:
            unasked += 1
            continue
        moves = _moves_without_gradient(subject, sample, free[name], in_graph)
        if moves:
            cut.append(name)
        elif moves is None and not in_graph:
            unused.append(name)
    total = sum(p.numel() for p in named.values())
    if cut:
        share = sum(named[name].numel() for name in cut) / total
        yield alarm(
            "gradient reach",
            f"no gradient reaches {_few_layers(cut)}, {share:.0%} of the parameters, though the outputs depend on them",
            measured=f"{len(cut)} parameters with requires_grad=True and a gradient of none or exactly zero",
            predicted="the gradient of a layer is the product of all layers above it: one that passes none ends it",
            advice="look for detach(), no_grad(), .data, .item(), argmax, round or sign on the way to the outputs; "
            "if the layers are meant to stay, say so by requires_grad_(False)",
            claims=CLAIMS,
            numbers={"parameters": len(cut), "share": share},
            where=cut,
            weight=9,
        )
    if unused:
        share = sum(named[name].numel() for name in unused) / total
        yield hint(
            "unused parameters",
            f"the outputs do not use {_few_layers(unused)}, {share:.0%} of the parameters",
            measured="no gradient, in evaluation and in training mode, and no output moves with them",
            predicted="what the outputs do not depend on never learns, and costs memory and weight decay",
            advice="remove the layers, or call them in forward; DistributedDataParallel waits for their gradients",
            claims=CLAIMS,
            numbers={"parameters": len(unused), "share": share},
            where=unused,
            weight=4,
        )
    if unasked:
        yield skipped("parameters", f"{unasked} parameters without a gradient were not looked at: no time was left")
    elif not cut and not unused:
        told = f"a gradient reaches every one of {len(free)} parameters that may learn"
        if unreached:
            told = (
                f"a gradient can reach all {len(free)} parameters that may learn; that of {len(unreached)} is zero now"
            )
        yield fine("gradient reach", told, claims=CLAIMS)


def _frozen_findings(subject: Subject, named: Mapping[str, Tensor]) -> Iterator[AuditFinding]:
    frozen = [name for name, p in named.items() if not p.requires_grad]
    if not frozen:
        return
    total, still = sum(p.numel() for p in named.values()), sum(named[name].numel() for name in frozen)
    all_ = len(frozen) == len(named)
    trained = subject.training.lr is not None or subject.training.optimizer is not None
    told = "all parameters are" if all_ else f"{still / total:.0%} of the parameters are"
    which = "" if all_ else f": {_few_layers(frozen)}"
    yield (alarm if all_ and trained else hint)(
        "frozen parameters",
        f"{told} frozen (requires_grad=False){which}",
        measured=f"{still:,} of {total:,} numbers",
        predicted="frozen parameters never change",
        advice="as it should be for a network that is finished or only used as features; else requires_grad_(True)",
        claims=CLAIMS,
        numbers={"share": still / total},
        where=frozen,
        weight=10 if all_ and trained else 2,
    )


def _in_optimizer(subject: Subject, free: Mapping[str, Tensor]) -> Iterator[AuditFinding]:
    running = subject.training.running
    if running is None or not free:
        return
    held = {id(p) for group in running.param_groups for p in group["params"]}
    outside = [name for name, p in free.items() if id(p) not in held]
    if not outside:
        return
    none = len(outside) == len(free)
    yield (alarm if none else hint)(
        "parameters of the optimiser",
        "the optimiser holds none of the model's parameters: its steps change another model"
        if none
        else f"the parameters of {_few_layers(outside)} are not in the optimiser, and never change",
        measured=f"{len(free) - len(outside)} of {len(free)} free parameters are in its groups",
        advice="make the optimiser from model.parameters(), after the model has its last form",
        claims=("optim.sgd",),
        numbers={"outside": len(outside), "free": len(free)},
        where=outside,
        weight=10 if none else 5,
    )


def _loss_gradient(subject: Subject) -> Iterator[AuditFinding]:
    """A loss of one's own may lose the gradient itself, and one of a single class has none."""
    targets = subject.train.targets
    if targets is None or subject.unusable:
        return
    part = subject.train[:16]
    here = subject.outputs(part).float()
    noise = torch.randn(here.shape, generator=torch.Generator().manual_seed(0)).to(here.device)
    found = []
    # Where an answer is perfect, or cut off, a good loss may have no gradient: elsewhere it has.
    for values in (here, noise, noise.sigmoid()):
        with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
            # whether the loss fits the outputs is another probe's question
            outputs = values.clone().requires_grad_()
            loss = subject.loss(outputs, targets[: len(part)])
            found.append(torch.autograd.grad(loss.sum(), outputs)[0] if loss.requires_grad else None)
    if not found or not all(map(_is_zero, found)):
        return
    single = subject.task == "classes" and subject.classes == 1
    how, cure = "it does not depend on the outputs as far as torch can see", "detach(), .item(), numpy or argmax"
    if any(gradient is not None for gradient in found):
        how, cure = "it is the same whatever the outputs are", "a softmax over one class, clamp or round"
    yield alarm(
        "gradient of the loss",
        "the cross-entropy of a single output is zero, whatever it is"
        if single
        else f"the loss has no gradient: {how}",
        measured=f"a gradient of none or exactly zero at {len(found)} sets of outputs",
        predicted="learning follows the gradient of the loss through the outputs",
        advice="for two classes take loss='bce', for numbers loss='mse', or give each class an output"
        if single
        else f"look for {cure} in the loss",
        claims=CLAIMS,
        weight=10,
    )


def _unreached_parameters(subject: Subject, sample: Sample, free: Mapping[str, Tensor]) -> dict[str, bool]:
    """Parameters without a gradient in evaluation and in training mode; whether they are in the graph at all."""
    left: dict[str, bool] = dict.fromkeys(free, False)
    for training in (False, True):  # some parts only work in training
        if training and len(sample) < 2:
            break
        subject.model.train(training)
        try:
            gradients = _random_gradients(subject, sample, [free[name] for name in left])
        except (RuntimeError, ValueError):
            if not training:
                raise
            break
        finally:
            subject.model.eval()
        found = dict(zip(left, gradients, strict=True))
        left = {name: left[name] or found[name] is not None for name in left if _is_zero(found[name])}
        if not left:
            break
    return left


def _random_gradients(subject: Subject, sample: Sample, parameters: list[Tensor]) -> "list[Tensor | None]":
    """Of a random combination of all that the model answers."""
    # cuDNN's recurrent layers have a backward pass in training mode only; torch's own have one always.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        answers = [one for one in _answer_tensors(subject.network.answer(*sample.tensors)) if one.requires_grad]
        if not answers:
            return [None] * len(parameters)
        generator = torch.Generator().manual_seed(0)
        total = sum((one.float() * torch.randn(one.shape, generator=generator).to(one.device)).sum() for one in answers)
        return list(torch.autograd.grad(total, parameters, allow_unused=True))  # type: ignore[arg-type]


def _answer_tensors(answer: Any) -> Iterator[Tensor]:
    """All tensors of real numbers in what a model returns."""
    if isinstance(answer, Tensor):
        if answer.is_floating_point():
            yield answer
    elif isinstance(answer, Mapping):
        for one in answer.values():
            yield from _answer_tensors(one)
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from _answer_tensors(one)
    elif hasattr(answer, "__dict__") and not isinstance(answer, nn.Module):
        for one in vars(answer).values():
            yield from _answer_tensors(one)


def _is_zero(gradient: Tensor | None) -> bool:
    if gradient is None:
        return True
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return not bool((values != 0).any())


def _moves_without_gradient(subject: Subject, sample: Sample, p: Tensor, in_graph: bool) -> bool | None:
    """Whether outputs move with a parameter and there is no gradient there either; None where they do not move.

    A unit that is dead or saturated now has a gradient where a larger change wakes it, and is no such case.
    """
    before, generator = p.detach().clone(), torch.Generator().manual_seed(1)
    here, moved = _flat_outputs(subject, sample), None
    try:
        for change in CHANGES:
            size = float(before.float().square().mean().sqrt()) + 0.1
            noise = torch.randn(p.shape, generator=generator).to(p.device)
            with torch.no_grad():
                p.copy_(before + (change * size * noise).to(p.dtype))
            there = _flat_outputs(subject, sample)
            rounding = 16 * torch.finfo(subject.dtype).eps * float(here.abs().max())
            if not bool((there - here).abs().max() > rounding):
                continue
            moved = not in_graph or _is_zero(_random_gradients(subject, sample, [p])[0])
            if not moved:
                return False
    finally:
        with torch.no_grad():
            p.copy_(before)
    return moved


def _flat_outputs(subject: Subject, sample: Sample) -> Tensor:
    torch.manual_seed(0)
    with torch.no_grad():
        return torch.cat([one.float().flatten() for one in _answer_tensors(subject.network.answer(*sample.tensors))])


def _few_layers(names: list[str]) -> str:
    """Layers of parameters, the first few by name."""
    layers = list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))
    shown = ", ".join(layers[:3])
    if len(layers) > 3:
        return f"layers {shown} and {len(layers) - 3} more"
    return f"layer{'s' if len(layers) > 1 else ''} {shown}"
