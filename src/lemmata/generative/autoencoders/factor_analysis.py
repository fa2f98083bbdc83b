r"""Factor analysis: a few common causes of many features, each of which has noise of its own."""

import math
import warnings
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.generative.autoencoders.linear_gaussian_model import LinearGaussianModel, loadings_of
from lemmata.marks import system

__all__ = ["FactorAnalysis"]


@system("factor_analysis", title="Factor analysis", kind="module", example="FactorAnalysis(5, 2)(torch.randn(4, 5))")
class FactorAnalysis(LinearGaussianModel):
    r"""Factors, and noise of a variance of its own for each feature, fitted by expectation maximisation.

    $$ x \sim \mathcal N\big(\mu, WW^\top + \mathrm{diag}(\sigma_1^2, \dots, \sigma_n^2)\big), \qquad
       W \leftarrow \Sigma^{1/2}\,[\sqrt{(\lambda_i - 1)_+}\,u_i]_{i\le m}, \qquad
       \sigma_j^2 \leftarrow S_{jj} - (WW^\top)_{jj} $$

    with $(\lambda_i, u_i)$ the first eigenpairs of $\Sigma^{-1/2}S\Sigma^{-1/2}$, $S$ the sample covariance. In units
    of the noise all noise is alike, so that the likeliest loadings for a given noise are those of probabilistic PCA; of
    the step of EM that follows, which leaves such loadings as they are, the noise remains. No step lowers the
    likelihood. `fit` stops when one adds less than `tolerance` nats to the mean log-likelihood of an example, or after
    `steps`, which warns.

    Some features may end without noise of their own (a Heywood case), and with few points the likelihood then has no
    bound: no noise falls below `noise_floor` times the feature's variance. The units of features do not matter.

    Loadings are determined up to a rotation of the factors, which no likelihood can tell: `fit` returns those for which
    $W^\top\Sigma^{-1}W$ is diagonal, largest first. Another rotation, such as varimax, may be easier to read.

    Shapes:
        x: (..., features)    encode, z: (..., factors)    log_prob: (...)

    Learnt: the parameters; `history_`, the mean log-likelihood before each step and after the last; `converged_`.

    Claims: fa.model, fa.marginal, fa.mean_mle, fa.posterior, fa.rotation, fa.system
    Source: Rubin and Thayer 1982; Liu and Rubin 1994 (loadings maximised exactly).

    >>> cause, *noise = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 4).T  # independent, of variance 1
    >>> model = FactorAnalysis(3, 1).fit(torch.stack([cause + noise[0], 2 * cause + noise[1], 3 * cause + noise[2]], 1))
    >>> model.converged_, model.loadings.detach().mT.round(decimals=2)
    (True, tensor([[1., 2., 3.]]))
    """

    history_: list[float]
    converged_: bool

    def __init__(self, features: int, factors: int, device: Any = None, dtype: torch.dtype | None = None) -> None:
        super().__init__(features, factors, features, device, dtype)

    @torch.no_grad()
    def fit(
        self,
        x: Float[Tensor, "points features"],
        *,
        steps: int = 1000,
        tolerance: float = 1e-6,
        noise_floor: float = 1e-6,
    ) -> "FactorAnalysis":
        """Move the parameters to the largest likelihood of these points, beginning where all variance is noise."""
        validate.count("steps", steps)
        validate.positive("tolerance", tolerance)
        validate.number("noise_floor", noise_floor, above=0, below=1)
        wide = self._checked_points(x)
        mean = wide.mean(0)
        # Everything that the likelihood needs of the data: R with R'R = S, of as few rows as do.
        root = (wide - mean) / math.sqrt(len(wide))
        root = torch.linalg.qr(root, mode="r").R if len(wide) > self.features else root  # (rows, features)
        variances = root.square().sum(0)
        self._check_variances(wide, variances)
        noise = variances
        loadings, likelihood = self._best_loadings(root, noise)
        self.history_ = [likelihood]
        self.converged_ = False
        while not self.converged_ and len(self.history_) <= steps:
            noise = torch.maximum(variances - loadings.square().sum(1), noise_floor * variances)
            loadings, likelihood = self._best_loadings(root, noise)
            self.history_.append(likelihood)
            self.converged_ = self.history_[-1] - self.history_[-2] < tolerance
        if not self.converged_:
            gain = self.history_[-1] - self.history_[-2]
            warnings.warn(
                f"factor analysis did not come to rest in {steps} steps, the last of which added {gain:.1e} nats: "
                "raise steps or tolerance",
                stacklevel=3,  # past no_grad
            )
        self._take(mean, loadings, noise)
        return self

    def _best_loadings(self, root: Tensor, noise: Tensor) -> tuple[Tensor, float]:
        """The likeliest loadings for this noise, and the mean log-likelihood that they have."""
        scaled = root / noise.sqrt()  # (rows, features), in units of the noise
        values, vectors = torch.linalg.eigh(scaled @ scaled.mT)  # the smaller of the two Gram matrices
        values, vectors = values.flip(0)[: self.factors], vectors.flip(1)[:, : self.factors]
        # An axis without more variance than the noise has loading 0: what its length is does not matter.
        axes = (scaled.mT @ vectors / values.clamp(min=0.5).sqrt()).mT  # (factors, features)
        loadings = loadings_of(axes, values, self.factors, 1.0) * noise.sqrt()[:, None]
        logdet = noise.log().sum() + values.clamp(min=1).log().sum()
        distance = scaled.square().sum() - (values - 1).clamp(min=0).sum()
        return loadings, -float(self.features * math.log(2 * math.pi) + logdet + distance) / 2

    def _check_variances(self, x: Tensor, variances: Tensor) -> None:
        still = (x == x[0]).all(0) | (variances <= 0)
        if bool(still.any()):
            which = still.nonzero()[:, 0].tolist()
            named = ", ".join(map(str, which[:5])) + (", ..." if len(which) > 5 else "")
            raise ValueError(f"x must vary in every feature, but not in {named}: drop them, x[:, x.std(0) > 0]")
