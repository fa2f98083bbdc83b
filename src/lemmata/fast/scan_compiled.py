r"""The linear recurrence on the processor, by `scan.c`, which the system's compiler turns into a library once.

One step after another in time, as the formula says; channels side by side. That is as fast as memory: nothing is read
or written twice.
"""

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from lemmata.fast.compiled_library import load_compiled
from lemmata.fast.scan_arguments import check_room, check_scan
from lemmata.fast.threads import even_bounds, share_work

__all__ = ["compiled_backward", "compiled_forward", "why_not_compiled"]

NUMBERS = {
    torch.float32: ("-DREAL=float",),
    torch.float64: ("-DREAL=double",),
    torch.complex64: ("-DREAL=float", "-DCOMPLEX"),
    torch.complex128: ("-DREAL=double", "-DCOMPLEX"),
}
WIDTH, LANES = 256, 4  # any number of lanes gives the same bits
WORTH_A_THREAD = 1 << 15  # numbers; handing work to a thread costs as much as some ten thousand of them


def why_not_compiled(dtype: torch.dtype) -> str:
    """Why there is no compiled path for such numbers; empty if there is one."""
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be one of torch's, such as torch.float32, got {type(dtype).__name__}")
    return _scan_library(dtype)[1]


def compiled_forward(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool, out: Tensor) -> Tensor:
    r"""All states of $z_t = a_t z_{t-1} + b_t$, written into `out`.

    Shapes:
        b, out: (batch, time, channel)    a: the same, or (batch, channel)    z0: (batch, channel)
    """
    check_scan(a, b, z0, reverse, numbers=tuple(NUMBERS), out=out)
    check_room("out", out, a, b, z0)
    _check_place(b)
    return forward(a, b, z0, reverse, out)


def forward(a: Tensor, b: Tensor, z0: Tensor | None, reverse: bool, out: Tensor) -> Tensor:
    """The same for what was checked before."""
    if out.numel() == 0:
        return out
    _run_library("forward", reverse, {"a": a, "b": b, "z0": z0}, {"z": out})
    return out


def compiled_backward(
    a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients to a, b and z0, in one pass that reads a, z and the gradient to z once."""
    check_scan(a, z, z0, reverse, "z", tuple(NUMBERS), grad=grad)
    _check_place(z)
    return backward(a, z, z0, grad, reverse)


def backward(a: Tensor, z: Tensor, z0: Tensor | None, grad: Tensor, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The same for what was checked before."""
    db, dz0 = torch.empty_like(z), z.new_empty(z.shape[0], z.shape[2])
    da = torch.empty_like(dz0 if a.ndim == 2 else z)
    # What sum() hands down is one number for all (stride 0): it cannot be read side by side.
    grad = grad.contiguous() if 0 in grad.stride() else grad
    if z.numel() == 0:
        return da.zero_(), db, dz0.zero_()
    _run_library("backward", reverse, {"a": a, "z": z, "z0": z0, "grad": grad}, {"da": da, "db": db, "dz0": dz0})
    return da, db, dz0


def _check_place(x: Tensor) -> None:
    if x.device.type != "cpu":
        raise ValueError(f"tensors must be on the CPU, got {x.device}: use linear_scan, which knows other devices")
    if problem := why_not_compiled(x.dtype):
        raise ValueError(f"there is no compiled scan of {x.dtype} ({problem}): use linear_scan")


# --- One call of the library: where everything lies, and which thread takes what ---


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("batch", "time", "channel"))]


class _Task(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("time", "channel", "width")),
        *((name, _Tensor) for name in ("a", "b", "z0", "z", "grad", "da", "db", "dz0")),
    ]


def _run_library(direction: str, reverse: bool, read: dict[str, Tensor | None], written: dict[str, Tensor]) -> None:
    used = {name: _plain_numbers(x) for name, x in read.items() if x is not None} | written
    batch, time, channel = used["z"].shape
    # Few channels in many sequences: the sequences run side by side instead.
    swapped = channel < LANES and batch > channel
    batch, channel = (channel, batch) if swapped else (batch, channel)
    task = _Task(time=time, channel=channel)
    for name, x in used.items():
        setattr(task, name, _describe_tensor(x, reverse, swapped))
    # Any number of threads gives the same bits.
    threads = max(1, min(torch.get_num_threads(), used["z"].numel() // WORTH_A_THREAD))
    neighbours = all(getattr(task, name).channel == 1 for name in used)
    columns = neighbours and channel >= LANES
    share = batch * channel // threads
    # Whole cache lines of as many channels as can be, so that every thread gets a block.
    task.width = min(WIDTH, max(16, share - share % -16)) if columns else LANES
    function = getattr(_scan_library(used["z"].dtype)[0], f"{direction}_{'columns' if columns else 'rows'}")

    def work(first: int, last: int) -> dict[str, Tensor]:
        function(ctypes.byref(task), ctypes.c_int64(first), ctypes.c_int64(last))
        return used  # a thread holds what it works on, even if its caller was interrupted and has let go

    share_work(work, even_bounds(batch * -(-channel // task.width), threads))


def _plain_numbers(x: Tensor) -> Tensor:
    """Numbers as they are, not marked as to be conjugated or negated; states without gaps, since they are small."""
    x = x.resolve_conj().resolve_neg()
    return x.contiguous() if x.ndim == 2 else x


def _describe_tensor(x: Tensor, reverse: bool, swapped: bool) -> _Tensor:
    batch, along, channel = x.stride(0), x.stride(1) if x.ndim == 3 else 0, x.stride(-1)
    data = x.data_ptr() + (x.element_size() * (x.shape[1] - 1) * along if reverse else 0)
    batch, channel = (channel, batch) if swapped else (batch, channel)
    return _Tensor(data, batch, -along if reverse else along, channel)


@functools.cache
def _scan_library(dtype: torch.dtype) -> tuple[ctypes.CDLL | None, str]:
    if dtype not in NUMBERS:  # without a library torch computes the same
        return None, f"no compiled numbers of type {dtype}"
    lanes = f"-DWIDTH={WIDTH}", f"-DLANES={LANES}"
    return load_compiled(Path(__file__).with_name("scan.c"), (*NUMBERS[dtype], *lanes))
