r"""Distributions of one real variable given by a density: moments, distribution function, scaling, sums."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lemmata import validate
from lemmata.foundations.probability.integration import absolute_integral, anchor
from lemmata.marks import system

__all__ = ["Density", "scaled_density", "sum_density"]


@system("density", title="Density of a real variable", kind="function")
class Density:
    r"""A distribution on an interval given by its density, all of whose expectations are integrals.

    $$ \mathbb E[g(X)] = \int g(t)\,f(t)\,dt, \qquad P(X \le t) = \int_{-\infty}^t f(s)\,ds $$

    The density must integrate to 1, which is checked. An expectation that does not exist (the mean of Cauchy's) is
    a ValueError. Values are float64, with gradients in the parameters of the density.

    Shapes:
        function: from points (..., n) to densities (..., n), low, high: the ends of its support, finite or infinite

    Claims: probability.expectation, probability.cdf_derivative, mgf.normal, mgf.gamma, information.entropy

    >>> waiting = Density(lambda t: 2 * torch.exp(-2 * t), low=0.0)
    >>> waiting.mean, waiting.variance
    (tensor(0.5000, dtype=torch.float64), tensor(0.2500, dtype=torch.float64))
    >>> waiting.cdf(torch.tensor([-1.0, 0.5]))
    tensor([0.0000, 0.6321], dtype=torch.float64)
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        low: int | float = -math.inf,
        high: int | float = math.inf,
        centre: int | float | None = None,
    ) -> None:
        if not low < high:
            raise ValueError(f"low must be < high, got {low} and {high}")
        ends = (torch.tensor(end, dtype=torch.float64) for end in (low, high))
        self.function, self.low, self.high = function, low, high
        self.centre = float(anchor(*ends)) if centre is None else validate.finite_number("centre", centre)
        if not low <= self.centre <= high:
            raise ValueError(f"centre must lie from {low} to {high}, got {centre}")
        mass = float(absolute_integral(self, low, high, self.centre).detach())
        if abs(mass - 1) > 1e-5:
            raise ValueError(f"function must integrate to 1, got {mass:g}: normalise it, or move low, high or centre")

    def __call__(self, t: Tensor) -> Tensor:
        """The density at any points: 0 outside the support."""
        inside = (t >= self.low) & (t <= self.high)
        # Outside, the function is asked at a harmless point, so that no NaN of its reaches a gradient.
        return torch.where(inside, self.function(torch.where(inside, t, self._inner)), 0.0)

    def expectation(self, of: Callable[[Tensor], Tensor]) -> Tensor:
        r"""$\mathbb E[g(X)]$ of a function from points (n) to values (n) or (..., n)."""

        def weighted(t: Tensor) -> Tensor:
            # Far out, where the density is 0 in floating point, g may overflow: it is asked at a harmless point.
            density = self(t)
            return density * of(torch.where(density > 0, t, self._inner))

        return absolute_integral(weighted, self.low, self.high, self.centre)

    @property
    def mean(self) -> Tensor:
        r"""$\mathbb E[X]$, if $\mathbb E|X|$ is finite."""
        return self.expectation(lambda t: t)

    @property
    def variance(self) -> Tensor:
        r"""$\mathbb E[(X-\mathbb EX)^2]$, if that is finite."""
        mean = self.mean
        return self.expectation(lambda t: (t - mean).square())

    def mgf(self, t: int | float | Tensor) -> Tensor:
        r"""The moment generating function $\mathbb E[e^{tX}]$, where that is finite."""
        at = torch.as_tensor(t, dtype=torch.float64)[..., None]
        return self.expectation(lambda x: (at * x).exp())

    def entropy(self) -> Tensor:
        r"""The differential entropy $-\int f\log f$ in nats, which may be negative."""
        return -self.expectation(lambda t: self(t).log())

    def cdf(self, t: int | float | Tensor) -> Tensor:
        r"""$P(X \le t)$."""
        at = torch.as_tensor(t, dtype=torch.float64).clamp(self.low, self.high)
        before = absolute_integral(self, self.low, self.centre, self.centre)
        return before + absolute_integral(self, self.centre, at, self.centre)

    @property
    def _inner(self) -> float:
        """A point inside the support."""
        low, high = max(self.low, self.centre - 1), min(self.high, self.centre + 1)
        return (low + high) / 2

    def __repr__(self) -> str:
        return f"Density(low={self.low:g}, high={self.high:g})"


@system("scaled_density", title="Density of a scaled variable", kind="function")
def scaled_density(density: Density, scale: int | float) -> Density:
    r"""The distribution of $X = \sigma Y$ for a variable $Y$ with a density.

    $$ f_X(z) = \frac1{|\sigma|}\,f_Y\Big(\frac z\sigma\Big), \qquad \sigma \ne 0 $$

    Claims: probability.scaling_density

    >>> waiting = Density(lambda t: torch.exp(-t), low=0.0)
    >>> scaled_density(waiting, -2.0).mean
    tensor(-2., dtype=torch.float64)
    """
    if validate.finite_number("scale", scale) == 0:
        raise ValueError("scale must not be 0: the image of a distribution under 0 has no density")
    low, high = sorted((density.low * scale, density.high * scale))
    centre = density.centre * scale
    return Density(lambda z: density(z / scale) / abs(scale), low, high, centre)


@system("sum_density", title="Density of a sum of independent variables", kind="function")
def sum_density(first: Density, second: Density) -> Callable[[Tensor], Tensor]:
    r"""The density of $X + Y$ for independent $X$ and $Y$, as a function of points: the convolution of their densities.

    $$ f_{X+Y}(z) = \int f_X(t)\,f_Y(z-t)\,dt $$

    Shapes:
        of the function returned: z: (...)    returns: (...)

    Claims: probability.sum_convolution

    >>> uniform = Density(torch.ones_like, 0.0, 1.0)
    >>> sum_density(uniform, uniform)(torch.tensor([-1.0, 0.5, 1.0, 1.5]))
    tensor([0.0000, 0.5000, 1.0000, 0.5000], dtype=torch.float64)
    """

    def density(z: Tensor) -> Tensor:
        z = validate.floating("z", z).double()
        # Only where both densities live: the kinks at the ends of their supports become ends of the integral, and
        # the panels are finest at the centres of both.
        low = (z - second.high).clamp(min=first.low)
        high = torch.maximum(low, (z - second.low).clamp(max=first.high))
        one, two = (torch.as_tensor(c).expand_as(z).clamp(low, high) for c in (first.centre, z - second.centre))
        left, right = torch.minimum(one, two), torch.maximum(one, two)

        def overlap(t: Tensor) -> Tensor:
            return first(t) * second(z[..., None] - t)

        outer = absolute_integral(overlap, low, left, left) + absolute_integral(overlap, right, high, right)
        return outer + absolute_integral(overlap, left, right)

    return density
