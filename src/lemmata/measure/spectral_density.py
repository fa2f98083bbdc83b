r"""How the eigenvalues of a large operator are distributed, by Lanczos's iteration from a few random vectors."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.eigenvalues import first_vectors
from lemmata.measure.lanczos import krylov_space

__all__ = ["SpectralDensity", "stochastic_spectral_density"]


class SpectralDensity(NamedTuple):
    """Nodes and weights of one quadrature rule for each start; the weights of a rule add up to one.

    Shapes:
        nodes, weights: (probes, steps)
    """

    nodes: Tensor
    weights: Tensor

    def mean(self, function: Callable[[Tensor], Tensor]) -> float:
        """The mean of a function over all eigenvalues."""
        return (self.weights * function(self.nodes)).sum(-1).mean().item()

    def fraction_below(self, value: float) -> float:
        """The estimated share of eigenvalues below a number."""
        return self.mean(lambda nodes: (nodes < value).double())

    def on(self, grid: Float[Tensor, " points"], width: float) -> Float[Tensor, " points"]:
        """The density, each node spread as a normal curve of this width."""
        validate.positive("width", width)
        spread = (grid.double()[:, None, None] - self.nodes) / width  # (points, probes, steps)
        bells = torch.exp(-(spread**2) / 2) / (width * math.sqrt(2 * math.pi))
        return (bells * self.weights).sum(-1).mean(-1)


@system("spectral_density", title="Spectral density by Lanczos quadrature", kind="function")
def stochastic_spectral_density(
    operator: Callable[[Tensor], Tensor],
    probes: int = 8,
    steps: int = 40,
    start: Float[Tensor, "probes n"] | None = None,
    generator: torch.Generator | None = None,
) -> SpectralDensity:
    r"""The distribution of the eigenvalues of a symmetric operator, from quadrature rules of random vectors.

    $$ \frac1n \mathrm{tr}\,f(H) = \mathbb E\, \frac{v^\top f(H)\, v}{\|v\|^2} \approx
       \frac1p \sum_{v} \sum_{k} w_k f(\theta_k), \qquad w_k = (e_1^\top s_k)^2 $$

    $\theta_k$ and $s_k$ are eigenvalues and eigenvectors of the tridiagonal matrix of the Krylov space of $v$: Gauss's
    rule, exact for polynomials of degree below twice the number of steps. All starts go through the operator together.

    Shapes:
        operator: from (..., n) to (..., n), start: (probes, n)    returns: nodes and weights (probes, steps)

    Source: G. Golub and G. Meurant 1994; S. Ubaru, J. Chen and Y. Saad, Fast estimation of tr(f(A)) via stochastic
        Lanczos quadrature (2017); B. Ghorbani, S. Krishnan and Y. Xiao 2019 for networks.

    >>> found = stochastic_spectral_density(lambda x: 2 * x, start=torch.randn(3, 10), steps=4)
    >>> round(found.mean(lambda nodes: nodes), 5), found.fraction_below(1.9)
    (2.0, 0.0)
    """
    start = first_vectors(operator, start, generator, validate.count("probes", probes))
    if start.ndim != 2:
        raise ValueError(f"start must be a (probes, n) tensor, got shape {tuple(start.shape)}")
    space = krylov_space(operator, start, steps, generator)
    values, vectors = torch.linalg.eigh(space.tridiagonal)  # (probes, steps), (probes, steps, steps)
    return SpectralDensity(torch.ldexp(values, space.exponent[:, None]), vectors[:, 0, :].square())
