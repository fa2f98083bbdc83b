"""The checks of the conformance suite of recurrence, each a few lines: it returns, or says what is wrong."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from lemmata.testing.findings import Broken, Undecided, told
from lemmata.testing.recurrence_subject import State, Subject, leaves, paired

__all__ = []  # for the suite alone


def _check_interface(subject: Subject) -> None:
    outputs, state = subject.whole()
    if outputs.ndim < 3 or outputs.shape[:2] != subject.x.shape[:2]:
        wanted = f"({len(subject.x)}, {subject.x.shape[1]}, ...)"
        raise Broken(f"the outputs must have the shape {wanted}, batch first, got {tuple(outputs.shape)}")
    if not list(leaves(state)):
        raise Broken(f"the state must hold a tensor, got {type(state).__name__}")


def _check_dtype(subject: Subject) -> None:
    outputs, state = subject.whole()
    wanted = subject.x.dtype if subject.x.is_floating_point() else outputs.dtype
    for name, value in (("outputs", outputs), *(("state", leaf) for leaf in leaves(state))):
        if value.dtype.is_floating_point | value.dtype.is_complex and value.dtype.to_real() != wanted:
            raise Broken(f"the {name} must have the dtype of the inputs, {wanted}, got {value.dtype}")
        if value.device != subject.x.device:
            raise Broken(f"the {name} must be on the inputs' device, {subject.x.device}, got {value.device}")
        if not torch.isfinite(value).all():
            raise Broken(f"the {name} must be finite for finite inputs, found NaN or infinity")


def _check_untouched(subject: Subject) -> None:
    x, state = subject.x.clone(), subject.run(subject.x)[1]
    given = [leaf.clone() for leaf in leaves(state)]
    subject.call(x, state)
    if not torch.equal(x, subject.x):
        raise Broken("the module writes into its inputs")
    if not all(map(torch.equal, leaves(state), given)):
        raise Broken("the module writes into the state that it is given: a caller cannot go back to it")


def _check_determinism(subject: Subject) -> None:
    again = "called once more in evaluation mode (a module must not be random, nor remember earlier calls)"
    subject.demand_same(subject.run(subject.x), subject.whole(), again)


def _check_batch(subject: Subject) -> None:
    outputs, state = subject.whole()
    for index in range(len(subject.x)):
        alone = subject.run(subject.x[index : index + 1])
        among = outputs[index : index + 1], subject.one(state, index)
        subject.demand_same(alone, among, f"when sequence {index} is run alone instead of among others")


def _check_causality(subject: Subject) -> None:
    found = _seen_by_changes(subject)
    if found is None and subject.x.is_floating_point() and subject.whole()[0].requires_grad:
        found = _seen_by_gradients(subject)
    if found is not None:
        pair = f"the output at step {found[0]} depends on the input at step {found[1]}"
        raise Broken(f"{pair}: the module is not causal")


def _seen_by_changes(subject: Subject) -> tuple[int, int] | None:
    """The first pair of an output and a later input by which it is changed."""
    outputs, _ = subject.whole()
    for time in range(1, subject.x.shape[1]):
        differ = subject.differ(subject.run(subject.changed(time))[0], outputs, subject.rounding)
        early = differ[:, :time].flatten(2).any(-1).any(0).nonzero()
        if len(early):
            return int(early[0]), time
    return None


def _seen_by_gradients(subject: Subject) -> tuple[int, int] | None:
    """The first pair of an output and a later input at which it has a gradient, however small the influence."""
    x = _differentiable_input(subject)
    outputs, _ = subject.run(x)
    for time in range(x.shape[1] - 1):
        (slope,) = torch.autograd.grad(_weighted_total(outputs[:, time]), x, retain_graph=True, allow_unused=True)
        if slope is not None:
            sizes = slope.abs().flatten(2).amax(-1).amax(0)
            late = (sizes[time + 1 :] > subject.rounding * sizes.max()).nonzero()
            if len(late):
                return time, time + 1 + int(late[0])
    return None


def _hand_over(subject: Subject) -> None:
    for cut in range(1, subject.x.shape[1]):
        first, state = subject.run(subject.x[:, :cut])
        second, end = subject.run(subject.x[:, cut:], state)
        when = f"when the state after {cut} steps is handed over to a second call"
        subject.demand_same((torch.cat([first, second], dim=1), end), subject.whole(), when)


def _check_streaming(subject: Subject) -> None:
    outputs, state = [], None
    for x in subject.x.split(1, dim=1):
        output, state = subject.run(x, state)
        outputs.append(output)
    subject.demand_same((torch.cat(outputs, dim=1), state), subject.whole(), "when fed one step at a time")


def _check_empty(subject: Subject) -> None:
    outputs, start = subject.whole()
    try:
        result = subject.run(subject.x[:, :0], start)
    except Broken:
        raise
    except Exception as error:
        raise Undecided(f"the module refuses it ({told(error)})") from None
    subject.demand_same(result, (outputs[:, :0], start), "without any step")


def _check_gradient(subject: Subject) -> None:
    x = _differentiable_input(subject)
    _demand_slope(_weighted_total(subject.run(x)[0][:, -1]), x, "the last output has no gradient at the first input")


def _check_detached(subject: Subject) -> None:
    x = _differentiable_input(subject)
    _, state = subject.run(x[:, :1])
    later = _weighted_total(subject.run(x[:, 1:], state)[0])
    _demand_slope(later, x, "the gradient stops at the state that is handed over, as if it were detached")


def _demand_slope(total: Tensor, x: Tensor, otherwise: str) -> None:
    slope = torch.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
    if slope is None or not slope[:, 0].any():
        raise Broken(otherwise)
    if not torch.isfinite(slope).all():
        raise Broken("the gradient of the inputs must be finite, found NaN or infinity")


def _by_length(subject: Subject) -> tuple[Tensor, State]:
    """A length for each sequence, from all steps down to one, and a state to start from."""
    lengths = torch.linspace(subject.x.shape[1], 1, len(subject.x)).round().long().to(subject.x.device)
    return lengths, paired(lambda leaf, _: leaf.detach(), *2 * (subject.whole()[1],))


def _check_lengths(subject: Subject) -> None:
    if not subject.takes_lengths:
        raise Undecided("the module takes no argument lengths")
    lengths, start = _by_length(subject)
    outputs, state = subject.run(subject.x, start, lengths)
    for index, length in enumerate(lengths.tolist()):
        alone = subject.run(subject.x[index : index + 1, :length], subject.one(start, index))
        among = outputs[index : index + 1, :length], subject.one(state, index)
        subject.demand_same(among, alone, f"when sequence {index} ends after {length} steps among longer ones")


def _check_padding(subject: Subject) -> None:
    lengths, start = _by_length(subject)
    expected = subject.run(subject.x, start, lengths)
    beyond = torch.arange(subject.x.shape[1], device=lengths.device) >= lengths[:, None]
    fills = (math.nan, math.inf) if subject.x.is_floating_point() else (int(subject.x.max()),)
    for fill in fills:
        x = subject.x.clone()
        x[beyond] = fill
        result = subject.run(x, start, lengths)
        subject.demand_same(result, expected, f"when sequences are padded with {fill}")
        if x.is_floating_point() and result[0].requires_grad:
            _demand_clean_slopes(subject, x.requires_grad_(), start, lengths, beyond, fill)


def _demand_clean_slopes(
    subject: Subject, x: Tensor, start: State, lengths: Tensor, beyond: Tensor, fill: float
) -> None:
    outputs, _ = subject.run(x, start, lengths)
    parameters = subject.module.parameters() if isinstance(subject.module, nn.Module) else ()
    learnt = [parameter for parameter in parameters if parameter.requires_grad]
    slopes = torch.autograd.grad(_weighted_total(outputs), [x, *learnt], allow_unused=True)
    if not all(torch.isfinite(slope).all() for slope in slopes if slope is not None):
        raise Broken(f"when sequences are padded with {fill}, gradients are not finite: set padding to zero before use")
    if slopes[0] is not None and slopes[0][beyond].any():
        raise Broken("what pads a sequence has a gradient: it has an influence on the outputs")


def _no_steps(subject: Subject) -> None:
    lengths, start = _by_length(subject)
    outputs, state = subject.run(subject.x, start, lengths)
    last = len(lengths) - 1
    lengths[last] = 0
    try:
        cut, end = subject.run(subject.x, start, lengths)
    except Broken:
        raise
    except Exception as error:
        raise Undecided(f"the module refuses it ({told(error)})") from None
    nothing = outputs[last:, :0]
    when = "when a sequence has length 0"
    subject.demand_same((nothing, subject.one(end, last)), (nothing, subject.one(start, last)), when)
    subject.demand_same((cut[:last], subject.one(end, 0)), (outputs[:last], subject.one(state, 0)), when)


def _weighted_total(outputs: Tensor) -> Tensor:
    """A sum with unequal weights: outputs that always add up to one would otherwise have no gradient."""
    values = (torch.view_as_real(outputs) if outputs.is_complex() else outputs).flatten()
    return (values * torch.arange(1, len(values) + 1, device=values.device).cos()).sum()


def _differentiable_input(subject: Subject) -> Tensor:
    if not subject.x.is_floating_point():
        raise Undecided(f"inputs of dtype {subject.x.dtype} have no gradient")
    return subject.x.clone().requires_grad_()


# Each check, and those without which it says nothing.
CHECKS: dict[str, tuple[Callable[[Subject], None], tuple[str, ...]]] = {
    "interface": (_check_interface, ()),
    "dtype": (_check_dtype, ("interface",)),
    "untouched": (_check_untouched, ("interface",)),
    "determinism": (_check_determinism, ("interface", "dtype", "untouched")),
    "batch": (_check_batch, ("determinism",)),
    "causality": (_check_causality, ("determinism",)),
    "hand_over": (_hand_over, ("causality",)),
    "streaming": (_check_streaming, ("hand_over",)),
    "empty": (_check_empty, ("determinism", "hand_over")),
    "gradient": (_check_gradient, ("determinism",)),
    "detached": (_check_detached, ("gradient", "hand_over")),
    "lengths": (_check_lengths, ("batch",)),
    "padding": (_check_padding, ("lengths",)),
    "no_steps": (_no_steps, ("lengths", "hand_over")),
}
