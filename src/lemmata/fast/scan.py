r"""The linear recurrence over a whole sequence: one entry for all devices, layouts and kinds of numbers."""

from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.fast.scan_arguments import check_numbers, check_scan
from lemmata.fast.scan_paths import Gradients, backward, forward, gates_like, starts_like, states_like
from lemmata.fast.scan_reference import scan_by_steps
from lemmata.marks import system

__all__ = ["linear_scan"]


@system("linear_scan", title="Linear scan", kind="function")
def linear_scan(
    a: Tensor, b: Tensor, z0: Tensor | None = None, reverse: bool = False, *, time_last: bool = False
) -> Tensor:
    r"""All states of a linear recurrence with its own gate for each channel.

    $$ z_t = a_t \odot z_{t-1} + b_t $$

    With `reverse`, time runs backwards: $z_t = a_t z_{t+1} + b_t$, and `z0` stands behind the last step. Numbers may
    be real or complex; half precision is computed in single precision and rounded once. Gradients to a, b and z0 are
    those of the recurrence itself, and the gradient of a gradient works too. A transposed view is read where it lies,
    without a copy.

    Shapes:
        b: (batch, time, channel), or (batch, channel, time) with `time_last`
        a: the shape of b, or constant in time: (channel,) or (batch, channel)
        z0: (batch, channel), zero if left out    returns: the shape of b

    Claims: rnn.scan
    Differs: transforms of `torch.func` take the readable path, one step after another.

    >>> linear_scan(torch.tensor([0.5]), torch.ones(1, 4, 1)).flatten()
    tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    _check_arguments(a, b, z0, reverse, time_last)
    dtype = torch.promote_types(a.dtype, b.dtype)
    dtype = dtype if z0 is None else torch.promote_types(dtype, z0.dtype)
    a, b, z0 = a.to(dtype), b.to(dtype), None if z0 is None else z0.to(dtype)
    if time_last:
        a, b = a.mT if a.ndim == 3 else a, b.mT
    a = a.expand(b.shape[0], b.shape[2]) if a.ndim == 1 else a
    transformed = not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()
    if transformed:
        z = scan_by_steps(a, b, z0, reverse)
    else:
        z = torch.ops.lemmata.linear_scan(a, b, z0, reverse)
    return z.mT if time_last else z


def _check_arguments(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool, time_last: bool) -> None:
    validate.flag("reverse", reverse)
    validate.flag("time_last", time_last)
    for name, value in (("b", b), ("a", a), ("z0", b if z0 is None else z0)):
        check_numbers(name, value, b, "b")
    if b.ndim != 3:
        axes = "(batch, channel, time)" if time_last else "(batch, time, channel)"
        raise ValueError(f"b must be a {axes} tensor, got shape {tuple(b.shape)}")
    state = (b.shape[0], b.shape[1 if time_last else 2])
    # Shapes with other numbers of axes are not compared: to a compiler that is a condition on their sizes.
    if a.shape != {3: b.shape, 2: state, 1: state[1:]}.get(a.ndim):
        constant = f"or {state} or {state[1:]} if it is constant in time"
        raise ValueError(f"a must have the shape {tuple(b.shape)} of b, {constant}, got {tuple(a.shape)}")
    if z0 is not None and z0.shape != state:
        raise ValueError(f"z0 must be a (batch, channel) tensor of shape {state}, got {tuple(z0.shape)}")


# --- The operators that torch.compile sees, and their gradients ---

# Not torch.library.custom_op: its first call imports the whole compiler, which takes seconds.
_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define("linear_scan(Tensor a, Tensor b, Tensor? z0, bool reverse) -> Tensor")
_library.define(
    "linear_scan_backward(Tensor a, Tensor z, Tensor? z0, Tensor grad, bool reverse) -> (Tensor, Tensor, Tensor)"
)
_library.impl("linear_scan", forward, "CompositeExplicitAutograd")
_library.impl("linear_scan_backward", backward, "CompositeExplicitAutograd")


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, _, z0, ctx.reverse = inputs
    ctx.save_for_backward(a, output, z0)


def _scan_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    a, z, z0 = ctx.saved_tensors
    if torch.is_grad_enabled():  # somebody wants the gradient of this gradient
        found = _differentiable_backward(a, z, z0, grad, ctx.reverse)
    else:
        found = torch.ops.lemmata.linear_scan_backward(a, z, z0, grad, ctx.reverse)
    return *found[:2], None if z0 is None else found[2], None


def _differentiable_backward(a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool) -> Gradients:
    """The backward pass as a scan that runs the other way, and so has a gradient itself."""
    edge = torch.zeros_like(z[:, :1])
    gates = (a[:, None].expand_as(z) if a.ndim == 2 else a).conj()
    before = edge if z0 is None else z0[:, None].expand_as(edge)
    if reverse:
        gates, before = torch.cat([edge, gates], 1), torch.cat([z[:, 1:], before], 1)
    else:
        gates, before = torch.cat([gates, edge], 1), torch.cat([before, z[:, :-1]], 1)
    # One step more than there are gradients: what arrives there is the gradient to z0, once its own gate is applied.
    found = torch.ops.lemmata.linear_scan(
        gates, torch.cat([grad, edge] if reverse else [edge, grad], 1), None, not reverse
    )
    db, dz0 = (found[:, :-1], found[:, -1]) if reverse else (found[:, 1:], found[:, 0])
    da = db * before.conj()
    return da.sum(1) if a.ndim == 2 else da, db, dz0


@torch.library.register_fake("lemmata::linear_scan", lib=_library)
def _(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool) -> Tensor:
    check_scan(a, b, z0, reverse)
    return states_like(b)


@torch.library.register_fake("lemmata::linear_scan_backward", lib=_library)
def _(a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool) -> Gradients:
    check_scan(a, z, z0, reverse, "z", grad=grad)
    return gates_like(a, z), torch.empty_like(z), starts_like(z)


torch.library.register_autograd("lemmata::linear_scan", _scan_gradients, setup_context=_save_for_backward, lib=_library)
