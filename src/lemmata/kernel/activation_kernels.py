r"""What a layer of random weights does to a covariance: means of products of activations and of their slopes."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system

__all__ = ["ActivationKernel", "activation_kernel"]

Function = Callable[[Tensor], Tensor]
Pair = tuple[Tensor, Tensor | None]

ANGLES, RADII = 14, 32  # nodes of each of four arcs, and along each ray
PAIRS = 1 << 13  # covariances for which the quadrature is done at once


@dataclass(frozen=True)
class ActivationKernel:
    """The two means of one activation, and how they are found."""

    name: str
    how: str
    """`closed form`, or the quadrature."""
    means: Callable[[Tensor, Tensor, Tensor, bool], Pair]

    def __call__(
        self,
        first: Float[Tensor, "..."],
        second: Float[Tensor, "..."],
        covariance: Float[Tensor, "..."],
        slopes: bool = True,
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."] | None]:
        """The means of φ(u)φ(v) and of φ'(u)φ'(v), for variances of u and v and their covariance; all are broadcast."""
        return self.means(first, second, covariance, slopes)


@system("activation_kernel", title="Kernel of an activation", kind="function")
def activation_kernel(activation: str | Function) -> ActivationKernel:
    r"""The means over a pair of Gaussians by which a wide layer hands on a covariance and a tangent kernel.

    $$ \mathbb E[\phi(u)\phi(v)], \qquad \mathbb E[\phi'(u)\phi'(v)], \qquad
       (u, v) \sim \mathcal N\!\left(0, \begin{pmatrix} a & c \\ c & b \end{pmatrix}\right) $$

    In closed form for relu, erf, gelu, linear, cos and sin; for the other names of `foundations.activation` and for any
    function of torch that acts on each entry by quadrature in polar coordinates, and `how` says which. Along rays, and
    between the angles at which $u$ or $v$ changes its sign, a kink at zero is not seen: leaky_relu is exact.
    What bends costs digits where the variances are large: the error of tanh is 1e-8 at variance 1, 1e-6 at 4 and 1e-3
    at 25. A kink elsewhere than at zero costs more.

    Shapes:
        first, second, covariance: (...)    returns: two of (...)

    Claims: ntk.relu_two_layer, gp.nngp_recursion
    Source: Y. Cho and L. Saul 2009 (relu); C. Williams 1997 (erf); R. Tsuchida et al. 2021 (gelu).

    >>> kernel = activation_kernel("relu")
    >>> one = torch.ones(2)
    >>> kernel(one, one, torch.tensor([1.0, 0.0]))
    (tensor([0.5000, 0.1592]), tensor([0.5000, 0.2500]))
    >>> kernel.how, activation_kernel(torch.tanh).how
    ('closed form', 'polar quadrature with 1792 nodes')
    """
    name = activation if isinstance(activation, str) else KNOWN.get(activation)
    if name is not None and name in CLOSED:
        return ActivationKernel(name, "closed form", CLOSED[name])
    if name is not None:
        known = known_activation(name)
        phi, slope = known, known.derivative
    elif callable(activation):
        phi, slope = activation, functools.partial(_activation_slope, activation)
        name = getattr(activation, "__name__", type(activation).__name__)
    else:
        raise TypeError(f"activation must be a name or a function, got {type(activation).__name__}")
    how = f"polar quadrature with {4 * ANGLES * RADII} nodes"
    return ActivationKernel(name, how, functools.partial(_by_quadrature, phi, slope))


def correlation(first: Tensor, second: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cosine, sine and product of the standard deviations; a variance of zero gives an angle of 90 degrees.

    Where the sine is zero its slope would be infinite. It is left out there: along every path of inputs the cosine is
    at its largest or smallest then, and its own slope is zero.
    """
    positive = (first > 0) & (second > 0)
    a, b = first.where(first > 0, 1.0), second.where(second > 0, 1.0)
    root = _positive_root(a) / _positive_root(b) * b  # not (a b).sqrt(), which overflows; exact for equal variances
    cosine = (covariance / root).where(positive, 0.0).clamp(-1.0, 1.0)
    squared = (1 - cosine) * (1 + cosine)  # not 1 - cosine^2, which has lost half the digits near the ends
    inside = squared > 0
    sine = _positive_root(squared.where(inside, 1.0)).where(inside, 0.0)
    return cosine, sine, root.where(positive, 0.0)


def _positive_root(values: Tensor) -> Tensor:
    """√x: torch's own sqrt wakes every thread for a thousand numbers, but has the slope that does not overflow."""
    return values.sqrt() if values.requires_grad else values * values.rsqrt()


def _relu_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    cosine, sine, root = correlation(a, b, c)
    # The angle by atan2 rather than acos, whose slope is infinite at both ends.
    fraction = 1 - torch.atan2(sine, cosine) / math.pi
    return root * (sine / math.pi + fraction * cosine) / 2, fraction / 2 if slopes else None


def _linear_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    return c + torch.zeros_like(a + b), torch.ones_like(a + b + c) if slopes else None


def _erf_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    # (1 + 2a)(1 + 2b) - 4c^2 by terms that do not cancel, and never below one
    rest = (1 + 2 * (a + b) + 4 * (a * b - c * c)).clamp(min=1.0)
    rest = _positive_root(rest)
    return torch.atan2(2 * c, rest) * (2 / math.pi), 4 / math.pi / rest if slopes else None


def _gelu_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    det = a * b - c * c
    root = _positive_root((1 + a + b + det).clamp(min=1.0))  # of the determinant of I + the covariance
    both = 0.25 + torch.atan2(c, root) / (2 * math.pi)  # that both are positive, each with a noise of variance 1
    mean = c * both + (a * b - c * c * a / (1 + a) + c * c / (1 + b)) / (2 * math.pi * root)
    if not slopes:
        return mean, None
    return mean, both + c * (1 / (1 + a) + 1 / (1 + b) + 1 / root.square()) / (2 * math.pi * root)


def _cosine_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    less, more = torch.exp(c - (a + b) / 2), torch.exp(-c - (a + b) / 2)  # not cosh, which overflows
    return (less + more) / 2, (less - more) / 2 if slopes else None


def _sine_kernel(a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    less, more = torch.exp(c - (a + b) / 2), torch.exp(-c - (a + b) / 2)
    return (less - more) / 2, (less + more) / 2 if slopes else None


CLOSED: dict[Any, Callable[[Tensor, Tensor, Tensor, bool], Pair]] = {
    "relu": _relu_kernel, "erf": _erf_kernel, "gelu": _gelu_kernel,
    "linear": _linear_kernel, "cos": _cosine_kernel, "sin": _sine_kernel,
}  # fmt: skip
KNOWN: dict[Any, str] = {
    torch.relu: "relu", functional.relu: "relu", torch.erf: "erf", functional.gelu: "gelu", torch.cos: "cos",
    torch.sin: "sin", torch.tanh: "tanh", torch.sigmoid: "sigmoid",
}  # fmt: skip


def _activation_slope(function: Function, z: Tensor) -> Tensor:
    return torch.func.jvp(function, (z,), (torch.ones_like(z),))[1]


def _by_quadrature(phi: Function, slope: Function, a: Tensor, b: Tensor, c: Tensor, slopes: bool) -> Pair:
    a, b, c = torch.broadcast_tensors(a, b, c)
    parts = zip(*(t.reshape(-1).split(PAIRS) for t in (a, b, c)), strict=True)
    found = [_polar_quadrature(phi, slope if slopes else None, *part) for part in parts]
    means = torch.cat([mean for mean, _ in found]).reshape(a.shape)
    return means, torch.cat([bent for _, bent in found if bent is not None]).reshape(a.shape) if slopes else None


def _polar_quadrature(phi: Function, slope: Function | None, a: Tensor, b: Tensor, c: Tensor) -> Pair:
    """u = √a r cos ψ and v = √b r cos(ψ - θ): r dr e^{-r²/2} along rays, ψ on the arcs between changes of sign."""
    cosine, sine, _ = correlation(a, b, c)
    angle = torch.atan2(sine, cosine)  # θ, (pairs,)
    along, weights = (torch.as_tensor(x, dtype=a.dtype, device=a.device) for x in _radius_nodes(RADII))
    first, second = (t.where(t > 0, 1.0).sqrt().where(t > 0, 0.0)[:, None] * along for t in (a, b))  # (pairs, radii)
    nodes, masses = _arc_nodes(ANGLES)
    mean, bent = torch.zeros_like(a), torch.zeros_like(a)
    for node, mass in zip(nodes, masses, strict=True):
        # from -π/2, where u changes its sign, to θ - π/2, where v does, and from there to π/2; then both turned round
        for begin, length in ((torch.zeros_like(angle), angle), (angle, math.pi - angle)):
            place = begin + length * node - math.pi / 2
            u, v = first * torch.cos(place)[:, None], second * torch.cos(place - angle)[:, None]
            weight = length * mass / (2 * math.pi)
            mean = mean + weight * ((phi(u) * phi(v) + phi(-u) * phi(-v)) @ weights)
            if slope is not None:
                bent = bent + weight * ((slope(u) * slope(v) + slope(-u) * slope(-v)) @ weights)
    return mean, bent if slope is not None else None


@functools.cache
def _arc_nodes(count: int) -> tuple[list[float], list[float]]:
    """Gauss-Legendre nodes and weights between 0 and 1."""
    nodes, weights = numpy.polynomial.legendre.leggauss(count)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


@functools.cache
def _radius_nodes(count: int) -> tuple[Any, Any]:
    """Gauss's nodes and weights for r e^{-r²/2} on the half line: eigenvalues of the matrix of its recurrence.

    The recurrence is that of a sum so fine that it is the integral to rounding (the procedure of Lanczos).
    """
    x, w = numpy.polynomial.legendre.leggauss(600)
    x, w = 8 * (x + 1), 8 * w  # beyond 16 lies e^{-128}
    w = w * x * numpy.exp(-x * x / 2)
    vectors = [numpy.sqrt(w / w.sum())]
    diagonal, beside = [], []
    for _ in range(count):
        step = x * vectors[-1]
        diagonal.append(step @ vectors[-1])
        for _ in range(2):  # twice is enough
            step = step - numpy.stack(vectors).T @ (numpy.stack(vectors) @ step)
        beside.append(numpy.linalg.norm(step))
        vectors.append(step / beside[-1])
    matrix = numpy.diag(diagonal) + numpy.diag(beside[:-1], 1) + numpy.diag(beside[:-1], -1)
    nodes, columns = numpy.linalg.eigh(matrix)
    return nodes, columns[0] ** 2 * w.sum()
