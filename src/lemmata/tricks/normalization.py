r"""Values brought to mean zero and variance one, and the gradient through that: what all normalisations share."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["Standardized", "standardize", "standardize_gradient"]


class Standardized(NamedTuple):
    """Values of mean zero and variance one, with the mean and the deviation that they had."""

    values: Tensor
    mean: Tensor
    deviation: Tensor


@system("standardize", title="Values of mean zero and variance one", kind="function")
def standardize(f: Float[Tensor, "..."], dim: int | Sequence[int], eps: int | float = 0.0) -> Standardized:
    r"""Subtract the mean over some axes and divide by the deviation.

    $$ \bar f = \frac{f - \mathbb E[f]}{\sqrt{\mathrm{Var}[f] + \varepsilon}}, \qquad
       \mathrm{Var}[f] = \frac1N \sum_i (f_i - \mathbb E[f])^2 $$

    Without $\varepsilon$, values that are all the same have no deviation, and what comes out is NaN.

    Shapes:
        f: any    returns: values of that shape; mean and deviation with one entry on each axis of `dim`

    Claims: norm.unit, norm.batch.gradient

    >>> standardize(torch.tensor([1.0, 2.0, 3.0, 6.0]), dim=0).values
    tensor([-1.0690, -0.5345,  0.0000,  1.6036])
    """
    if not validate.tensor("f", f).is_floating_point():
        raise TypeError(f"f must be floating point, got {f.dtype}: use f.double()")
    validate.number("eps", eps, least=0)
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    mean = f.mean(dim, keepdim=True)
    centred = f - mean
    deviation = (centred.square().mean(dim, keepdim=True) + eps).sqrt()
    return Standardized(centred / deviation, mean, deviation)


@system("standardize_gradient", title="Gradient through a normalisation", kind="function")
def standardize_gradient(
    upstream: Float[Tensor, "..."], standardized: Standardized, dim: int | Sequence[int]
) -> Float[Tensor, "..."]:
    r"""The gradient with respect to the values before, from that with respect to the standardised ones.

    $$ \frac{\partial\ell}{\partial f_i} = \frac1s \Big(g_i - \frac1N\sum_j g_j
       - \bar f_i \frac1N \sum_j g_j \bar f_j\Big), \qquad s = \sqrt{\mathrm{Var}[f] + \varepsilon} $$

    What is left of the upstream gradient $g$ neither moves all values alike nor, for $\varepsilon = 0$, scales them.

    Shapes:
        upstream: that of the values    returns: the same

    Claims: norm.batch.gradient
    Source: S. Ioffe and C. Szegedy, Batch normalization (2015).

    >>> f = torch.tensor([1.0, 2.0, 3.0, 6.0])
    >>> standardize_gradient(torch.tensor([1.0, 0.0, 0.0, 0.0]), standardize(f, dim=0), dim=0)
    tensor([ 0.2482, -0.2100, -0.1336,  0.0955])
    """
    values, deviation = standardized.values, standardized.deviation
    if validate.tensor("upstream", upstream).shape != values.shape:
        raise ValueError(f"upstream must have the values' shape {tuple(values.shape)}, got {tuple(upstream.shape)}")
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    along = (upstream * values).mean(dim, keepdim=True)
    return (upstream - upstream.mean(dim, keepdim=True) - values * along) / deviation
