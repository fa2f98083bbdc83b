"""Ways to break an argument: types, sizes, numbers, strides, devices, patterns. Some leave it as good as it was."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.fast.glove_sweep import WordTables
from lemmata.fast.skip_gram_sweep import AliasTable
from lemmata.fast.sparse.rows import Rows
from lemmata.fast.wavenet_steps import StepWeights

INTEGERS = (-1, -999, -(2**62), 0, 1, 2**31, 2**62, 2**63, 10**30, 1.5, True, "3", None)
NUMBERS = (0.0, -1.0, 2.0, float("nan"), float("inf"), 1e300, "a", None, True)
OTHERS = (None, "x", 3, 1.5, (), ("a", "b"), [], {}, b"abc", object())
DTYPES = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    *(torch.int32, torch.int64, torch.uint8, torch.bool),
)
HUGE = (-1, -(2**40), 2**31, 2**40, 2**62)


def broken(value: Any, draw: random.Random) -> Any:
    """The argument in some other way; a new object, the given one stays as it is."""
    if draw.random() < 0.08:
        return draw.choice(OTHERS)
    if isinstance(value, bool):
        return draw.choice([0, 1, None, "yes", not value])
    if isinstance(value, int):
        return draw.choice([*INTEGERS, value + 1, value - 1])
    if isinstance(value, float):
        return draw.choice(NUMBERS)
    if isinstance(value, Rows | AliasTable | WordTables):
        part = draw.choice(value._fields)
        return value._replace(**{part: broken(getattr(value, part), draw)})
    if isinstance(value, StepWeights):
        return _broken_weights(value, draw)
    if isinstance(value, Tensor):
        return _broken_tensor(value, draw)
    if isinstance(value, np.ndarray):
        return _broken_array(value, draw)
    if isinstance(value, tuple | list) and value:
        at = draw.randrange(len(value))
        return type(value)(broken(each, draw) if k == at else each for k, each in enumerate(value))
    return draw.choice(OTHERS)


def _broken_weights(value: StepWeights, draw: random.Random) -> Any:
    """One part other than it was; half of the time behind the back of what checks them when they are put together."""
    parts = dict(vars(value))
    own = [name for name in StepWeights.__dataclass_fields__ if name in parts]
    name = draw.choice([*own, "dilation", "dilation"])
    return StepWeights(**{key: broken(parts[key], draw) if key == name else parts[key] for key in own})


def _broken_tensor(x: Tensor, draw: random.Random) -> Any:
    ways: list[Callable[[], Any]] = [
        lambda: x.to(draw.choice(DTYPES)),
        lambda: x.to("meta"),
        lambda: x.tolist(),
        lambda: x.clone().numpy() if not x.is_complex() and x.dtype != torch.bfloat16 else None,
        lambda: x[None],
        lambda: x.flatten(),
        lambda: x[..., :0],
        lambda: x[:0] if x.ndim else x,
        lambda: x.new_empty(()),
        lambda: _cut(x, draw, -1),
        lambda: _cut(x, draw, +1),
        lambda: _spread(x, draw),
        lambda: _spread(x, draw),
        lambda: x[:1].expand(x.shape) if x.ndim and len(x) else x,
        lambda: x.mT if x.ndim > 1 else x.flip(0) if x.ndim else x,
        lambda: x.to_sparse() if x.ndim else x,
        lambda: torch.nn.Parameter(x.clone()) if x.is_floating_point() else x,
        lambda: x.resolve_conj().conj() if x.is_complex() else x,
    ]
    if x.dtype == torch.int64 and x.numel():
        ways += [lambda: _moved(x, draw)] * 12
    if x.is_floating_point() and x.numel():
        ways.append(lambda: _poisoned(x, draw))
    return draw.choice(ways)()


def _cut(x: Tensor, draw: random.Random, more: int) -> Tensor:
    """One shorter or longer along an axis."""
    if not x.ndim:
        return x
    axis = draw.randrange(x.ndim)
    size = max(0, x.shape[axis] + more)
    return torch.cat([x, x], axis).narrow(axis, 0, min(size, 2 * x.shape[axis])).contiguous()


def _spread(x: Tensor, draw: random.Random) -> Tensor:
    """The same numbers with gaps between them, or in another order of memory."""
    if not x.ndim:
        return x
    if draw.random() < 0.5:
        return torch.stack([x, torch.zeros_like(x)], -1)[..., 0]
    order = list(range(x.ndim))
    draw.shuffle(order)
    back = [order.index(axis) for axis in range(x.ndim)]
    return x.permute(order).contiguous().permute(back)


def _moved(x: Tensor, draw: random.Random) -> Tensor:
    """One integer far away, or a few in another order."""
    moved = x.clone().flatten()
    at = draw.randrange(len(moved))
    moved[at] = draw.choice([*HUGE, int(moved[at]) + 1, int(moved[at]) - 1, int(moved[draw.randrange(len(moved))])])
    return moved.view(x.shape)


def _poisoned(x: Tensor, draw: random.Random) -> Tensor:
    moved = x.clone().flatten()
    moved[draw.randrange(len(moved))] = draw.choice([float("nan"), float("inf"), -float("inf"), -1.0, 7.0])
    return moved.view(x.shape)


def _broken_array(x: np.ndarray, draw: random.Random) -> Any:
    ways: list[Callable[[], Any]] = [
        lambda: x.astype(draw.choice(["f2", "f4", "f8", ">f8", "i8", "c16", "O", "U3"])),
        lambda: x[:-1].copy(),
        lambda: x[..., :-1].copy(),
        lambda: np.concatenate([x, x]),
        lambda: np.asfortranarray(x) if x.ndim > 1 else np.repeat(x, 2)[::2],
        lambda: np.repeat(x, 2, -1)[..., ::2],
        lambda: x[::-1],
        lambda: x[None],
        lambda: x.tolist(),
        lambda: torch.from_numpy(x.copy()),
        lambda: np.broadcast_to(x[:1], x.shape),
        lambda: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
        lambda: np.where(np.arange(x.size).reshape(x.shape) == draw.randrange(max(x.size, 1)), np.nan, x),
    ]
    return draw.choice(ways)()
