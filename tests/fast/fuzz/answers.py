"""The right answers, number by number in plain Python and torch: an error where arguments have no clear meaning."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.fast.skip_gram_sweep import alias_negatives
from lemmata.fast.wavenet_steps import drawn_level, one_step


class Unclear(Exception):
    """The arguments have no meaning: whoever answers them answers garbage."""


class Anything(Exception):
    """The arguments have a meaning, but no answer is better than another: infinite vectors, say."""


def demand(condition: Any) -> None:
    if not condition:
        raise Unclear


def wide(x: Any) -> Tensor:
    """A dense tensor in double precision."""
    demand(isinstance(x, Tensor) and x.layout is torch.strided and x.device.type == "cpu" and x.dtype != torch.bool)
    return x.detach().to(torch.complex128 if x.is_complex() else torch.float64)


# --- Scans ---


def scan(a: Any, b: Any, z0: Any = None, reverse: Any = False, out: Any = None) -> Tensor:
    demand(isinstance(reverse, bool))
    a, b = wide(a), wide(b)
    demand(b.ndim == 3)
    state = (b.shape[0], b.shape[2])
    demand(a.shape in (b.shape, state))
    z = torch.zeros(state, dtype=b.dtype) if z0 is None else wide(z0)
    demand(z.shape == state)
    if out is not None:
        demand(
            wide(out).shape == b.shape and 0 not in [s for s, n in zip(out.stride(), out.shape, strict=True) if n > 1]
        )
    gates = a[:, None].expand(b.shape) if a.ndim == 2 else a
    steps = range(b.shape[1])
    found: dict[int, Tensor] = {}
    for t in reversed(steps) if reverse else steps:
        z = found[t] = gates[:, t] * z + b[:, t]
    return torch.stack([found[t] for t in steps], 1) if found else b.clone()


def scan_back(a: Any, z: Any, z0: Any, grad: Any, reverse: Any) -> tuple[Tensor, ...]:
    """Gradients of the recurrence that has these states, whatever its terms were."""
    a, z, grad = wide(a), wide(z), wide(grad)
    demand(z.ndim == 3 and grad.shape == z.shape and isinstance(reverse, bool))
    state = (z.shape[0], z.shape[2])
    demand(a.shape in (z.shape, state) and (z0 is None or wide(z0).shape == state))
    start = torch.zeros(state, dtype=z.dtype) if z0 is None else wide(z0)
    constant = a.ndim == 2
    a = a[:, None].expand(z.shape) if constant else a
    order = list(range(z.shape[1]))[:: -1 if reverse else 1]
    da, db = torch.zeros_like(z), torch.zeros_like(z)
    carry = torch.zeros_like(start)
    for place in reversed(range(len(order))):
        t = order[place]
        db[:, t] = grad[:, t] + carry
        before = z[:, order[place - 1]] if place else start
        da[:, t] = db[:, t] * before.conj()
        carry = a[:, t].conj() * db[:, t]
    return da.sum(1) if constant else da, db, carry


# --- Patterns ---


def entries_of(rows: Any, columns: int, transposed: Any = None) -> list[tuple[int, int, int]]:
    """(row, column, place in the list) of each entry of a pattern that is one."""
    demand(type(rows).__name__ == "Rows")
    for part in rows:
        demand(isinstance(part, Tensor) and part.layout is torch.strided and part.ndim == 1)
        demand(part.dtype == torch.int64 and part.device.type == "cpu")
    pointers, place, order = (part.tolist() for part in rows)
    demand(pointers and pointers[0] == 0 and pointers[-1] == len(place) and sorted(pointers) == pointers)
    demand(sorted(order) == list(range(len(place))) and all(0 <= column < columns for column in place))
    found = [(r, place[k], order[k]) for r in range(len(pointers) - 1) for k in range(pointers[r], pointers[r + 1])]
    if transposed is not None:
        entries_of(transposed, len(pointers) - 1)
        demand(len(transposed.pointers) - 1 == columns and len(transposed.columns) == len(place))
    return found


def sums(x: Any, rows: Any, weights: Any = None, transposed: Any = None) -> Tensor:
    x = wide(x)
    demand(x.ndim == 2)
    found = entries_of(rows, len(x), transposed)
    y = torch.zeros(len(rows.pointers) - 1, x.shape[1], dtype=x.dtype)
    if weights is not None:
        weights = wide(weights)
        demand(weights.shape == (len(found),))
        demand(x.is_complex() or not weights.is_complex())
    for r, c, e in found:
        y[r] += x[c] if weights is None else weights[e] * x[c]
    return y


def dots(a: Any, b: Any, rows: Any, transposed: Any = None) -> Tensor:
    a, b = wide(a), wide(b)
    demand(a.ndim == b.ndim == 2 and a.shape[1] == b.shape[1] and not a.is_complex() and not b.is_complex())
    found = entries_of(rows, len(b), transposed)
    demand(len(a) >= len(rows.pointers) - 1)
    d = torch.zeros(len(found), dtype=torch.float64)
    for r, c, e in found:
        d[e] = (a[r] * b[c]).sum()
    return d


def extremes(x: Any, rows: Any, largest: Any = True, transposed: Any = None) -> Tensor:
    x = wide(x)
    demand(x.ndim == 2 and isinstance(largest, bool) and not x.is_complex())
    y = torch.zeros(len(rows.pointers) - 1, x.shape[1], dtype=torch.float64)
    own: dict[int, list[Tensor]] = {}
    for r, c, _ in entries_of(rows, len(x), transposed):
        own.setdefault(r, []).append(x[c])
    for r, values in own.items():
        y[r] = torch.stack(values).amax(0) if largest else torch.stack(values).amin(0)
    return y


def attention(
    to: Any, source: Any, more: Any, values: Any, slope: Any, rows: Any, transposed: Any = None
) -> tuple[Tensor, Tensor]:
    to, source, values = wide(to), wide(source), wide(values)
    demand(values.ndim == 3 and isinstance(slope, int | float) and math.isfinite(slope))
    if abs(slope) > 1e6:
        raise Anything  # scores that overflow
    demand(not (to.is_complex() or source.is_complex() or values.is_complex()))
    found, heads, number = entries_of(rows, len(values), transposed), values.shape[1], len(rows.pointers) - 1
    demand(to.shape == (number, heads) and source.shape == (len(values), heads))
    demand(more is None or wide(more).shape == (len(found), heads))
    y, shares = (
        torch.zeros(number, *values.shape[1:], dtype=torch.float64),
        torch.zeros(len(found), heads, dtype=torch.float64),
    )
    own: dict[int, list[tuple[int, int]]] = {}
    for r, c, e in found:
        own.setdefault(r, []).append((c, e))
    for r, pairs in own.items():
        scores = torch.stack([to[r] + source[c] + (0 if more is None else wide(more)[e]) for c, e in pairs])
        scores = torch.where(scores > 0, scores, slope * scores).softmax(0)  # (entries, heads)
        for share, (c, e) in zip(scores, pairs, strict=True):
            y[r] += share[:, None] * values[c]
            shares[e] = share
    return y, shares


# --- Sweeps and steps ---


def perceptron(x: Any, y: Any, state: Any, bias: Any) -> tuple[list[int], np.ndarray]:
    demand(all(isinstance(each, np.ndarray) and each.dtype.kind == "f" for each in (x, y, state)))
    demand(isinstance(bias, bool) and x.ndim == 2 and y.shape == (len(x),) and state.shape == (x.shape[1] + 1,))
    demand((np.abs(y) == 1).all() and x.dtype == y.dtype == state.dtype and state.flags.writeable)
    mistakes, now = [], state.astype(np.float64)
    for i in range(len(x)):
        if y[i] * (x[i].astype(np.float64) @ now[:-1] + now[-1]) <= 0:
            now[:-1] += float(y[i]) * x[i]
            now[-1] += float(y[i]) * bias
            mistakes.append(i)
    return mistakes, now


def pairs(
    given: Any, predicted: Any, pairs: Any, table: Any, lr: Any, samples: Any, batch_size: Any, seed: Any
) -> tuple:
    x, y = wide(given), wide(predicted)
    demand(
        x.ndim == 2 and x.shape == y.shape and pairs.dtype == torch.int64 and pairs.ndim == 2 and pairs.shape[1] == 2
    )
    demand(given.dtype == predicted.dtype and len(pairs) and isinstance(batch_size, int) and batch_size > 0)
    demand(isinstance(lr, int | float) and 0 <= lr < 1e30)
    if not (x.isfinite().all() and y.isfinite().all()):
        raise Anything
    low, high = int(pairs.min()), int(pairs.max())
    demand(low >= 0 and high < len(x))
    x, y, total = x.clone(), y.clone(), 0.0
    for first in range(0, len(pairs), batch_size):
        some = pairs[first : first + batch_size].tolist()
        negatives = alias_negatives(table, seed, first * samples, (len(some), samples)).tolist()
        dx, dy = torch.zeros_like(x), torch.zeros_like(y)
        for (word, context), others in zip(some, negatives, strict=True):
            for target, sign in ((context, 1.0), *((other, -1.0) for other in others)):
                score = sign * (x[word] @ y[target])
                total -= float(torch.nn.functional.logsigmoid(score))
                slope = lr * sign * torch.sigmoid(-score)
                dx[word] += slope * y[target]
                dy[target] += slope * x[word]
        x, y = x + dx, y + dy
    return total / len(pairs), x, y


def steps(weights: Any, memory: Any, last: Any, position: Any, temperature: Any, chance: Any) -> tuple[Tensor, ...]:
    demand(isinstance(position, int) and not isinstance(position, bool) and 0 <= position < 2**60)
    demand(isinstance(chance, Tensor) and chance.ndim == 2)
    memory, last, samples = memory.clone(), last.clone(), []
    with torch.no_grad():
        for t, row in enumerate(chance):
            samples.append(drawn_level(one_step(weights, memory, last, position + t), temperature, row))
            last = weights.embedding[samples[-1]].clone()
    found = torch.stack(samples) if samples else torch.empty(chance.shape, dtype=torch.int64)
    return found, memory, last


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, torch.Tensor | np.ndarray):
        found, expected = torch.as_tensor(found).detach(), torch.as_tensor(expected)
        exact = expected.dtype in (torch.int64, torch.bool)
        eps = 0.0 if exact or not (found.is_floating_point() or found.is_complex()) else torch.finfo(found.dtype).eps
        found, expected = (x.to(torch.complex128) for x in (found, expected))
        scale = 1 + float(torch.nan_to_num(expected.abs(), 0.0, 0.0).amax()) if expected.numel() else 1.0
        return found.shape == expected.shape and torch.allclose(
            found, expected, rtol=1e-3 if eps else 0.0, atol=1000 * eps * scale, equal_nan=True
        )
    if isinstance(expected, float):
        return found == expected or abs(found - expected) <= 1e-3 * (1 + abs(expected)) or expected != expected != found
    return found == expected
