r"""Curvature measured on a function: smoothness, strong convexity, and the parabolas they put above and below it."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.analysis.function_values import Function, batch_gradients, batch_hessians, batch_values
from lemmata.foundations.analysis.interval_curvature import curvature_bounds
from lemmata.foundations.analysis.measurements import Measured
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system

__all__ = ["curvature_between", "quadratic_bound_gap", "smoothness", "strong_convexity"]

Region = Box | tuple


def curvature_between(f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"]) -> tuple[Tensor, Tensor]:
    r"""The two difference quotients of the gradient between points: its size, and its part along the segment.

    $$ \frac{\|\nabla f(x) - \nabla f(y)\|}{\|x - y\|}, \qquad
       \frac{\langle \nabla f(x) - \nabla f(y),\, x - y\rangle}{\|x - y\|^2} $$

    The first never exceeds the smoothness constant, the second never falls below that of strong convexity.

    Shapes:
        x, y: (..., n), different points    returns: (...) and (...)

    Claims: smooth.definition, convex.strong

    >>> size, along = curvature_between(lambda x: -x.square().sum(), torch.zeros(1), torch.ones(1))
    >>> size, along
    (tensor(2.), tensor(-2.))
    """
    step = x - y
    if (step == 0).all(-1).any():
        raise ValueError("x and y must differ: a quotient by their distance is not defined")
    change = batch_gradients(f, x) - batch_gradients(f, y)
    length = torch.linalg.vector_norm(step, dim=-1)
    return torch.linalg.vector_norm(change, dim=-1) / length, (change * step).sum(-1) / length**2


@system("quadratic_bound", title="Quadratic bounds from curvature", kind="function")
def quadratic_bound_gap(
    f: Function, x: Float[Tensor, "*batch n"], y: Float[Tensor, "*batch n"], curvature: int | float
) -> Float[Tensor, "*batch"]:
    r"""How far a parabola that touches the function at $y$ lies above it at $x$.

    $$ f(y) + \langle\nabla f(y), x - y\rangle + \tfrac c2\|x - y\|^2 - f(x) $$

    It is $\ge 0$ everywhere for $c = L$ (the descent lemma) and $\le 0$ for $c = \mu$ (strong convexity).

    Shapes:
        x, y: (..., n)    returns: (...)

    Claims: smooth.descent_lemma, convex.strong

    >>> quadratic_bound_gap(lambda x: x.square().sum(), torch.ones(2), torch.zeros(2), curvature=2)
    tensor(0.)
    """
    validate.finite_number("curvature", curvature)
    step = x - y
    touching = batch_values(f, y) + (batch_gradients(f, y) * step).sum(-1)
    return touching + curvature / 2 * step.square().sum(-1) - batch_values(f, x)


@system("smoothness", title="Smoothness constant", kind="function")
def smoothness(
    f: Function, region: Region | None = None, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""The Lipschitz constant of the gradient in a box: certified where possible, else the largest quotient found.

    $$ L = \sup_{x \ne y} \frac{\|\nabla f(x) - \nabla f(y)\|}{\|x - y\|} = \sup_x \max_i |\lambda_i(\nabla^2 f(x))| $$

    All eigenvalues count, not the largest alone: $-50x^2$ has $L = 100$. A `QuadraticFunction` is certified by its
    eigenvalues, a function written with the operations that intervals know by its enclosed Hessians. Anything else is
    searched, and the witness is the pair of points with the largest quotient: $L$ is at least that.

    Shapes:
        f: one vector (n,) to one number; region: (low, high), not needed for a `QuadraticFunction`

    Claims: smooth.definition, smooth.descent_lemma

    >>> found = smoothness(lambda x: -50 * x.square().sum(), (-1.0, 1.0))
    >>> round(found.value, 3), found.certified, round(found.seen, 3)
    (100.0, True, 100.0)
    """
    if isinstance(f, QuadraticFunction):
        return _of_quadratic("smoothness constant", f, largest=True)
    box, generator = box_region(_needed(region)), seeded(generator)
    point = box.worst(lambda x: _eigenvalues(f, x).abs().amax(dim=1), validate.count("points", points), generator)
    values, vectors = torch.linalg.eigh(batch_hessians(f, point))
    pair = box.pair(point, vectors[:, values.abs().argmax()])
    seen = float(curvature_between(f, *pair)[0].detach())
    bounds = curvature_bounds(f, box, seen, "largest")
    proved = None if bounds is None else max(abs(bounds[0]), abs(bounds[1]))
    return _answer("smoothness constant", "largest", proved, seen, pair, points)


@system("strong_convexity", title="Strong convexity constant", kind="function")
def strong_convexity(
    f: Function, region: Region | None = None, points: int = POINTS, generator: torch.Generator | None = None
) -> Measured:
    r"""The least curvature in a box: the modulus of strong convexity if positive, a sign of non-convexity if not.

    $$ \mu = \inf_{x \ne y} \frac{\langle\nabla f(x) - \nabla f(y), x - y\rangle}{\|x - y\|^2}
           = \inf_x \lambda_{\min}(\nabla^2 f(x)) $$

    Certified as `smoothness` is; otherwise the smallest quotient found, with its pair of points: $\mu$ is at most that.

    Shapes:
        f: one vector (n,) to one number; region: (low, high), not needed for a `QuadraticFunction`

    Claims: convex.strong

    >>> found = strong_convexity(lambda x: torch.exp(x).sum(), (0.0, 2.0))
    >>> 0.98 < found.value <= 1, found.certified
    (True, True)
    """
    if isinstance(f, QuadraticFunction):
        return _of_quadratic("strong convexity constant", f, largest=False)
    box, generator = box_region(_needed(region)), seeded(generator)
    point = box.worst(lambda x: -_eigenvalues(f, x)[..., 0], validate.count("points", points), generator)
    pair = box.pair(point, torch.linalg.eigh(batch_hessians(f, point))[1][:, 0])
    seen = float(curvature_between(f, *pair)[1].detach())
    bounds = curvature_bounds(f, box, seen, "least")
    return _answer("strong convexity constant", "least", None if bounds is None else bounds[0], seen, pair, points)


def _answer(
    quantity: str, extreme: str, proved: float | None, seen: float, pair: tuple[Tensor, Tensor], points: int
) -> Measured:
    """The proved bound where it is within a factor of two of what was seen; beyond that it would mislead."""
    if proved is not None and abs(proved - seen) <= abs(seen):
        return Measured(quantity, proved, True, "intervals enclose every Hessian in the box", pair, seen)
    reason = f"the {extreme} found in the box, {points:,} points"
    if proved is not None:
        reason += f"; proved is only {'<=' if extreme == 'largest' else '>='} {proved:.3g}"
    return Measured(quantity, seen, False, reason, pair, seen)


def _of_quadratic(quantity: str, f: QuadraticFunction, largest: bool) -> Measured:
    index = int(f.eigenvalues.abs().argmax()) if largest else 0
    vector = f.eigenvectors[:, index]
    pair = (torch.zeros_like(vector), vector)
    seen = float(curvature_between(f, *pair)[0 if largest else 1].detach())
    exact = float(f.eigenvalues[index].abs() if largest else f.eigenvalues[0])
    safe = exact + f.rounding if largest else exact - f.rounding
    which = "the largest |eigenvalue|" if largest else "the least eigenvalue"
    return Measured(quantity, safe, True, f"{which} of its matrix", pair, seen)


def _eigenvalues(f: Function, x: Tensor) -> Tensor:
    hessians = batch_hessians(f, x)
    if not hessians.isfinite().all():  # which the solver would only call an error of its own
        bad = x[~hessians.isfinite().flatten(1).all(1)][0].tolist()
        raise ValueError(f"f must be finite with its derivatives in the region, but is not at {bad}: shrink it")
    return torch.linalg.eigvalsh(hessians)


def _needed(region: Region | None) -> Region:
    if region is None:
        raise ValueError("region must be a pair (low, high): without it only a QuadraticFunction can be measured")
    return region
