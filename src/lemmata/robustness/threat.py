r"""What an adversary may do: how far an example may move, in which norm, inside which box, on which grid."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.norm_ball import NORMS, norm_of, per_example, perturbation_norms, project_ball

__all__ = ["Threat"]


@system("threat", title="Threat: norm, radius, box and grid", kind="function")
@dataclass(frozen=True)
class Threat:
    r"""The set $\{x':\|x'-x\|_p\le\epsilon,\ a\le x'_i\le b\}$ in which an adversary looks, in the units of the image.

    With `levels=256` an example must be one that 8 bits can hold: multiples of $(b-a)/255$.

    Claims: attack.adversarial_example, attack.pgd

    >>> import torch
    >>> threat = Threat(eps=0.1)
    >>> threat.inside(torch.tensor([[0.5, 0.95]]), torch.tensor([[0.9, 1.2]]))
    tensor([[0.6000, 1.0000]])
    """

    eps: int | float = math.inf
    """Radius of the ball; infinity for none."""
    norm: int | float = math.inf
    """Norm of the ball: 1, 2 or infinity, or 0 for the number of pixels that change."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Least and largest value that a pixel can have."""
    levels: int | None = None
    """Values that a pixel can have, such as 256; None for any number."""

    def __post_init__(self) -> None:
        if self.norm != 0:
            object.__setattr__(self, "norm", norm_of(self.norm))
        if self.eps != math.inf:
            validate.number("eps", self.eps, least=0)
        least, most = self.bounds
        validate.finite_number("bounds", least)
        validate.number("bounds", most, above=least)
        if self.levels is not None:
            validate.count("levels", self.levels, least=2)

    def check(self, x: Float[Tensor, "batch ..."]) -> None:
        """Images that can be attacked: floating-point, in the box beyond rounding, on the grid where there is one."""
        least, most = self.bounds
        if validate.tensor("x", x).ndim < 2:
            raise ValueError(f"x must be (batch, ...), got shape {tuple(x.shape)}: use x[None] for one example")
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers in {self.bounds}, got {x.dtype}: use x.float() / 255")
        validate.floating("x", x)
        low, high = (float(each) for each in torch.aminmax(x.detach()))
        rounding = 16 * torch.finfo(x.dtype).eps * max(abs(least), abs(most))
        if low < least - rounding or high > most + rounding:
            fix = "put the normalisation inside the model, or give bounds="
            raise ValueError(f"x must lie in bounds {self.bounds}, got {low:.3g} to {high:.3g}: {fix}")
        if self.levels is not None and not torch.allclose(
            self._nearest_level(x), x, rtol=0, atol=1e-5 * (most - least)
        ):
            last = self.levels - 1
            raise ValueError(f"x must lie on the grid of {self.levels} levels: use (x * {last}).round() / {last}")

    def project(self, x: Float[Tensor, "batch ..."], candidates: Float[Tensor, "batch ..."]) -> Tensor:
        """Back into the ball, then into the box, which leads no farther from x: for a search, up to rounding."""
        if self.norm in NORMS and self.eps != math.inf:
            candidates = x + project_ball(candidates - x, self.eps, self.norm)
        return candidates.clamp(*self.bounds)

    def shown(self, x: Float[Tensor, "batch ..."], candidates: Float[Tensor, "batch ..."]) -> Tensor:
        """What a search shows the classifier: the candidates, or the points of the grid that would be returned."""
        return candidates if self.levels is None else self.inside(x, candidates)

    def inside(self, x: Float[Tensor, "batch ..."], candidates: Float[Tensor, "batch ..."]) -> Tensor:
        r"""Back into the ball, the box and the grid, without one unit in the last place beyond any of them.

        Rounding $x + \delta$ to the dtype can lead out of the ball again. What it did is shrunk by the most that
        rounding can add, and returned to x where nothing is left of it.
        """
        with torch.no_grad():
            wide = candidates.double().clamp(*self.bounds)
            if self.norm == 0:
                found = torch.where(per_example(self.norms(x, wide) <= self.eps, x), wide, x.double()).to(x.dtype)
                return self._to_grid(x, found)
            found = self._to_grid(x, self.project(x.double(), wide).to(x.dtype))
            outside = self.norms(x, found) > self._allowed_radius(x)
            if outside.any():
                tight = max(0.0, self.eps - self._rounding_norm(x))
                closer = x.double() + project_ball(found.double() - x.double(), tight, self.norm)
                closer = self._to_grid(x, closer.clamp(*self.bounds).to(x.dtype))
                found = torch.where(per_example(outside, x), closer, found)
            return torch.where(per_example(self.norms(x, found) > self._allowed_radius(x), x), x, found)

    def norms(self, x: Float[Tensor, "batch ..."], examples: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        """How far each example is from where it began."""
        return perturbation_norms(examples.double() - x.double(), self.norm)

    def admits(self, x: Float[Tensor, "batch ..."], examples: Float[Tensor, "batch ..."]) -> Tensor:
        """Whether each example lies in ball and box, without any tolerance, and on the grid."""
        least, most = self.bounds
        fine = (self.norms(x, examples) <= self._allowed_radius(x)) & torch.isfinite(examples).flatten(1).all(1)
        still = examples == x  # what does not move may lie beyond the box by the rounding of its making
        fine &= (((examples >= least) & (examples <= most)) | still).flatten(1).all(1)
        if self.levels is not None:
            off = (self._nearest_level(examples) - examples).abs().flatten(1).amax(1)
            fine &= off <= 1e-5 * (most - least)
        return fine

    def _allowed_radius(self, x: Tensor) -> int | float:
        """The radius; where levels are asked for, which no binary number is, as the dtype of x holds them."""
        return self.eps if self.levels is None else self.eps + self._rounding_norm(x)

    def _rounding_norm(self, x: Tensor) -> float:
        """The most that rounding to the dtype of x can add to the norm of a perturbation."""
        each = torch.finfo(x.dtype).eps * max(map(abs, self.bounds))
        values = x[0].numel()
        if self.norm == math.inf:
            return each
        return each * (values if self.norm == 1 else math.sqrt(values))

    def _nearest_level(self, x: Tensor) -> Tensor:
        least, most = self.bounds
        last = (self.levels or 2) - 1
        return (
            ((x.double() - least) * (last / (most - least))).round().mul((most - least) / last).add(least).to(x.dtype)
        )

    def _to_grid(self, x: Tensor, candidates: Tensor) -> Tensor:
        """The next point of the grid on the way back to x, so that no perturbation grows."""
        if self.levels is None:
            return candidates
        least, most = self.bounds
        unit = (most - least) / (self.levels - 1)
        steps = (candidates.double() - x.double()) / unit
        whole = steps.trunc()
        whole = torch.where((steps.round() - steps).abs() < 1e-3, steps.round(), whole)
        return self._nearest_level(x.double() + whole * unit).to(x.dtype)


def ball_threat(eps: int | float, norm: int | float, bounds: tuple[float, float], levels: int | None) -> Threat:
    """A threat to the boundary of which a step can lead: its radius is finite, its norm has a steepest direction."""
    validate.number("eps", eps, least=0)
    return Threat(eps, norm_of(norm), bounds, levels)
