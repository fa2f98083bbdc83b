r"""The linear recurrence as it is read, and the prefix scans that parallel machines run instead.

Everything here is plain torch: autograd differentiates it as often as one likes, and every transform of `torch.func`
goes through it. What is quick stands in the files beside; a claim holds them against this one.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.fast.scan_arguments import check_prefixes, check_scan

__all__ = ["Pair", "compose_steps", "scan_by_doubling", "scan_by_halving", "scan_by_steps"]

Pair = tuple[Tensor, Tensor]  # (a, b) stands for the map z -> a z + b; time is the second axis


def scan_by_steps(a: Tensor, b: Tensor, z0: Tensor | None = None, reverse: bool = False) -> Tensor:
    r"""All states of the recurrence, one step after another.

    $$ z_t = a_t z_{t-1} + b_t $$

    Shapes:
        b: (batch, time, channel)    a: the same, or (batch, channel) if constant in time    z0: (batch, channel)

    Claims: rnn.scan

    >>> scan_by_steps(torch.full((1, 1), 0.5), torch.ones(1, 4, 1)).flatten()
    tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    check_scan(a, b, z0, reverse)
    gates = (a[:, None] if a.ndim == 2 else a).expand_as(b)
    state = b.new_zeros(b.shape[0], b.shape[2]) if z0 is None else z0
    steps = list(zip(gates.unbind(1), b.unbind(1), strict=True))
    states = []
    for gate, term in reversed(steps) if reverse else steps:
        state = gate * state + term
        states.append(state)
    return torch.stack(states[::-1] if reverse else states, dim=1) if states else b.clone()


def compose_steps(later: Pair, earlier: Pair) -> Pair:
    r"""Two steps in a row are one step again, and composing them is associative.

    $$ (a_2, b_2) \circ (a_1, b_1) = (a_2 a_1,\; a_2 b_1 + b_2) $$

    Claims: rnn.scan
    """
    for name, step in (("later", later), ("earlier", earlier)):
        if not isinstance(step, tuple | list) or len(step) != 2:
            raise TypeError(f"{name} must be a pair (a, b), got {type(step).__name__}")
    (a2, b2), (a1, b1) = later, earlier
    try:
        return a2 * a1, a2 * b1 + b2
    except (RuntimeError, TypeError, ValueError) as error:  # of shapes, devices and kinds of numbers
        raise ValueError(f"later and earlier must fit together: {str(error).splitlines()[0][:200]}") from None


def scan_by_doubling(steps: Pair, compose: Callable[[Pair, Pair], Pair] = compose_steps) -> Pair:
    r"""All prefixes in $\lceil\log_2 T\rceil$ rounds: round $r$ joins each prefix to the one $2^r$ steps before it.

    Every round is one call of `compose`, which may treat all times at once. The work is $O(T \log T)$.

    Shapes:
        steps: two tensors (batch, time, ...)    returns: the composed steps from the first to each time

    Claims: rnn.scan
    Source: Hillis and Steele 1986.
    """
    check_prefixes(steps, compose)
    length, distance = steps[0].shape[1], 1
    while distance < length:
        joined = compose(_each_step(steps, slice(distance, None)), _each_step(steps, slice(None, -distance)))
        steps = _compose_steps(_each_step(steps, slice(None, distance)), joined)
        distance *= 2
    return steps


def scan_by_halving(steps: Pair, compose: Callable[[Pair, Pair], Pair] = compose_steps) -> Pair:
    r"""All prefixes with fewer than $2T$ compositions: join neighbours, scan the half as many, fill in between.

    The work is $O(T)$, but the rounds are up to $2\lceil\log_2 T\rceil - 1$.

    Claims: rnn.scan
    Source: Blelloch 1990.
    """
    check_prefixes(steps, compose)
    length = steps[0].shape[1]
    if length < 2:
        return steps
    joined = compose(_each_step(steps, slice(1, None, 2)), _each_step(steps, slice(0, length - 1, 2)))
    odd = scan_by_halving(joined, compose)
    even = _each_step(steps, slice(0, 1))
    if length > 2:
        rest = _each_step(steps, slice(2, None, 2))
        before = _each_step(odd, slice(None, rest[0].shape[1]))
        even = _compose_steps(even, compose(rest, before))
    return _interleave_steps(even[0], odd[0]), _interleave_steps(even[1], odd[1])


def _each_step(steps: Pair, times: slice) -> Pair:
    return steps[0][:, times], steps[1][:, times]


def _compose_steps(first: Pair, then: Pair) -> Pair:
    try:
        return torch.cat([first[0], then[0]], dim=1), torch.cat([first[1], then[1]], dim=1)
    except RuntimeError:
        shapes = f"{tuple(first[0].shape)} and {tuple(first[1].shape)}"
        raise ValueError(f"compose must keep the shapes of a and b, got {shapes}: expand them") from None


def _interleave_steps(even: Tensor, odd: Tensor) -> Tensor:
    both = torch.stack([even[:, : odd.shape[1]], odd], dim=2).flatten(1, 2)
    return torch.cat([both, even[:, odd.shape[1] :]], dim=1)
