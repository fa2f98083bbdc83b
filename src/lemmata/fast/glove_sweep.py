r"""One pass of AdaGrad over the entries of a table of co-occurrences, at speed.

The readable reference is in torch, batch by batch: gather, error, scatter. Batches are small, so most of its time goes
into calls; the same updates are made in C where there is a compiler.
"""

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.fast.compiled_library import load_compiled

__all__ = ["WordTables", "sweep_entries", "sweep_entries_compiled", "sweep_entries_in_torch"]

EPS = 1e-10  # as in torch.optim.Adagrad


class WordTables(NamedTuple):
    """A vector and a constant for each word where it is given, and where it is predicted."""

    given: Float[Tensor, "vocab dimensions"]
    predicted: Float[Tensor, "vocab dimensions"]
    given_bias: Float[Tensor, " vocab"]
    predicted_bias: Float[Tensor, " vocab"]


def sweep_entries(
    vectors: WordTables,
    squares: WordTables,
    pairs: Int[Tensor, "entries 2"],
    targets: Float[Tensor, " entries"],
    weights: Float[Tensor, " entries"],
    lr: float,
    batch_size: int,
) -> float:
    r"""Change the vectors by one pass over the entries, in their order; the mean weighted squared error on the way.

    $$ g = \nabla \tfrac12 \sum_{(i, j) \in \text{batch}} f_{ij} (w_i^\top \tilde w_j + b_i + \tilde b_j - t_{ij})^2,
       \qquad s \mathrel{+}= g^2, \qquad x \mathrel{-}= \eta\, g / \sqrt s $$

    `squares` are the s of all numbers, of the same shapes, to begin with positive; they are changed too. In C for
    float32 on the CPU, else in torch.
    """
    arguments = (vectors, squares, pairs, targets, weights, lr, batch_size)
    _check_entries(*arguments)
    found = _compiled_sweep(*arguments)
    return _in_torch(*arguments) if found is None else found


def sweep_entries_in_torch(
    vectors: WordTables,
    squares: WordTables,
    pairs: Tensor,
    targets: Tensor,
    weights: Tensor,
    lr: float,
    batch_size: int,
) -> float:
    """The readable reference, for any device and dtype."""
    _check_entries(vectors, squares, pairs, targets, weights, lr, batch_size)
    return _in_torch(vectors, squares, pairs, targets, weights, lr, batch_size)


def _in_torch(
    vectors: WordTables,
    squares: WordTables,
    pairs: Tensor,
    targets: Tensor,
    weights: Tensor,
    lr: float,
    batch_size: int,
) -> float:
    total = targets.new_zeros((), dtype=torch.float64)
    for first in range(0, len(pairs), batch_size):
        batch = slice(first, first + batch_size)
        words, contexts = pairs[batch].unbind(1)
        x, y = vectors.given[words], vectors.predicted[contexts]  # (batch, dimensions)
        errors = (x * y).sum(1) + vectors.given_bias[words] + vectors.predicted_bias[contexts] - targets[batch]
        slopes = weights[batch] * errors  # (batch,)
        total += (slopes * errors).sum(dtype=torch.float64)
        by_word = slopes[:, None] * y, slopes[:, None] * x, slopes, slopes
        for table, square, rows, part in zip(
            vectors, squares, (words, contexts, words, contexts), by_word, strict=True
        ):
            met, place = rows.unique(return_inverse=True)
            g = part.new_zeros(len(met), *part.shape[1:]).index_add_(0, place, part)
            square.index_add_(0, met, g.square())
            table.index_add_(0, met, -lr * g / (square[met].sqrt() + EPS))
    return total.item() / len(pairs)


class _Side(ctypes.Structure):
    """One side of the tables and its working space."""

    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in (
            "vectors", "bias", "vector_squares", "bias_squares", "slopes", "bias_slopes", "rows", "places",
        )
    )  # fmt: skip


def sweep_entries_compiled(
    vectors: WordTables,
    squares: WordTables,
    pairs: Tensor,
    targets: Tensor,
    weights: Tensor,
    lr: float,
    batch_size: int,
) -> float | None:
    """The whole pass in C; None for what it is not made for, or if nothing compiled can be had on this machine."""
    _check_entries(vectors, squares, pairs, targets, weights, lr, batch_size)
    return _compiled_sweep(vectors, squares, pairs, targets, weights, lr, batch_size)


def _compiled_sweep(
    vectors: WordTables,
    squares: WordTables,
    pairs: Tensor,
    targets: Tensor,
    weights: Tensor,
    lr: float,
    batch_size: int,
) -> float | None:
    tables = (*vectors, *squares)
    if not all(t.device.type == "cpu" and t.dtype is torch.float32 and t.is_contiguous() for t in tables):
        return None
    library = _sweep_library()
    if library is None:
        return None
    pairs, targets, weights = pairs.contiguous(), targets.contiguous(), weights.contiguous()
    (vocab_size, dimensions), size = vectors.given.shape, min(batch_size, len(pairs))
    kept, sides = [], []
    for side in range(2):
        # Like the vectors and the pairs: torch's default device and dtype may be others.
        space = (
            targets.new_empty(size, dimensions),
            targets.new_empty(size),
            pairs.new_empty(size),
            pairs.new_full((vocab_size,), -1),
        )
        kept.append(space)
        arrays = (vectors[side], vectors[side + 2], squares[side], squares[side + 2], *space)
        sides.append(_Side(*(ctypes.c_void_p(values.data_ptr()) for values in arrays)))
    entries = (ctypes.c_void_p(values.data_ptr()) for values in (pairs, targets, weights))
    sizes = (ctypes.c_int64(number) for number in (len(pairs), vocab_size, dimensions, size))
    loss = library.sweep(*sides, *entries, *sizes, ctypes.c_float(lr))
    if loss < 0:
        raise ValueError(f"pairs must hold words from 0 to {vocab_size - 1}, got others")
    return loss / len(pairs)


def _check_entries(
    vectors: WordTables,
    squares: WordTables,
    pairs: Tensor,
    targets: Tensor,
    weights: Tensor,
    lr: float,
    batch_size: int,
) -> None:
    """C reads and writes where these sizes and words say, so they must be true."""
    for name, tables in (("vectors", vectors), ("squares", squares)):
        if not isinstance(tables, WordTables):
            raise TypeError(f"{name} must be WordTables, got {type(tables).__name__}")
        _check_tables(name, tables, vectors.given)
    if not all(bool((square > 0).all()) for square in squares):
        raise ValueError("squares must be > 0, got others: begin with ones")
    if validate.tensor("pairs", pairs).ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"pairs must be (entries, 2) with at least one entry, got shape {tuple(pairs.shape)}")
    if pairs.dtype is not torch.int64 or pairs.layout is not torch.strided:
        raise TypeError(f"pairs must be dense int64, got {pairs.dtype} {pairs.layout}: use pairs.long()")
    for name, values in (("targets", targets), ("weights", weights)):
        if validate.tensor(name, values).shape != (len(pairs),):
            raise ValueError(f"{name} must be one number for each of {len(pairs)} pairs, got {tuple(values.shape)}")
        if values.dtype is not vectors.given.dtype or values.layout is not torch.strided:
            raise TypeError(f"{name} must be dense {vectors.given.dtype}, got {values.dtype} {values.layout}")
    for name, values in (("pairs", pairs), ("targets", targets), ("weights", weights)):
        if values.device != vectors.given.device:
            raise ValueError(f"{name} must be on the device of vectors, {vectors.given.device}, got {values.device}")
    low, high = map(int, pairs.aminmax())
    if low < 0 or high >= len(vectors.given):
        raise ValueError(f"pairs must hold words from 0 to {len(vectors.given) - 1}, got {low} to {high}")
    validate.number("lr", lr, least=0, most=1e30)  # which float32 holds
    validate.count("batch_size", batch_size)


def _check_tables(name: str, tables: WordTables, first: Tensor) -> None:
    for field, values in zip(WordTables._fields, tables, strict=True):
        if not validate.tensor(field, values).is_floating_point() or values.dtype != first.dtype:
            raise TypeError(f"{field} of {name} must be floating point of one dtype, got {values.dtype}")
        shape = first.shape[:1] if field.endswith("bias") else first.shape
        if first.ndim != 2 or values.shape != shape or 0 in values.shape:
            raise ValueError(f"{field} of {name} must be {tuple(shape)}, got shape {tuple(values.shape)}")
        if values.layout is not torch.strided or values.device.type == "meta" or values.device != first.device:
            raise ValueError(f"{field} of {name} must be dense on one device, got {values.layout} on {values.device}")
        if values.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{field} of {name} is changed in place and must not require gradients: use detach()")
        if 0 in values.stride():
            raise ValueError(f"{field} of {name} must have a place for each number: use contiguous()")


@functools.cache
def _sweep_library() -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"))
    if library is not None:
        library.sweep.restype = ctypes.c_double
    return library
