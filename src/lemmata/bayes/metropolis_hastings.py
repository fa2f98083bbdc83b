r"""Metropolis-Hastings: propose anything, and accept as often as leaves the target alone."""

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.transition import (
    LogDensity,
    PointState,
    Random,
    Transition,
    acceptance_of,
    choose,
    normal,
    started,
    uniform,
)
from lemmata.marks import system

__all__ = ["MetropolisHastings", "RandomWalk", "acceptance_probability"]

Own = TypeVar("Own", bound="MetropolisHastings")

Proposal = Callable[[Tensor, Random], tuple[Tensor, Tensor]]


def acceptance_probability(
    log_density: Float[Tensor, " chains"],
    proposed: Float[Tensor, " chains"],
    log_backward_over_forward: Float[Tensor, " chains"] | float = 0.0,
) -> Float[Tensor, " chains"]:
    r"""Metropolis and Hastings' acceptance, from logarithms, so that no factor of the density matters.

    $$ \alpha(\theta'|\theta) = \min\left\{1, \frac{p(\theta')\,\tilde\Pi(\theta|\theta')}
       {p(\theta)\,\tilde\Pi(\theta'|\theta)}\right\} $$

    Claims: mcmc.metropolis_hastings, mcmc.mh.symmetric

    >>> acceptance_probability(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -torch.inf]))
    tensor([1., 0.])
    """
    return acceptance_of(proposed - log_density + log_backward_over_forward)


class RandomWalk:
    r"""The symmetric proposal $\theta'\sim\mathcal N(\theta,\eta^2 I)$, whose density ratio is 1.

    >>> proposed, log_ratio = RandomWalk(0.5)(torch.zeros(3, 2), torch.Generator().manual_seed(0))
    >>> proposed.shape, log_ratio
    (torch.Size([3, 2]), tensor([0., 0., 0.]))
    """

    def __init__(self, step: float | Float[Tensor, " dimension"] = 1.0) -> None:
        self.step_length = step if isinstance(step, Tensor) else validate.positive("step", step)

    def __call__(self, position: Float[Tensor, "chains dimension"], generator: Random) -> tuple[Tensor, Tensor]:
        """A proposal for each chain and the log ratio of its densities backward and forward."""
        return position + self.step_length * normal(position, generator), position.new_zeros(len(position))


@system("metropolis_hastings", title="Metropolis-Hastings", kind="sampler")
class MetropolisHastings:
    r"""The kernel that proposes $\theta'\sim\tilde\Pi(\cdot|\theta)$, and stays where it is unless that is accepted.

    $$ \alpha(\theta'|\theta) = \min\left\{1, \frac{p(\theta')\,\tilde\Pi(\theta|\theta')}
       {p(\theta)\,\tilde\Pi(\theta'|\theta)}\right\} $$

    `propose(position, generator)` returns the proposals and the logarithm of the ratio of the densities of the moves,
    backward over forward: $\log\tilde\Pi(\theta|\theta')-\log\tilde\Pi(\theta'|\theta)$, which is 0 for symmetric
    ones. Without it a normal random walk with this `step` is proposed. A rejected chain's position counts once more.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)
        propose: (chains, dimension) to (chains, dimension) and (chains,)

    Claims: mcmc.metropolis_hastings, mcmc.mh.symmetric, mcmc.mh.burn_in
    Source: W. Hastings, Monte Carlo sampling methods using Markov chains and their applications (1970).

    >>> kernel = MetropolisHastings(lambda x: -x.square().sum(1) / 2, step=2.0)
    >>> state, transition = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> transition.accepted.shape, transition.gradients
    (torch.Size([3]), 0)
    """

    target_acceptance = 0.234

    def __init__(
        self,
        log_density: LogDensity,
        propose: Proposal | None = None,
        step: float | Float[Tensor, " dimension"] | None = None,
    ) -> None:
        if propose is not None and step is not None:
            raise ValueError("step is that of the random walk: give either propose or step")
        self.log_density = log_density
        self.propose = propose if propose is not None else RandomWalk(1.0 if step is None else step)

    @property
    def step_length(self) -> float | None:
        """The step of a random walk that has one for all directions, which can be tuned."""
        length = getattr(self.propose, "step_length", None)
        return length if isinstance(length, float | int) else None

    def init(self, position: Float[Tensor, "chains dimension"], generator: Random | None = None) -> PointState:
        """Chains that start at these rows, where the density must be positive."""
        return started(self.log_density, position)

    def step(self, state: PointState, generator: Random) -> tuple[PointState, Transition]:
        """One transition of every chain."""
        with torch.no_grad():
            position, log_ratio = self.propose(state.position, generator)
            proposed = PointState(position, self.log_density(position))
            acceptance = self.acceptance(state, proposed, log_ratio)
            accepted = uniform(state.log_density, generator) < acceptance
            now = choose(accepted, proposed, state)
        return now, Transition(accepted, acceptance, -now.log_density, proposed.log_density.isnan(), 0)

    def acceptance(self, state: PointState, proposed: PointState, log_ratio: Tensor) -> Float[Tensor, " chains"]:
        """With what probability each chain takes its proposal."""
        return acceptance_probability(state.log_density, proposed.log_density, log_ratio)

    def tuned(self: Own, step: float) -> Own:
        """The same random walk with another step."""
        other = copy.copy(self)
        other.propose = RandomWalk(step)
        return other
