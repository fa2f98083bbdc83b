r"""The leapfrog integrator of Hamilton's equations: half a kick, a drift, half a kick."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.mass import Mass
from lemmata.bayes.transition import LogDensity, slope_at
from lemmata.marks import system

__all__ = ["Trajectory", "leapfrog"]


class Trajectory(NamedTuple):
    """The end of a trajectory, the log density there and its gradient."""

    position: Float[Tensor, "chains dimension"]
    momentum: Float[Tensor, "chains dimension"]
    log_density: Float[Tensor, " chains"]
    gradient: Float[Tensor, "chains dimension"]


@system("leapfrog", title="Leapfrog integrator", kind="function")
def leapfrog(
    log_density: LogDensity,
    position: Float[Tensor, "chains dimension"],
    momentum: Float[Tensor, "chains dimension"],
    step: float | Float[Tensor, ""],
    steps: int,
    mass: Mass | None = None,
    gradient: Float[Tensor, "chains dimension"] | None = None,
) -> Trajectory:
    r"""Follow Hamilton's equations of the energy $E=-\log p$ for `steps` steps of length $\eta$.

    $$ v\leftarrow v-\tfrac\eta2\nabla E(\theta),\qquad \theta\leftarrow\theta+\eta M^{-1}v,\qquad
       v\leftarrow v-\tfrac\eta2\nabla E(\theta) $$

    The half kicks of neighbouring steps are one, so that a trajectory takes steps + 1 gradients, and steps if the
    gradient at its start is given. It is undone to rounding by turning the momentum round, and keeps volumes.

    Shapes:
        position, momentum, gradient: (chains, dimension)    returns: Trajectory

    Claims: mcmc.hmc, mcmc.hmc.dynamics
    Source: S. Duane, A. Kennedy, B. Pendleton and D. Roweth, Hybrid Monte Carlo (1987).

    >>> import torch
    >>> start, momentum = torch.ones(1, 1), torch.zeros(1, 1)
    >>> there = leapfrog(lambda x: -x.square().sum(1) / 2, start, momentum, 0.1, 30)
    >>> back = leapfrog(lambda x: -x.square().sum(1) / 2, there.position, -there.momentum, 0.1, 30)
    >>> torch.allclose(back.position, start)
    True
    """
    validate.count("steps", steps)
    mass = Mass() if mass is None else mass
    gradient = slope_at(log_density, position)[1] if gradient is None else gradient
    momentum = momentum + 0.5 * step * gradient
    for done in range(1, steps + 1):
        position = position + step * mass.velocity(momentum)
        value, gradient = slope_at(log_density, position)
        momentum = momentum + (step if done < steps else 0.5 * step) * gradient
    return Trajectory(position, momentum, value, gradient)
