r"""What a transition kernel is: it starts chains, and moves all of them at once by one transition."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from lemmata import validate
from lemmata.bayes.chain_streams import ChainStreams

__all__ = ["Kernel", "LogDensity", "PointState", "Random", "SlopeState", "Transition"]

Random = Generator | ChainStreams
LogDensity = Callable[[Tensor], Tensor]  # of every row, up to a constant: (chains, dimension) to (chains,)


class PointState(NamedTuple):
    """Where chains are, and the log density there."""

    position: Float[Tensor, "chains dimension"]
    log_density: Float[Tensor, " chains"]


class SlopeState(NamedTuple):
    """Where chains are, the log density and its gradient there."""

    position: Float[Tensor, "chains dimension"]
    log_density: Float[Tensor, " chains"]
    gradient: Float[Tensor, "chains dimension"]


class Transition(NamedTuple):
    """What became of one transition of every chain.

    `accepted` says which chains took their proposal, `acceptance` with what probability they were to; `energy` is what
    the kernel weighs (the Hamiltonian, or minus the log density) where the chain now is; `divergent` marks trajectories
    whose energy went astray; `gradients` counts those taken for each chain.
    """

    accepted: Bool[Tensor, " chains"]
    acceptance: Float[Tensor, " chains"]
    energy: Float[Tensor, " chains"]
    divergent: Bool[Tensor, " chains"]
    gradients: int


State = TypeVar("State")


@runtime_checkable
class Kernel(Protocol[State]):
    """A transition kernel: a state is a named tuple of tensors, `position` and `log_density` among them.

    All chains are rows of one tensor, and none knows of the others. All randomness comes from `generator`, which is a
    torch.Generator or `ChainStreams`; state is never written into.
    """

    def init(self, position: Tensor, generator: Random | None = None) -> State:
        """The state of chains that start at these rows; a generator draws what it holds besides, such as velocities."""
        ...

    def step(self, state: State, generator: Random) -> tuple[State, Transition]:
        """The state after one transition of every chain, and what became of it."""
        ...


# --- What kernels are made of ---


def started(log_density: Any, position: Tensor) -> PointState:
    """Chains at a start where the density is positive; ValueError names what is wrong with it."""
    validate.matrix("position", position, "chains, dimension")
    position = position.detach().clone()
    with torch.no_grad():
        value = log_density(position)
    if not isinstance(value, Tensor) or value.shape != position.shape[:1]:
        found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        wanted = f"one number for each chain, shape ({len(position)},)"
        raise ValueError(f"log_density must return {wanted}, got {found}: sum over the last axis")
    if not torch.isfinite(value).all():
        chain = int((~torch.isfinite(value)).nonzero()[0])
        where = f"{value[chain].item()} at chain {chain}"
        raise ValueError(f"log_density must be finite at the start, got {where}: start where the density is positive")
    return PointState(position, value.detach())


def slope_at(log_density: Any, position: Tensor) -> tuple[Tensor, Tensor]:
    """The log density of every chain and its gradient, by one pass back; rows must not depend on each other."""
    with torch.enable_grad():
        x = position.detach().requires_grad_()
        value = log_density(x)
        (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


def started_with_slope(log_density: Any, position: Tensor) -> SlopeState:
    """As `started`, with the gradient, which must be finite too."""
    position, _ = started(log_density, position)
    value, gradient = slope_at(log_density, position)
    if not torch.isfinite(gradient).all():
        chain = int((~torch.isfinite(gradient).all(1)).nonzero()[0])
        raise ValueError(
            f"the gradient of log_density must be finite at the start, got NaN or infinity at chain {chain}"
        )
    return SlopeState(position, value, gradient)


def normal(like: Tensor, generator: Random) -> Tensor:
    """Normal numbers like a tensor whose first axis are the chains."""
    if isinstance(generator, ChainStreams):
        return generator.normal(like)
    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def uniform(like: Tensor, generator: Random) -> Tensor:
    """One number in [0, 1) for each chain."""
    if isinstance(generator, ChainStreams):
        return generator.uniform(like)
    return torch.rand(like.shape[:1], generator=generator, dtype=like.dtype, device=like.device)


def shared_uniform(generator: Random) -> float:
    """One number in [0, 1) that all chains use alike."""
    if isinstance(generator, ChainStreams):
        return generator.shared()
    return torch.rand((), generator=generator, device=generator.device).item()


def choose(accepted: Bool[Tensor, " chains"], new: Any, old: Any) -> Any:
    """The state of each chain, new where its proposal was accepted: of the same kind as both."""
    rows = [torch.where(accepted.view(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, old, strict=True)]
    return type(old)(*rows)


def acceptance_of(log_ratio: Tensor) -> Tensor:
    """min(1, e^log_ratio); where the new density is 0 or not a number, 0."""
    return torch.where(log_ratio.isnan(), -torch.inf, log_ratio).clamp(max=0.0).exp()
