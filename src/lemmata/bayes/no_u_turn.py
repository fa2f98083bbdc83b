r"""The No-U-Turn sampler: trajectories that double until they turn back, so that nobody chooses their length."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.bayes.hmc import ASTRAY, HamiltonianMonteCarlo
from lemmata.bayes.leapfrog_integrator import leapfrog
from lemmata.bayes.transition import LogDensity, Random, SlopeState, Transition, acceptance_of, choose, normal
from lemmata.marks import system

__all__ = ["NoUTurn"]


class Edge(NamedTuple):
    """One end of a trajectory."""

    position: Float[Tensor, "chains dimension"]
    momentum: Float[Tensor, "chains dimension"]
    gradient: Float[Tensor, "chains dimension"]


class Branch(NamedTuple):
    """What a doubling adds: its outer end, the state drawn from it, and what weighs it against the rest."""

    end: Edge
    drawn: SlopeState
    energy: Float[Tensor, " chains"]  # of the state that was drawn
    log_weight: Float[Tensor, " chains"]  # log of the sum of e^{-energy}, relative to the start
    momenta: Float[Tensor, "chains dimension"]  # their sum
    whole: Bool[Tensor, " chains"]  # neither did a part of it turn back nor went its energy astray
    astray: Bool[Tensor, " chains"]
    acceptance: Float[Tensor, " chains"]  # a sum over the states seen
    seen: Float[Tensor, " chains"]
    gradients: int


@system("no_u_turn", title="No-U-Turn sampler", kind="sampler")
class NoUTurn(HamiltonianMonteCarlo):
    r"""Hamiltonian Monte Carlo that doubles a trajectory, forwards or backwards, until its ends approach each other.

    $$ \langle M^{-1}v_{\text{first}},\rho\rangle\le0\ \text{ or }\ \langle M^{-1}v_{\text{last}},\rho\rangle\le0,
       \qquad \rho=\sum_i v_i-\tfrac12(v_{\text{first}}+v_{\text{last}}) $$

    ends it, for the whole trajectory and for each half of it that a doubling made. The next position is drawn from all
    states passed, with weights $e^{-H}$; a new half replaces what was drawn before with probability
    $\min\{1,W_{\text{new}}/W_{\text{old}}\}$, which prefers the far ones and leaves the target alone. `depth` bounds
    the doublings. With many chains all wait for the one that turns last: `ChEES` gives them all the same work.

    Shapes:
        init(position), step(state, generator): position (chains, dimension)
        mass: None for the identity, (dimension,) for a diagonal, (dimension, dimension): the momenta's covariance

    Source: M. Hoffman and A. Gelman, The No-U-Turn Sampler (2014); M. Betancourt, A conceptual introduction to
        Hamiltonian Monte Carlo (2017), appendix A, for the weights and the criterion.
    Differs: half of the outer momenta is left out of $\rho$, without which trajectories of independent Gaussians go
        on past their turn.

    >>> kernel = NoUTurn(lambda x: -x.square().sum(1) / 2, step=0.5)
    >>> state, transition = kernel.step(kernel.init(torch.zeros(3, 2)), torch.Generator().manual_seed(0))
    >>> state.position.shape, transition.gradients < 2**4
    (torch.Size([3, 2]), True)
    """

    def __init__(
        self,
        log_density: LogDensity,
        step: float = 0.1,
        depth: int = 10,
        mass: Float[Tensor, "*shape"] | None = None,
    ) -> None:
        super().__init__(log_density, step, mass=mass)
        self.depth = validate.count("depth", depth, most=20)

    def step(self, state: SlopeState, generator: Random) -> tuple[SlopeState, Transition]:
        """One transition of every chain."""
        momentum = self.mass.momentum(normal(state.position, generator))
        uniforms = self._uniform_numbers(state, generator)
        start = self.mass.kinetic(momentum) - state.log_density
        first = last = Edge(state.position, momentum, state.gradient)
        now, energy, log_weight, momenta = state, start, torch.zeros_like(start), momentum
        moved = astray = torch.zeros_like(start, dtype=torch.bool)
        growing = ~moved
        acceptance, seen, gradients = torch.zeros_like(start), torch.zeros_like(start), 0
        for doubling, (direction, within, between) in enumerate(uniforms):
            if not growing.any():
                break
            forward = direction < 0.5
            edge = choose(forward, last, first)
            branch = self._grow_branch(edge, now, forward, 2**doubling, growing, start, within)
            taken = branch.whole & (between < (branch.log_weight - log_weight).exp())
            now, energy = choose(taken, branch.drawn, now), torch.where(taken, branch.energy, energy)
            first = choose(branch.whole & ~forward, branch.end, first)
            last = choose(branch.whole & forward, branch.end, last)
            momenta = torch.where(branch.whole[:, None], momenta + branch.momenta, momenta)
            log_weight = torch.where(branch.whole, torch.logaddexp(log_weight, branch.log_weight), log_weight)
            growing = branch.whole & ~self._turned_back(first.momentum, last.momentum, momenta)
            moved, astray = moved | taken, astray | branch.astray
            acceptance, seen = acceptance + branch.acceptance, seen + branch.seen
            gradients += branch.gradients
        return now, Transition(moved, acceptance / seen, energy, astray, gradients)

    def single(self, step: float) -> HamiltonianMonteCarlo:
        """One leapfrog of this length in a transition."""
        return HamiltonianMonteCarlo(self.log_density, step, 1, self.mass.matrix)

    def _uniform_numbers(self, state: SlopeState, generator: Random) -> Tensor:
        """For each doubling three numbers: (doublings, 3, chains). A chain's do not depend on how far others go."""
        like = torch.empty(len(state.position), 3 * self.depth, dtype=torch.float64, device=state.position.device)
        return torch.special.ndtr(normal(like, generator)).view(-1, self.depth, 3).permute(1, 2, 0)

    def _grow_branch(
        self,
        edge: Edge,
        now: SlopeState,
        forward: Bool[Tensor, " chains"],
        leaves: int,
        growing: Bool[Tensor, " chains"],
        start: Float[Tensor, " chains"],
        number: Float[Tensor, " chains"],
    ) -> Branch:
        """So many states beyond an edge; chains that do not grow, or have stopped, stay where they are.

        Backwards in time is forwards with the momentum turned round. One uniform number draws among all states: what
        is left of it after a decision is uniform again.
        """
        sign = torch.where(forward, 1.0, -1.0).to(start)[:, None]  # (chains, 1)
        end = edge._replace(momentum=sign * edge.momentum)
        drawn, energy = now, start
        log_weight, momenta = torch.full_like(start, -torch.inf), torch.zeros_like(edge.momentum)
        whole, astray = growing, torch.zeros_like(growing)
        acceptance, seen = torch.zeros_like(start), torch.zeros_like(start)
        openings: dict[int, tuple[Tensor, Tensor]] = {}  # momentum at a leaf, and the sum of those before it
        gradients = 0
        for leaf in range(leaves):
            if not whole.any():
                break
            there = leapfrog(self.log_density, *end[:2], self.step_length, 1, self.mass, end.gradient)
            gradients += 1
            end = choose(whole, Edge(there.position, there.momentum, there.gradient), end)
            rise = self.mass.kinetic(there.momentum) - there.log_density - start
            lost = whole & ~(rise < ASTRAY)  # NaN too
            acceptance = acceptance + torch.where(whole, acceptance_of(-rise), 0.0)
            seen, astray, whole = seen + whole, astray | lost, whole & ~lost
            heavier = torch.where(whole, torch.logaddexp(log_weight, -rise), log_weight)
            chance = torch.where(whole, (-rise - heavier).exp(), 0.0)
            taken = number < chance
            number = torch.where(taken, number / chance, (number - chance) / (1 - chance))
            drawn = choose(taken, SlopeState(there.position, there.log_density, there.gradient), drawn)
            energy, log_weight = torch.where(taken, start + rise, energy), heavier
            if leaf % 2 == 0:
                openings[leaf] = end.momentum, momenta
            momenta = momenta + torch.where(whole[:, None], end.momentum, 0.0)
            whole = whole & ~self._any_part_turned(openings, leaf, end.momentum, momenta)
        end = end._replace(momentum=sign * end.momentum)
        parts = (drawn, energy, log_weight, sign * momenta, whole, astray, acceptance, seen, gradients)
        return Branch(end, *parts)

    def _any_part_turned(
        self, openings: dict[int, tuple[Tensor, Tensor]], leaf: int, momentum: Tensor, momenta: Tensor
    ) -> Bool[Tensor, " chains"]:
        """Whether one of the subtrees that end with this leaf, of 2, 4, 8 ... leaves, turned back."""
        turned = torch.zeros_like(momentum[:, 0], dtype=torch.bool)
        size = 2
        while (leaf + 1) % size == 0:
            opening = leaf + 1 - size
            first, before = openings[opening]
            turned = turned | self._turned_back(first, momentum, momenta - before)
            if opening & -opening == size:
                del openings[opening]  # no larger subtree begins there
            size *= 2
        return turned

    def _turned_back(self, first: Tensor, last: Tensor, momenta: Tensor) -> Bool[Tensor, " chains"]:
        """Whether an end of a trajectory with this sum of momenta moves towards the other."""
        rho = momenta - 0.5 * (first + last)
        return ((self.mass.velocity(first) * rho).sum(1) <= 0) | ((self.mass.velocity(last) * rho).sum(1) <= 0)
