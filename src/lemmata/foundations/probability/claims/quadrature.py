"""Integrals and distributions given by a density, with which claims measure; both notice when there is no integral."""

import functools
import math

import numpy
import torch
from torch import Tensor

Real = int | float | Tensor
NODES = 32  # on a panel of ratio 2 they resolve a bell 16 deviations wide to 1e-8
OCTAVES = 200  # panels of ratio 2 towards each end; 2^-200 leaves of t^-0.9 a millionth


def absolute_integral(function, low: Real = -math.inf, high: Real = math.inf, centre: Real | None = None):
    r"""The integral of a function by Gauss-Legendre rules on panels that shrink towards every end and the centre.

    $$ \int_a^b g(t)\,dt \qquad\text{where}\qquad \int_a^b |g(t)|\,dt < \infty $$

    Panels double on the way to infinity and halve on the way to a finite end, so that heavy tails and integrable
    singularities at the ends are resolved; the absolute mass of the outermost panels must fade, else the integral
    diverges (or converges too slowly to tell) and a ValueError says so. Place `centre` where the function lives, or
    at a kink of it. Differentiable in everything the function depends on, and in finite ends.

    Shapes:
        function: from points (..., n) to values (..., n), low, high, centre: numbers or tensors (...)    returns: (...)

    >>> absolute_integral(lambda t: torch.exp(-t), 0.0)
    tensor(1., dtype=torch.float64)
    >>> absolute_integral(lambda t: 1 / (1 + t**2).sqrt())
    Traceback (most recent call last):
    ValueError: the integral of |function| diverges towards inf, or converges too slowly to tell
    """
    low, high = (torch.as_tensor(end, dtype=torch.float64) for end in (low, high))
    middle = torch.as_tensor(anchor(low, high) if centre is None else centre, dtype=torch.float64)
    return _signed_integral(middle, high, function) - _signed_integral(middle, low, function)


def anchor(low, high):
    """Where panels are finest unless told otherwise: the only finite end, else the middle, of the whole line 0."""
    finite = [end for end in (low, high) if not torch.isinf(end).any()]
    return sum(finite, torch.zeros((), dtype=torch.float64)) / max(len(finite), 1)


def _signed_integral(start, end, function):
    """The signed integral from start to end."""
    if torch.isinf(end).all():
        nodes, weights = _panel_nodes(-OCTAVES, OCTAVES)
        direction = torch.sign(end)[..., None, None]
        points, weights = start[..., None, None] + direction * nodes, direction * weights
    else:
        nodes, weights = _panel_nodes(-OCTAVES, -1)  # from 0 to one half of a unit interval
        length = (end - start)[..., None, None]
        # The second half of the rule is laid out from the far end, where the differences are small.
        points = torch.cat([start[..., None, None] + length * nodes, end[..., None, None] - length * nodes.flip(0)], -2)
        weights = length * torch.cat([weights, weights.flip(0)], -2)
    values = function(points.flatten(-2)).unflatten(-1, points.shape[-2:])
    # Nodes so near an end that they round to it may meet a singularity; there they weigh nothing.
    inside = (points != start[..., None, None]) & (points != end[..., None, None])
    masses = torch.where(inside | values.isfinite(), values * weights, 0.0).sum(-1)
    _tail_fades(masses, end)
    return masses.sum(-1)


def _tail_fades(masses, end):
    """Panels of ratio 2 have masses in geometric progression at the ends: the rest beyond them must be negligible."""
    sizes = masses.detach().abs()
    if not bool(sizes.isfinite().all()):
        raise ValueError("function must be finite inside the interval, it is singular or overflows")
    for last, before, place in ((-1, -2, f"{float(end.detach().flatten()[0]):g}"), (0, 1, "the start")):
        ratio = (sizes[..., last] / sizes[..., before].clamp(min=1e-300)).clamp(max=1 - 1e-9)
        if bool((sizes[..., last] * ratio / (1 - ratio) > 1e-5 * sizes.sum(-1)).any()):
            raise ValueError(f"the integral of |function| diverges towards {place}, or converges too slowly to tell")


@functools.lru_cache
def _panel_nodes(first, last):
    """Nodes and weights (panels, nodes) on the panels from 2^k to 2^(k+1), k from first up to last."""
    nodes, weights = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(NODES))
    left = 2.0 ** torch.arange(first, last, dtype=torch.float64)[:, None]
    return left * (1.5 + nodes / 2), left * weights / 2


class Density:
    r"""A distribution on an interval given by its density, all of whose expectations are integrals.

    $$ \mathbb E[g(X)] = \int g(t)\,f(t)\,dt, \qquad P(X \le t) = \int_{-\infty}^t f(s)\,ds $$

    The density must integrate to 1, which is checked. An expectation that does not exist (the mean of Cauchy's) is
    a ValueError. Values are float64, with gradients in the parameters of the density.

    Shapes:
        function: from points (..., n) to densities (..., n), low, high: the ends of its support, finite or infinite

    >>> waiting = Density(lambda t: 2 * torch.exp(-2 * t), low=0.0)
    >>> waiting.mean
    tensor(0.5000, dtype=torch.float64)
    >>> waiting.cdf(torch.tensor([-1.0, 0.5]))
    tensor([0.0000, 0.6321], dtype=torch.float64)
    """

    def __init__(self, function, low=-math.inf, high=math.inf, centre=None):
        self.function, self.low, self.high = function, low, high
        ends = torch.tensor([low, high], dtype=torch.float64)
        self.centre = float(anchor(*ends) if centre is None else centre)
        mass = float(absolute_integral(self, low, high, self.centre).detach())
        if abs(mass - 1) > 1e-5:
            raise ValueError(f"function must integrate to 1, got {mass:g}: normalise it, or move low, high or centre")

    def __call__(self, t):
        """The density at any points: 0 outside the support."""
        inside = (t >= self.low) & (t <= self.high)
        # Outside, the function is asked at a harmless point, so that no NaN of its reaches a gradient.
        return torch.where(inside, self.function(torch.where(inside, t, self._inner_point)), 0.0)

    def expectation(self, of):
        r"""$\mathbb E[g(X)]$ of a function from points (n) to values (n) or (..., n)."""

        def weighted(t):
            # Far out, where the density is 0 in floating point, g may overflow: it is asked at a harmless point.
            density = self(t)
            return density * of(torch.where(density > 0, t, self._inner_point))

        return absolute_integral(weighted, self.low, self.high, self.centre)

    @property
    def mean(self):
        r"""$\mathbb E[X]$, if $\mathbb E|X|$ is finite."""
        return self.expectation(lambda t: t)

    def mgf(self, t):
        r"""The moment generating function $\mathbb E[e^{tX}]$, where that is finite."""
        return self.expectation(lambda x: (t[..., None] * x).exp())

    def entropy(self):
        r"""The differential entropy $-\int f\log f$ in nats, which may be negative."""
        return -self.expectation(lambda t: self(t).log())

    def cdf(self, t):
        r"""$P(X \le t)$."""
        at = torch.as_tensor(t, dtype=torch.float64).clamp(self.low, self.high)
        before = absolute_integral(self, self.low, self.centre, self.centre)
        return before + absolute_integral(self, self.centre, at, self.centre)

    @property
    def _inner_point(self):
        """A point inside the support."""
        return (max(self.low, self.centre - 1) + min(self.high, self.centre + 1)) / 2
