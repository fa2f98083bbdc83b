r"""What torch's operations do to receptive fields: which units of its input each unit of the output reads."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from torch import Tensor

from lemmata.convolution.field_axis import Field, Reach, along, joined, moved, seen_whole

__all__ = []  # for receptive_fields


@dataclass(frozen=True)
class Operation:
    """A call of one of torch's operations: its name without torch's variants, arguments by name, and results."""

    name: str
    arguments: dict[str, Any]
    results: list[Tensor]
    field_of: Callable[[Any], Field | None]

    @property
    def x(self) -> Tensor:
        return next(iter(self.arguments.values()))

    @property
    def field(self) -> Field:
        return self.field_of(self.x) or ()

    def axis(self, name: str = "dim") -> int:
        return self.arguments[name] % self.x.ndim

    def numbers(self, name: str, axes: int, default: Sequence[int] = (1,)) -> list[int]:
        """One number for each axis of space."""
        given = list(self.arguments.get(name) or default)
        return given * axes if len(given) == 1 else given


Rule = Callable[[Operation, Tensor], Field | None]
RULES: dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Mark the function that knows these operations."""

    def keep(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return keep


def operation(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], results: list[Tensor], field_of: Callable
) -> Operation:
    """A call as torch dispatches it; what works in place has the name of what does not."""
    arguments = {}
    for place, argument in enumerate(func._schema.arguments):
        given = args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
        arguments[argument.name] = given
    name = func._schema.name.split("::")[1]
    return Operation(name.removesuffix("_"), arguments, results, field_of)


def follow(called: Operation, result: Tensor, pointwise: bool) -> Field | None:
    """What a result of an operation sees; KeyError where nobody knows the operation."""
    if called.name in RULES:
        return RULES[called.name](called, result)
    if pointwise:
        return _entry_by_entry(called, result)
    raise KeyError(called.name)


# --- Windows ---


def window(v: int, size: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> range:
    """What output v of a convolution or pooling reads."""
    start = stride * v - padding
    return range(start, start + dilation * (size - 1) + 1, dilation)


def spread(v: int, size: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> list[int]:
    """What output v of a transposed convolution reads."""
    places = (v + padding - dilation * tap for tap in range(size))
    return [place // stride for place in places if place % stride == 0]


@rule("convolution")
def _convolution_rule(called: Operation, out: Tensor) -> Field:
    field, kernel = seen_whole(called.field, called.x.shape, [1]), called.arguments["weight"].shape[2:]
    settings = [called.numbers(name, len(kernel)) for name in ("stride", "padding", "dilation")]
    for axis, (size, stride, padding, dilation) in enumerate(zip(kernel, *settings, strict=True), start=2):
        if called.arguments["transposed"]:
            field = along(
                field, axis, partial(spread, size=size, stride=stride, padding=padding, dilation=dilation), 1, stride
            )
        else:
            field = along(
                field, axis, partial(window, size=size, stride=stride, padding=padding, dilation=dilation), stride
            )
    return field


@rule("max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d")
def _pooling_rule(called: Operation, out: Tensor) -> Field:
    field, axes = called.field, 3 if "3d" in called.name else 2
    kernel = called.numbers("kernel_size", axes)
    settings = called.numbers("stride", axes, kernel), called.numbers("padding", axes), called.numbers("dilation", axes)
    for axis, (size, stride, padding, dilation) in enumerate(
        zip(kernel, *settings, strict=True), start=out.ndim - axes
    ):
        field = along(
            field, axis, partial(window, size=size, stride=stride, padding=padding, dilation=dilation), stride
        )
    return field


@rule("_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d")
def _adaptive_pooling(called: Operation, out: Tensor) -> Field:
    field = called.field
    for axis in range(out.ndim - len(called.arguments["output_size"]), out.ndim):
        n, m = called.x.shape[axis], out.shape[axis]
        field = along(field, axis, lambda v, n=n, m=m: range(v * n // m, -(-(v + 1) * n // m)), n, m)
    return field


@rule("unfold")
def _unfolding_rule(called: Operation, out: Tensor) -> Field:
    """A new last axis holds the values of each window."""
    size, step = called.arguments["size"], called.arguments["step"]
    return along(called.field, called.axis("dimension"), partial(window, size=size, stride=step), step)


# --- Larger maps ---


def _neighbours_within(place: Fraction, reach: int) -> list[int]:
    """So many units on either side of a place between units; the unit itself where the place is one."""
    low = math.floor(place)
    return [low] if place == low else list(range(low - reach + 1, low + reach + 1))


def _axis_sizes(called: Operation, out: Tensor, axis: int) -> tuple[int, int]:
    """Units along an axis before and after; KeyError where torch takes them further apart than these numbers say."""
    scale = [value for name, value in called.arguments.items() if name.startswith("scales")][axis - 2]
    if scale is not None and called.x.shape[axis] * scale != out.shape[axis]:
        raise KeyError(called.name)
    return called.x.shape[axis], out.shape[axis]


@rule("upsample_nearest1d upsample_nearest2d upsample_nearest3d")
def _nearest_rule(called: Operation, out: Tensor) -> Field:
    field = called.field
    for axis in range(2, out.ndim):
        n, m = _axis_sizes(called, out, axis)
        field = along(field, axis, lambda v, n=n, m=m: [v * n // m], n, m)
    return field


@rule("upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d")
def _interpolation_rule(called: Operation, out: Tensor) -> Field:
    field, reach = called.field, 2 if "cubic" in called.name else 1
    for axis in range(2, out.ndim):
        n, m = _axis_sizes(called, out, axis)
        shift = Fraction(n - m, 2 * m)  # the middles of the first units lie apart by this
        if called.arguments["align_corners"]:
            shift, n, m = Fraction(0), n - (m > 1), m - (m > 1)  # a single unit is the first corner
        reads = lambda v, n=n, m=m, shift=shift: _neighbours_within(Fraction(v * n, m) + shift, reach)  # noqa: E731
        field = along(field, axis, reads, n, m)
    return field


@rule("pixel_shuffle pixel_unshuffle")
def _pixel_shuffle_rule(called: Operation, out: Tensor) -> Field:
    field = called.field
    for axis in (out.ndim - 2, out.ndim - 1):
        if called.name == "pixel_shuffle":
            factor = called.arguments["upscale_factor"]
            field = along(field, axis, lambda v, factor=factor: [v // factor], 1, factor)
        else:
            factor = called.arguments["downscale_factor"]
            field = along(field, axis, partial(window, size=factor, stride=factor), factor)
    return field


# --- Parts, borders and axes ---


@rule("constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d")
@rule("replication_pad1d replication_pad2d replication_pad3d")
def _padding_rule(called: Operation, out: Tensor) -> Field:
    """Mirrored or repeated values change only what units near the border see."""
    field = called.field
    sides = called.arguments["pad" if called.name == "constant_pad_nd" else "padding"]  # from the last axis on
    for number, before in enumerate(sides[::2]):
        field = along(field, out.ndim - 1 - number, lambda v, before=before: [v - before])
    return field


@rule("slice")
def _slice_rule(called: Operation, out: Tensor) -> Field:
    given, axis = called.arguments, called.axis()
    start, _, step = slice(given["start"], given["end"], given["step"]).indices(called.x.shape[axis])
    return along(called.field, axis, lambda v: [start + step * v], step)


@rule("select")
def _select_rule(called: Operation, out: Tensor) -> Field:
    axis = called.axis()
    index = called.arguments["index"] % called.x.shape[axis]
    picked = tuple((Reach(0, (reach.at(index),)), None) if a == axis else (reach, a) for reach, a in called.field)
    return moved(picked, {a: a - (a > axis) for a in range(called.x.ndim)})


@rule("split split_with_sizes")
def _split_rule(called: Operation, out: Tensor) -> Field:
    axis = called.axis()
    before = sum(part.shape[axis] for part in itertools.takewhile(lambda part: part is not out, called.results))
    return along(called.field, axis, lambda v: [v + before])


@rule("flip")
def _flip_rule(called: Operation, out: Tensor) -> Field:
    field = called.field
    for axis in called.arguments["dims"]:
        field = along(field, axis % out.ndim, lambda v, size=out.shape[axis]: [size - 1 - v], -1)
    return field


@rule("permute transpose t")
def _permute_rule(called: Operation, out: Tensor) -> Field:
    order = list(range(out.ndim))
    if called.name == "permute":
        order = [axis % out.ndim for axis in called.arguments["dims"]]
    elif out.ndim > 1:
        one, other = (called.arguments.get(name, number) for number, name in enumerate(("dim0", "dim1")))
        order[one], order[other] = order[other], order[one]
    return moved(called.field, {old: new for new, old in enumerate(order)})


@rule("view _unsafe_view reshape unsqueeze squeeze")
def _reshape_rule(called: Operation, out: Tensor) -> Field:
    """Axes that stay what they are keep what they see; those that are merged or divided are seen whole."""
    old = called.x.shape
    kept = same_axes(old, out.shape)
    return moved(seen_whole(called.field, old, set(range(len(old))) - set(kept)), kept)


def same_axes(old: Sequence[int], new: Sequence[int]) -> dict[int, int]:
    """Which axis of a new shape is which of the old one, if entries keep their order; axes of one entry are left out.

    >>> same_axes((1, 6, 5, 4), (1, 2, 3, 5, 4))
    {3: 4, 2: 3}
    """
    stretches = []
    for shape in (old, new):
        steps = [1, *itertools.accumulate(reversed(shape), lambda a, b: a * b)]  # entries from one unit to the next
        stretches.append({pair: len(shape) - 1 - place for place, pair in enumerate(itertools.pairwise(steps))})
    return {
        axis: stretches[1][pair] for pair, axis in stretches[0].items() if pair[0] != pair[1] and pair in stretches[1]
    }


@rule("expand")
def _expand_rule(called: Operation, out: Tensor) -> Field | None:
    return joined([(called.field, called.x.shape)], out.shape)


@rule("cat")
def _cat_rule(called: Operation, out: Tensor) -> Field | None:
    tensors, axis = called.arguments["tensors"], called.arguments["dim"] % out.ndim
    known = [(field, part) for part in tensors if (field := called.field_of(part)) is not None]
    if len(known) == 1:
        before = sum(part.shape[axis] for part in itertools.takewhile(lambda part: part is not known[0][1], tensors))
        return along(known[0][0], axis, lambda v: [v - before])
    return joined([(field, part.shape) for field, part in known], out.shape)


@rule("stack")
def _stack_rule(called: Operation, out: Tensor) -> Field:
    axis = called.arguments["dim"] % out.ndim
    known = [
        (field, part.shape) for part in called.arguments["tensors"] if (field := called.field_of(part)) is not None
    ]
    return moved(joined(known, known[0][1]) or (), {a: a + (a >= axis) for a in range(out.ndim - 1)})


# --- Sums, statistics and products ---


@rule("mean sum amax amin max min var std prod logsumexp linalg_vector_norm")
def _reduction_rule(called: Operation, out: Tensor) -> Field | None:
    x, dims = called.x, called.arguments.get("dim")
    if isinstance(called.arguments.get("other"), Tensor):  # the larger or smaller of two
        return _entry_by_entry(called, out)
    gone = {axis % x.ndim for axis in ([dims] if isinstance(dims, int) else dims or range(x.ndim))}
    left = [axis for axis in range(x.ndim) if axis not in gone]
    places = {old: old if called.arguments.get("keepdim") else new for new, old in enumerate(left)}
    return moved(seen_whole(called.field, x.shape, gone), places)


@rule("_softmax _log_softmax glu")
def _softmax_rule(called: Operation, out: Tensor) -> Field:
    return seen_whole(called.field, called.x.shape, [called.axis()])


@rule("native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit")
@rule("_native_batch_norm_legit_no_training")
def _normalization_rule(called: Operation, out: Tensor) -> Field:
    """Statistics of an example let every unit see all that they are taken over; those of the training data do not."""
    given, axes = called.arguments, range(out.ndim)
    if "normalized_shape" in given:
        axes = range(out.ndim - len(given["normalized_shape"]), out.ndim)
    elif "group" not in given and not given.get("training"):
        axes = range(0)
    return seen_whole(called.field, called.x.shape, axes)


FACTORS = {"mm": ("self", "mat2"), "bmm": ("self", "mat2"), "addmm": ("mat1", "mat2"), "baddbmm": ("batch1", "batch2")}


@rule(" ".join(FACTORS))
def _product_rule(called: Operation, out: Tensor) -> Field | None:
    """What is summed over is seen whole: the last axis of the left factor, the one before it of the right."""
    known = []
    for name, axis in zip(FACTORS[called.name], (out.ndim - 1, out.ndim - 2), strict=True):
        factor = called.arguments[name]
        field = called.field_of(factor)
        if field is not None:
            known.append((seen_whole(field, factor.shape, [axis]), factor.shape))
    return joined(known, out.shape)


@rule("embedding")
def _embedding_rule(called: Operation, out: Tensor) -> Field | None:
    return called.field_of(called.arguments["indices"])


@rule("clone _to_copy alias detach copy masked_fill _prelu_kernel")
def _entry_by_entry(called: Operation, out: Tensor) -> Field | None:
    values = called.arguments.values()
    tensors = [t for value in values for t in (value if isinstance(value, list | tuple) else [value])]
    return joined([(field, t.shape) for t in tensors if (field := called.field_of(t)) is not None], out.shape)


@rule("zeros_like ones_like empty_like full_like rand_like randn_like new_zeros new_ones new_empty new_full")
def _nothing_seen(called: Operation, out: Tensor) -> None:
    """What has another tensor's shape and none of its numbers."""
