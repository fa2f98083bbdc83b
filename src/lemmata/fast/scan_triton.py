"""The linear recurrence on an NVIDIA GPU, forward and backward, by two Triton kernels.

Both passes move each number through memory once: 12 bytes an element forward in single precision, 20 backward, and
for gates that are constant in time 8 and 12. Time or channels may lie last in memory; a transposed view is read where
it lies. Nothing is divided and no logarithm is taken, and the same input gives the same bits.
"""

import functools
from typing import Any

import torch
import triton
from torch import Tensor

from lemmata.fast import scan_triton_kernels
from lemmata.fast.scan_triton_plan import Plan, Task, plan_of

__all__ = []

INT32 = 2**31
STRIPS: Any = scan_triton_kernels.strips
RELAY: Any = scan_triton_kernels.relay


def forward(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool, time_last: bool) -> Tensor:
    """All states, as `lemmata.fast.scan.linear_scan` says; tensors are on one GPU and of one type.

    Shapes:
        b: (batch, time, channel), or (batch, channel, time) with `time_last`    z0: (batch, channel)
        a: the shape of b, or (batch, channel) if it is constant in time
    """
    if time_last:
        return forward(a if a.ndim == 2 else a.mT, b.mT, z0, reverse, False).mT
    last = _time_is_last(b)
    a, b, z0 = _settle_layout(a, last), _settle_layout(b, last), None if z0 is None else _settle_layout(z0, False)
    z = torch.empty_like(b)
    if b.numel():
        _launch_scan(a, b, None, z0, z, None, reverse, last)
    return z


def backward(
    a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool, time_last: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of a, b and z0 from the states and their gradient; zero for a z0 that was left out."""
    if time_last:
        full = a.ndim == 3
        da, db, dz0 = backward(a.mT if full else a, z.mT, z0, grad.mT, reverse, False)
        return da.mT if full else da, db.mT, dz0
    last, constant = _time_is_last(z), a.ndim == 2
    a, z, grad = _settle_layout(a, last), _settle_layout(z, last), _settle_layout(grad, last)
    dz0 = z.new_zeros(z.shape[0], z.shape[2])
    if not z.numel():
        return torch.zeros_like(a), torch.empty_like(z), dz0
    da, db = torch.empty_like(a), torch.empty_like(z)
    da = _launch_scan(a, grad, z, None, db, da, not reverse, last)
    if z0 is not None:
        # The kernel knows no state before the first: its share comes here.
        first = -1 if reverse else 0
        share = db[:, first] * z0.conj()
        if constant:
            da += share
        else:
            da[:, first] = share
        dz0 = (a if constant else a[:, first]).conj() * db[:, first]
    return da, db, dz0


def _time_is_last(x: Tensor) -> bool:
    """Whether (batch, time, channel) is a view of memory in which time lies last; for one channel, it is either."""
    return x.mT.is_contiguous() and (x.shape[2] == 1 or not x.is_contiguous())


def _settle_layout(x: Tensor, last: bool) -> Tensor:
    """The tensor in the order of memory that the kernels expect; the very same one if it has it."""
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    return x.mT.contiguous().mT if last and x.ndim == 3 else x.contiguous()


def _launch_scan(
    a: Tensor, b: Tensor, states: Tensor | None, z0: Tensor | None, z: Tensor, da: Any, reverse: bool, last: bool
):
    """Choose a tile and launch; returns the gradient of the gates where there is one."""
    batch, length, channels = b.shape
    # With time last, the sequences of all batches follow each other: one batch with more columns.
    batch, columns = (1, batch * channels) if last else (batch, channels)
    how = a.ndim == 2, states is not None, last, _processor_count(b.device)
    return _launch_plan(plan_of(Task(batch, columns, length, b.dtype, *how)), a, b, states, z0, z, da, reverse, last)


def _launch_plan(
    plan: Plan, a: Tensor, b: Tensor, states: Any, z0: Any, z: Tensor, da: Any, reverse: bool, last: bool
) -> Any:
    batch, length, channels = b.shape
    constant, rows, chunk = a.ndim == 2, batch * channels, plan.runs * plan.steps
    columns, steps = (rows, (0, length, 1)) if last else (channels, (length * channels, 1, channels))
    if length > INT32 - 2 * chunk or chunk * steps[2] + plan.columns * steps[1] > INT32 - 1:
        raise NotImplementedError(f"no kernel counts {length} steps of {channels} channels")  # offsets have 32 bits
    chunks, programs = triton.cdiv(length, chunk), rows // columns * triton.cdiv(columns, plan.columns)
    data = [_words_of_numbers(x) for x in (a, b, states, z0, z)]
    options: dict[str, Any] = {"R": plan.runs, "S": plan.steps, "D": plan.columns, "num_warps": plan.warps}
    options |= {"TIME_LAST": last, "REVERSE": reverse, "COMPLEX": b.is_complex(), "CONSTANT": constant}
    options |= {"maxnreg": plan.registers} if plan.registers else {}
    with torch.cuda.device(b.device):
        if not plan.group:
            STRIPS[programs,](*data, _words_of_numbers(da), length, columns, *steps, STAGES=plan.stages, **options)
            return da
        partial: Any = da
        if constant and da is not None:  # a sum for each chunk, added up in a fixed order; half precision only at last
            wide = torch.float32 if da.itemsize == 2 else da.dtype
            partial = da.new_empty(chunks, *da.shape, dtype=wide)
        words, pieces = _empty_blackboard(b, rows, chunks, plan.group, constant)
        place = (length, columns, *steps, words, words[-1:], rows, chunks)
        RELAY[chunks * programs,](*data, _words_of_numbers(partial), *place, GROUP=plan.group, PIECES=pieces, **options)
    return da if partial is da else partial.sum(0).to(a.dtype)


def _empty_blackboard(b: Tensor, rows: int, chunks: int, group: int, constant: bool) -> tuple[Tensor, int]:
    """Empty words for what programs tell each other, the last one to count them; and words for a real number."""
    pieces = 2 if b.dtype in (torch.float64, torch.complex128) else 1
    numbers = chunks * (1 if constant else 2) + triton.cdiv(chunks, group)
    count = rows * numbers * pieces * (2 if b.is_complex() else 1)
    return torch.zeros(count + 1, dtype=torch.int64, device=b.device), pieces


def _words_of_numbers(x: Tensor | None) -> Tensor | None:
    """Numbers as the kernels take them: complex64 as words of 64 bits, complex128 as pairs."""
    if x is None or not x.is_complex():
        return x
    x = x if x.is_contiguous() else x.mT
    return x.view(torch.int64) if x.dtype == torch.complex64 else torch.view_as_real(x)


@functools.cache
def _processor_count(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
