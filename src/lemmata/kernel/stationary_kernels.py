r"""Stationary kernels: covariances that depend on how far two points are apart, and on nothing else."""

import math

import torch
from torch import Tensor

from lemmata import validate
from lemmata.kernel.covariance_functions import CovarianceFunction, Positive, Scale
from lemmata.kernel.covariance_profiles import matern_profile, squared_distances
from lemmata.marks import system

__all__ = ["MaternKernel", "PeriodicKernel", "RBFKernel"]

SMOOTHNESS = {0.5: 0, 1.5: 1, 2.5: 2}


@system("rbf_kernel", title="RBF kernel", kind="module", example="RBFKernel([1.0, 2.0, 0.5])(torch.randn(4, 5, 3))")
class RBFKernel(CovarianceFunction):
    r"""The squared exponential: nearby points have nearby values, and functions have every derivative.

    $$ k(x, x') = \sigma^2\exp\Big(-\frac12\sum_i \frac{(x_i - x'_i)^2}{\ell_i^2}\Big) $$

    `length_scale` is one number, or one for each feature (automatic relevance determination).

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Claims: gp.rbf_prior, gp.def, gp.kernel_regression

    >>> RBFKernel()(torch.tensor([[0.0], [1.0]]))
    tensor([[1.0000, 0.6065],
            [0.6065, 1.0000]], grad_fn=<MulBackward0>)
    """

    length_scale, variance = Positive(), Positive()

    def __init__(
        self,
        length_scale: Scale = 1.0,
        variance: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._keep_parameters(
            device, dtype, length_scale=length_scale, variance=validate.positive("variance", variance)
        )

    def _profile_of(self, squared: Tensor) -> Tensor:
        return torch.exp(-0.5 * squared)

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        scale = self.length_scale.to(x1.dtype)
        left = x1 / scale  # (points, features)
        right = left if x2 is x1 else x2 / scale
        return self.variance * self._profile_of(squared_distances(left, right))

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        return self.variance.to(x.dtype).expand(x.shape[:-1])


@system(
    "matern_kernel",
    title="Matérn kernel",
    kind="module",
    example="MaternKernel(1.5, [1.0, 2.0, 0.5])(torch.randn(4, 5, 3))",
)
class MaternKernel(RBFKernel):
    r"""Rougher than the RBF kernel: $\nu - \frac12$ derivatives, 0, 1 or 2 of them.

    $$ k = \sigma^2 e^{-s}\cdot\big\{1,\ 1 + s,\ 1 + s + \tfrac13 s^2\big\}, \qquad
       s^2 = 2\nu\sum_i\frac{(x_i-x_i')^2}{\ell_i^2}, \qquad \nu \in \{\tfrac12, \tfrac32, \tfrac52\} $$

    Gradients are those of the function at equal points too, where the root $s$ has none; $\nu=\frac12$ has a kink
    there, with the slope 0.

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Claims: gp.def
    Source: M. Stein, Interpolation of spatial data (1999).

    >>> MaternKernel(0.5)(torch.tensor([[0.0], [1.0]])).detach()
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]])
    """

    def __init__(
        self,
        smoothness: float = 2.5,
        length_scale: Scale = 1.0,
        variance: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(length_scale, variance, device, dtype)
        if validate.finite_number("smoothness", smoothness) not in SMOOTHNESS:
            raise ValueError(f"smoothness must be 0.5, 1.5 or 2.5, got {smoothness}: use RBFKernel for a smoother one")
        self.smoothness = float(smoothness)

    def _profile_of(self, squared: Tensor) -> Tensor:
        return matern_profile(2 * self.smoothness * squared, SMOOTHNESS[self.smoothness])

    def extra_repr(self) -> str:
        return f"smoothness={self.smoothness:g}, {super().extra_repr()}"


@system(
    "periodic_kernel",
    title="Periodic kernel",
    kind="module",
    example="PeriodicKernel(2.0, [1.0, 0.5])(torch.randn(4, 5, 2))",
)
class PeriodicKernel(RBFKernel):
    r"""Functions that repeat: the RBF kernel of the points on circles, one for each feature.

    $$ k(x, x') = \sigma^2\exp\Big(-\sum_i\frac{2\sin^2(\pi(x_i - x'_i)/p)}{\ell_i^2}\Big) $$

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Claims: gp.def
    Source: MacKay 1998.
    Differs: scikit-learn takes the sine of the distance, which is no covariance of several features.

    >>> PeriodicKernel(period=1.0)(torch.tensor([[0.0], [0.5], [1.0]])).detach()[0]
    tensor([1.0000, 0.1353, 1.0000])
    """

    period = Positive()

    def __init__(
        self,
        period: float = 1.0,
        length_scale: Scale = 1.0,
        variance: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(length_scale, variance, device, dtype)
        self._keep_parameters(device, dtype, period=validate.positive("period", period))

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        left = self._circle_points(x1)
        return self.variance * self._profile_of(squared_distances(left, left if x2 is x1 else self._circle_points(x2)))

    def _circle_points(self, x: Tensor) -> Tensor:
        angle, scale = 2 * math.pi * x / self.period, self.length_scale.to(x.dtype)
        # A chord of the unit circle is 2 sin(pi (x - x') / p).
        return torch.cat([torch.cos(angle) / scale, torch.sin(angle) / scale], -1)
