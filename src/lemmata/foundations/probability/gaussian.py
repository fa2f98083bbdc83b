r"""The Gaussian with a full covariance: conditioning, marginals, affine images, sums, products, fitting."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.certified.definiteness import certify_definiteness
from lemmata.foundations.probability import parameters
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution
from lemmata.marks import system

__all__ = ["Gaussian"]


@system("gaussian", title="Gaussian", kind="sampler")
class Gaussian(GaussianDistribution):
    r"""A multivariate normal distribution with any covariance, or a batch of them.

    $$ x \sim \mathcal N(\mu, \Sigma), \qquad \Sigma = LL^\top $$

    A covariance that is only semidefinite is welcome; `degenerate` then is True: such a one has samples, images and
    marginals, but no density, and what needs one says so. So is one that rounding cannot tell from it, measured at the
    size of each feature. Everything has gradients.

    Shapes:
        mean: (..., features), covariance: (..., features, features); their batches broadcast

    Claims: gaussian.density, gaussian.mle, gaussian.conditional, gaussian.sum, gaussian.linear_map, gaussian.entropy,
        gaussian.kl
    Differs: float32 and float64 only, as the Cholesky factorisation.

    >>> law = Gaussian(torch.zeros(2), torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> law.condition([0], torch.tensor([1.0])).mean, law.condition([0], torch.tensor([1.0])).covariance
    (tensor([0.5000]), tensor([[1.5000]]))
    >>> law.affine(torch.tensor([[1.0, -1.0]])).covariance
    tensor([[2.]])
    >>> law.sample(100).shape
    torch.Size([100, 2])
    """

    def __init__(self, mean: Float[Tensor, "*_ features"], covariance: Float[Tensor, "*_ features features"]) -> None:
        self.mean = parameters.checked_mean(mean, covariance=(covariance, "features features"))
        if covariance.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"covariance must be float32 or float64, got {covariance.dtype}: use covariance.float()")
        variances = covariance.diagonal(dim1=-2, dim2=-1)
        self._keep_factor(parameters.symmetric_covariance(covariance), self._sum_rounding(variances))

    @classmethod
    def _from_rounded_covariance(cls, mean: Tensor, covariance: Tensor, lost: Tensor) -> "Gaussian":
        """From a covariance whose variances were rounded by so much (..., features), as terms may have cancelled."""
        law = cls.__new__(cls)
        law.mean = mean
        law._keep_factor(parameters.mean_of_triangles(covariance), lost)
        return law

    def _keep_factor(self, covariance: Tensor, lost: Tensor) -> None:
        self._covariance, self._lost = covariance, lost.detach()
        self._factor, self.degenerate = _factorized_covariance(covariance, self._lost)

    def _sum_rounding(self, size: Tensor) -> Tensor:
        """What rounding may take from variances that are sums of terms of this size."""
        return self.dimension * torch.finfo(self.mean.dtype).eps * size.abs()

    @classmethod
    def from_cholesky(
        cls, mean: Float[Tensor, "*_ features"], cholesky: Float[Tensor, "*_ features features"]
    ) -> "Gaussian":
        r"""From the factor of $\Sigma = LL^\top$, lower triangular with a positive diagonal: nothing is factorised."""
        law = cls.__new__(cls)
        law.mean = parameters.checked_mean(mean, cholesky=(cholesky, "features features"))
        if bool((cholesky.diagonal(dim1=-2, dim2=-1) <= 0).any()):
            raise ValueError("cholesky must have a positive diagonal")
        if float(torch.linalg.vector_norm(cholesky.detach().triu(1))) > 0:
            raise ValueError("cholesky must be lower triangular: use cholesky.tril()")
        law._covariance, law._lost, law._factor, law.degenerate = None, None, cholesky, False
        return law

    @classmethod
    def fit(cls, x: Float[Tensor, "*batch points features"]) -> "Gaussian":
        r"""The distribution under which the points are likeliest.

        $$ \hat\mu = \frac1n\sum_i x_i, \qquad \hat\Sigma = \frac1n\sum_i (x_i-\hat\mu)(x_i-\hat\mu)^\top $$
        """
        validate.floating("x", x)
        if x.ndim < 2:
            raise ValueError(f"x must be a (..., points, features) tensor, got shape {tuple(x.shape)}")
        mean = x.mean(-2)
        centred = x - mean[..., None, :]
        return cls(mean, parameters.mean_of_triangles(centred.mT @ centred / x.shape[-2]))

    @property
    def cholesky(self) -> Tensor:
        r"""The lower triangular $L$ of $\Sigma = LL^\top$."""
        if self.degenerate:
            raise ValueError("covariance is singular: a degenerate Gaussian has no density, entropy or divergence")
        return self._factor

    @property
    def covariance(self) -> Tensor:
        if self._covariance is None:
            self._covariance = self.cholesky @ self.cholesky.mT
        return self._covariance

    @property
    def logdet(self) -> Tensor:
        return 2 * self.cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def parts(self) -> tuple[Tensor, None]:
        return self._factor, None

    def squared_lengths(self, columns: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(self.cholesky, columns, upper=False).square().sum(-2)

    def inverse_diagonal(self) -> Tensor:
        identity = torch.eye(self.dimension, dtype=self.mean.dtype, device=self.mean.device)
        return self.squared_lengths(identity.expand_as(self.cholesky))

    def characteristic(self, t: Float[Tensor, "... features"]) -> Tensor:
        r"""The characteristic function $\mathbb E[e^{it^\top x}] = \exp(i\,t^\top\mu - \frac12 t^\top\Sigma t)$."""
        t = self._checked_points("t", t)
        spread = (t[..., None, :] @ self.covariance @ t[..., None])[..., 0, 0]
        return torch.exp(torch.complex(-spread / 2, (t * self.mean).sum(-1)))

    # --- New distributions from old ---

    def marginal(self, indices: Sequence[int]) -> "Gaussian":
        """The distribution of some of the features."""
        kept = self._kept_indices(indices)
        covariance = self.covariance[..., kept, :][..., kept]
        return Gaussian._from_rounded_covariance(self.mean[..., kept], covariance, self._variance_rounding()[..., kept])

    def condition(self, indices: Sequence[int], values: Float[Tensor, "... observed"]) -> "Gaussian":
        r"""The distribution of the other features, in their order, once those at `indices` are observed.

        $$ x_2 \mid x_1 = z \sim \mathcal N\big(u_2 + \Sigma_{21}\Sigma_{11}^{-1}(z - u_1),\
           \Sigma_{22} - \Sigma_{21}\Sigma_{11}^{-1}\Sigma_{12}\big) $$
        """
        seen = self._kept_indices(indices)
        rest = [index for index in range(self.dimension) if index not in seen]
        if not rest:
            raise ValueError("indices must leave a feature that is not observed")
        validate.floating("values", values)
        if values.ndim == 0 or values.shape[-1] != len(seen):
            raise ValueError(f"values must be a (..., {len(seen)}) tensor, got shape {tuple(values.shape)}")
        observed = self.marginal(seen)
        # W = L^-1 S12 gives both terms: S21 S11^-1 (z - u1) = W' L^-1 (z - u1) and S21 S11^-1 S12 = W' W.
        cross = self.covariance[..., seen, :][..., rest]
        cross = torch.linalg.solve_triangular(observed.cholesky, cross, upper=False)
        away = torch.linalg.solve_triangular(observed.cholesky, (values - observed.mean)[..., None], upper=False)
        mean = self.mean[..., rest] + (cross.mT @ away)[..., 0]
        prior = self.covariance[..., rest, :][..., rest]
        return Gaussian._from_rounded_covariance(mean, prior - cross.mT @ cross, self._variance_rounding()[..., rest])

    def affine(self, matrix: Float[Tensor, "... out features"], offset: parameters.Real = 0.0) -> "Gaussian":
        r"""That of $Mx + b$: $\mathcal N(M\mu + b, M\Sigma M^\top)$, degenerate if $M$ lacks full row rank."""
        if validate.floating("matrix", matrix).ndim < 2 or matrix.shape[-1] != self.dimension:
            wanted = f"(..., out, {self.dimension})"
            raise ValueError(f"matrix must be a {wanted} tensor, got shape {tuple(matrix.shape)}")
        covariance = matrix @ self.covariance @ matrix.mT
        mean = (matrix @ self.mean[..., None])[..., 0] + parameters.offset_of(offset, matrix)
        size = (matrix.abs() @ self.covariance.abs() * matrix.abs()).sum(-1)
        return Gaussian._from_rounded_covariance(mean, covariance, self._sum_rounding(size))

    def plus(
        self, other: GaussianDistribution, cross: Float[Tensor, "... features features"] | None = None
    ) -> "Gaussian":
        r"""That of $x + y$, for independent ones or for jointly Gaussian ones with the cross-covariance given."""
        self._check_dimension(other)
        covariance = self.covariance + other.covariance
        if cross is not None:
            covariance = covariance + validate.floating("cross", cross) + cross.mT
        lost = self._variance_rounding() + self._sum_rounding(other.covariance.diagonal(dim1=-2, dim2=-1))
        return Gaussian._from_rounded_covariance(self.mean + other.mean, covariance, lost)

    def times(self, other: GaussianDistribution) -> tuple["Gaussian", Tensor]:
        r"""The product of two densities: a Gaussian, and the logarithm of the mass it must be multiplied by.

        $$ \mathcal N(x;a,A)\,\mathcal N(x;b,B) = \mathcal N(a;b,A+B)\,\mathcal N\big(x;\ a + G(b-a),\ A - GA\big),
           \qquad G = A(A+B)^{-1} $$
        """
        self._check_dimension(other)
        total = Gaussian(other.mean, self.covariance + other.covariance)
        gain = torch.cholesky_solve(self.covariance, total.cholesky).mT
        mean = self.mean + (gain @ (other.mean - self.mean)[..., None])[..., 0]
        covariance = self.covariance - gain @ self.covariance
        return Gaussian._from_rounded_covariance(mean, covariance, self._variance_rounding()), total.log_density(
            self.mean
        )

    def _variance_rounding(self) -> Tensor:
        """What rounding may have taken from each variance."""
        return self._sum_rounding(self.covariance.diagonal(dim1=-2, dim2=-1)) if self._lost is None else self._lost

    def _check_dimension(self, other: GaussianDistribution) -> None:
        if other.dimension != self.dimension:
            raise ValueError(f"other must have {self.dimension} features, got {other.dimension}")


def _is_definite(covariance: Tensor, pivots: Tensor) -> bool:
    """Whether a covariance that could be factorised has a density: in doubt only where a pivot kept few digits."""
    variances = covariance.diagonal(dim1=-2, dim2=-1)
    limits = torch.finfo(covariance.dtype)
    if not bool((pivots <= (limits.eps**0.5 * variances).clamp(min=limits.tiny)).any()):
        return True
    # Powers of two make all variances about 1, and round nothing.
    units = torch.ldexp(torch.ones_like(variances).double(), -torch.frexp(variances.double().sqrt()).exponent)
    scaled = covariance.double() * units[..., None] * units[..., None, :]
    return bool(certify_definiteness(scaled).definite.all())


def _factorized_covariance(covariance: Tensor, lost: Tensor) -> tuple[Tensor, bool]:
    """A square root, and whether the matrix is singular: then it is no triangular one. An error if it has none.

    `lost` (..., features) is what rounding may have taken from each variance: a conditional variance below it is
    nothing, and an eigenvalue that is but a few of these units below 0 is no negative one.
    """
    factor, failed = torch.linalg.cholesky_ex(covariance)
    # The square of a pivot is what is left of a variance given the features before.
    pivots = factor.detach().diagonal(dim1=-2, dim2=-1).square()
    if not bool(failed.any() or (pivots <= lost).any()) and _is_definite(covariance.detach(), pivots):
        return factor, False
    units = torch.where(lost > 0, lost, 1.0).sqrt()[..., None]
    eigenvalues, vectors = torch.linalg.eigh(covariance / units / units.mT)
    if bool((eigenvalues.detach()[..., 0] < -10).any()):
        least = float(torch.linalg.eigvalsh(covariance.detach()).min())
        raise ValueError(f"covariance must be positive semidefinite, got the eigenvalue {least:g}")
    return units * vectors * eigenvalues.clamp(min=0.0).sqrt()[..., None, :], True
