"""Checks at the door: each returns the checked value, or says in one sentence what is wrong and the fix."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

__all__ = []  # for systems; users meet only the messages


def tensor(name: str, value: Tensor) -> Tensor:
    """A tensor of any shape and dtype: neither a list nor an array.

    >>> tensor("y", [0, 1])
    Traceback (most recent call last):
    TypeError: y must be a tensor, got list: use torch.as_tensor(y)
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: use torch.as_tensor({name})")
    return value


def floating(name: str, value: Tensor) -> Tensor:
    """A non-empty floating-point tensor of any shape without NaN or infinity.

    >>> floating("x", torch.tensor([1.0, float("nan")]))
    Traceback (most recent call last):
    ValueError: x must be finite, found 1 NaN value: remove or impute it
    """
    _nonempty_tensor(name, value)
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}: use {name}.double()")
    _check_finite(name, value)
    return value


def matrix(name: str, value: Tensor, axes: str = "points, features") -> Tensor:
    """A finite, non-empty, floating-point tensor with two axes; `axes` names them in the message."""
    _nonempty_tensor(name, value)
    if value.ndim != 2:
        raise ValueError(f"{name} must be a ({axes}) tensor, got shape {tuple(value.shape)}")
    return floating(name, value)


def vector(name: str, value: Tensor, length: int | None = None) -> Tensor:
    """A finite, non-empty, floating-point tensor with one axis, of the given length if one is given."""
    _nonempty_tensor(name, value)
    if value.ndim != 1:
        raise ValueError(f"{name} must be a tensor with one axis, got shape {tuple(value.shape)}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {_plural_words(length, 'entry', 'entries')}, got {len(value)}")
    return floating(name, value)


def last_axis(name: str, value: Tensor, size: int, axis: str = "feature") -> Tensor:
    """A tensor of any shape with so many entries on its last axis; `axis` names one of them in the message.

    >>> last_axis("x", torch.zeros(4, 3), 2)
    Traceback (most recent call last):
    ValueError: x must have 2 features on its last axis, got shape (4, 3)
    """
    if tensor(name, value).ndim == 0 or value.shape[-1] != size:
        wanted = _plural_words(size, axis, axis + "s")
        raise ValueError(f"{name} must have {wanted} on its last axis, got shape {tuple(value.shape)}")
    return value


def inputs(name: str, value: Tensor, size: int) -> Tensor:
    """Floating-point numbers of any shape, with so many inputs on the last axis; not looked at, so that NaN passes.

    >>> inputs("x", torch.tensor([[1, 2]]), 2)
    Traceback (most recent call last):
    TypeError: x must hold floating-point numbers, got torch.int64: use x.float()
    """
    last_axis(name, value, size, "input")
    if not value.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}: use {name}.float()")
    return value


def examples(name: str, value: Tensor, size: int) -> Tensor:
    """Floating-point examples with so many values each, (batch, ...), returned as vectors, (batch, size).

    >>> examples("x", torch.zeros(5, 2, 3), 8)
    Traceback (most recent call last):
    ValueError: x must be (batch, ...) with 8 values each, got shape (5, 2, 3)
    """
    if not tensor(name, value).is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {value.dtype}: use {name}.float()")
    if value.ndim < 2 or math.prod(value.shape[1:]) != size:
        raise ValueError(f"{name} must be (batch, ...) with {size} values each, got shape {tuple(value.shape)}")
    return value.flatten(1)


def labels(name: str, value: Tensor, like: Tensor) -> Tensor:
    """One label -1 or +1 for each row of `like`, returned in the dtype and on the device of `like`.

    >>> labels("y", torch.tensor([0, 1]), like=torch.zeros(2, 3))
    Traceback (most recent call last):
    ValueError: y must hold only -1 and +1, got labels {0, 1}: use 2 * y - 1
    """
    _nonempty_tensor(name, value)
    if value.ndim != 1 or len(value) != len(like):
        wanted = f"one label for each of the {_plural_words(len(like), 'point', 'points')}"
        raise ValueError(f"{name} must hold {wanted}, got shape {tuple(value.shape)}")
    _only_signs(name, value, "labels")
    return value.detach().to(like)


def signs(name: str, value: Tensor) -> Tensor:
    """A non-empty tensor of any shape and dtype whose entries are -1 or +1.

    >>> signs("state", torch.tensor([1, -1, 0]))
    Traceback (most recent call last):
    ValueError: state must hold only -1 and +1, got values {-1, 0, 1}
    """
    _nonempty_tensor(name, value)
    _only_signs(name, value, "values")
    return value


def bits(name: str, value: Tensor) -> Tensor:
    """A non-empty tensor of any shape and dtype whose entries are 0 or 1 (or False and True)."""
    _nonempty_tensor(name, value)
    if value.dtype is not torch.bool:
        _check_finite(name, value)
        if not ((value == 0) | (value == 1)).all():
            hint = f": use ({name} + 1) / 2" if (value.abs() == 1).all() else ""
            raise ValueError(f"{name} must hold only 0 and 1, got values {_distinct_values(value)}{hint}")
    return value


def visible(value: Tensor) -> bool:
    """May a module look at the values of its input, and are there any?

    Not in a graph that is compiled or exported, which it would break, nor under `torch.func` or a mode such as that of
    fake tensors, which have none to show; and on another device than the CPU every step would wait for it.

    >>> visible(torch.ones(2)), torch.func.vmap(lambda row: row if visible(row) else -row)(torch.ones(2)).tolist()
    (True, [-1.0, -1.0])
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    if torch._C._len_torch_dispatch_stack() or type(value) not in (Tensor, torch.nn.Parameter):
        return False
    return value.is_cpu and value.numel() > 0


def tokens(name: str, value: Tensor, vocab_size: int) -> Tensor:
    """A tensor of integers from 0 to below `vocab_size`, of any shape.

    >>> tokens("x", torch.tensor([0, 7]), vocab_size=5)
    Traceback (most recent call last):
    ValueError: x must hold tokens from 0 to 4, got 0 to 7
    """
    if tensor(name, value).is_floating_point() or value.is_complex() or value.dtype is torch.bool:
        raise TypeError(f"{name} must hold tokens as integers, got {value.dtype}: use {name}.long()")
    if visible(value):
        least, most = (int(each) for each in torch.aminmax(value))
        if least < 0 or most >= vocab_size:
            raise ValueError(f"{name} must hold tokens from 0 to {vocab_size - 1}, got {least} to {most}")
    return value


def finite_number(name: str, value: int | float) -> int | float:
    """A real number, not NaN and not infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        finite = False
    if not finite:
        raise ValueError(f"{name} must be finite, got {value}")
    return value


def number(
    name: str,
    value: int | float,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> int | float:
    """A finite number from `least` to `most`, or strictly `above` and `below` others.

    >>> number("ema_decay", 1.0, above=0, below=1)
    Traceback (most recent call last):
    ValueError: ema_decay must be > 0 and < 1, got 1.0
    """
    finite_number(name, value)
    limits = {">=": least, ">": above, "<=": most, "<": below}
    holds = (least is None or value >= least) and (above is None or value > above)
    if not (holds and (most is None or value <= most) and (below is None or value < below)):
        wanted = " and ".join(f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None)
        raise ValueError(f"{name} must be {wanted}, got {value}")
    return value


def positive(name: str, value: int | float) -> int | float:
    """A finite number above zero.

    >>> positive("beta", -0.3)
    Traceback (most recent call last):
    ValueError: beta must be > 0, got -0.3
    """
    return number(name, value, above=0)


def fraction(name: str, value: int | float, most: float | None = None) -> int | float:
    """A number from 0 to `most`, or to anything below 1.

    >>> fraction("dropout", 1.0)
    Traceback (most recent call last):
    ValueError: dropout must be in [0, 1), got 1.0
    """
    if finite_number(name, value) < 0 or (value >= 1 if most is None else value > most):
        raise ValueError(f"{name} must be in [0, {'1)' if most is None else f'{most:g}]'}, got {value}")
    return value


def one_of(name: str, value: str, options: Iterable[str]) -> str:
    """One of several words.

    >>> one_of("rule", "hop", ["hebb", "pseudo-inverse"])
    Traceback (most recent call last):
    ValueError: rule must be one of hebb, pseudo-inverse, got 'hop'
    """
    known = list(options)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    return value


def count(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """An integer from `least` to `most`.

    >>> count("max_epochs", 0)
    Traceback (most recent call last):
    ValueError: max_epochs must be >= 1, got 0
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be <= {most}, got {value}")
    return value


def flag(name: str, value: bool) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def module(name: str, value: nn.Module, kind: type[nn.Module] = nn.Module) -> nn.Module:
    """A module of torch, or of the kind that is asked for.

    >>> module("model", 3)
    Traceback (most recent call last):
    TypeError: model must be an nn.Module, got int
    """
    if not isinstance(value, kind):
        wanted = "an nn.Module" if kind is nn.Module else f"a {kind.__name__}"
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}")
    return value


# --- Matrices, and shapes that fit together ---


def matrices(name: str, value: Tensor, axes: str = "rows, columns") -> Tensor:
    """A finite, non-empty, floating-point tensor with at least two axes; leading axes are a batch."""
    if isinstance(value, Tensor) and value.ndim < 2:
        raise ValueError(f"{name} must be a (..., {axes}) tensor, got shape {tuple(value.shape)}")
    return floating(name, value)


def square(name: str, value: Tensor) -> Tensor:
    """A finite floating-point tensor whose last two axes have the same length.

    >>> square("A", torch.zeros(2, 3))
    Traceback (most recent call last):
    ValueError: A must be a (..., n, n) tensor, got shape (2, 3)
    """
    matrices(name, value, "n, n")
    if value.shape[-1] != value.shape[-2]:
        raise ValueError(f"{name} must be a (..., n, n) tensor, got shape {tuple(value.shape)}")
    return value


def symmetric(name: str, value: Tensor) -> Tensor:
    """A square matrix, or a batch of them, that equals its transpose up to the rounding of its dtype.

    >>> symmetric("A", torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    Traceback (most recent call last):
    ValueError: A must be symmetric, but differs from its transpose by up to 2: use (A + A.mT) / 2
    """
    square(name, value)
    gap = (value - value.mT).detach().abs().amax((-2, -1))
    rounding = 4 * value.shape[-1] * torch.finfo(value.dtype).eps * value.detach().abs().amax((-2, -1))
    if (gap > rounding).any():
        amount = f"by up to {gap.max().item():.3g}"
        raise ValueError(
            f"{name} must be symmetric, but differs from its transpose {amount}: use ({name} + {name}.mT) / 2"
        )
    return value


def fits(name: str, value: Tensor, shape: tuple[int, ...], like: Tensor, whose: str, batched: bool = False) -> Tensor:
    """A finite tensor of this shape and of the dtype of `like`; a batched one may have leading axes too.

    >>> fits("b", torch.zeros(3), (2,), like=torch.zeros(2, 2), whose="A")
    Traceback (most recent call last):
    ValueError: b must be a (2,) tensor to fit A, got shape (3,)
    """
    floating(name, value)
    leading = max(0, value.ndim - len(shape)) if batched else 0
    if tuple(value.shape[leading:]) != shape:
        wanted = f"(..., {', '.join(map(str, shape))})" if batched else shape
        raise ValueError(f"{name} must be a {wanted} tensor to fit {whose}, got shape {tuple(value.shape)}")
    if value.dtype != like.dtype:
        raise TypeError(f"{name} must have the dtype of {whose}, got {value.dtype}: use {name}.to({like.dtype})")
    return value


def broadcast(**shapes: tuple[int, ...]) -> None:
    """Leading axes that can be read as one batch.

    >>> broadcast(x=(2, 5), y=(3, 5))
    Traceback (most recent call last):
    ValueError: x and y must have leading axes that broadcast, got (2, 5) and (3, 5)
    """
    try:
        _ = torch.broadcast_shapes(*shapes.values())
    except RuntimeError:
        names, found = " and ".join(shapes), " and ".join(map(str, shapes.values()))
        raise ValueError(f"{names} must have leading axes that broadcast, got {found}") from None


def _nonempty_tensor(name: str, value: Tensor) -> None:
    if tensor(name, value).numel() == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)}")


def _check_finite(name: str, value: Tensor) -> None:
    if math.isfinite(value.detach().sum()):  # one pass without a copy; a sum that merely overflows is looked at below
        return
    missing = int(torch.isnan(value).sum())
    if missing:
        remedy = "remove or impute " + ("it" if missing == 1 else "them")
        raise ValueError(f"{name} must be finite, found {_plural_words(missing, 'NaN value', 'NaN values')}: {remedy}")
    infinite = int(torch.isinf(value).sum())
    if infinite:
        amount = _plural_words(infinite, "infinite value", "infinite values")
        raise ValueError(f"{name} must be finite, found {amount}: clip or rescale the data")


def _only_signs(name: str, value: Tensor, noun: str) -> None:
    if value.dtype is torch.bool:
        raise ValueError(f"{name} must hold only -1 and +1, got booleans: use 2 * {name}.long() - 1")
    _check_finite(name, value)
    if not (value.abs() == 1).all():
        hint = f": use 2 * {name} - 1" if ((value == 0) | (value == 1)).all() else ""
        raise ValueError(f"{name} must hold only -1 and +1, got {noun} {_distinct_values(value)}{hint}")


def _distinct_values(value: Tensor, shown: int = 4) -> str:
    found = [f"{entry:g}" for entry in torch.unique(value).tolist()]
    return "{" + ", ".join(found[:shown]) + (", ..." if len(found) > shown else "") + "}"


def _plural_words(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
