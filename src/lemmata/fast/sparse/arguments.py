"""What sums over neighbours may be given, checked before a kernel sees an address: operators can be called by hand."""

import torch
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.rows import Rows, check_shapes, is_looked_at, pattern_width

STEEPEST = 1e30  # which float32 holds

__all__ = []  # for the operators; users meet only the messages


def check_pair(rows: Rows, transposed: Rows) -> None:
    """A pattern and its transpose, by their sizes."""
    if is_looked_at():
        wide, long = pattern_width(rows), pattern_width(transposed, "transposed")
        if wide > transposed.number or long > rows.number:
            sizes = f"{rows.number} rows and {transposed.number} columns"
            raise ValueError(f"rows and transposed must be one pattern of {sizes}, got others: use rows_of")
    else:
        check_shapes(rows)
        check_shapes(transposed, "transposed")
    if len(rows.columns) != len(transposed.columns) or rows.pointers.device != transposed.pointers.device:
        told = f"{len(transposed.columns)} entries on {transposed.pointers.device}"
        raise ValueError(f"transposed must have the {len(rows.columns)} entries of rows, got {told}: use rows_of")


def check_one_device(*given: Tensor | None) -> None:
    """What has no values has none in any part: else torch would hand out memory as it finds it for an answer."""
    places = {str(value.device) for value in given if value is not None}
    if len(places) != 1:
        raise ValueError(f"all tensors must be on one device, got {', '.join(sorted(places))}")


def check_tensor(name: str, value: Tensor, rows: Rows) -> None:
    """A dense tensor of numbers on the device of the pattern."""
    validate.tensor(name, value)
    if value.layout is not torch.strided or value.dtype is torch.bool:
        raise TypeError(
            f"{name} must be dense numbers, got {value.dtype} {value.layout}: use {name}.to_dense().float()"
        )
    if value.device != rows.pointers.device:
        raise ValueError(f"{name} must be on the device of rows, {rows.pointers.device}, got {value.device}")


def check_table(name: str, value: Tensor, rows: Rows, least: int) -> None:
    """Features of at least so many columns or rows."""
    check_tensor(name, value, rows)
    if value.ndim != 2 or len(value) < least:
        raise ValueError(f"{name} must be ({least}, features), got shape {tuple(value.shape)}")


def check_sums(x: Tensor, weights: Tensor | None, rows: Rows) -> None:
    """What `row_sums` is given."""
    check_table("x", x, rows, pattern_width(rows))
    if weights is not None:
        check_weights(weights, x, rows)


def check_weights(weights: Tensor, x: Tensor, rows: Rows) -> None:
    """One weight for each entry, of numbers that those of x can hold."""
    check_tensor("weights", weights, rows)
    if weights.shape != rows.columns.shape:
        raise ValueError(f"weights must have shape {tuple(rows.columns.shape)}, got {tuple(weights.shape)}")
    if weights.is_complex() and not x.is_complex():
        raise TypeError(f"weights must be real as x is, got {weights.dtype}: use x.to({weights.dtype})")
    if weights.is_floating_point() and not (x.is_floating_point() or x.is_complex()):
        raise TypeError(f"x must be floating point as weights are, got {x.dtype}: use x.float()")


def check_map(x: Tensor, matrix: Tensor, bias: Tensor | None, rows: Rows) -> None:
    """A linear map of the features of x, in their dtype unless autocast chooses one."""
    check_tensor("matrix", matrix, rows)
    if matrix.ndim != 2 or matrix.shape[1] != x.shape[1]:
        raise ValueError(f"matrix must be (outputs, {x.shape[1]}), got shape {tuple(matrix.shape)}")
    if bias is not None:
        check_tensor("bias", bias, rows)
        if bias.shape != matrix.shape[:1]:
            raise ValueError(f"bias must have shape ({len(matrix)},), got {tuple(bias.shape)}")
    chosen = torch.is_autocast_enabled(x.device.type)
    for name, value in () if chosen else (("matrix", matrix), ("bias", bias)):
        if value is not None and (value.dtype != x.dtype or not (x.is_floating_point() or x.is_complex())):
            raise TypeError(f"{name} must be floating point in the dtype of x, {x.dtype}, got {value.dtype}")


def check_dots(a: Tensor, b: Tensor, rows: Rows) -> None:
    """What `entry_dots` is given."""
    check_table("b", b, rows, pattern_width(rows))
    check_table("a", a, rows, rows.number)
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have as many features, got {a.shape[1]} and {b.shape[1]}")
    if a.is_complex() or b.is_complex() or a.is_floating_point() != b.is_floating_point():
        raise TypeError(f"a and b must be real numbers of one kind, got {a.dtype} and {b.dtype}: use .float()")


def check_extremes(x: Tensor, sign: float, rows: Rows) -> None:
    """What `row_extremes` is given."""
    check_table("x", x, rows, pattern_width(rows))
    if x.is_complex():
        raise TypeError(f"x must be real numbers, which have an order, got {x.dtype}")
    if sign not in (1, -1) or isinstance(sign, bool):
        raise ValueError(f"sign must be 1 for the largest or -1 for the smallest, got {sign!r}")


def check_attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows,
    mixed: bool = False,
) -> None:  # fmt: skip
    """What `row_attention` is given, all in one dtype; in torch it may be mixed."""
    width = pattern_width(rows)
    check_tensor("values", values, rows)
    if values.ndim != 3 or len(values) < width:
        raise ValueError(f"values must be ({width}, heads, width), got shape {tuple(values.shape)}")
    validate.number("slope", slope, least=-STEEPEST, most=STEEPEST)
    heads, entries = values.shape[1], len(rows.columns)
    _check_alike("to", to, (rows.number, heads), values, rows, mixed)
    _check_alike("source", source, (len(values), heads), values, rows, mixed)
    if more is not None:
        _check_alike("more", more, (entries, heads), values, rows, mixed)


def check_attention_back(
    given: tuple[Tensor, Tensor, Tensor | None, Tensor, float], rows: Rows, transposed: Rows,
    softmax: Tensor, y: Tensor, grad: Tensor,
) -> None:  # fmt: skip
    """What its gradient is given."""
    check_attention(*given, rows)
    values = given[3]
    check_pair(rows, transposed)
    if len(values) != transposed.number:
        raise ValueError(f"values must be ({transposed.number}, heads, width), got shape {tuple(values.shape)}")
    heads, width = values.shape[1:]
    _check_alike("softmax", softmax, (rows.number, 2, heads), values, rows)
    _check_alike("y", y, (rows.number, heads, width), values, rows)
    _check_alike("grad", grad, (rows.number, heads, width), values, rows)


def _check_alike(
    name: str, value: Tensor, shape: tuple[int, ...], values: Tensor, rows: Rows, mixed: bool = False
) -> None:
    check_tensor(name, value, rows)
    if value.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
    fits = (torch.promote_types(value.dtype, values.dtype) if mixed else value.dtype) == values.dtype
    if not (value.is_floating_point() and values.is_floating_point()) or not fits:
        raise TypeError(f"{name} must be floating point in the dtype of values, {values.dtype}, got {value.dtype}")
