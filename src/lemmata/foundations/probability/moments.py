r"""What first and second moments give: the covariance of images and sums, and bounds on tails."""

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.probability import parameters
from lemmata.marks import system

__all__ = ["chebyshev_bound", "covariance_of_image", "markov_bound", "variance_of_sum"]


@system("covariance_of_image", title="Covariance of a linear image", kind="function")
def covariance_of_image(
    matrix: Float[Tensor, "*batch out features"], covariance: Float[Tensor, "*batch features features"]
) -> Float[Tensor, "*batch out out"]:
    r"""The covariance of $AX$, and of $AX + b$: an offset changes nothing.

    $$ \mathrm{Var}[AX] = A\,\mathrm{Var}[X]\,A^\top $$

    Shapes:
        matrix: (..., out, features), covariance: (..., features, features)    returns: (..., out, out)

    Claims: probability.variance_affine, gaussian.linear_map

    >>> covariance_of_image(torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, -1.0], [-1.0, 2.0]]))
    tensor([[2.]])
    """
    covariance = _square("covariance", covariance)
    if validate.floating("matrix", matrix).ndim < 2 or matrix.shape[-1] != covariance.shape[-1]:
        wanted = f"(..., out, {covariance.shape[-1]})"
        raise ValueError(f"matrix must be a {wanted} tensor, got shape {tuple(matrix.shape)}")
    return matrix @ covariance @ matrix.mT


@system("variance_of_sum", title="Variance of a weighted sum", kind="function")
def variance_of_sum(
    coefficients: Float[Tensor, "*batch features"], covariance: Float[Tensor, "*batch features features"]
) -> Float[Tensor, "*batch"]:
    r"""The variance of a weighted sum of correlated variables.

    $$ \mathrm{Var}\Big[\sum_i a_i X_i\Big]
       = \sum_i a_i^2\,\mathrm{Var}X_i + 2\sum_{i<j} a_i a_j\,\mathrm{Cov}(X_i, X_j) = a^\top \mathrm{Cov}(X)\,a $$

    Shapes:
        coefficients: (..., features), covariance: (..., features, features)    returns: (...)

    Claims: probability.variance_sum

    >>> variance_of_sum(torch.tensor([1.0, -1.0]), torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor(2.)
    """
    if validate.floating("coefficients", coefficients).ndim == 0:
        raise ValueError("coefficients must be a (..., features) tensor, got shape ()")
    return covariance_of_image(coefficients[..., None, :], covariance)[..., 0, 0]


@system("chebyshev_bound", title="Chebyshev's inequality", kind="function")
def chebyshev_bound(variance: parameters.Real, distance: parameters.Real) -> Tensor:
    r"""How likely a variable can at most be this far or farther from its mean; above 1 the bound says nothing.

    $$ P(|X - \mu| \ge \epsilon) \le \frac{\sigma^2}{\epsilon^2}, \qquad \epsilon > 0 $$

    Shapes:
        variance, distance: numbers or tensors that broadcast    returns: a tensor

    Claims: probability.chebyshev

    >>> chebyshev_bound(4.0, 10.0)
    tensor(0.0400, dtype=torch.float64)
    """
    distance = parameters.above_zero("distance", distance, variance)
    return parameters.at_least_zero("variance", variance, distance) / distance.square()


@system("markov_bound", title="Markov's inequality", kind="function")
def markov_bound(mean: parameters.Real, threshold: parameters.Real) -> Tensor:
    r"""How likely a variable that is never negative can at most reach a threshold; above 1 the bound says nothing.

    $$ X \ge 0,\ t > 0: \qquad P(X \ge t) \le \frac{\mathbb E[X]}{t} $$

    It is false for variables that take negative values; of those only a negative mean is noticed here.

    Shapes:
        mean, threshold: numbers or tensors that broadcast    returns: a tensor

    Claims: probability.markov

    >>> markov_bound(2.0, 8.0)
    tensor(0.2500, dtype=torch.float64)
    """
    threshold = parameters.above_zero("threshold", threshold, mean)
    return parameters.at_least_zero("mean", mean, threshold) / threshold


def _square(name: str, value: Tensor) -> Tensor:
    validate.floating(name, value)
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        raise ValueError(f"{name} must be a (..., features, features) tensor, got shape {tuple(value.shape)}")
    return value
