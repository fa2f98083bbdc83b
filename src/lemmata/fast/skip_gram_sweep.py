r"""One pass of stochastic gradient descent over pairs of words with negative sampling, at speed.

The readable reference is in torch, batch by batch: gather, score, scatter. A batch is small, so most of its time goes
into calls; the same updates are made in C where there is a compiler. Both draw the same negatives: number n of the
stream that belongs to a seed is a function of seed and n, so nothing depends on how the pairs are cut into calls.
"""

import ctypes
import functools
import math
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.fast.compiled_library import load_compiled

__all__ = [
    "AliasTable",
    "alias_negatives",
    "alias_table",
    "sweep_pairs",
    "sweep_pairs_compiled",
    "sweep_pairs_in_torch",
]

WHOLE = 1 << 32  # a slot's fraction of the distribution
MOST, MOST_SAMPLES = 1 << 28, 1 << 16  # draws of one call, and negatives of one pair
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # constants of splitmix64


class AliasTable(NamedTuple):
    """A distribution over words in as many equal slots: a slot is its word with chance keep / 2^32, else another."""

    keep: Int[Tensor, " vocab"]
    other: Int[Tensor, " vocab"]


def alias_table(distribution: Float[Tensor, " vocab"]) -> AliasTable:
    r"""Walker's table, by Vose's method: draws then cost the same for any number of words.

    Shares are rounded to whole multiples of $2^{-32}$ / vocab, and what is lost is given to the likeliest word: words
    of probability zero are never drawn.

    >>> alias_table(torch.tensor([0.75, 0.25])).keep.tolist(), 2**32
    ([4294967296, 2147483648], 4294967296)
    """
    if (
        validate.tensor("distribution", distribution).is_complex()
        or distribution.layout is not torch.strided
        or distribution.device.type == "meta"
    ):
        seen = f"{distribution.dtype} {distribution.layout} on {distribution.device}"
        raise TypeError(f"distribution must be a dense row of real numbers, got {seen}")
    size, exact = distribution.numel(), distribution.detach().cpu().double()
    if distribution.ndim != 1 or not size or not (exact.isfinite().all() and (exact >= 0).all() and (exact > 0).any()):
        seen = f"shape {tuple(distribution.shape)} with sum {exact.sum():g}"
        raise ValueError(f"distribution must be a row of probabilities, got {seen}")
    exact = exact if exact.sum().isfinite() else exact / exact.max()
    mass = (exact / exact.sum() * (size * WHOLE)).floor().long().tolist()
    mass[int(exact.argmax())] += size * WHOLE - sum(mass)
    keep, other = [WHOLE] * size, list(range(size))
    small = [slot for slot in range(size) if mass[slot] < WHOLE]
    large = [slot for slot in range(size) if mass[slot] >= WHOLE]
    while small:  # integers whose sum is that of full slots: a large one is always left
        poor, rich = small.pop(), large[-1]
        keep[poor], other[poor] = mass[poor], rich
        mass[rich] -= WHOLE - mass[poor]
        if mass[rich] < WHOLE:
            small.append(large.pop())
    return AliasTable(torch.tensor(keep, device=distribution.device), torch.tensor(other, device=distribution.device))


def alias_negatives(table: AliasTable, seed: int, first: int, shape: tuple[int, int]) -> Int[Tensor, "batch samples"]:
    """Words drawn by the table from the stream that belongs to a seed, from its number `first` on."""
    _check_table(table)
    _check_seed(seed)
    validate.count("first", first, least=0, most=1 << 62)
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise TypeError(f"shape must be two sizes, (batch, samples), got {shape!r}")
    if math.prod(validate.count("shape", size, least=0) for size in shape) > MOST:
        raise ValueError(f"shape must ask for at most {MOST} draws, got {tuple(shape)}: draw fewer at a time")
    return _draw_negatives(table, seed, first, tuple(shape))


def _draw_negatives(table: AliasTable, seed: int, first: int, shape: tuple[int, ...]) -> Tensor:
    n = torch.arange(first + 1, first + 1 + math.prod(shape), device=table.keep.device)
    z = n * _as_signed(GOLDEN) + _as_signed(seed)  # products wrap around, as in C
    z = (z ^ _shift_right(z, 30)) * _as_signed(FIRST)
    z = (z ^ _shift_right(z, 27)) * _as_signed(SECOND)
    z = z ^ _shift_right(z, 31)
    slot = (_shift_right(z, 32) * len(table.keep)) >> 32
    return torch.where((z & (WHOLE - 1)) < table.keep[slot], slot, table.other[slot]).view(shape)


def _as_signed(bits: int) -> int:
    return (bits + 2**63) % 2**64 - 2**63


def _shift_right(z: Tensor, places: int) -> Tensor:
    """Bits moved to the right, zeros coming from the left."""
    return (z >> places) & ((1 << (64 - places)) - 1)


def sweep_pairs(
    given: Float[Tensor, "vocab dimensions"],
    predicted: Float[Tensor, "vocab dimensions"],
    pairs: Int[Tensor, "pairs 2"],
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> float:
    r"""Change both tables of vectors by one pass over the pairs, in their order; the mean loss on the way.

    $$ x_w \mathrel{+}= \eta \sum_{s} (1 - \sigma(\pm_s x_w^\top y_s)) (\pm_s y_s), \qquad
       y_s \mathrel{+}= \eta\, (1 - \sigma(\pm_s x_w^\top y_s)) (\pm_s x_w) $$

    with + for the observed word and - for the negatives: the gradient of the pairs' losses summed over a batch, at the
    vectors before it. In C for float32 on the CPU, else in torch.
    """
    arguments = (given, predicted, pairs, table, lr, samples, batch_size, seed)
    _check_sweep(*arguments)
    found = _compiled_sweep(*arguments)
    return _in_torch(*arguments) if found is None else found


def sweep_pairs_in_torch(
    given: Tensor,
    predicted: Tensor,
    pairs: Tensor,
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> float:
    """The readable reference, for any device and dtype."""
    _check_sweep(given, predicted, pairs, table, lr, samples, batch_size, seed)
    return _in_torch(given, predicted, pairs, table, lr, samples, batch_size, seed)


def _in_torch(
    given: Tensor,
    predicted: Tensor,
    pairs: Tensor,
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> float:
    sign = given.new_ones(samples + 1)
    sign[1:] = -1.0
    total = given.new_zeros((), dtype=torch.float64)
    for first in range(0, len(pairs), batch_size):
        words, contexts = pairs[first : first + batch_size].unbind(1)
        negatives = _draw_negatives(table, seed, first * samples, (len(words), samples))
        targets = torch.cat([contexts[:, None], negatives], dim=1)  # (batch, 1 + samples)
        x, y = given[words], predicted[targets]  # (batch, dimensions) and (batch, 1 + samples, dimensions)
        scores = sign * torch.einsum("bd,bsd->bs", x, y)
        total -= functional.logsigmoid(scores).sum(dtype=torch.float64)
        slopes = lr * sign * torch.sigmoid(-scores)  # (batch, 1 + samples)
        given.index_add_(0, words, torch.einsum("bs,bsd->bd", slopes, y))
        predicted.index_add_(0, targets.flatten(), (slopes[:, :, None] * x[:, None]).flatten(0, 1))
    return total.item() / len(pairs)


class _Loss(ctypes.Structure):
    """Minus the logarithm of product * 2^(-512 * scalings)."""

    _fields_ = (("product", ctypes.c_double), ("scalings", ctypes.c_int64))


def sweep_pairs_compiled(
    given: Tensor,
    predicted: Tensor,
    pairs: Tensor,
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> float | None:
    """The whole pass in C; None for what it is not made for, or if nothing compiled can be had on this machine."""
    _check_sweep(given, predicted, pairs, table, lr, samples, batch_size, seed)
    return _compiled_sweep(given, predicted, pairs, table, lr, samples, batch_size, seed)


def _compiled_sweep(
    given: Tensor,
    predicted: Tensor,
    pairs: Tensor,
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> float | None:
    tables = (given, predicted)
    made_for = given.device.type == "cpu" and given.dtype is torch.float32 and samples > 0
    if not made_for or not all(values.is_contiguous() for values in tables):
        return None
    library = _sweep_library()
    if library is None:
        return None
    pairs, size = pairs.contiguous(), min(batch_size, len(pairs))
    (vocab_size, dimensions), terms = given.shape, samples + 1
    # Like the vectors and the pairs: torch's default device and dtype may be others.
    space = (
        given.new_empty(size, terms),
        pairs.new_empty(size, terms),
        given.new_empty(size, dimensions),
        given.new_empty(size, dimensions),
    )
    arrays = (ctypes.c_void_p(values.data_ptr()) for values in (*tables, pairs, *table))
    sizes = (ctypes.c_int64(number) for number in (len(pairs), vocab_size, dimensions, samples, size))
    room = (ctypes.c_void_p(values.data_ptr()) for values in space)
    loss = library.sweep(*arrays, *sizes, ctypes.c_float(lr), ctypes.c_uint64(seed), *room)
    if loss.scalings < 0:
        raise ValueError(f"pairs and table must hold words from 0 to {vocab_size - 1}, got others")
    logarithm = math.log(loss.product) if loss.product > 0 else math.nan
    return (512 * math.log(2) * loss.scalings - logarithm) / len(pairs)


def _check_sweep(
    given: Tensor,
    predicted: Tensor,
    pairs: Tensor,
    table: AliasTable,
    lr: float,
    samples: int,
    batch_size: int,
    seed: int,
) -> None:
    """C reads and writes where these sizes and words say, so they must be true."""
    for name, vectors in (("given", given), ("predicted", predicted)):
        if not validate.tensor(name, vectors).is_floating_point() or vectors.dtype != given.dtype:
            raise TypeError(f"given and predicted must be floating point of one dtype, got {name} of {vectors.dtype}")
        if vectors.ndim != 2 or vectors.shape != given.shape or 0 in vectors.shape:
            raise ValueError(f"given and predicted must be (vocab, dimensions), got {name} {tuple(vectors.shape)}")
        if vectors.layout is not torch.strided or vectors.device.type == "meta":
            raise ValueError(f"{name} must be dense and hold values, got {vectors.layout} on {vectors.device}")
        if vectors.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name} is changed in place and must not require gradients: use {name}.detach()")
        if 0 in vectors.stride():
            raise ValueError(f"{name} must have a place in memory for each number: use {name}.contiguous()")
    _check_table(table)
    if validate.tensor("pairs", pairs).ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"pairs must be (pairs, 2) with at least one pair, got shape {tuple(pairs.shape)}")
    if pairs.dtype is not torch.int64 or pairs.layout is not torch.strided:
        raise TypeError(f"pairs must be dense int64, got {pairs.dtype} {pairs.layout}: use pairs.long()")
    if len(table.keep) != len(given):
        raise ValueError(f"table must be over {len(given)} words, got {len(table.keep)}")
    for name, values in (("predicted", predicted), ("pairs", pairs), ("table", table.keep)):
        if values.device != given.device:
            raise ValueError(f"{name} must be on the device of given, {given.device}, got {values.device}")
    low, high = map(int, pairs.aminmax())
    if low < 0 or high >= len(given):
        raise ValueError(f"pairs must hold words from 0 to {len(given) - 1}, got {low} to {high}")
    validate.number("lr", lr, least=0, most=1e30)  # which float32 holds
    validate.count("samples", samples, least=0, most=MOST_SAMPLES)
    validate.count("batch_size", batch_size)
    _check_seed(seed)


def _check_table(table: AliasTable) -> None:
    if not isinstance(table, AliasTable):
        raise TypeError(f"table must be an AliasTable, got {type(table).__name__}: use alias_table(distribution)")
    for name, values in (("keep", table.keep), ("other", table.other)):
        validate.tensor(name, values)
        if values.dtype is not torch.int64 or not values.is_contiguous() or values.device != table.keep.device:
            raise TypeError(f"{name} of table must be contiguous int64 on one device: use alias_table(distribution)")
        if values.ndim != 1 or values.shape != table.keep.shape or not len(values) or values.device.type == "meta":
            raise ValueError(f"{name} of table must have one number for each word, got shape {tuple(values.shape)}")
    low, high = map(int, table.other.aminmax())
    if low < 0 or high >= len(table.other):
        raise ValueError(f"table must hold words from 0 to {len(table.other) - 1}, got {low} to {high}")


def _check_seed(seed: int) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed must be an integer, got {type(seed).__name__}")


@functools.cache
def _sweep_library() -> ctypes.CDLL | None:
    library, _ = load_compiled(Path(__file__).with_suffix(".c"))
    if library is not None:
        library.sweep.restype = _Loss
    return library
