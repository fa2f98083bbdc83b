r"""Hamiltonian Monte Carlo: draw momenta, follow the dynamics, accept by the error of the energy."""

import copy
import math
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.leapfrog_integrator import Trajectory, leapfrog
from lemmata.bayes.mass import Mass
from lemmata.bayes.transition import (
    LogDensity,
    Random,
    SlopeState,
    Transition,
    acceptance_of,
    choose,
    normal,
    shared_uniform,
    started_with_slope,
    uniform,
)
from lemmata.marks import system

__all__ = ["HamiltonianMonteCarlo"]

Own = TypeVar("Own", bound="HamiltonianMonteCarlo")

ASTRAY = 1000.0  # a trajectory whose energy rises by so much has left the level set: its step is too long


class Proposed(NamedTuple):
    """The momenta that were drawn, and the end of the trajectory that they led to."""

    momentum: Float[Tensor, "chains dimension"]
    end: Trajectory


@system("hmc", title="Hamiltonian Monte Carlo", kind="sampler")
class HamiltonianMonteCarlo:
    r"""The kernel that proposes the end of a trajectory, which lies far away and is nearly always accepted.

    $$ H(\theta,v)=-\log p(\theta)+\tfrac12v^\top M^{-1}v,\qquad v\sim\mathcal N(0,M),\qquad
       \alpha=\min\{1,e^{H(\theta,v)-H(\theta',v')}\} $$

    where $(\theta',v')$ is `steps` leapfrogs of length `step` away. With `jitter` the number of leapfrogs is drawn for
    each transition, the same for all chains, from (1 - jitter) * steps to steps: a fixed length can be a period of the
    orbit, and then the chain stays where it is. The gradient at a chain's position is kept from the transition before,
    so that a transition takes as many gradients as leapfrogs.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)
        mass: None for the identity, (dimension,) for a diagonal, (dimension, dimension): the momenta's covariance

    Claims: mcmc.hmc
    Source: R. Neal, MCMC using Hamiltonian dynamics (2011).
    Differs: `mass` is M itself; Stan and blackjax ask for its inverse.

    >>> kernel = HamiltonianMonteCarlo(lambda x: -x.square().sum(1) / 2, step=0.5, steps=4)
    >>> state, transition = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> state.position.shape, transition.gradients
    (torch.Size([3, 2]), 4)
    """

    target_acceptance = 0.8

    def __init__(
        self,
        log_density: LogDensity,
        step: float = 0.1,
        steps: int = 10,
        mass: Float[Tensor, "*shape"] | None = None,
        jitter: float = 0.0,
    ) -> None:
        self.log_density = log_density
        self.step_length = validate.positive("step", step)
        self.steps = validate.count("steps", steps)
        self.mass = Mass(mass)
        self.jitter = validate.fraction("jitter", jitter, most=1)

    def init(self, position: Float[Tensor, "chains dimension"], generator: Random | None = None) -> SlopeState:
        """Chains that start at these rows, where the density must be positive."""
        self.mass.fitting(position)
        return started_with_slope(self.log_density, position)

    def step(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition]:
        """One transition of every chain."""
        steps = self._jittered_steps(shared_uniform(generator)) if self.jitter else self.steps
        now, transition, _ = self.propose_and_choose(state, generator, steps)
        return now, transition

    def propose_and_choose(
        self, state: SlopeState, generator: Random, steps: int
    ) -> tuple[SlopeState, Transition, Proposed]:
        """One transition of so many leapfrogs, and what was proposed in it."""
        momentum = self.mass.momentum(normal(state.position, generator))
        before = self.mass.kinetic(momentum) - state.log_density
        end = self.trajectory(state, momentum, steps)
        after = self.mass.kinetic(end.momentum) - end.log_density
        acceptance = acceptance_of(before - after)
        accepted = uniform(state.log_density, generator) < acceptance
        now = choose(accepted, SlopeState(end.position, end.log_density, end.gradient), state)
        divergent = ~(after - before < ASTRAY)  # NaN too
        energy = torch.where(accepted, after, before)
        return now, Transition(accepted, acceptance, energy, divergent, steps), Proposed(momentum, end)

    def trajectory(self, state: SlopeState, momentum: Float[Tensor, "chains dimension"], steps: int) -> Trajectory:
        """The end of the trajectory that starts with this momentum."""
        return leapfrog(self.log_density, state.position, momentum, self.step_length, steps, self.mass, state.gradient)

    def tuned(self: Own, step: float | None = None, mass: Float[Tensor, "*shape"] | None = None) -> Own:
        """The same kernel with another step or mass: what an adaptation makes of it."""
        other = copy.copy(self)
        other.step_length = self.step_length if step is None else validate.positive("step", step)
        other.mass = self.mass if mass is None else Mass(mass)
        return other

    def single(self: Own, step: float) -> Own:
        """One leapfrog of this length in a transition."""
        other = self.tuned(step=step)
        other.steps, other.jitter = 1, 0.0
        return other

    def _jittered_steps(self, fraction: float) -> int:
        """How many leapfrogs a transition takes, for all chains alike."""
        least = max(1, math.ceil((1 - self.jitter) * self.steps))
        return least + int(fraction * (self.steps - least + 1))
