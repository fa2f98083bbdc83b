r"""Convexity of functions and sets: the four characterisations as gaps that must not be negative, and their test."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.curvature import strong_convexity
from lemmata.foundations.analysis.function_values import Function, batch_gradients, batch_hessians, batch_values
from lemmata.foundations.analysis.measurements import Measured, invisible
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system

__all__ = [
    "chord_gap",
    "gradient_monotony",
    "is_convex",
    "is_convex_set",
    "jensen_gap",
    "least_curvature",
    "tangent_gap",
]

LENGTHS = (1e-3, 1e-2, 0.1, 0.5)  # of chords along the least curvature, as fractions of the box
WEIGHTS = 3  # chords are looked at after 1/4, 1/2 and 3/4 of their length


def chord_gap(
    f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"], weight: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    r"""How far the chord between two points of the graph lies above the function: $\ge 0$ iff it is convex.

    $$ \lambda f(x) + (1 - \lambda) f(y) - f(\lambda x + (1 - \lambda) y), \qquad 0 \le \lambda \le 1 $$

    Shapes:
        x, y: (..., n), weight: (...) from 0 to 1    returns: (...)

    Claims: convex.function, convex.cone, convex.maximum, convex.composition

    >>> chord_gap(lambda x: x.square().sum(), torch.zeros(1), torch.tensor([2.0]), torch.tensor(0.5))
    tensor(1.)
    """
    weight = _fraction("weight", weight)
    between = batch_values(f, weight[..., None] * x + (1 - weight[..., None]) * y)
    return weight * batch_values(f, x) + (1 - weight) * batch_values(f, y) - between


def tangent_gap(f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    r"""How far the function at $y$ lies above its tangent plane at $x$ (Bregman's divergence): $\ge 0$ iff convex.

    $$ f(y) - f(x) - \langle\nabla f(x), y - x\rangle $$

    Shapes:
        x, y: (..., n)    returns: (...)

    Claims: convex.first_order

    >>> tangent_gap(lambda x: x.square().sum(), torch.ones(2), torch.zeros(2))
    tensor(2.)
    """
    return batch_values(f, y) - batch_values(f, x) - (batch_gradients(f, x) * (y - x)).sum(-1)


def gradient_monotony(
    f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]
) -> Float[Tensor, "*batch"]:
    r"""Whether the gradient turns the way the point moves: $\ge 0$ for all pairs iff the function is convex.

    $$ \langle \nabla f(x) - \nabla f(y),\, x - y \rangle $$

    Shapes:
        x, y: (..., n)    returns: (...)

    Claims: convex.monotone_gradient

    >>> gradient_monotony(lambda x: x.square().sum(), torch.ones(2), torch.zeros(2))
    tensor(4.)
    """
    return ((batch_gradients(f, x) - batch_gradients(f, y)) * (x - y)).sum(-1)


def least_curvature(f: Function, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    r"""The smallest eigenvalue of the matrix of second derivatives: $\ge 0$ at every point iff the function is convex.

    $$ \lambda_{\min}(\nabla^2 f(x)) $$

    Shapes:
        x: (..., n)    returns: (...)

    Claims: convex.second_order

    >>> least_curvature(lambda x: x[0] ** 2 - 3 * x[1] ** 2, torch.zeros(2))
    tensor(-6.)
    """
    return torch.linalg.eigvalsh(batch_hessians(f, x))[..., 0]


@system("jensen_gap", title="Jensen's inequality", kind="function")
def jensen_gap(
    f: Function, points: Float[Tensor, "*batch k n"], weights: Float[Tensor, "*batch k"]
) -> Float[Tensor, "*batch"]:
    r"""How far the mean of the values lies above the value at the mean: $\ge 0$ for convex functions.

    $$ \sum_i \lambda_i f(x_i) - f\Big(\sum_i \lambda_i x_i\Big), \qquad \lambda_i \ge 0,\ \sum_i \lambda_i = 1 $$

    Shapes:
        points: (..., k, n), weights: (..., k), not negative, of sum 1    returns: (...)

    Claims: convex.jensen

    >>> jensen_gap(lambda x: x.square().sum(), torch.tensor([[1.0], [3.0]]), torch.tensor([0.5, 0.5]))
    tensor(1.)
    """
    validate.floating("weights", weights)
    if (weights < 0).any() or not torch.allclose(weights.sum(-1), torch.ones_like(weights.sum(-1))):
        raise ValueError("weights must be >= 0 and sum to 1: divide them by their sum")
    mean = (weights[..., None] * points).sum(-2)
    return (weights * batch_values(f, points)).sum(-1) - batch_values(f, mean)


@system("is_convex", title="Convexity of a function", kind="function")
def is_convex(
    f: Function, region: Box | tuple, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""Whether a function is convex in a box; a "no" comes with a chord that shows it.

    $$ f(\lambda x + (1 - \lambda) y) \le \lambda f(x) + (1 - \lambda) f(y) $$

    A "no" is certified by its witness $(x, y, \lambda)$, where the function lies above the chord by more than rounding
    explains, $\sqrt\epsilon$ of its values in their dtype. A "yes" is certified for a `QuadraticFunction` and for
    functions whose Hessians intervals enclose; else it says only that no chord was found, of random ones and of those
    along the least curvature.

    Shapes:
        f: one vector (n,) to one number; region: (low, high)

    Claims: convex.function, convex.second_order

    >>> print(is_convex(lambda x: torch.sin(x).sum(), (-3.0, 3.0)))
    convex no (certified: the function lies above a chord by 1.18)
    >>> is_convex(lambda x: torch.logsumexp(x, 0), (-torch.ones(3), torch.ones(3))).value
    True
    """
    box = box_region(region)
    generator = seeded(generator)
    x, y = box.sample(validate.count("points", points), generator), box.sample(points, generator)
    below = _lowest_chord(f, x, y)
    if below.value:  # none was found: look where the curvature is least
        curvature = strong_convexity(f, box, points, generator)
        # A quadratic bends alike everywhere; its witness shows the direction alone.
        first, second = curvature.witness
        middle = box.centre if isinstance(f, QuadraticFunction) else (first + second) / 2
        chords = [box.pair(middle, (second - first).to(middle), fraction) for fraction in LENGTHS]
        below = _lowest_chord(f, *(torch.stack(ends) for ends in zip(*chords, strict=True)))
        if curvature.certified and float(curvature.value) >= 0:
            reason = f"least curvature {curvature.value:.3g}, {curvature.reason}"
            return Measured("convex", True, True, reason, below.witness, below.seen)
    return below


def _lowest_chord(f: Function, x: Tensor, y: Tensor) -> Measured:
    """The chord that lies lowest against the function, of those between the pairs."""
    fractions = torch.linspace(0.25, 0.75, WEIGHTS, dtype=x.dtype)
    fractions = fractions[:, None].expand(WEIGHTS, len(x))
    gaps = chord_gap(f, x.expand(WEIGHTS, *x.shape), y.expand(WEIGHTS, *y.shape), fractions).detach()
    rounding = invisible(torch.maximum(batch_values(f, x).abs(), batch_values(f, y).abs()))
    row, column = divmod(int((gaps + rounding).argmin()), len(x))
    witness, gap = (x[column], y[column], fractions[row, column]), float(gaps[row, column])
    if gap < -float(rounding[column]):
        return Measured("convex", False, True, f"the function lies above a chord by {-gap:.3g}", witness, gap)
    return Measured("convex", True, False, "no chord below the function was found", witness, gap)


@system("is_convex_set", title="Convexity of a set", kind="function")
def is_convex_set(
    contains: Callable[[Tensor], Tensor],
    region: Box | tuple,
    points: int = 4096,
    generator: torch.Generator | None = None,
) -> Measured:
    r"""Whether the segments between points of a set stay in it; a "no" comes with one that leaves.

    $$ x, x' \in S,\ 0 \le \lambda \le 1 \quad\Rightarrow\quad \lambda x + (1 - \lambda) x' \in S $$

    Points of the set are found by rejection in the box. A "no" is certified by its witness $(x, x', \lambda)$; a "yes"
    never is: a set is known by its members alone.

    Shapes:
        contains: (points, n) to (points,) booleans; region: (low, high)

    Claims: convex.set

    >>> box = (-torch.ones(2).double(), torch.ones(2).double())
    >>> is_convex_set(lambda x: x.norm(dim=1) <= 1, box).value, is_convex_set(lambda x: x.norm(dim=1) >= 0.5, box).value
    (True, False)
    """
    box = box_region(region)
    generator = seeded(generator)
    sample = box.sample(validate.count("points", points, least=2), generator)
    inside = sample[_members(contains, sample)]
    if len(inside) < 2:
        raise ValueError(f"region must hold points of the set, found {len(inside)} among {points:,}: tighten the box")
    x = inside[torch.randperm(len(inside), generator=generator)]
    y = inside
    weight = torch.rand(len(x), generator=generator, dtype=x.dtype)
    left = ~_members(contains, weight[:, None] * x + (1 - weight[:, None]) * y)
    first = int(left.int().argmax())
    witness = (x[first], y[first], weight[first])
    if left.any():
        return Measured("convex set", False, True, "a segment between two members leaves it", witness)
    return Measured("convex set", True, False, f"{len(x):,} segments between members stay inside", witness)


def _members(contains: Callable[[Tensor], Tensor], x: Tensor) -> Bool[Tensor, " points"]:
    found = contains(x)
    if not isinstance(found, Tensor) or found.dtype is not torch.bool or found.shape != x.shape[:1]:
        raise ValueError("contains must return one boolean for each row of its (points, n) argument")
    return found


def _fraction(name: str, value: Tensor) -> Tensor:
    if ((validate.floating(name, value) < 0) | (value > 1)).any():
        raise ValueError(f"{name} must lie between 0 and 1, got {float(value.min()):g} to {float(value.max()):g}")
    return value
