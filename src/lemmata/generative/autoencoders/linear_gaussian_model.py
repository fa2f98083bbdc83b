r"""Few normal factors, mapped linearly, and noise: what factor analysis and probabilistic PCA have in common."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.foundations.probability.gaussian import Gaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian

__all__ = []  # for its two kinds


class LinearGaussianModel(nn.Module, ABC):
    r"""A normal distribution with few hidden factors: everything but how it is fitted.

    $$ z \sim \mathcal N(0, I_m), \qquad x = \mu + Wz + \eta, \quad \eta \sim \mathcal N(0, \Sigma),
       \qquad x \sim \mathcal N(\mu, WW^\top + \Sigma) $$

    Subclasses say what the diagonal $\Sigma$ looks like and how data decide. Densities are those of `LowRankGaussian`,
    whose price is linear in the features. The parameters have gradients everywhere, so that `loss` can be trained too.

    Shapes:
        x: (..., features)    encode, z: (..., factors)    log_prob: (...)

    Claims: fa.model, fa.marginal, fa.posterior, fa.rotation
    """

    def __init__(
        self, features: int, factors: int, noises: int, device: Any = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        if validate.count("factors", factors) > features:
            raise ValueError(f"factors must be at most the {features} features, got {factors}: take fewer")
        self.factors = factors
        self.mean = nn.Parameter(torch.empty(features, device=device, dtype=dtype))
        self.loadings = nn.Parameter(torch.empty(features, factors, device=device, dtype=dtype))
        self.log_noise = nn.Parameter(torch.empty(noises, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Loadings drawn anew, no mean, and noise of variance 1."""
        nn.init.zeros_(self.mean)
        nn.init.zeros_(self.log_noise)
        nn.init.normal_(self.loadings, std=self.factors**-0.5)

    @abstractmethod
    def fit(self, x: Float[Tensor, "points features"]) -> "LinearGaussianModel":
        """Move the parameters to the largest likelihood of these points."""

    # --- The distribution ---

    @property
    def noise(self) -> Float[Tensor, " features"]:
        """The variance of the noise of each feature."""
        return self.log_noise.exp().expand(self.features)

    @property
    def covariance(self) -> Float[Tensor, "features features"]:
        r"""$WW^\top + \Sigma$, dense."""
        return self.loadings @ self.loadings.mT + self.noise.diag()

    def distribution(self) -> LowRankGaussian:
        """The law of x; in float32 where the parameters are in half precision."""
        wide = self._wide_dtype
        return LowRankGaussian(
            self.mean.to(wide), self.loadings.to(wide), self.log_noise.to(wide).exp().expand(self.features)
        )

    def log_prob(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        """The log-density of each example, in nats."""
        return self.distribution().log_density(self._checked_features(x).to(self._wide_dtype))

    def loss(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, ""]:
        """The mean negative log-likelihood, in nats."""
        return -self.log_prob(x).mean()

    @torch.no_grad()
    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "n features"]:
        """New examples."""
        return self.distribution().sample(n, generator).to(self.mean.dtype)

    @torch.no_grad()
    def sample_and_log_prob(
        self, n: int, *, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "n features"], Float[Tensor, " n"]]:
        """New examples, and the log-density of each."""
        law = self.distribution()
        drawn = law.sample(n, generator)
        return drawn.to(self.mean.dtype), law.log_density(drawn)

    # --- The factors ---

    def posterior(self, x: Float[Tensor, "*batch features"]) -> Gaussian:
        r"""What is known of the factors once x is seen.

        $$ z \mid x \sim \mathcal N\big(M^{-1}W^\top\Sigma^{-1}(x-\mu), M^{-1}\big), \quad M = I + W^\top\Sigma^{-1}W $$
        """
        x = self._checked_features(x)
        precision, weighted = self._factor_precision()
        covariance = torch.linalg.inv(precision)
        return Gaussian(self._posterior_mean(precision, weighted, x), (covariance + covariance.mT) / 2)

    def encode(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch factors"]:
        """The mean of the factors once x is seen: also their likeliest value, which is shrunk towards 0."""
        return self._posterior_mean(*self._factor_precision(), self._checked_features(x)).to(x.dtype)

    def transform(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch factors"]:
        """`encode`, by scikit-learn's name."""
        return self.encode(x)

    def decode(self, z: Float[Tensor, "*batch factors"]) -> Float[Tensor, "*batch features"]:
        r"""The example without its noise, $\mu + Wz$."""
        return self.mean + validate.inputs("z", z, self.factors) @ self.loadings.mT

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        return self.decode(self.encode(x))  # (..., features) -> (..., factors) -> (..., features)

    def _factor_precision(self) -> tuple[Tensor, Tensor]:
        r"""$M = I + W^\top\Sigma^{-1}W$ (factors, factors) and $W^\top\Sigma^{-1}$ (factors, features)."""
        loadings = self.loadings.to(self._wide_dtype)
        weighted = (loadings / self.log_noise.to(self._wide_dtype).exp().expand(self.features)[:, None]).mT
        identity = torch.eye(self.factors, dtype=self._wide_dtype, device=loadings.device)
        return identity + (weighted @ loadings).to(self._wide_dtype), weighted

    def _posterior_mean(self, precision: Tensor, weighted: Tensor, x: Tensor) -> Tensor:
        pulled = ((x.to(self._wide_dtype) - self.mean.to(self._wide_dtype)) @ weighted.mT).to(
            self._wide_dtype
        )  # (..., factors)
        # One row for each example: M is symmetric, so that it may stand on the right.
        return (
            torch.linalg.solve(precision, pulled, left=False) if x.ndim > 1 else torch.linalg.solve(precision, pulled)
        )

    @property
    def _wide_dtype(self) -> torch.dtype:
        """Small matrices are factorised in float32 at least."""
        return torch.promote_types(self.loadings.dtype, torch.float32)

    def _checked_features(self, x: Tensor) -> Tensor:
        return validate.inputs("x", x, self.features)

    # --- Fitting ---

    def _checked_points(self, x: Tensor) -> Tensor:
        """Data to fit, in float64."""
        validate.last_axis("x", validate.matrix("x", x), self.features)
        if len(x) < 2:
            raise ValueError("x must hold at least 2 points, got 1: a single one has no variance")
        return x.detach().to(self.mean.device, torch.float64)

    def _take_solution(self, mean: Tensor, loadings: Tensor, noise: Tensor) -> None:
        """What was found, with the longest entry of each column positive, measured in units of the noise."""
        longest = loadings.gather(0, (loadings / noise[:, None].sqrt()).abs().argmax(0, keepdim=True))
        signs = torch.where(longest < 0, -1.0, 1.0).to(loadings)
        for parameter, value in ((self.mean, mean), (self.loadings, loadings * signs), (self.log_noise, noise.log())):
            parameter.copy_(value)

    def extra_repr(self) -> str:
        return f"features={self.features}, factors={self.factors}"


def loadings_of(
    axes: Float[Tensor, "axes features"], variances: Float[Tensor, " axes"], factors: int, noise: float
) -> Float[Tensor, "features factors"]:
    r"""The likeliest loadings $w_i = \sqrt{\max(0, \lambda_i - \sigma^2)}\,u_i$ with noise $\sigma^2$ everywhere.

    There are as many columns as factors; where there are fewer axes, the others are 0.
    """
    found = axes[:factors] * (variances[:factors] - noise).clamp(min=0).sqrt()[:, None]  # (factors or fewer, features)
    return nn.functional.pad(found, (0, 0, 0, factors - len(found))).mT
