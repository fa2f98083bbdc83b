r"""Sums over neighbours on a GPU: sizes of blocks, long rows in pieces, and the launches of the Triton kernels."""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from lemmata.fast.sparse import row_kernels_triton
from lemmata.fast.sparse.reference import gathered_extremes
from lemmata.fast.sparse.rows import Rows

__all__ = []

KERNELS: Any = row_kernels_triton
TILE = 1024  # numbers of features that a program holds at once: more would not stay in registers
WIDTH = 64  # features of a program: of a wider row several take a part each
LONG = 256  # entries of a row that one program takes; of a longer one several take a piece each
NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Pieces(NamedTuple):
    """Long rows in pieces: their entries, the row of each, which rows these are, and the pieces of each one."""

    starts: Tensor  # (pieces,)
    ends: Tensor  # (pieces,)
    owners: Tensor  # (pieces,)
    targets: Tensor  # (long rows,)
    joined: Rows  # (long rows, pieces)


# By the tensor of pointers, so that the lengths of its rows are asked of the GPU once for each graph.
_pieces: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def pieces_of(rows: Rows) -> Pieces | None:
    """The pieces of long rows; None where there is no long row, as in most graphs."""
    if rows.pointers not in _pieces:
        _pieces[rows.pointers] = _cut_rows(rows)
    return _pieces[rows.pointers]


def _cut_rows(rows: Rows) -> Pieces | None:
    lengths = rows.lengths()
    targets = (lengths > LONG).nonzero()[:, 0]
    if not len(targets):
        return None
    number = (lengths[targets] + LONG - 1) // LONG  # (long rows,)
    pointers = torch.cat([number.new_zeros(1), number.cumsum(0)])
    which = torch.arange(len(targets), device=targets.device).repeat_interleave(number)  # (pieces,)
    places = torch.arange(len(which), device=targets.device)
    owners = targets[which]
    starts = rows.pointers[owners] + LONG * (places - pointers[which])
    ends = torch.minimum(starts + LONG, rows.pointers[owners + 1])
    return Pieces(starts, ends, owners, targets, Rows(pointers, places, places))


def fits(values: Tensor) -> bool:
    """Whether there are kernels for such numbers and sizes: all heads of one node must fit into a tile."""
    heads, width = values.shape[1:] if values.ndim == 3 else (1, 1)
    return values.dtype in NUMBERS and _next_power(heads) * _next_power(width) <= TILE


def sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row; halves are added up in single precision."""
    y = x.new_empty(rows.number, x.shape[1])
    pieces = pieces_of(rows) if y.numel() else None
    _add_up(x, weights, rows.pointers[:-1], rows.pointers[1:], rows, None, y, pieces)
    if pieces:
        part = x.new_empty(len(pieces.owners), x.shape[1], dtype=_wide_dtype(x))
        _add_up(x, weights, pieces.starts, pieces.ends, rows, None, part)
        _join_pieces(part, pieces, y)
    return y


def _join_pieces(part: Tensor, pieces: Pieces, y: Tensor) -> None:
    """What the pieces have found, added up in the rows they belong to."""
    joined = pieces.joined
    _add_up(part, None, joined.pointers[:-1], joined.pointers[1:], joined, pieces.targets, y)


def _add_up(
    x: Tensor, weights: Tensor | None, starts: Tensor, ends: Tensor, rows: Rows, targets: Tensor | None, y: Tensor,
    skipped: Pieces | None = None,
) -> None:  # fmt: skip
    """One launch; rows that are long and taken in pieces are skipped."""
    if not y.numel():
        return
    x, features = x.contiguous(), x.shape[1]
    width = min(_next_power(features), WIDTH)
    given, sent = x if weights is None else weights.contiguous(), rows.columns if targets is None else targets
    arguments = (x, given, starts, ends, rows.columns, rows.entries, sent, y, features)
    flags = {"LONG": LONG if skipped else 0, "WEIGHTED": weights is not None, "SENT": targets is not None}
    _launch_kernel(
        KERNELS.sum_rows,
        (len(starts), triton.cdiv(features, width)),
        x,
        arguments,
        **flags,
        **_block_sizes(x, width, rows),
    )


def dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row and column, in the order of the list."""
    a, b = a.contiguous(), b.to(a.dtype).contiguous()
    d = a.new_empty(len(rows.columns))
    if not d.numel():
        return d
    for starts, ends, owners, more in _row_programs(rows):
        arguments = (a, b, starts, ends, rows.columns, rows.entries, owners, d, a.shape[1])
        width = min(_next_power(a.shape[1]), WIDTH)
        _launch_kernel(KERNELS.dot_entries, (len(starts),), a, arguments, **more, **_block_sizes(a, width, rows))
    return d


def extremes(x: Tensor, sign: float, rows: Rows) -> Tensor:
    """The column of the largest (sign 1) or smallest (sign -1) feature in each row; -1 where there is none."""
    x, features = x.contiguous(), x.shape[1]
    at = rows.columns.new_empty(rows.number, features)
    if not at.numel():
        return at
    width = min(_next_power(features), WIDTH)
    for starts, ends, _, cut in _row_programs(rows):
        pieces = pieces_of(rows) if cut["OWNED"] else None
        found = at.new_empty(len(starts), features) if pieces else at
        arguments = (x, starts, ends, rows.columns, found, features)
        grid = (len(starts), triton.cdiv(features, width))
        _launch_kernel(
            KERNELS.extremes_of_rows, grid, x, arguments, LONG=cut["LONG"], SIGN=sign, **_block_sizes(x, width, rows)
        )
        if pieces:  # of the winners of its pieces, which stand in order, the first of the best wins the row
            best = gathered_extremes(x.gather(0, found), sign, pieces.joined)
            at[pieces.targets] = found.gather(0, best)
    return at


def attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows
) -> tuple[Tensor, Tensor]:
    """What each row gets, (rows, heads, width), and its highest score and one over its sum, (rows, 2, heads)."""
    heads, width = values.shape[1:]
    to, source, values = to.contiguous(), source.contiguous(), values.contiguous()
    softmax, y = values.new_empty(rows.number, 2, heads), values.new_empty(rows.number, heads, width)
    if not y.numel():
        return y, softmax.zero_()
    given = to if more is None else more.contiguous()
    for starts, ends, owners, cut in _row_programs(rows):
        apart = cut["OWNED"]
        found = softmax.new_empty(len(starts), 2, heads) if apart else softmax
        out = y.new_empty(len(starts), heads, width) if apart else y
        arguments = (to, source, given, values, starts, ends, rows.columns, rows.entries, owners, found, out)
        _launch_kernel(
            KERNELS.attend_rows,
            (len(starts),),
            to,
            (*arguments, heads, width),
            **cut,
            **_head_sizes(values, more, slope),
        )
        if apart:
            _join_attention(found, out, pieces_of(rows), softmax, y)
    return y, softmax


def _join_attention(found: Tensor, out: Tensor, pieces: Pieces | None, softmax: Tensor, y: Tensor) -> None:
    """Pieces whose sums were taken from their own highest score are brought to that of their row, and added up."""
    assert pieces is not None
    which = pieces.joined.row_of_each()[:, None].expand(-1, found.shape[2])  # (pieces, heads)
    lowest = found.new_full((len(pieces.targets), found.shape[2]), -torch.inf)
    high = lowest.scatter_reduce(0, which, found[:, 0], "amax")  # (long rows, heads)
    scale = (found[:, 0] - high.gather(0, which)).exp()
    inverse = 1 / sums(scale * found[:, 1], None, pieces.joined)
    joined = sums((scale[..., None] * out).flatten(1), None, pieces.joined).view(-1, *out.shape[1:])
    softmax[pieces.targets] = torch.stack([high, inverse], 1)
    y[pieces.targets] = joined * inverse[..., None]


def attention_back(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows, transposed: Rows,
    softmax: Tensor, y: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients to `to`, `source`, the scores' own part of each entry, and the values."""
    heads, width = values.shape[1:]
    of_rows = torch.cat([to[:, None], softmax, (grad * y).sum(-1)[:, None]], 1)  # (rows, 4, heads)
    d = values.new_empty(len(rows.columns), heads)
    d_source, d_values = values.new_empty(source.shape), values.new_empty(values.shape)
    if not values.numel():
        return torch.zeros_like(to), d_source.zero_(), d.zero_(), d_values
    grad, source, values = grad.contiguous(), source.contiguous(), values.contiguous()
    given = source if more is None else more.contiguous()
    for starts, ends, owners, cut in _row_programs(transposed):
        apart = cut["OWNED"]
        part = [whole.new_empty(len(starts), *whole.shape[1:]) if apart else whole for whole in (d_source, d_values)]
        arguments = (grad, of_rows, source, given, values, starts, ends, transposed.columns, transposed.entries, owners)
        arguments = (*arguments, d, *part, heads, width)
        _launch_kernel(
            KERNELS.pull_columns, (len(starts),), values, arguments, **cut, **_head_sizes(values, more, slope)
        )
        pieces = pieces_of(transposed) if apart else None
        for found, whole in zip(part, (d_source, d_values), strict=True):
            if pieces:
                _join_pieces(found.flatten(1), pieces, whole)
    return sums(d, None, rows._replace(columns=rows.entries)), d_source, d, d_values


def _row_programs(rows: Rows) -> list[tuple[Tensor, Tensor, Tensor, dict[str, Any]]]:
    """Starts, ends and owners of the launches: one for all rows, another for the pieces of long ones."""
    pieces = pieces_of(rows)
    found = [(rows.pointers[:-1], rows.pointers[1:], rows.pointers, {"LONG": LONG if pieces else 0, "OWNED": False})]
    if pieces:
        found.append((pieces.starts, pieces.ends, pieces.owners, {"LONG": 0, "OWNED": True}))
    return found


def _next_power(size: int) -> int:
    return triton.next_power_of_2(max(size, 1))


def _block_sizes(x: Tensor, width: int, rows: Rows) -> dict[str, Any]:
    """One warp for each row, whose sum then needs no shared memory: it reads 16 entries at a time, 8 of short rows."""
    entries = 16 if len(rows.columns) >= 24 * rows.number else 8
    return {"WIDE": _TYPES[_wide_dtype(x)], "E": entries, "F": width, "num_warps": 1}


def _head_sizes(values: Tensor, more: Tensor | None, slope: float) -> dict[str, Any]:
    heads, width = (_next_power(size) for size in values.shape[1:])
    sizes = {"E": min(max(TILE // (heads * width), 1), 8), "H": heads, "W": width}
    flags = {"SLOPE": slope, "MORE": more is not None, "WIDE": _TYPES[_wide_dtype(values)]}
    return flags | sizes | {"num_warps": 1 if heads * width <= 128 else 4}


_TYPES = {torch.float32: row_kernels_triton.tl.float32, torch.float64: row_kernels_triton.tl.float64}


def _wide_dtype(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype is torch.float64 else torch.float32


def _launch_kernel(kernel: Any, grid: tuple[int, ...], x: Tensor, arguments: tuple[Any, ...], **options: Any) -> None:
    """Launched where the tensors lie, which need not be the current device."""
    if x.device.type != "cuda":  # Triton's interpreter
        kernel[grid](*arguments, **options)
        return
    with torch.cuda.device(x.device):
        kernel[grid](*arguments, **options)
