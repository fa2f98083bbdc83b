"""The checks of the conformance suite of modules that give wrong inputs: each must be refused, and named."""

import contextlib
import re
from typing import Any

import torch
from torch import Tensor

from lemmata.testing.findings import Broken, told
from lemmata.testing.module_subject import Subject, off

__all__ = []  # for the suite alone


def wrong_rank(subject: Subject) -> None:
    for name, x in subject.tensors().items():
        must = not subject.any_rank(name)
        _demand_refused(subject, name, torch.zeros((), dtype=x.dtype), "no axes", False)
        for wrong in (x[0], x[None]) if x.ndim > 1 else (x[None],):
            _demand_refused(subject, name, wrong, f"shape {tuple(wrong.shape)} for {tuple(x.shape)}", must)


def wrong_width(subject: Subject) -> None:
    for name, x in subject.tensors().items():
        free = subject.free_axes(name)
        for axis in (axis for axis in range(x.ndim) if axis not in free):
            one = x.narrow(axis, 0, 1)  # which might be broadcast
            for wrong in (torch.cat([x, one], dim=axis), one):
                if wrong.shape != x.shape:
                    shapes = f"shape {tuple(wrong.shape)} for {tuple(x.shape)}"
                    _demand_refused(subject, name, wrong, shapes, name in subject.axes)


def wrong_dtype(subject: Subject) -> None:
    for name, x in subject.tensors().items():
        if x.is_floating_point():
            integers = torch.ones_like(x, dtype=torch.int64)
            _demand_refused(subject, name, integers, "int64 numbers", not _taken_as_floats(subject, name, integers))
        else:
            _demand_refused(subject, name, x + 0.5, "fractions instead of integers", True)


def _taken_as_floats(subject: Subject, name: str, integers: Tensor) -> bool:
    """Are integers the same numbers to the module as floats?"""
    with torch.no_grad(), contextlib.suppress(Exception):
        outputs = subject.run(changed={name: integers})
        wanted = subject.run(changed={name: integers.to(subject.inputs[name].dtype)})
        return all(off(a, b) < 1e-6 for a, b in zip(outputs, wanted, strict=True))
    return False


def wrong_type(subject: Subject) -> None:
    for name, x in subject.tensors().items():
        _demand_refused(subject, name, x.tolist(), "a list", True)


def _demand_refused(subject: Subject, name: str, value: Any, what: str, must: bool) -> None:
    """A wrong input is refused by a ValueError or TypeError that names it; where it need not be, it may work."""
    try:
        with torch.no_grad():
            subject.module(*{**subject.inputs, name: value.clone() if isinstance(value, Tensor) else value}.values())
    except Exception as error:
        if not isinstance(error, ValueError | TypeError):
            raise Broken(f"{name} with {what} gives {told(error)}: check it, and name {name} in a ValueError") from None
        if not re.search(rf"\b{re.escape(name)}\b", str(error)):
            raise Broken(f"the error for {name} with {what} does not name {name}: {told(error)}") from None
    else:
        if must:
            raise Broken(f"{name} with {what} is not refused")
