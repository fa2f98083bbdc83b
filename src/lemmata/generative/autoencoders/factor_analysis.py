r"""Factor analysis: a few common causes of many features, each of which has noise of its own."""

import math
import warnings
from typing import Any

import torch
from jaxtyping import Float
from scipy import linalg, optimize
from torch import Tensor

from lemmata import validate
from lemmata.generative.autoencoders.linear_gaussian_model import LinearGaussianModel, loadings_of
from lemmata.marks import system

__all__ = ["FactorAnalysis"]


@system("factor_analysis", title="Factor analysis", kind="module", example="FactorAnalysis(5, 2)(torch.randn(4, 5))")
class FactorAnalysis(LinearGaussianModel):
    r"""Factors, and noise of a variance of its own for each feature, fitted to the largest likelihood.

    $$ x \sim \mathcal N\big(\mu, WW^\top + \mathrm{diag}(\sigma_1^2, \dots, \sigma_n^2)\big), \qquad
       W \leftarrow \Sigma^{1/2}\,[\sqrt{(\lambda_i - 1)_+}\,u_i]_{i\le m}, \qquad
       \sigma_j^2 \leftarrow S_{jj} - (WW^\top)_{jj} $$

    with $(\lambda_i, u_i)$ the first eigenpairs of $\Sigma^{-1/2}S\Sigma^{-1/2}$, $S$ the sample covariance. In units
    of the noise all noise is alike, so that the likeliest loadings for a given noise are those of probabilistic PCA; of
    the step of EM that follows, which leaves such loadings as they are, the noise remains. No step lowers the
    likelihood, but near the end many are needed. They follow the gradient of what is left to maximise,

    $$ \frac{\partial}{\partial\log\sigma_j^2}\max_W \tfrac1s\sum_i\log p(x_i)
       = \frac12\Big(\frac{S_{jj} - (WW^\top)_{jj}}{\sigma_j^2} - 1\Big), $$

    and with it L-BFGS, in bounds, gets there in a tenth of the steps. `fit` goes either way (`method`) and stops when
    no entry of this gradient is above `tolerance`, or after `steps`, which warns.

    Some features may end without noise of their own (a Heywood case), and with few points the likelihood then has no
    bound: no noise falls below `noise_floor` times the feature's variance. The units of features do not matter.

    Loadings are determined up to a rotation of the factors, which no likelihood can tell: `fit` returns those for which
    $W^\top\Sigma^{-1}W$ is diagonal, largest first. Another rotation, such as varimax, may be easier to read.

    Shapes:
        x: (..., features)    encode, z: (..., factors)    log_prob: (...)

    Learnt: the parameters; `history_`, the mean log-likelihood at the start and after each step; `converged_`.

    Claims: fa.model, fa.marginal, fa.mean_mle, fa.posterior, fa.rotation, fa.system
    Source: Jöreskog 1967 (the gradient); Rubin and Thayer 1982 (EM); Liu and Rubin 1994 (loadings solved for).

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
        method: str = "lbfgs",
        steps: int = 1000,
        tolerance: float = 1e-4,
        noise_floor: float = 1e-6,
    ) -> "FactorAnalysis":
        """Move the parameters to the largest likelihood of these points, beginning where all variance is noise."""
        validate.one_of("method", method, ("lbfgs", "em"))
        validate.count("steps", steps)
        validate.positive("tolerance", tolerance)
        validate.number("noise_floor", noise_floor, above=0, below=1)
        wide = self._checked_points(x)
        _check_that_all_vary(wide)
        mean = wide.mean(0)
        profile = _Profile(wide - mean, self.factors, noise_floor)
        noise, self.history_ = (profile.by_em if method == "em" else profile.by_lbfgs)(steps, tolerance)
        loadings, _ = profile.best_loadings(noise)
        self.converged_ = profile.steepness(noise, loadings) <= tolerance
        if not self.converged_:
            # past no_grad, to the line that asked
            warnings.warn(f"the fit did not come to rest in {steps} steps: raise steps or tolerance", stacklevel=3)
        self._take_solution(mean, loadings, noise)
        return self


class _Profile:
    """The likelihood as a function of the noise alone, with the loadings that are likeliest for it."""

    def __init__(self, centred: Tensor, factors: int, noise_floor: float) -> None:
        points, self.features = centred.shape
        self.root = centred / math.sqrt(points)  # (points, features), of which S is the Gram matrix
        # All that the likelihood needs of many points; of few, the products of the points are the smaller matrix.
        self.covariance = self.root.mT @ self.root if points > self.features else None
        self.variances = self.root.square().sum(0)
        self.least, self.factors = noise_floor * self.variances, factors

    def best_loadings(self, noise: Tensor) -> tuple[Tensor, float]:
        """The likeliest loadings for this noise, and the mean log-likelihood that they have."""
        if self.covariance is not None:
            values, axes = _first_eigenpairs(self.covariance / torch.outer(noise.sqrt(), noise.sqrt()), self.factors)
        else:
            scaled = self.root / noise.sqrt()  # (points, features), in units of the noise
            values, vectors = _first_eigenpairs(scaled @ scaled.mT, self.factors)
            # An axis without more variance than the noise has loading 0: what its length is does not matter.
            axes = vectors @ scaled / values.clamp(min=0.5).sqrt()[:, None]  # (factors, features)
        loadings = loadings_of(axes, values, self.factors, 1.0) * noise.sqrt()[:, None]
        logdet = noise.log().sum() + values.clamp(min=1).log().sum()
        distance = (self.variances / noise).sum() - (values - 1).clamp(min=0).sum()
        return loadings, -float(self.features * math.log(2 * math.pi) + logdet + distance) / 2

    def left_over(self, loadings: Tensor) -> Tensor:
        """The variance of each feature that the factors do not explain: the next noise of EM."""
        return torch.maximum(self.variances - loadings.square().sum(1), self.least)

    def slope(self, noise: Tensor, loadings: Tensor) -> Tensor:
        """The gradient of the mean log-likelihood by the logarithms of the noise."""
        return ((self.variances - loadings.square().sum(1)) / noise - 1) / 2

    def steepness(self, noise: Tensor, loadings: Tensor) -> float:
        """The largest entry of the gradient, but for those that only point below the floor."""
        slope = self.slope(noise, loadings)
        above = noise > self.least * (1 + 1e-9)  # which a logarithm may miss by its rounding
        return float(slope.where(above | (slope > 0), 0.0).abs().max())

    def by_em(self, steps: int, tolerance: float) -> tuple[Tensor, list[float]]:
        """The noise in the end, and the likelihood on the way there."""
        noise, history = self.variances, []
        loadings, likelihood = self.best_loadings(noise)
        history = [likelihood]
        while len(history) <= steps and self.steepness(noise, loadings) > tolerance:
            noise = self.left_over(loadings)
            loadings, likelihood = self.best_loadings(noise)
            history.append(likelihood)
        return noise, history

    def by_lbfgs(self, steps: int, tolerance: float) -> tuple[Tensor, list[float]]:
        """As `by_em`."""

        def descend(logarithms: Any) -> tuple[float, Any]:
            noise = torch.from_numpy(logarithms).to(self.variances).exp()
            loadings, likelihood = self.best_loadings(noise)
            return -likelihood, -self.slope(noise, loadings).cpu().numpy()

        start, least = (part.log().cpu().numpy() for part in (self.variances, self.least))
        history = [-descend(start)[0]]
        found = optimize.minimize(
            descend, start, jac=True, method="L-BFGS-B", bounds=list(zip(least, start, strict=True)),
            callback=lambda intermediate_result: history.append(-float(intermediate_result.fun)),
            options={"maxiter": steps, "maxfun": 10 * steps, "maxcor": 20, "gtol": tolerance, "ftol": 0},
        )  # fmt: skip
        return torch.maximum(torch.from_numpy(found.x).to(self.variances).exp(), self.least), history


def _first_eigenpairs(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of a symmetric matrix (count,), and eigenvectors as rows (count, n)."""
    last, first = len(matrix) - 1, max(len(matrix) - count, 0)
    if matrix.is_cpu:  # LAPACK can leave out the others, which torch always computes
        values, vectors = map(torch.from_numpy, linalg.eigh(matrix.numpy(), subset_by_index=(first, last)))
    else:
        values, vectors = torch.linalg.eigh(matrix)
    return values.flip(0)[:count], vectors.flip(1)[:, :count].mT


def _check_that_all_vary(x: Tensor) -> None:
    still = (x == x[0]).all(0)
    if bool(still.any()):
        which = still.nonzero()[:, 0].tolist()
        named = ", ".join(map(str, which[:5])) + (", ..." if len(which) > 5 else "")
        raise ValueError(f"x must vary in every feature, but does not in {named}: drop them, x[:, x.std(0) > 0]")
