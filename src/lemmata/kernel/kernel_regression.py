r"""Kernel regression: the interpolant of least norm in the space of a kernel, from where a network started."""

import math
import warnings
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.data.limits import memory_limit
from lemmata.marks import system

__all__ = ["KernelRegression"]

Kernel = Callable[[Tensor, Tensor], Tensor]
BLOCK = 256  # points whose own covariances are asked of a kernel that has no `diagonal`
MISSED = 1e-6  # fraction of the targets above which an interpolant that does not interpolate warns


@system("kernel_regression", title="Kernel regression", kind="estimator")
class KernelRegression:
    r"""The function of least norm in the space of a kernel that goes through the data, or near them with `ridge` > 0.

    $$ f(x) = f_0(x) + k(x)^\top (K + \lambda I)^{+}\,(y - f_0(X)), \qquad
       \|f - f_0\|^2 = \alpha^\top K\alpha, \quad \alpha = (K + \lambda I)^{+}(y - f_0(X)) $$

    with $K_{ij} = k(x_i, x_j)$, $k(x)_i = k(x, x_i)$ and $\lambda$ = `ridge`, which minimises
    $\|f(X) - y\|^2 + \lambda\|f - f_0\|^2$. It is the mean of a Gaussian process given the data (noise variance
    $\lambda$), and with a tangent kernel where gradient descent leads a linearised network that starts from $f_0$:
    then `start` holds $f_0$ at the points, for `fit` and for `predict`, and without it the limit is another one.

    The kernel is any function of two sets of points that returns their Gram matrix, or "precomputed": then matrices
    stand in place of points, (points, points) for `fit` and (new, points) for `predict`. Directions of a singular K
    that rounding cannot tell from zero are left out ($K^+$, the pseudo-inverse); where the targets need them, a warning
    says how much is missed.

    Shapes:
        x: (points, ...) as the kernel takes them, y: (points,) or (points, outputs)
        predict: (new,) or (new, outputs)    variance: (new,)

    Learnt: `weight_` ($\alpha$, float64, as y), `rank_` of what was inverted, `norm_` ($\|f-f_0\|$, of each output),
    `residual_norm_` ($\|f(X)-y\|$, of each output).

    Claims: gp.kernel_regression, ntk.infinite_solution
    Source: Aronszajn 1950; Jacot, Gabriel and Hongler 2018.  Differs: everything is solved in float64 on the device of
        the Gram matrix and returned in the dtype of y. The ridge of `LinearRegression` is this one over the points.

    >>> line = KernelRegression(lambda a, b: a @ b.mT).fit(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 6.0]))
    >>> line.predict(torch.tensor([[10.0]])), line.rank_
    (tensor([30.]), 1)
    """

    weight_: Tensor
    rank_: int
    norm_: Tensor
    residual_norm_: Tensor

    def __init__(self, kernel: Kernel | Literal["precomputed"], ridge: float = 0.0) -> None:
        if not callable(kernel) and kernel != "precomputed":
            raise TypeError(f"kernel must be a function of two sets of points, or 'precomputed', got {kernel!r}")
        self.kernel = kernel
        self.ridge = validate.number("ridge", ridge, least=0.0)

    def __repr__(self) -> str:
        name = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", repr(self.kernel))
        return f"KernelRegression({name}, ridge={self.ridge})"

    def fit(
        self,
        x: Float[Tensor, "points *point"],
        y: Float[Tensor, "points *outputs"],
        start: Float[Tensor, "points *outputs"] | None = None,
        max_memory: int | None = None,
    ) -> "KernelRegression":
        """Find the function; `start` is what is predicted already, and `max_memory` the bytes that may be taken."""
        y = validate.floating("y", y).detach()
        if y.ndim not in (1, 2) or validate.tensor("x", x).ndim == 0 or len(x) != len(y):
            shapes = f"x {tuple(x.shape)} and y {tuple(y.shape)}"
            raise ValueError(f"y must be (points,) or (points, outputs) with one row for each point, got {shapes}")
        check_gram_memory(len(y), max_memory, device=x.device)
        gram = self._gram_matrix(x, x).detach()  # (points, points)
        limit = len(y) * torch.finfo(gram.dtype).eps
        gram = validate.symmetric("kernel(x, x)", gram).double()
        aim = self._minus_start(y, start).to(gram.device)  # (points, outputs)
        inverse, vectors = self._inverse_spectrum(gram, limit)
        weight = vectors @ (inverse[:, None] * (vectors.mT @ aim))
        fitted = gram @ weight
        self._points, self._inverse, self._vectors = x.detach().clone(), inverse, vectors
        self._started, self._like = start is not None, y[:0].clone()
        self.weight_ = weight.reshape(y.shape)
        self.norm_ = (weight * fitted).sum(0).clamp(min=0.0).sqrt().reshape(y.shape[1:])
        self.residual_norm_ = (fitted - aim).norm(dim=0).reshape(y.shape[1:])
        missed = float((self.residual_norm_.reshape(-1) / aim.norm(dim=0).clamp(min=1e-300)).max())
        if self.ridge == 0 and missed > MISSED:
            found = f"the kernel has rank {self.rank_} for {len(y)} points, and {missed:.2g} of y is beyond its range"
            warnings.warn(f"{found}: use ridge > 0, or a richer kernel", stacklevel=2)
        return self

    def predict(
        self, x: Float[Tensor, "new *point"], start: Float[Tensor, "new *outputs"] | None = None
    ) -> Float[Tensor, "new *outputs"]:
        r"""$f_0(x) + k(x)^\top\alpha$; `start` is $f_0$ at these points, where `fit` was given one."""
        cross = self._cross_gram(x)
        if (start is not None) != self._started:
            fix = "predict needs them at the new points too" if self._started else "fit needs them at its points too"
            raise ValueError(f"start must hold the values of one function in fit and in predict: {fix}")
        found = cross @ self.weight_.to(cross.device)  # (new,) or (new, outputs)
        if start is not None:
            found = found + validate.fits("start", start.double(), found.shape, found, "x and y").to(found.device)
        return found.to(self._like.dtype)

    def variance(
        self, x: Float[Tensor, "new *point"], diagonal: Float[Tensor, "new"] | None = None
    ) -> Float[Tensor, "new"]:
        r"""$k(x,x) - k(x)^\top (K+\lambda I)^{+} k(x)$, never below 0: that of a Gaussian process at x, without noise.

        `diagonal` holds $k(x, x)$ where the kernel is "precomputed".
        """
        cross = self._cross_gram(x)  # (new, points)
        if isinstance(self.kernel, str):
            if diagonal is None:
                raise ValueError("diagonal must hold k(x, x) at the new points, as the kernel is precomputed")
            own = validate.vector("diagonal", diagonal, len(cross))
        else:
            own = torch.cat([self._gram_matrix(some, some).diagonal() for some in x.split(BLOCK)])
        explained = ((cross @ self._vectors).square() * self._inverse).sum(1)
        return (own.to(cross) - explained).clamp(min=0.0).to(self._like.dtype)

    def _gram_matrix(self, left: Tensor, right: Tensor) -> Tensor:
        if isinstance(self.kernel, str):
            return validate.matrix("x", left, axes="points, points")
        gram = self.kernel(left, right)
        if not isinstance(gram, Tensor) or gram.shape != (len(left), len(right)):
            found = f"shape {tuple(gram.shape)}" if isinstance(gram, Tensor) else type(gram).__name__
            raise ValueError(f"kernel must return a ({len(left)}, {len(right)}) tensor for its points, got {found}")
        return validate.floating("kernel(x, x)", gram)

    def _cross_gram(self, x: Tensor) -> Float[Tensor, "new points"]:
        if not hasattr(self, "weight_"):
            raise RuntimeError("this KernelRegression is not fitted: call fit(x, y) first")
        width = self._points.shape[1:]
        if validate.tensor("x", x).ndim == 0 or x.shape[1:] != width:
            raise ValueError(f"x must be {('new', *width)} as the points of fit, got shape {tuple(x.shape)}")
        return self._gram_matrix(x, self._points).double()

    def _minus_start(self, y: Tensor, start: Tensor | None) -> Float[Tensor, "points outputs"]:
        aim = y.double()
        if start is not None:
            aim = aim - validate.fits("start", start.detach().double(), tuple(y.shape), aim, "y").to(aim.device)
        return aim.reshape(len(y), -1)

    def _inverse_spectrum(self, gram: Tensor, limit: float) -> tuple[Tensor, Tensor]:
        """Eigenvalues of the inverse, 0 where the pseudo-inverse has none, and eigenvectors; also sets the rank."""
        values, vectors = torch.linalg.eigh(gram)
        # Rounding of the entries, in the dtype the kernel was computed in, moves eigenvalues by less than this.
        lost = limit * float(values.abs().max())
        if float(values[0]) < -10 * lost:
            least = f"got the eigenvalue {float(values[0]):.3g} beside {float(values[-1]):.3g}"
            raise ValueError(f"kernel must be positive semidefinite, {least}: use another kernel")
        kept = values + self.ridge > (lost if self.ridge == 0 else 0.0)
        self.rank_ = int(kept.sum())
        values = values.clamp(min=0.0) + self.ridge
        return torch.where(values > lost, 1 / values, 0.0) if self.ridge == 0 else 1 / values, vectors


def gram_bytes(
    points: int, max_memory: int | None = None, copies: int = 3, device: torch.device | str = "cpu"
) -> tuple[int, int]:
    """What so many Gram matrices in float64 need, and what may be taken: of memory where they would be."""
    of = torch.device(device)
    limit = memory_limit(max_memory)
    if max_memory is None and of.type == "cuda":
        limit = torch.cuda.mem_get_info(of)[0]
    return copies * 8 * points**2, limit


def check_gram_memory(
    points: int, max_memory: int | None = None, copies: int = 3, device: torch.device | str = "cpu"
) -> None:
    """Refuse a Gram matrix, its factor and what is beside them, before they take more than the memory there is."""
    needed, limit = gram_bytes(points, max_memory, copies, device)
    if needed > limit:
        most = math.isqrt(limit // (8 * copies))
        sizes = f"{needed / 1e9:.3g} GB for {points:,} points, and {limit / 1e9:.3g} GB may be taken"
        raise ValueError(f"x is too large for its Gram matrix, which needs {sizes}: use at most {most:,} points")
