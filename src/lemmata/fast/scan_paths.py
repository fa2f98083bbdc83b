r"""Which path computes a linear scan: Triton kernels on a GPU, compiled C on a processor, chunked torch otherwise.

Tensors arrive as (batch, time, channel) and of one type; how they lie in memory decides which kernel reads them, so
that no path needs to copy a transposed view.
"""

import functools
from collections.abc import Iterator
from types import ModuleType

import torch
from torch import Tensor

from lemmata import validate
from lemmata.fast import scan_chunked, scan_compiled
from lemmata.fast.scan_arguments import check_scan
from lemmata.fast.scan_compiled import why_not_compiled

__all__ = ["scan_path"]

WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
PIECE = 1 << 20  # numbers that are copied at a time where a copy must be, so that it takes little memory

Gradients = tuple[Tensor, Tensor, Tensor]  # to a, b and z0
Piece = tuple[slice, slice]  # of the batch and of the channels


def scan_path(b: Tensor) -> str:
    """Which path scans such a tensor: triton, compiled, or chunked and why.

    >>> scan_path(torch.ones(2, 5, 3)).split(":")[0] in ("compiled", "chunked")
    True
    """
    validate.tensor("b", b)
    if b.device.type == "cuda":
        return "triton" if _import_triton() else "chunked: triton is not installed"
    if b.device.type != "cpu":
        return f"chunked: no kernels for {b.device.type}"
    problem = why_not_compiled(WIDER.get(b.dtype, b.dtype))
    return f"chunked: {problem}" if problem else "compiled"


def forward(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool) -> Tensor:
    """All states, in the memory order of b; a is like b or (batch, channel).

    Claims: rnn.scan
    """
    check_scan(a, b, z0, reverse)
    if b.numel() == 0:
        return states_like(b)
    if kernels := _gpu_kernels(b):
        last = time_is_last(b)
        try:
            z = kernels.forward(*(_lay_out(x, last) for x in (a, b, z0)), reverse, last)
            return z.mT if last else z
        except NotImplementedError:
            pass  # this case has no kernel
    z = states_like(b)
    scan = (scan_compiled if _is_compiled(b) else scan_chunked).forward
    if _runs_whole(b):
        return scan(a, b, z0, reverse, z)
    for piece in _scan_pieces(b):
        start, term = None if z0 is None else _widen_piece(z0, piece), _widen_piece(b, piece)
        _cut_piece(z, piece).copy_(scan(_widen_piece(a, piece), term, start, reverse, torch.empty_like(term)))
    return z


def backward(a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool) -> Gradients:
    """Gradients to a, b and z0 from the one to the states."""
    check_scan(a, z, z0, reverse, "z", grad=grad)
    if z.numel() == 0:
        return gates_like(a, z).zero_(), torch.empty_like(z), starts_like(z).zero_()
    if kernels := _gpu_kernels(z):
        last = time_is_last(z)
        try:
            da, db, dz0 = kernels.backward(*(_lay_out(x, last) for x in (a, z, z0, grad)), reverse, last)
            return da.mT if last and da.ndim == 3 else da, db.mT if last else db, dz0
        except NotImplementedError:
            pass
    scan = (scan_compiled if _is_compiled(z) else scan_chunked).backward
    if _runs_whole(z):
        return scan(a, z, z0, grad, reverse)
    gradients = gates_like(a, z), torch.empty_like(z), starts_like(z)
    for piece in _scan_pieces(z):
        start = None if z0 is None else _widen_piece(z0, piece)
        found = scan(_widen_piece(a, piece), _widen_piece(z, piece), start, _widen_piece(grad, piece), reverse)
        for whole, part in zip(gradients, found, strict=True):
            _cut_piece(whole, piece).copy_(part)
    return gradients


def _is_compiled(b: Tensor) -> bool:
    return scan_path(b) == "compiled"


def _gpu_kernels(b: Tensor) -> ModuleType | None:
    return _import_triton() if b.device.type == "cuda" else None


@functools.cache
def _import_triton() -> ModuleType | None:
    try:
        from lemmata.fast import scan_triton
    except ImportError:
        return None
    return scan_triton


# --- How tensors lie in memory ---


def time_is_last(x: Tensor) -> bool:
    """Whether neighbours in time, not in channel, are neighbours in memory."""
    # With gaps everywhere, or of one step or one channel, it may be called either.
    return x.stride(1) == 1 and x.stride(2) != 1


def states_like(b: Tensor) -> Tensor:
    """Room for states (batch, time, channel) that lie in memory in the order of b, without gaps."""
    return b.new_empty(b.mT.shape).mT if time_is_last(b) else b.new_empty(b.shape)


def gates_like(a: Tensor, z: Tensor) -> Tensor:
    """Room for the gradient to the gates, in the memory order of the states."""
    return starts_like(z) if a.ndim == 2 else torch.empty_like(z)


def starts_like(z: Tensor) -> Tensor:
    """Room for one state (batch, channel)."""
    return z.new_empty(z.shape[0], z.shape[2])


def _lay_out(x: Tensor | None, time_last: bool) -> Tensor | None:
    """Without gaps, and transposed where time comes last in memory: what a kernel of that layout reads."""
    if x is None:
        return None
    return (x.mT if time_last and x.ndim == 3 else x).resolve_conj().resolve_neg().contiguous()


# --- Piece by piece, where a copy must be: half precision, and time last in memory where only torch computes ---


def _runs_whole(b: Tensor) -> bool:
    # Whatever goes as a whole goes in pieces too, more slowly.
    return b.dtype not in WIDER and (_is_compiled(b) or not time_is_last(b))


def _scan_pieces(b: Tensor) -> Iterator[Piece]:
    batch, time, channel = b.shape
    rows, columns = max(1, PIECE // (time * channel)), max(1, PIECE // time)
    for row in range(0, batch, rows):
        for column in range(0, channel, columns):
            yield slice(row, row + rows), slice(column, column + columns)


def _cut_piece(x: Tensor, piece: Piece) -> Tensor:
    return x[piece[0], ..., piece[1]]


def _widen_piece(x: Tensor, piece: Piece) -> Tensor:
    wide = _cut_piece(x, piece).to(WIDER.get(x.dtype, x.dtype))
    return wide if _is_compiled(wide) else wide.contiguous()  # torch takes any strides, but not as quickly
