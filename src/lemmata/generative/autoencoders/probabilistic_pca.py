r"""Probabilistic PCA: factors and noise that is the same for every feature, fitted in closed form."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.autoencoders.linear_gaussian_model import LinearGaussianModel, loadings_of
from lemmata.marks import system
from lemmata.measure.principal_axes import principal_axes

__all__ = ["ProbabilisticPCA"]


@system(
    "probabilistic_pca",
    title="Probabilistic PCA",
    kind="module",
    example="ProbabilisticPCA(5, 2)(torch.randn(4, 5))",
)
class ProbabilisticPCA(LinearGaussianModel):
    r"""Factors and noise of one variance for all features: a density whose best loadings are the principal axes.

    $$ x \sim \mathcal N(\mu, WW^\top + \sigma^2 I), \qquad
       \hat w_i = \sqrt{\max(0, \lambda_i - \sigma^2)}\,u_i, \qquad \hat\sigma^2 = \tfrac1{n-m}\sum_{j>m}\lambda_j $$

    `fit` is one singular value decomposition. As $\sigma^2 \to 0$, `forward` becomes the projection of PCA; before, it
    shrinks what it sees towards the mean. Loadings are determined up to a rotation: `fit` returns orthogonal columns,
    longest first.

    Shapes:
        x: (..., features)    encode, z: (..., factors)    log_prob: (...)

    Claims: fa.mean_mle, ppca.pinv_limit, ppca.mle, ppca.pca_limit
    Source: Tipping and Bishop 1999.
    Differs: scikit-learn's PCA.score divides by the number of points less one; this is the largest likelihood.

    >>> x = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> model = ProbabilisticPCA(2, 1).fit(x)
    >>> model.loadings.detach().abs().mT, model.noise.detach()
    (tensor([[2., 0.]]), tensor([0.5000, 0.5000]))
    """

    def __init__(self, features: int, factors: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(features, factors, 1, device, dtype)

    @torch.no_grad()
    def fit(self, x: Float[Tensor, "points features"], noise: float | None = None) -> "ProbabilisticPCA":
        """Move the parameters to the largest likelihood, or to that with a given variance of the `noise`."""
        wide = self._checked_points(x)
        mean = wide.mean(0)
        axes, variances = principal_axes(wide - mean)
        level = self._left_over(variances) if noise is None else float(validate.positive("noise", noise))
        self._take_solution(
            mean, loadings_of(axes, variances, self.factors, level), torch.tensor([level], dtype=torch.float64)
        )
        return self

    def _left_over(self, variances: Tensor) -> float:
        """The mean variance along the axes that have no factor."""
        if self.factors == self.features:
            raise ValueError(
                f"factors must be below the {self.features} features, or the noise given: fit(x, noise=...)"
            )
        rest = float(variances[self.factors :].sum()) / (self.features - self.factors)
        if rest <= torch.finfo(torch.float64).eps * float(variances[0]) * self.features:
            raise ValueError(
                f"x has no variance outside {self.factors} directions: take fewer factors, or give the noise"
            )
        return rest
