r"""Sums over neighbours on the processor, by `kernels.c`, which the system's compiler turns into a library once."""

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from lemmata.fast.compiled_library import load_compiled
from lemmata.fast.sparse.rows import Rows
from lemmata.fast.threads import share_work

__all__ = []  # for the choice of a path

NUMBERS = {torch.float32: ("-DREAL=float", "-DSINGLE"), torch.float64: ("-DREAL=double",)}
# What the functions of the library take: pointers, real numbers and integers; the last two are the rows.
ARGUMENTS = {
    "row_sums": "pp ppp i p ii",
    "entry_dots": "pp ppp i p ii",
    "row_extremes": "pr ppp i p ii",
    "attend": "ppppr ppp ii pp ii",
    "attend_back": "pppppr ppp ii ppp ii",
}
WORTH_A_THREAD = 1 << 15  # numbers that are read; handing work to a thread costs as much as some ten thousand of them


def why_not_compiled(dtype: torch.dtype) -> str:
    """Why there is no compiled path for such numbers; empty if there is one."""
    return _sparse_library(dtype)[1]


def compiled_sums(x: Tensor, weights: Tensor | None, rows: Rows) -> Tensor:
    """The sum over the entries of each row."""
    y = x.new_empty(rows.number, x.shape[1])
    _run_library("row_sums", [x, weights], rows, [x.shape[1]], [y], x.shape[1])
    return y


def compiled_dots(a: Tensor, b: Tensor, rows: Rows) -> Tensor:
    """The inner product of each entry's row and column, in the order of the list."""
    found = a.new_empty(len(rows.columns))
    _run_library("entry_dots", [a, b], rows, [a.shape[1]], [found], a.shape[1])
    return found


def compiled_extremes(x: Tensor, sign: float, rows: Rows) -> Tensor:
    """The column of the largest (sign 1) or smallest (sign -1) feature in each row, (rows, features); -1 if none."""
    at = rows.columns.new_empty(rows.number, x.shape[1])
    _run_library("row_extremes", [x, sign], rows, [x.shape[1]], [at], x.shape[1])
    return at


def compiled_attention(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows
) -> tuple[Tensor, Tensor]:
    """What each row gets, (rows, heads, width), and its highest score and one over its sum, (rows, 2, heads)."""
    heads, width = values.shape[1:]
    softmax, y = values.new_empty(rows.number, 2, heads), values.new_empty(rows.number, heads, width)
    _run_library("attend", [to, source, more, values, slope], rows, [heads, width], [softmax, y], heads * width)
    return y, softmax


def compiled_attention_back(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, rows: Rows, transposed: Rows,
    softmax: Tensor, y: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients to `to`, `source`, the scores' own part of each entry, and the values."""
    heads, width = values.shape[1:]
    mean = (grad * y).sum(-1)  # (rows, heads)
    of_rows = torch.cat([to[:, None], softmax, mean[:, None]], 1)  # (rows, 4, heads): read together
    d = values.new_empty(len(rows.columns), heads)
    d_source, d_values = values.new_empty(source.shape), values.new_empty(values.shape)
    read = [grad, of_rows, source, more, values, slope]
    _run_library("attend_back", read, transposed, [heads, width], [d, d_source, d_values], heads * width)
    return compiled_sums(d, None, rows._replace(columns=rows.entries)), d_source, d, d_values


def _run_library(
    name: str, read: list[Tensor | float | None], rows: Rows, sizes: list[int], more: list[Tensor], width: int
) -> None:
    """One call of the library: what is read, the pattern, sizes, what else is read or written, and which rows."""
    first = next(value for value in read if isinstance(value, Tensor))
    library, problem = _sparse_library(first.dtype)
    if library is None:
        raise RuntimeError(problem)
    kept = [value.contiguous() if isinstance(value, Tensor) else value for value in (*read, *rows, *sizes, *more)]
    arguments = [value.data_ptr() if isinstance(value, Tensor) else value for value in kept]
    function, number = getattr(library, name), rows.pointers.shape[0] - 1
    threads = min(torch.get_num_threads(), rows.columns.shape[0] * width // WORTH_A_THREAD)
    if threads <= 1:
        function(*arguments, 0, number)
        return

    def work(begin: int, end: int) -> object:
        function(*arguments, begin, end)
        return kept  # a thread holds what it works on, even if its caller was interrupted and has let go

    share_work(work, _fair_bounds(rows, threads))


def _fair_bounds(rows: Rows, threads: int) -> list[int]:
    """Rows with about as many entries for each thread."""
    wanted = torch.tensor([len(rows.columns) * index // threads for index in range(1, threads)])
    inner = torch.searchsorted(rows.pointers, wanted).clamp(0, rows.number).tolist()
    return [0, *inner, rows.number]


@functools.cache
def _sparse_library(dtype: torch.dtype) -> tuple[ctypes.CDLL | None, str]:
    if dtype not in NUMBERS:
        return None, f"no compiled numbers of type {dtype}"
    library, problem = load_compiled(Path(__file__).with_name("kernels.c"), NUMBERS[dtype])
    real = ctypes.c_float if dtype is torch.float32 else ctypes.c_double
    kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "r": real}
    for name, given in ARGUMENTS.items() if library is not None else ():
        getattr(library, name).argtypes = [kinds[kind] for kind in given.replace(" ", "")]
    return library, problem
