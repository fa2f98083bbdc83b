"""What a scan may be given, checked before a kernel sees an address: the operators can be called by hand too."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lemmata import validate

__all__ = []  # for the paths of the scan; users meet only the messages

NUMBERS = (torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float16, torch.bfloat16)


def check_numbers(name: str, value: Tensor, first: Tensor, of: str, numbers: tuple[torch.dtype, ...] = NUMBERS) -> None:
    """A dense tensor of numbers that are known, on the device of the first one, which is called `of`."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}")
    if value.dtype not in numbers:
        kind = "floating point or complex" if numbers is NUMBERS else f"one of {', '.join(map(str, numbers))}"
        raise TypeError(f"{name} must be {kind}, got {value.dtype}: use {name}.float()")
    if value.device != first.device:
        raise ValueError(f"{name} must be on the device of {of}, {first.device}, got {value.device}")
    if value.layout is not torch.strided:
        raise TypeError(f"{name} must be dense, got {value.layout}: use {name}.to_dense()")


def check_scan(
    a: Tensor,
    x: Tensor,
    z0: Tensor | None,
    reverse: bool,
    of: str = "b",
    numbers: tuple[torch.dtype, ...] = NUMBERS,
    **like: Tensor,
) -> None:
    """Gates, terms or states `x` called `of`, a start, and tensors like `x`: one dtype, one device, sizes that fit."""
    validate.flag("reverse", reverse)
    given = {of: x, "a": a, **like} if z0 is None else {of: x, "a": a, "z0": z0, **like}
    for name, value in given.items():
        check_numbers(name, value, x, of, numbers)
        if value.dtype != x.dtype:
            raise TypeError(f"{name} must have the dtype of {of}, {x.dtype}, got {value.dtype}")
    if x.ndim != 3:
        raise ValueError(f"{of} must be a (batch, time, channel) tensor, got shape {tuple(x.shape)}")
    state = (x.shape[0], x.shape[2])
    if a.shape != (x.shape if a.ndim == 3 else state):
        wanted = f"{tuple(x.shape)} of {of}, or {state} if it is constant in time"
        raise ValueError(f"a must have the shape {wanted}, got {tuple(a.shape)}")
    if z0 is not None and z0.shape != state:
        raise ValueError(f"z0 must be a (batch, channel) tensor of shape {state}, got {tuple(z0.shape)}")
    for name, value in like.items():
        if value.shape != x.shape:
            raise ValueError(f"{name} must have the shape {tuple(x.shape)} of {of}, got {tuple(value.shape)}")


def check_room(name: str, out: Tensor, *read: Tensor | None) -> None:
    """A tensor that is written to: each number in a place of its own, which none of those that are read shares."""
    if out.is_conj() or out.is_neg() or _overlaps_itself(out):
        raise ValueError(f"{name} must have a place in memory for each number: use torch.empty_like(b)")
    place = out.untyped_storage().data_ptr()
    if any(x is not None and x.untyped_storage().data_ptr() == place for x in read) and out.numel():
        raise ValueError(f"{name} must not share memory with what is read: use torch.empty_like(b)")


def _overlaps_itself(x: Tensor) -> bool:
    """Whether two positions may be one place in memory, as in what `expand` makes."""
    reach = 0
    for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def check_prefixes(steps: Any, compose: Callable[..., Any]) -> None:
    """Two tensors (batch, time, ...) of as many sequences and times, and something that joins them."""
    if not callable(compose):
        raise TypeError(f"compose must be a function of two pairs, got {type(compose).__name__}")
    if not isinstance(steps, tuple | list) or len(steps) != 2:
        raise TypeError(f"steps must be a pair of tensors (a, b), got {type(steps).__name__}")
    for name, value in zip("ab", steps, strict=True):
        if validate.tensor(name, value).layout is not torch.strided:
            raise TypeError(f"{name} must be dense, got {value.layout}: use {name}.to_dense()")
        if value.ndim < 2 or value.shape[:2] != steps[0].shape[:2]:
            raise ValueError(f"{name} must be (batch, time, ...) as a is, got shape {tuple(value.shape)}")
