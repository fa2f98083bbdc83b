"""The flow under test, and copies of it that are fitted to laws of which everything is known."""

import copy
import functools
import inspect
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Normal

from lemmata import validate
from lemmata.testing.findings import Broken, Undecided

__all__ = []  # for the suite alone

BATCH, WARMUP = 256, 20  # of fitting
BEND = 0.5


def bent_draws(n: int, features: int, generator: Generator) -> Tensor:
    """Each feature bends around the one before it: neither scales and shifts nor a rotation make that of noise."""
    z = torch.randn(n, features, generator=generator, dtype=torch.float64)
    columns = [0.5 + 0.7 * z[:, 0]]
    for k in range(1, features):
        columns.append(BEND * columns[-1].square() - 0.3 * columns[-1] + 0.4 * z[:, k])
    return torch.stack(columns, 1)


class Both(NamedTuple):
    """A flow in its own precision, in which it is drawn from, and in float64."""

    own: Any
    exact: Any


@dataclass
class Subject:
    """A flow of so many features."""

    flow: Any
    name: str
    features: int
    variances: tuple[float, float]
    steps: int
    lr: float

    @classmethod
    def of(cls, flow: Any, features: int, variances: tuple[float, float], steps: int, lr: float) -> "Subject":
        if not (callable(getattr(flow, "log_prob", None)) and callable(getattr(flow, "sample", None))):
            raise TypeError(
                f"flow must have methods log_prob and sample, got {type(flow).__name__}: wrap it in a class"
            )
        validate.count("features", features)
        for variance in variances:
            validate.positive("variances", variance)
        validate.count("steps", steps)
        validate.positive("lr", lr)
        return cls(flow, type(flow).__name__, features, variances, steps, lr)

    # --- Copies ---

    @property
    def learns(self) -> bool:
        return isinstance(self.flow, nn.Module) and any(p.requires_grad for p in self.flow.parameters())

    @functools.cached_property
    def given(self) -> Both:
        """The flow as it was given."""
        return self._sample_both(self.flow)

    @functools.cached_property
    def bent(self) -> Both:
        """A copy that is fitted to the bent law; the flow as given, where there is nothing to fit."""
        draws = functools.partial(bent_draws, features=self.features)
        return self._sample_both(self.fitted(draws)) if self.learns else self.given

    @property
    def tame(self) -> Both:
        """What can be integrated: the bent copy on a grid, in more than two dimensions one of a Gaussian."""
        return self.bent if self.features <= 2 or not self.learns else self.gaussian(max(self.variances))

    def gaussian(self, variance: float) -> Both:
        """A copy that is fitted to N(0, variance)."""
        if not self.learns:
            raise Undecided("it has no parameters that could be fitted")
        if variance not in self._wide_gaussians:
            self._wide_gaussians[variance] = self._sample_both(
                self.fitted(functools.partial(self.normal_draws, variance))
            )
        return self._wide_gaussians[variance]

    @functools.cached_property
    def _wide_gaussians(self) -> dict[float, Both]:
        return {}

    def normal_draws(self, variance: float, n: int, generator: Generator) -> Tensor:
        z = torch.randn(n, self.features, generator=generator, dtype=torch.float64)
        return math.sqrt(variance) * z

    def gaussian_excess(self, variance: float) -> float:
        """By how many nats per feature a fitted copy misses the log-density in the mean."""
        x = self.normal_draws(variance, 4000, Generator().manual_seed(4))
        true = Normal(0.0, math.sqrt(variance)).log_prob(x).sum(1)
        return float((true - log_prob(self.gaussian(variance).exact, x)).mean()) / self.features

    def fitted(self, draws: Any) -> Any:
        """A copy after as many steps of maximum likelihood on fresh draws."""
        flow, generator = copy.deepcopy(self.flow).train(), Generator().manual_seed(3)
        place = next(flow.parameters())
        optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=self.lr)
        for step in range(self.steps):
            optimizer.param_groups[0]["lr"] = self.lr * min(1, (step + 1) / WARMUP) * (1 - step / self.steps)
            loss = -flow.log_prob(draws(BATCH, generator=generator).to(place)).mean()
            optimizer.zero_grad()
            loss.backward()
            if not bool(loss.isfinite()):
                raise Broken(f"fitting it to a simple law ends in a loss of {float(loss.detach())} at step {step}")
            optimizer.step()
        return flow.eval()

    def _sample_both(self, flow: Any) -> Both:
        if not isinstance(flow, nn.Module):
            return Both(flow, flow)
        own = copy.deepcopy(flow).eval().requires_grad_(False)
        return Both(own, copy.deepcopy(own).double())

    # --- Examples ---

    def examples(self, n: int = 200) -> Tensor:
        """Draws of the bent law, some of them far out."""
        x = bent_draws(n, self.features, Generator().manual_seed(5))
        x[: n // 4] *= 2
        return x

    def need(self, *methods: str) -> None:
        if missing := [name for name in methods if not callable(getattr(self.flow, name, None))]:
            raise Undecided(f"it has no method {' and no '.join(missing)}")

    def base_log_prob(self, flow: Any, z: Tensor) -> Any:
        base = getattr(flow, "base", None)
        known: Any = getattr(base, "log_prob", None)
        return known(z) if callable(known) else Normal(0.0, 1.0).log_prob(z).sum(1)


@torch.no_grad()
def log_prob(flow: Any, x: Tensor) -> Tensor:
    """In parts, so that a fine grid fits into memory."""
    return torch.cat([flow.log_prob(part) for part in x.split(50_000)])


@torch.no_grad()
def sample(flow: Any, n: int, seed: int) -> Tensor:
    """Draws from a seed; of a pair of draws and log-densities (as normflows gives) the draws."""
    drawn = _drawn_points(flow.sample, n, seed)
    return drawn[0] if isinstance(drawn, tuple) else drawn


@torch.no_grad()
def sample_and_log_prob(flow: Any, n: int, seed: int) -> tuple[Tensor, Tensor]:
    if callable(getattr(flow, "sample_and_log_prob", None)):
        return _drawn_points(flow.sample_and_log_prob, n, seed)
    drawn = _drawn_points(flow.sample, n, seed)
    if not isinstance(drawn, tuple):
        raise Undecided("it has no method sample_and_log_prob")
    return drawn


def takes_generator(draw: Any) -> bool:
    return "generator" in inspect.signature(draw).parameters


def _drawn_points(draw: Any, n: int, seed: int) -> Any:
    if takes_generator(draw):
        return draw(n, generator=Generator().manual_seed(seed))
    torch.manual_seed(seed)
    return draw(n)
