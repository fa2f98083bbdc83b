r"""The trace of an operator from a few of its products, with a standard error."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["TraceEstimate", "hutch_plus_plus", "hutchinson_trace"]

BLOCK = 8  # vectors at a time: enough to share a pass through a network, few enough to keep


class TraceEstimate(NamedTuple):
    """An unbiased estimate, its standard error (infinite with one probe), and the products that it took.

    The standard error is taken from the probes, and with few of them often far too small: where the quadratic forms
    are about normal, two probes miss the trace by more than four of it in 16 of 100 cases, three in 6, ten in 0.3.
    """

    value: float
    standard_error: float
    products: int


@system("hutchinson", title="Hutchinson's trace estimate", kind="function")
def hutchinson_trace(
    operator: Callable[[Tensor], Tensor],
    probes: int = 50,
    like: Float[Tensor, " n"] | None = None,
    generator: torch.Generator | None = None,
) -> TraceEstimate:
    r"""The mean of the quadratic forms of random signs.

    $$ \mathrm{tr}\,H = \mathbb E\, z^\top H z, \qquad z_i = \pm 1, \qquad
       \mathrm{Var}\, z^\top H z = 2 \sum_{i \ne j} H_{ij}^2 $$

    Exact for diagonal matrices. `like` is a vector of the size, dtype and device that the operator takes; operators of
    this package say them.

    Shapes:
        operator: from (..., n) to (..., n)

    Source: M. Hutchinson, A stochastic estimator of the trace of the influence matrix (1990).

    >>> hutchinson_trace(lambda x: torch.tensor([1.0, 2.0, 3.0]) * x, probes=2, like=torch.ones(3))
    TraceEstimate(value=6.0, standard_error=0.0, products=2)
    """
    signs = _random_signs(operator, validate.count("probes", probes), like, generator)
    forms = torch.cat([_quadratic_forms(operator, part) for part in signs.split(BLOCK)])
    return TraceEstimate(forms.mean().item(), _standard_error(forms), probes)


@system("hutch_plus_plus", title="Hutch++ trace estimate", kind="function")
def hutch_plus_plus(
    operator: Callable[[Tensor], Tensor],
    products: int = 50,
    like: Float[Tensor, " n"] | None = None,
    generator: torch.Generator | None = None,
) -> TraceEstimate:
    r"""The trace on a subspace that holds the large eigenvalues, exactly, and Hutchinson's estimate of the rest.

    $$ \mathrm{tr}\,H = \mathrm{tr}\,Q^\top H Q + \mathrm{tr}\,(I - QQ^\top) H (I - QQ^\top), \qquad
       Q = \mathrm{orth}(HS) $$

    A third of the products sketches the subspace, a third measures it, a third is spent on the rest. Where the
    eigenvalues have one sign, the error falls as one over the number of products, against one over its root, and is
    nothing but rounding where the rank is at most a third of it. Where none of them stand out, the estimate is worse
    than Hutchinson's with as many products, by a factor of up to $\sqrt3$: the standard error says which it is, but
    comes from that last third alone, which below 30 products is too few to go by.

    Shapes:
        operator: from (..., n) to (..., n)

    Source: R. Meyer, C. Musco, C. Musco and D. Woodruff, Hutch++: optimal stochastic trace estimation (2021).

    >>> vector = torch.linspace(0, 1, 100)
    >>> found = hutch_plus_plus(lambda x: (x @ vector)[..., None] * vector, products=6, like=vector)
    >>> abs(found.value - float(vector @ vector)) < 1e-4, found.products
    (True, 6)
    """
    validate.count("products", products, least=3)
    signs = _random_signs(operator, products - products // 3, like, generator)  # (sketch + probes, n)
    sketched = min(products // 3, signs.shape[1])
    if signs.dtype not in (torch.float32, torch.float64):  # torch has no QR of others
        raise TypeError(f"operator must take float32 or float64, got {signs.dtype}: use hutchinson_trace")
    images = torch.cat([operator(part) for part in signs[:sketched].split(BLOCK)])
    basis = torch.linalg.qr(images.mT).Q.mT  # (sketched, n)
    inside = torch.cat([_quadratic_forms(operator, part) for part in basis.split(BLOCK)]).sum().item()
    if sketched == signs.shape[1]:
        return TraceEstimate(inside, 0.0, 2 * sketched)
    rest = signs[sketched:]
    for _ in range(2):  # twice: once leaves what rounding put there
        rest = rest - (rest @ basis.mT) @ basis
    forms = torch.cat([_quadratic_forms(operator, part) for part in rest.split(BLOCK)])
    return TraceEstimate(inside + forms.mean().item(), _standard_error(forms), 2 * sketched + len(rest))


def _random_signs(
    operator: Callable[[Tensor], Tensor], count: int, like: Tensor | None, generator: torch.Generator | None
) -> Tensor:
    if like is not None:
        validate.vector("like", like)
        size, dtype, device = len(like), like.dtype, like.device
    elif hasattr(operator, "size"):
        size, dtype, device = operator.size, operator.dtype, operator.device  # type: ignore[attr-defined]
    else:
        raise ValueError("like must be given for an operator that does not say its size: use torch.ones(n)")
    drawn = torch.randint(0, 2, (count, size), generator=generator, device=device)
    return drawn.to(dtype) * 2 - 1


def _quadratic_forms(operator: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """The quadratic form of each row, added up in double precision; operators that know a shorter way take it."""
    if hasattr(operator, "forms"):
        return operator.forms(vectors)  # type: ignore[attr-defined]
    return (vectors.double() * operator(vectors).double()).sum(-1)


def _standard_error(forms: Tensor) -> float:
    return forms.std().item() / math.sqrt(len(forms)) if len(forms) > 1 else math.inf
