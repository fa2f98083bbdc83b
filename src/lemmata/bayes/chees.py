r"""Hamiltonian Monte Carlo whose trajectories are as long as many chains together find them worth (ChEES)."""

import math
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.hmc import HamiltonianMonteCarlo, Proposed
from lemmata.bayes.transition import LogDensity, Random, SlopeState, Transition, shared_uniform
from lemmata.marks import system

__all__ = ["ChEES", "LengthAdaptation"]

Own = TypeVar("Own", bound="ChEES")

LONGEST = 1000  # leapfrogs of a trajectory
# Of a unit Gaussian, positions t apart have the correlation cos t, on average over [0, T] sin(T) / T: here it is least.
ALONE = 4.4934


@system("chees", title="ChEES-HMC", kind="sampler")
class ChEES(HamiltonianMonteCarlo):
    r"""Trajectories of random length up to $T$, the same for all chains; warming up, $T$ climbs a criterion.

    $$ \frac1t\cdot\tfrac14\,\mathbb E\Bigl[\bigl(\|\theta'-\mathbb E\theta\|^2-\|\theta-\mathbb E\theta\|^2
       \bigr)^2\Bigr],\qquad t\sim U(0,T),\qquad \lceil t/\eta\rceil\ \text{leapfrogs} $$

    is how far a transition changes the squared distance from the middle, for each unit of work. Expectations are means
    over chains, so that it takes many, 16 or more; all of them do the same work at the same time, unlike those of the
    No-U-Turn sampler. Where a mass was set, distances are those in which it is the identity. A single chain has no
    such means: T is 4.49 once it has learnt a mass, which is best for a Gaussian, and hardly a leapfrog without.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)

    Source: M. Hoffman, A. Radul and P. Sountsov, An adaptive-MCMC scheme for setting trajectory lengths in Hamiltonian
        Monte Carlo (2021).
    Differs: divided by $t$, as in TensorFlow Probability's criterion of rates; undivided it hardly falls where orbits
        close, and trajectories that were once too long stay so.

    >>> kernel = ChEES(lambda x: -x.square().sum(1) / 2, step=0.5, length=2.0)
    >>> state, transition = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> transition.gradients <= 4
    True
    """

    target_acceptance = 0.651  # the paper's

    def __init__(
        self,
        log_density: LogDensity,
        step: float = 0.1,
        length: float | None = None,
        mass: Float[Tensor, "*shape"] | None = None,
    ) -> None:
        super().__init__(log_density, step, mass=mass)
        self.length = step if length is None else validate.positive("length", length)

    def step(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition]:
        """One transition of every chain."""
        now, transition, _ = self.propose_and_choose(state, generator, self._leapfrog_count(shared_uniform(generator)))
        return now, transition

    def step_and_slope(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition, float]:
        r"""One transition, and the derivative of the criterion by $\log T$, estimated from all chains."""
        fraction = shared_uniform(generator)
        now, transition, proposed = self.propose_and_choose(state, generator, self._leapfrog_count(fraction))
        return now, transition, self._length_slope(state, proposed, transition)

    def tuned(self: Own, **settings: Any) -> Own:
        """The same kernel with another step, mass or length."""
        length = settings.pop("length", self.length)
        other = super().tuned(**settings)
        other.length = validate.positive("length", length)
        return other

    def single(self: Own, step: float) -> Own:
        """One leapfrog of this length in a transition."""
        return self.tuned(step=step, length=step)

    def _leapfrog_count(self, fraction: float) -> int:
        return min(max(math.ceil(fraction * self.length / self.step_length), 1), LONGEST)

    def _length_slope(self, state: SlopeState, proposed: Proposed, transition: Transition) -> float:
        weight = torch.where(proposed.end.position.isfinite().all(1), transition.acceptance, 0.0)
        weight = weight / weight.sum().clamp(min=1e-30)
        end = torch.where(weight[:, None] > 0, proposed.end.position, state.position)
        momentum = torch.where(weight[:, None] > 0, proposed.end.momentum, 0.0)
        before, after = state.position - state.position.mean(0), end - weight @ end
        gain = self.mass.square_length(after) - self.mass.square_length(before)
        time = transition.gradients * self.step_length
        return float(weight @ (gain * (after * momentum).sum(1) - 0.25 * gain.square() / time))


class LengthAdaptation:
    r"""Climbs the criterion in $\log T$ by Adam, whose step does not depend on its scale, and averages where it was.

    >>> adaptation = LengthAdaptation(1.0)
    >>> for _ in range(500):
    ...     adaptation.update(2.0 - adaptation.length)  # highest at 2
    >>> round(adaptation.averaged, 1)
    2.0
    """

    RATE, OF_SQUARES = 0.025, 0.95  # the paper's; a mean of slopes would only delay what averages anyway

    def __init__(self, length: float) -> None:
        self.length = self.averaged = validate.positive("length", length)
        self._square, self._count = 0.0, 0

    def update(self, slope: float, shortest: float = 0.0) -> None:
        """Take in one estimate of the derivative; one that is not finite says nothing. Below a step nothing is won."""
        if not math.isfinite(slope):
            return
        self._count += 1
        self._square = self.OF_SQUARES * self._square + (1 - self.OF_SQUARES) * slope**2
        root = math.sqrt(self._square / (1 - self.OF_SQUARES**self._count))
        move = self.RATE * slope / root if root > 0 else 0.0
        self.length = max(self.length * math.exp(move), shortest)
        kept = self._count**-0.5
        self.averaged = math.exp(kept * math.log(self.length) + (1 - kept) * math.log(self.averaged))

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers from which `load_state_dict` goes on."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        vars(self).update(state)
