r"""Covariance functions from words, for command lines and pages."""

from lemmata import validate
from lemmata.kernel.covariance_functions import ConstantKernel, CovarianceFunction, ProductKernel, SumKernel
from lemmata.kernel.inner_product_kernels import ArcCosineKernel, LinearKernel
from lemmata.kernel.stationary_kernels import MaternKernel, PeriodicKernel, RBFKernel
from lemmata.marks import system

__all__ = ["covariance_function"]

KNOWN = {
    "rbf": RBFKernel,
    "matern12": lambda scale: MaternKernel(0.5, scale),
    "matern32": lambda scale: MaternKernel(1.5, scale),
    "matern52": lambda scale: MaternKernel(2.5, scale),
    "periodic": lambda scale: PeriodicKernel(1.0, scale),
    "linear": lambda scale: LinearKernel(),
    "arc_cosine": lambda scale: ArcCosineKernel(),
    "constant": lambda scale: ConstantKernel(),
}


@system("covariance_function", title="Covariance function by its name", kind="function")
def covariance_function(name: str, features: int | None = None) -> CovarianceFunction:
    """A kernel from words, such as "rbf" or "matern32 * periodic + linear"; with `features`, one length scale for each.

    Of the factors of a product only the first has a variance that is fitted.


    >>> covariance_function("rbf + linear", features=2)
    SumKernel(
      (parts): ModuleList(
        (0): RBFKernel(length_scale=[1, 1], variance=1)
        (1): LinearKernel(variance=1, bias_variance=0)
      )
    )
    """
    scale = 1.0 if features is None else [1.0] * validate.count("features", features)
    terms = []
    for term in name.split("+"):
        words = [word.strip() for word in term.split("*")]
        factors = [KNOWN[validate.one_of("kernel", word, KNOWN)](scale) for word in words]
        for factor in factors[1:]:
            factor.log_variance.requires_grad_(False)
        terms.append(factors[0] if len(factors) == 1 else ProductKernel(*factors))
    return terms[0] if len(terms) == 1 else SumKernel(*terms)
