r"""Averages of the iterates: Polyak and Ruppert's mean of all, or one that forgets exponentially."""

# pyright: reportPrivateImportUsage=false
# The operations on lists of tensors, torch._foreach_*, are what torch.optim itself is written with.
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["PolyakAverage"]


@system("polyak_average", title="Polyak averaging", kind="estimator")
class PolyakAverage:
    r"""The mean of all iterates, or with `ema_decay` their exponential moving average, kept beside any optimiser.

    $$ \bar\theta_t = \frac1t \sum_{i \le t} \theta_i \qquad \text{or} \qquad
       \bar\theta_t = d\, \bar\theta_{t-1} + (1 - d)\, \theta_t, \quad \bar\theta_1 = \theta_1 $$

    Call `update()` after each step of the optimiser; calls up to number `start` are passed over, so that the way to the
    neighbourhood of the minimum is left out. Inside `with average.applied():` the parameters hold the average, and
    afterwards what they held before; `copy_to_parameters()` lets them hold it for good.

    Shapes:
        parameters: any, their average in at least float32

    Claims: optim.polyak_averaging
    Source: B. Polyak and A. Juditsky 1992, D. Ruppert 1988.
    Differs: torch.optim.swa_utils.AveragedModel copies the whole model; this one keeps the parameters alone. Batch
        normalisation needs torch.optim.swa_utils.update_bn under the average.

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> average = PolyakAverage([weight])
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = weight.data.fill_(value)
    ...     average.update()
    >>> with average.applied():
    ...     weight.item()
    3.0
    >>> weight.item()
    6.0
    """

    def __init__(self, params: Iterable[Tensor], ema_decay: float | None = None, start: int = 0) -> None:
        self.params = list(params)
        if not self.params or not all(isinstance(p, Tensor) for p in self.params):
            raise ValueError("params must hold at least one tensor, and nothing else: use model.parameters()")
        self.ema_decay = None if ema_decay is None else validate.number("ema_decay", ema_decay, least=0, below=1)
        self.start = validate.count("start", start, least=0)
        self.steps = 0
        with torch.no_grad():
            self.averages = [p.to(torch.promote_types(p.dtype, torch.float32), copy=True) for p in self.params]

    @property
    def averaged(self) -> int:
        """How many iterates have gone into the average."""
        return max(self.steps - self.start, 0)

    @torch.no_grad()
    def update(self) -> None:
        """Take in the parameters as they are now."""
        self.steps += 1
        count = self.averaged
        now = [p.to(average.dtype) for p, average in zip(self.params, self.averages, strict=True)]
        if count <= 1:  # the first iterate is its own average; before it, the last one stands for it
            torch._foreach_copy_(self.averages, now)
        else:
            torch._foreach_lerp_(self.averages, now, 1 / count if self.ema_decay is None else 1 - self.ema_decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the parameters hold the average inside a `with` block."""
        with torch.no_grad():
            kept = [p.clone() for p in self.params]
        self.copy_to_parameters()
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(self.params, kept)

    @torch.no_grad()
    def copy_to_parameters(self) -> None:
        """Let the parameters hold the average from now on."""
        torch._foreach_copy_(self.params, self.averages)

    def state_dict(self) -> dict[str, Any]:
        """Everything that continues the average: its tensors and how many steps it has seen."""
        return {"steps": self.steps, "averages": [average.clone() for average in self.averages]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        shapes, given = [p.shape for p in self.params], [average.shape for average in state["averages"]]
        if shapes != given:
            raise ValueError(f"averages must have the parameters' shapes {shapes}, got {given}"[:300])
        self.steps = validate.count("steps", state["steps"], least=0)
        torch._foreach_copy_(self.averages, list(state["averages"]))
