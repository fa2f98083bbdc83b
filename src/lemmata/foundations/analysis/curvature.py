r"""Curvature measured on a function: the constants of smoothness and of strong convexity."""

import math

import torch
from torch import Tensor

from lemmata import validate
from lemmata.certified.interval_curvature import curvature_bounds
from lemmata.certified.norms import p_norm
from lemmata.certified.rounding import gamma, power_of_two
from lemmata.foundations.analysis.function_values import Function, batch_gradients, batch_hessians
from lemmata.foundations.analysis.measurements import Measured
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.foundations.analysis.regions import POINTS, Box, box_region, seeded
from lemmata.marks import system

__all__ = ["smoothness", "strong_convexity"]

Region = Box | tuple


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
    if isinstance(f, QuadraticFunction) and type(f) is QuadraticFunction:  # a subclass may compute anything
        return _of_quadratic("smoothness constant", f, largest=True)
    return _in_box("smoothness constant", f, search_box(region), points, seeded(generator), largest=True)


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
    if isinstance(f, QuadraticFunction) and type(f) is QuadraticFunction:  # a subclass may compute anything
        return _of_quadratic("strong convexity constant", f, largest=False)
    return _in_box("strong convexity constant", f, search_box(region), points, seeded(generator), largest=False)


def _in_box(quantity: str, f: Function, box: Box, points: int, generator: torch.Generator, largest: bool) -> Measured:
    """The proved bound where it is within rounding or a factor of two of what was seen; else it would mislead."""
    extreme, sign = ("largest", 1) if largest else ("least", -1)
    point = box.worst(
        lambda x: _extreme_eigenvalue(_hessian_eigenvalues(f, x), largest), validate.count("points", points), generator
    )
    values, vectors = torch.linalg.eigh(batch_hessians(f, point).detach())
    pair = box.pair(point, vectors[:, int(values.abs().argmax()) if largest else 0])
    size, along, noise = _gradient_quotients(f, *pair)
    seen, bent = size if largest else along, sign * float(_extreme_eigenvalue(values, largest))
    bounds = curvature_bounds(f, box.low, box.high, bent, extreme)
    reason = f"the {extreme} found in the box, {points:,} points"
    if bounds is not None:
        proved = max(-bounds[0], bounds[1]) if largest else bounds[0]
        # A bound that excludes what was seen, at the point or between two, proves nothing: the function is not what
        # the intervals took it for. Half of the digits of a Hessian are left to rounding.
        own = torch.finfo(values.dtype).eps ** 0.5 * float(values.abs().max())
        fits = sign * proved >= max(sign * seen - noise, sign * bent - own)
        if fits and abs(proved - seen) <= max(abs(seen), noise):
            return Measured(quantity, proved, True, "intervals enclose every Hessian in the box", pair, seen)
        if fits:
            reason += f"; proved is only {'<=' if largest else '>='} {proved:.3g}"
    return Measured(quantity, seen, False, reason, pair, seen)


def _extreme_eigenvalue(eigenvalues: Tensor, largest: bool) -> Tensor:
    """What is large where the curvature is extreme."""
    return eigenvalues.abs().amax(-1) if largest else -eigenvalues[..., 0]


def _of_quadratic(quantity: str, f: QuadraticFunction, largest: bool) -> Measured:
    low, high = f.eigenvalue_bounds
    vector = f.eigenvectors[:, int(f.eigenvalues.abs().argmax()) if largest else 0]
    pair = (torch.zeros_like(vector), vector)
    # The quotient between them, in double and scaled, so that it neither overflows nor vanishes
    matrix, step = f.matrix.detach().double(), vector.double()
    unit = power_of_two(matrix)
    change = (matrix / unit / 2 + matrix.mT / unit / 2) @ step
    along = (change @ step) / (step @ step)
    seen = float((p_norm(change) / p_norm(step) if largest else along) * unit)
    proved, which = (max(-low, high), "largest |eigenvalue|") if largest else (low, "least eigenvalue")
    noise = 8 * gamma(len(matrix)) * max(-low, high)
    if math.isfinite(proved) and (seen - proved if largest else proved - seen) <= noise:
        return Measured(quantity, proved, True, f"the {which} of its matrix", pair, seen)
    return Measured(quantity, seen, False, f"the {which} of its matrix is beyond double precision", pair, seen)


def _gradient_quotients(f: Function, x: Tensor, y: Tensor) -> tuple[float, float, float]:
    """The difference quotients of the gradient between two points: size, part along the segment, rounding in both.

    Rounding inside the function is its own secret: half of the digits are left to it.
    """
    step = y - x
    first, second = batch_gradients(f, x).detach(), batch_gradients(f, y).detach()
    length = p_norm(step)  # scaled, as is every quotient here: squares of small numbers are 0
    change = (second - first) / length
    eps = torch.finfo(step.dtype).eps
    size, along = float(p_norm(change)), float((change * (step / length)).sum())
    return size, along, eps**0.5 * size + 8 * eps * float(p_norm(first / length) + p_norm(second / length))


def _hessian_eigenvalues(f: Function, x: Tensor) -> Tensor:
    hessians = batch_hessians(f, x)
    if not hessians.isfinite().all():  # which the solver would only call an error of its own
        bad = x[~hessians.isfinite().flatten(1).all(1)][0].tolist()
        raise ValueError(f"f must be finite with its derivatives in the region, but is not at {bad}: shrink it")
    return torch.linalg.eigvalsh(hessians)


def search_box(region: Region | None) -> Box:
    """The box that a search needs, in a precision in which it can be searched."""
    if region is None:
        raise ValueError("region must be a pair (low, high): without it only a QuadraticFunction can be measured")
    box = box_region(region)
    if box.low.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"region must be float32 or float64, got {box.low.dtype}: use low.double() and high.double()")
    return box
