r"""Langevin dynamics: descent, with or without momentum, and just as much noise as leaves a density alone."""

import copy
import math
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.metropolis_hastings import acceptance_probability
from lemmata.bayes.transition import (
    LogDensity,
    Random,
    SlopeState,
    Transition,
    choose,
    normal,
    slope_at,
    started_with_slope,
    uniform,
)
from lemmata.marks import system

__all__ = ["MetropolisAdjustedLangevin", "UnadjustedLangevin", "UnderdampedLangevin", "VelocityState"]

Own = TypeVar("Own", bound="UnadjustedLangevin")

SCHEMES = ("baoab", "euler")


class VelocityState(NamedTuple):
    """Where chains are, the log density and its gradient there, and how fast they move."""

    position: Float[Tensor, "chains dimension"]
    log_density: Float[Tensor, " chains"]
    gradient: Float[Tensor, "chains dimension"]
    velocity: Float[Tensor, "chains dimension"]


@system("ula", title="Unadjusted Langevin", kind="sampler")
class UnadjustedLangevin:
    r"""Overdamped Langevin dynamics in steps of length $\epsilon$, each of them accepted.

    $$ \theta' = \theta + \epsilon\,\nabla\log p(\theta) + \sqrt{2\epsilon}\,z,\qquad z\sim\mathcal N(0,I) $$

    Its stationary law is the target's up to an error of order $\epsilon$: on a standard normal the variance is exactly
    $1/(1-\epsilon/2)$. Where only the score $\nabla\log p$ is known, as of a learned one, give that in place of
    `log_density`, which is then NaN in states and energies.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)
        score: (chains, dimension) to (chains, dimension)

    Claims: mcmc.langevin.underdamped
    Source: G. Parisi, Correlation functions and computer simulations (1981).
    Differs: blackjax calls the same step sgld, and diffusers write $\epsilon/2$ for $\epsilon$.

    >>> kernel = UnadjustedLangevin(score=lambda x: -x, step=0.1)
    >>> state, _ = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> state.position.shape
    torch.Size([3, 2])
    """

    def __init__(
        self, log_density: LogDensity | None = None, step: float = 0.01, score: LogDensity | None = None
    ) -> None:
        if (log_density is None) == (score is None):
            raise ValueError("give either log_density or score: the one is the gradient of the other")
        self.log_density, self.score = log_density, score
        self.step_length = validate.positive("step", step)

    def init(self, position: Float[Tensor, "chains dimension"], generator: Random | None = None) -> SlopeState:
        """Chains that start at these rows."""
        if self.score is None:
            return started_with_slope(self.log_density, position)
        validate.matrix("position", position, "chains, dimension")
        return SlopeState(position.detach().clone(), *self.slope(position))

    def step(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition]:
        """One transition of every chain."""
        noise = normal(state.position, generator)
        position = self.drifted(state) + math.sqrt(2 * self.step_length) * noise
        now = SlopeState(position, *self.slope(position))
        return now, always_accepted(-now.log_density)

    def drifted(self, state: SlopeState) -> Float[Tensor, "chains dimension"]:
        """The mean of the next position."""
        return state.position + self.step_length * state.gradient

    def slope(self, position: Float[Tensor, "chains dimension"]) -> tuple[Tensor, Tensor]:
        """The log density, NaN where only the score is known, and its gradient."""
        if self.score is None:
            return slope_at(self.log_density, position)
        with torch.no_grad():
            score = self.score(position)
        if score.shape != position.shape:
            raise ValueError(f"score must return shape {tuple(position.shape)}, got {tuple(score.shape)}")
        return position.new_full(position.shape[:1], math.nan), score

    def tuned(self: Own, step: float) -> Own:
        """The same kernel with another step."""
        other = copy.copy(self)
        other.step_length = validate.positive("step", step)
        return other


@system("mala", title="Metropolis-adjusted Langevin", kind="sampler")
class MetropolisAdjustedLangevin(UnadjustedLangevin):
    r"""A step of overdamped Langevin dynamics as a proposal that Metropolis and Hastings accept or reject: exact.

    $$ \theta'\sim\mathcal N\bigl(\theta+\epsilon\nabla\log p(\theta),\,2\epsilon I\bigr),\qquad
       \log\frac{\tilde\Pi(\theta|\theta')}{\tilde\Pi(\theta'|\theta)} =
       \frac{\|\theta'-\mu(\theta)\|^2-\|\theta-\mu(\theta')\|^2}{4\epsilon} $$

    The proposal is not symmetric: the drift at the proposal is another one. It equals Hamiltonian Monte Carlo with one
    leapfrog of length $\sqrt{2\epsilon}$.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)

    Source: G. Roberts and R. Tweedie, Exponential convergence of Langevin distributions (1996).

    >>> kernel = MetropolisAdjustedLangevin(lambda x: -x.square().sum(1) / 2, step=0.5)
    >>> state, transition = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> transition.acceptance.shape
    torch.Size([3])
    """

    target_acceptance = 0.574

    def __init__(self, log_density: LogDensity, step: float = 0.01) -> None:
        super().__init__(log_density, step)

    def step(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition]:
        """One transition of every chain."""
        proposed, _ = super().step(state, generator)
        forward = (proposed.position - self.drifted(state)).square().sum(1)
        backward = (state.position - self.drifted(proposed)).square().sum(1)
        log_ratio = (forward - backward) / (4 * self.step_length)
        acceptance = acceptance_probability(state.log_density, proposed.log_density, log_ratio)
        accepted = uniform(state.log_density, generator) < acceptance
        now = choose(accepted, proposed, state)
        return now, Transition(accepted, acceptance, -now.log_density, proposed.log_density.isnan(), 1)


@system("underdamped_langevin", title="Underdamped Langevin", kind="sampler")
class UnderdampedLangevin:
    r"""Langevin dynamics with momentum: friction $\gamma$ takes energy out, noise puts as much in.

    $$ \dot\theta=v,\qquad dv=\nabla\log p(\theta)\,dt-\gamma v\,dt+\sqrt{2\gamma}\,dW $$

    leaves $p(\theta)\,e^{-\|v\|^2/2}$ alone. In steps of length $\eta$, `scheme="euler"` is what the notes print,

    $$ \theta'=\theta+\eta v,\qquad v'=(1-\eta\gamma)v+\eta\nabla\log p(\theta)+\sqrt{2\gamma\eta}\,z, $$

    with an error of order $\eta$; `"baoab"` takes half a kick, half a drift, the exact decay and noise of the velocity,
    half a drift and half a kick: for one gradient a step, too, an error of order $\eta^2$, and none at all in the
    positions of a Gaussian.

    Shapes:
        init(position, generator), step(state, generator): position (chains, dimension)

    Claims: mcmc.langevin.underdamped
    Source: B. Leimkuhler and C. Matthews, Rational construction of stochastic numerical methods (2013).
    Differs: without a generator `init` starts with chains at rest, not with velocities from their law.

    >>> kernel = UnderdampedLangevin(lambda x: -x.square().sum(1) / 2, step=0.5)
    >>> generator = torch.Generator().manual_seed(0)
    >>> state, _ = kernel.step(kernel.init(torch.zeros(3, 2), generator), generator)
    >>> state.velocity.shape
    torch.Size([3, 2])
    """

    def __init__(
        self, log_density: LogDensity, step: float = 0.1, friction: float = 1.0, scheme: str = "baoab"
    ) -> None:
        self.log_density = log_density
        self.step_length = validate.positive("step", step)
        self.friction = validate.number("friction", friction, least=0)
        self.scheme = validate.one_of("scheme", scheme, SCHEMES)

    def init(self, position: Float[Tensor, "chains dimension"], generator: Random | None = None) -> VelocityState:
        """Chains that start at these rows, with random velocities where there is a generator."""
        state = started_with_slope(self.log_density, position)
        velocity = torch.zeros_like(position) if generator is None else normal(position, generator)
        return VelocityState(*state, velocity)

    def step(self, state: VelocityState, generator: Random) -> tuple[VelocityState, Transition]:
        """One transition of every chain."""
        noise = normal(state.position, generator)
        now = self.euler(state, noise) if self.scheme == "euler" else self.baoab(state, noise)
        return now, always_accepted(0.5 * now.velocity.square().sum(1) - now.log_density)

    def euler(self, state: VelocityState, noise: Float[Tensor, "chains dimension"]) -> VelocityState:
        """The step that the notes print: both sides of it at the old state."""
        step, kept = self.step_length, 1 - self.step_length * self.friction
        position = state.position + step * state.velocity
        velocity = kept * state.velocity + step * state.gradient + math.sqrt(2 * self.friction * step) * noise
        return VelocityState(position, *slope_at(self.log_density, position), velocity)

    def baoab(self, state: VelocityState, noise: Float[Tensor, "chains dimension"]) -> VelocityState:
        """Kick, drift, decay and noise, drift, kick."""
        step, kept = self.step_length, math.exp(-self.step_length * self.friction)
        velocity = state.velocity + 0.5 * step * state.gradient
        position = state.position + 0.5 * step * velocity
        velocity = kept * velocity + math.sqrt(1 - kept**2) * noise
        position = position + 0.5 * step * velocity
        value, gradient = slope_at(self.log_density, position)
        return VelocityState(position, value, gradient, velocity + 0.5 * step * gradient)


def always_accepted(energy: Float[Tensor, " chains"]) -> Transition:
    """What becomes of a transition that is never rejected."""
    everyone = torch.ones_like(energy, dtype=torch.bool)
    return Transition(everyone, torch.ones_like(energy), energy, ~energy.isfinite() & ~energy.isnan(), 1)
