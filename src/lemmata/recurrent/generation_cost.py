r"""What a generated token costs: the state of a recurrent layer is fixed, the past that attention looks at grows."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata import validate

__all__ = ["CausalAttention", "KeyValueCache", "dependency_depth", "multiplications"]


class KeyValueCache(NamedTuple):
    """The keys and values of everything seen so far: what attention needs to go on without computing them again."""

    keys: Float[Tensor, "batch time features"]
    values: Float[Tensor, "batch time features"]


class CausalAttention(nn.Module):
    r"""Self-attention in which each place looks at itself and at what came before: the core of a transformer.

    $$ y_t = \sum_{s \le t} a_{ts} V x_s, \qquad
       a_{ts} = \mathrm{softmax}_{s \le t}\big((Q x_t)^\top K x_s / \sqrt d\big) $$

    A whole sequence takes one pass with $T^2$ scores, all places at once. Token by token (`step`), the keys and
    values of the past are kept: the step at place t then costs $O(t)$, and $T$ of them $O(T^2)$.

    Shapes:
        x: (batch, time, features)    returns: (batch, time, features)

    Claims: rnn.vs_transformer.cost
    Source: Vaswani et al. 2017.

    >>> layer = CausalAttention(8)
    >>> x = torch.randn(2, 5, 8)
    >>> first, cache = layer.step(x[:, 0], layer.empty(2))
    >>> torch.allclose(first, layer(x)[:, 0], atol=1e-6), cache.keys.shape
    (True, torch.Size([2, 1, 8]))
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        self.query, self.key, self.value = (nn.Linear(features, features, bias=False) for _ in range(3))

    def forward(self, x: Float[Tensor, "batch time features"]) -> Float[Tensor, "batch time features"]:
        self._check_axes(x, 3)
        scores = self.query(x) @ self.key(x).mT / math.sqrt(self.features)  # (batch, time, time)
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -math.inf).softmax(-1) @ self.value(x)  # (batch, time, features)

    def empty(self, batch: int) -> KeyValueCache:
        """A cache before the first step."""
        nothing = self.key.weight.new_empty(batch, 0, self.features)
        return KeyValueCache(nothing, nothing)

    def step(
        self, x: Float[Tensor, "batch features"], cache: KeyValueCache
    ) -> tuple[Float[Tensor, "batch features"], KeyValueCache]:
        """The output at the next place, and the cache with that place in it."""
        self._check_axes(x, 2)
        keys = torch.cat([cache.keys, self.key(x)[:, None]], 1)  # (batch, time + 1, features)
        values = torch.cat([cache.values, self.value(x)[:, None]], 1)
        scores = self.query(x)[:, None] @ keys.mT / math.sqrt(self.features)  # (batch, 1, time + 1)
        return (scores.softmax(-1) @ values).squeeze(1), KeyValueCache(keys, values)  # (batch, features)

    def _check_axes(self, x: Tensor, axes: int) -> None:
        if x.ndim != axes or x.shape[-1] != self.features:
            wanted = f"(batch, {'time, ' if axes == 3 else ''}{self.features})"
            raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")


def multiplications(run: Callable[[], Any]) -> int:
    r"""How many numbers are multiplied in matrix products while something runs, counted, not estimated.

    $$ (n \times m)(m \times k) \text{ costs } nmk $$

    Claims: rnn.vs_transformer.cost

    >>> multiplications(lambda: torch.ones(2, 3) @ torch.ones(3, 5))
    30
    """
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2  # each comes with an addition


def dependency_depth(output: Tensor) -> int:
    r"""The longest chain of operations from the inputs to an output, each of which must wait for the one before.

    However many processors there are, an output cannot be had in fewer moments than that. Read from the graph that
    torch keeps for the gradients, so `output` must depend on something that requires one.

    Claims: rnn.vs_transformer.cost

    >>> x = torch.ones(1, requires_grad=True)
    >>> dependency_depth((x + 1) * (x + 2)), dependency_depth(((x + 1) * 2 + 3) * 4)
    (2, 4)
    """
    if output.grad_fn is None:
        raise ValueError("output must depend on something that requires a gradient: use x.requires_grad_()")
    depth: dict[Any, int] = {None: 0}  # an input that needs no gradient has no node
    waiting: list[Any] = [output.grad_fn]
    while waiting:  # a loop, for a graph may be deeper than Python's stack
        node = waiting[-1]
        before = [] if node.name().endswith("AccumulateGrad") else [link for link, _ in node.next_functions]
        if missing := [link for link in before if link not in depth]:
            waiting += missing
            continue
        waiting.pop()
        depth[node] = max((depth[link] for link in before), default=-1) + 1
    return depth[output.grad_fn]
