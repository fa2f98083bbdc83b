r"""Adaptation while chains warm up: the step by dual averaging, the mass by variances, both pooled over all chains."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["DualAveraging", "PooledCovariance", "mass_windows"]

FEW_DRAWS = 5.0  # as many draws of variance 0.001 are mixed in, as Stan does, so that few draws give no mass of 0
SMALL_VARIANCE = 1e-3


class DualAveraging:
    r"""Moves the logarithm of a step until the mean acceptance is `target`, with a gain that falls.

    $$ \log\eta_{t+1}=\mu-\frac{\sqrt t}{\gamma}\frac1{t+t_0}\sum_{i\le t}(\delta-\bar\alpha_i),\qquad
       \log\bar\eta_{t+1}=t^{-\kappa}\log\eta_{t+1}+(1-t^{-\kappa})\log\bar\eta_t $$

    One update takes the mean acceptance of *all* chains: fed with one chain after another, the gain of a transition
    would be that of as many. While it adapts `step` is used, after that `averaged`.

    Source: M. Hoffman and A. Gelman, The No-U-Turn Sampler (2014), section 3.2.

    >>> adaptation = DualAveraging(step=1.0, target=0.8)
    >>> for _ in range(200):
    ...     adaptation.update(math.exp(-adaptation.step))
    >>> round(adaptation.averaged, 1)  # where e^{-step} is 0.8
    0.2
    """

    GAIN, DELAY, FALL = 0.05, 10.0, 0.75  # gamma, t0 and kappa of the paper

    def __init__(self, step: float, target: float) -> None:
        self.target = validate.number("target", target, above=0, below=1)
        self.restart(step)

    def restart(self, step: float) -> None:
        """Forget all that was seen, and begin at this step."""
        self.step = self.averaged = validate.positive("step", step)
        self._centre, self._lack, self._count = math.log(10 * step), 0.0, 0

    def update(self, acceptance: float) -> None:
        """Take in the mean acceptance of all chains in a transition with `step`."""
        self._count += 1
        t = self._count
        weight = 1 / (t + self.DELAY)
        self._lack = (1 - weight) * self._lack + weight * (self.target - acceptance)
        logarithm = self._centre - math.sqrt(t) / self.GAIN * self._lack
        kept = t**-self.FALL
        self.averaged = math.exp(kept * logarithm + (1 - kept) * math.log(self.averaged))
        self.step = math.exp(min(max(logarithm, -300.0), 300.0))

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers from which `load_state_dict` goes on."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(state)


class PooledCovariance:
    r"""Mean and covariance of the positions of all chains, taken in row by row (Welford), as the inverse of a mass.

    >>> covariance = PooledCovariance(1)
    >>> covariance.update(torch.tensor([[1.0], [3.0]])), covariance.update(torch.tensor([[5.0], [7.0]]))
    (None, None)
    >>> covariance.count, covariance.mean.item()
    (4, 4.0)
    """

    def __init__(self, dimension: int, dense: bool = False) -> None:
        self.dense, self.dimension = dense, dimension
        self.clear()

    def clear(self) -> None:
        """Forget all positions."""
        self.count = 0
        self.mean = torch.zeros(self.dimension)
        self._scatter = torch.zeros(self.dimension, self.dimension) if self.dense else torch.zeros(self.dimension)

    def update(self, position: Float[Tensor, "chains dimension"]) -> None:
        """Take in where all chains are."""
        if not self.count:
            self.mean, self._scatter = self.mean.to(position), self._scatter.to(position)
        added, mean = len(position), position.mean(0)
        around, gap = position - mean, mean - self.mean
        weight = self.count * added / (self.count + added)
        if self.dense:
            self._scatter = self._scatter + around.mT @ around + weight * torch.outer(gap, gap)
        else:
            self._scatter = self._scatter + around.square().sum(0) + weight * gap.square()
        self.count += added
        self.mean = self.mean + gap * (added / self.count)

    def variances(self) -> Float[Tensor, " dimension"]:
        """Of every direction, a little mixed in as in the mass."""
        scatter = self._scatter.diagonal() if self.dense else self._scatter
        kept = self.count / (self.count + FEW_DRAWS)
        return kept * scatter / max(self.count - 1, 1) + (1 - kept) * SMALL_VARIANCE

    def mass(self) -> Float[Tensor, "*shape"]:
        """The mass that makes all directions equally long: the inverse of the variances, or of the covariance."""
        if not self.dense:
            return 1 / self.variances()
        kept = self.count / (self.count + FEW_DRAWS)
        small = (1 - kept) * SMALL_VARIANCE * torch.eye(self.dimension).to(self._scatter)
        inverse = torch.linalg.inv(kept * self._scatter / max(self.count - 1, 1) + small)
        return (inverse + inverse.mT) / 2

    def state_dict(self) -> dict[str, Any]:
        """Numbers and tensors from which `load_state_dict` goes on."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(state)


def mass_windows(warmup: int) -> list[int]:
    """After which transitions the mass is set anew; between first and last the windows double, much as Stan's do.

    >>> mass_windows(1000)
    [75, 100, 150, 250, 450, 900]
    >>> mass_windows(10)
    []
    """
    if warmup < 20:
        return []
    first, last = round(0.075 * warmup), round(0.9 * warmup)
    ends, window = [first], max(1, round(0.025 * warmup))
    while ends[-1] < last:
        end = ends[-1] + window
        # A window that leaves no room for the next, twice as long, takes the rest.
        ends.append(last if end + 2 * window > last else end)
        window *= 2
    return ends
