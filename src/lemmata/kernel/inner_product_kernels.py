r"""Kernels of the inner product: a linear unit, and a layer of infinitely many units, with Gaussian weights."""

import torch
from torch import Tensor

from lemmata import validate
from lemmata.kernel.activation_kernels import activation_kernel
from lemmata.kernel.covariance_functions import CovarianceFunction, Positive
from lemmata.marks import system

__all__ = ["ArcCosineKernel", "LinearKernel"]


@system("linear_kernel", title="Linear kernel", kind="module", example="LinearKernel(2.0, 0.5)(torch.randn(4, 5, 3))")
class LinearKernel(CovarianceFunction):
    r"""A linear unit with Gaussian weights and bias: straight lines, planes.

    $$ k(x, x') = \frac{\sigma_w^2}{d}\,x^\top x' + \sigma_b^2 $$

    A `bias_variance` of 0 stays 0 in a fit.

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Claims: gp.linear_layer, gp.rbf_prior
    Differs: scikit-learn's DotProduct has no $\sigma_w^2/d$. Any number of features is taken, so it does not pass
        `wrong_width`.

    >>> LinearKernel(variance=2.0)(torch.tensor([[1.0, 3.0]])).item()
    10.0
    """

    variance, bias_variance = Positive(), Positive()

    def __init__(
        self,
        variance: float = 1.0,
        bias_variance: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.number("bias_variance", bias_variance, least=0)
        self._keep_parameters(
            device, dtype, variance=validate.positive("variance", variance), bias_variance=bias_variance
        )

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.variance / max(x1.shape[-1], 1) * (x1 @ x2.mT) + self.bias_variance

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        return self.variance / max(x.shape[-1], 1) * x.square().sum(-1) + self.bias_variance


@system(
    "arc_cosine_kernel", title="Arc-cosine kernel", kind="module", example="ArcCosineKernel()(torch.randn(4, 5, 3))"
)
class ArcCosineKernel(LinearKernel):
    r"""A layer of infinitely many random units, steps (degree 0) or rectified linear ones (degree 1).

    $$ k(x, x') = 2\sigma^2\,\mathbb E[\phi(u)\phi(u')], \qquad
       (u, u') \sim \mathcal N\Big(0,\ \tfrac1d x^\top x' + \sigma_b^2\Big), \qquad \phi = 1_{u>0},\ \max(u, 0) $$

    For degree 1 and $\theta$ the angle of the points that is
    $\frac{\sigma^2}{\pi d}\|x\|\|x'\|(\sin\theta + (\pi-\theta)\cos\theta)$ without bias, so that $k(x, x)$ is
    $\sigma^2\|x\|^2/d$.

    Shapes:
        x1: (points, features), x2: (others, features)    returns: (points, others)

    Source: Cho and Saul 2009.  Differs: divided by the number of features, so it does not pass `wrong_width`.

    >>> ArcCosineKernel(bias_variance=0.0)(torch.eye(2)).detach() * 2
    tensor([[1.0000, 0.3183],
            [0.3183, 1.0000]])
    """

    def __init__(
        self,
        degree: int = 1,
        variance: float = 1.0,
        bias_variance: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(variance, bias_variance, device, dtype)
        self.degree = validate.count("degree", degree, least=0, most=1)

    def _gram_matrix(self, x1: Tensor, x2: Tensor) -> Tensor:
        width = max(x1.shape[-1], 1)
        bias = self.bias_variance
        ours, others = (x.square().sum(-1) / width + bias for x in (x1, x2))
        means = activation_kernel("relu")(ours[..., :, None], others[..., None, :], x1 @ x2.mT / width + bias)
        return 2 * self.variance * means[1 - self.degree]

    def _gram_diagonal(self, x: Tensor) -> Tensor:
        inputs = x.square().sum(-1) / max(x.shape[-1], 1) + self.bias_variance
        return self.variance * (inputs if self.degree else torch.ones_like(inputs))

    def extra_repr(self) -> str:
        return f"degree={self.degree}, {super().extra_repr()}"
