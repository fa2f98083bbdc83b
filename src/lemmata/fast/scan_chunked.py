r"""The linear recurrence in plain torch, many chunks of time at once: for where there is neither kernel nor compiler.

Three passes: each chunk is run from zero for its last state and the product of its gates; these carry the true state
from chunk to chunk; each chunk is run again from its true start. Nothing is divided by a product of gates, which
underflows, and no logarithm is taken, which signs do not allow. Within a chunk the roundings are those of the plain
loop. About $2K + T/K$ operations of torch replace $T$.
"""

import math

import torch
from torch import Tensor

from lemmata.fast.scan_arguments import check_room, check_scan

__all__ = ["chunked_backward", "chunked_forward"]


@torch.no_grad()
def chunked_forward(
    a: Tensor, b: Tensor, z0: Tensor | None = None, reverse: bool = False, out: Tensor | None = None
) -> Tensor:
    r"""All states of $z_t = a_t z_{t-1} + b_t$, without a graph for autograd.

    Shapes:
        b: (batch, time, channel)    a: the same, or (batch, channel)    z0: (batch, channel)    out: like b

    Claims: rnn.scan
    """
    if out is None:
        check_scan(a, b, z0, reverse)
        return forward(a, b, z0, reverse, torch.empty_like(b))
    check_scan(a, b, z0, reverse, out=out)
    check_room("out", out, a, b, z0)
    return forward(a, b, z0, reverse, out)


def forward(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool, out: Tensor) -> Tensor:
    """The same for what was checked before."""
    time = b.shape[1]
    gates = (a[:, None] if a.ndim == 2 else a).expand_as(b)
    start = b.new_zeros(b.shape[0], b.shape[2]) if z0 is None else z0
    # Any length will do; this one takes the fewest operations, 2 K + T / K.
    length = max(1, round(math.sqrt(time / 2)))
    whole = time - time % length
    # The odd rest comes last in the order of running, so that it needs no padding.
    body, rest = (
        (slice(time - whole, None), slice(0, time - whole)) if reverse else (slice(0, whole), slice(whole, None))
    )
    if time >= 16:  # short ones may go either way
        start = _fill_chunks(gates[:, body], b[:, body], start, out[:, body], length, reverse)
        _step_loop(gates[:, rest], b[:, rest], start, out[:, rest], reverse)
    else:
        _step_loop(gates, b, start, out, reverse)
    return out


@torch.no_grad()
def chunked_backward(
    a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Gradients to a, b and z0 from the states and the gradient to them: the same recurrence, run the other way.

    $$ \bar b_t = \bar z_t + \bar a_{t+1}^* \bar b_{t+1}, \qquad \bar a_t = z_{t-1}^* \, \bar b_t $$

    where the star is the complex conjugate.
    """
    check_scan(a, z, z0, reverse, "z", grad=grad)
    return backward(a, z, z0, grad, reverse)


def backward(a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The same for what was checked before."""
    time = z.shape[1]
    if time == 0:
        return torch.zeros_like(a), torch.empty_like(z), z.new_zeros(z.shape[0], z.shape[2])
    gates = (a[:, None] if a.ndim == 2 else a).expand_as(z).conj()
    first, last = (time - 1, 0) if reverse else (0, time - 1)
    later, earlier = (slice(0, time - 1), slice(1, None)) if reverse else (slice(1, None), slice(0, time - 1))
    db = torch.empty_like(z)
    db[:, last] = grad[:, last]
    forward(gates[:, later], grad[:, earlier], db[:, last], not reverse, db[:, earlier])
    da = torch.empty_like(z)
    torch.mul(db[:, later], z[:, earlier].conj(), out=da[:, later])
    da[:, first] = 0 if z0 is None else db[:, first] * z0.conj()
    return (da.sum(1) if a.ndim == 2 else da), db, gates[:, first] * db[:, first]


def _fill_chunks(a: Tensor, b: Tensor, start: Tensor, out: Tensor, length: int, reverse: bool) -> Tensor:
    """Fill `out` for complete chunks and return the last state."""
    a, b, z = (x.unflatten(1, (-1, length)) for x in (a, b, out))
    order = range(length)[::-1] if reverse else range(length)
    states, product = b[:, :, order[0]].clone(), a[:, :, order[0]].clone()
    for step in order[1:]:
        torch.addcmul(b[:, :, step], a[:, :, step], states, out=states)
        product *= a[:, :, step]
    if not product.isfinite().all():  # a product may overflow where no state does
        return _step_loop(a.flatten(1, 2), b.flatten(1, 2), start, out, reverse)
    chunks = range(a.shape[1])[::-1] if reverse else range(a.shape[1])
    for chunk in chunks:
        after = torch.addcmul(states[:, chunk], product[:, chunk], start)
        states[:, chunk] = start  # from here on: where each chunk starts
        start = after
    for step in order:
        torch.addcmul(b[:, :, step], a[:, :, step], states, out=states)
        z[:, :, step] = states
    return states[:, chunks[-1]]


def _step_loop(a: Tensor, b: Tensor, state: Tensor, out: Tensor, reverse: bool) -> Tensor:
    for time in range(b.shape[1])[::-1] if reverse else range(b.shape[1]):
        state = torch.addcmul(b[:, time], a[:, time], state)
        out[:, time] = state
    return state
