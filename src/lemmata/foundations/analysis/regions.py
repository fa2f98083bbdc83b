r"""Boxes in which a function is measured: sampling, corners, and the search for the worst point."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["Box"]

POINTS = 1024  # starting points of a search
ROUNDS, CANDIDATES = 24, 64  # of the local search
SHRINK = 0.75  # its radius falls from width/4 to width/4000


@dataclass(frozen=True, eq=False)
class Box:
    r"""A product of intervals, one for each coordinate.

    $$ \{x : l_i \le x_i \le h_i\} $$

    Claims: convex.function, pl.definition

    >>> Box(torch.zeros(2), torch.ones(2)).corners()
    tensor([[0., 0.],
            [0., 1.],
            [1., 0.],
            [1., 1.]])
    """

    low: Float[Tensor, "n"]
    high: Float[Tensor, "n"]

    @property
    def width(self) -> Tensor:
        return self.high - self.low

    @property
    def centre(self) -> Tensor:
        return self.low + self.width / 2

    def sample(self, count: int, generator: torch.Generator | None = None) -> Float[Tensor, "count n"]:
        """Uniform points."""
        fraction = torch.rand((count, len(self.low)), generator=generator, dtype=self.low.dtype, device=self.low.device)
        return self.clip(self.low + fraction * self.width)  # which rounding may carry past the end

    def corners(self, dimensions: int = 6) -> Float[Tensor, "corners n"]:
        """All corners in the first `dimensions` coordinates; the rest stay in the middle."""
        free = min(len(self.low), dimensions)
        ends = torch.stack([self.low[:free], self.high[:free]], dim=1)
        found = torch.cartesian_prod(*ends).reshape(-1, free)
        return torch.cat([found, self.centre[free:].expand(len(found), -1)], dim=1)

    def clip(self, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """The nearest point of the box."""
        return torch.minimum(torch.maximum(x, self.low), self.high)

    def worst(self, score: Callable[[Tensor], Tensor], points: int, generator: torch.Generator) -> Float[Tensor, "n"]:
        """About the point of the highest score: the best of a random sample and the corners, then a local search."""
        best = self._best_point(score, torch.cat([self.sample(points, generator), self.corners(), self.centre[None]]))
        radius = self.width / 4
        for _ in range(ROUNDS):
            steps = radius * (2 * torch.rand((CANDIDATES, len(best)), generator=generator, dtype=best.dtype) - 1)
            best = self._best_point(score, torch.cat([best[None], self.clip(best + steps)]))
            radius = SHRINK * radius
        return best

    def _best_point(self, score: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
        scores = score(points).detach()
        if torch.isnan(scores).any():
            bad = points[torch.isnan(scores)][0].tolist()
            raise ValueError(f"f must be finite with its derivatives in the region, but is not at {bad}: shrink it")
        return points[scores.argmax()]

    def pair(self, point: Tensor, direction: Tensor, fraction: float | None = None) -> tuple[Tensor, Tensor]:
        """Two points of the box on either side of `point`, apart along `direction` by twice a fraction of its width.

        Near a side of the box both are moved inwards alike, so that the direction is kept. Without one they are so
        near that the rounding of a difference quotient and the bending of the function balance.
        """
        apart = torch.finfo(direction.dtype).eps ** 0.25 if fraction is None else fraction
        unit = direction / direction.norm().clamp(min=torch.finfo(direction.dtype).tiny)
        step = apart * self.width.min() * unit
        middle = torch.minimum(torch.maximum(point, self.low + step.abs()), self.high - step.abs())
        first, second = self.clip(middle - step), self.clip(middle + step)
        # A direction that leads nowhere, or so little far that rounding takes it back
        return (self.low, self.high) if torch.equal(first, second) else (first, second)


def box_region(region: "Box | tuple[Tensor | int | float, Tensor | int | float]") -> Box:
    r"""The region a user names: a pair (low, high) of vectors, or of numbers for functions of one variable.

    $$ [l_1, h_1] \times \dots \times [l_n, h_n] $$

    Shapes:
        low, high: (n,), or two numbers for n = 1

    Claims: convex.function

    >>> box_region((-1.0, 2.0)).width
    tensor([3.], dtype=torch.float64)
    """
    if isinstance(region, Box):
        return region
    if not isinstance(region, tuple | list) or len(region) != 2:
        raise TypeError(f"region must be a pair (low, high), got {type(region).__name__}")
    low, high = (_box_end(name, end) for name, end in zip(("low", "high"), region, strict=True))
    if low.shape != high.shape:
        raise ValueError(f"low and high must have the same shape, got {tuple(low.shape)} and {tuple(high.shape)}")
    if not (low < high).all():
        raise ValueError("low must be below high in every coordinate of the region")
    return Box(low, high.to(low))


def seeded(generator: torch.Generator | None) -> torch.Generator:
    """The user's generator, or one that makes every run the same."""
    return torch.Generator().manual_seed(0) if generator is None else generator


def _box_end(name: str, end: Tensor | int | float) -> Tensor:
    if isinstance(end, Tensor):
        return validate.vector(name, end.reshape(1) if end.ndim == 0 else end).detach()
    return torch.tensor([validate.finite_number(name, end)], dtype=torch.float64)
