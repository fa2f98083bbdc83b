r"""Least squares with more parameters than examples: the shortest of the best fits, and its exact risk."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["MinNormRisk", "double_descent_risk", "min_norm_fit"]


class MinNormRisk(NamedTuple):
    """Expected squared error on a new example, and expected squared length of the weights."""

    risk: float
    squared_norm: float


@system("min_norm_fit", title="Minimum-norm least squares", kind="function")
def min_norm_fit(
    x: Float[Tensor, "*batch n features"], y: Float[Tensor, "*batch n"], ridge: float = 0.0
) -> Float[Tensor, "*batch features"]:
    r"""The shortest of the weights with the least squared error; with a ridge, the one solution there then is.

    $$ \hat w = X^+ y = \lim_{\lambda\to0}\,\arg\min_w \tfrac1n\|Xw - y\|^2 + \lambda\|w\|^2 $$

    No bias, no warning where there are more features than examples, and batches of data sets at once;
    `LinearRegression` has all of the other conveniences and the same weights.

    Shapes:
        x: (..., n, features), y: (..., n)    returns: (..., features)

    Claims: slt.double_descent

    >>> min_norm_fit(torch.tensor([[2.0, 0.0]]), torch.tensor([2.0])).round(decimals=4)
    tensor([1., 0.])
    """
    x, y = validate.matrices("x", x, "n, features"), validate.floating("y", y)
    if y.shape != x.shape[:-1]:
        raise ValueError(
            f"y must have the shape of x without its features, {tuple(x.shape[:-1])}, got {tuple(y.shape)}"
        )
    n, features = x.shape[-2:]
    weight = n * validate.number("ridge", ridge, least=0.0)
    if not weight:
        return (torch.linalg.pinv(x) @ y[..., None])[..., 0]
    # The smaller of the two Gram matrices: (XᵀX + λ)⁻¹Xᵀ = Xᵀ(XXᵀ + λ)⁻¹
    identity = torch.eye(min(n, features), dtype=x.dtype, device=x.device)
    if features <= n:
        return torch.linalg.solve(x.mT @ x + weight * identity, x.mT @ y[..., None])[..., 0]
    return (x.mT @ torch.linalg.solve(x @ x.mT + weight * identity, y[..., None]))[..., 0]


@system("double_descent_risk", title="Exact double descent curve", kind="function")
def double_descent_risk(weight: Float[Tensor, " features"], p: int, n: int, variance: float = 0.0) -> MinNormRisk:
    r"""The expected risk of the minimum-norm fit of the first p features to n examples: no simulation, no limit.

    For normal features $x\sim\mathcal N(0, I)$ and $y = \beta^\top x + $ noise, with $\beta$ split into the p entries
    that are fitted and the rest, $s^2 = \|\beta_{out}\|^2 + \sigma^2$:

    $$ s^2\Big(1 + \frac{p}{n-p-1}\Big) \text{ for } p \le n-2, \qquad
       \|\beta_{in}\|^2\Big(1-\frac np\Big) + s^2\Big(1 + \frac{n}{p-n-1}\Big) \text{ for } p \ge n+2, $$

    and infinite between, where the smallest singular value has no inverse second moment. The squared length of the
    weights is $\|\beta_{in}\|^2 + s^2p/(n-p-1)$ before and $\|\beta_{in}\|^2n/p + s^2n/(p-n-1)$ after.

    Shapes:
        weight: (features,), the true weights

    Claims: slt.double_descent
    Source: Belkin, Hsu and Xu 2020 (theorem 1, and its proof for the norm); Breiman and Freedman 1983 (p < n).

    >>> beta = torch.full((400,), 0.05)
    >>> [round(double_descent_risk(beta, p, n=40, variance=0.01).risk, 3) for p in (0, 20, 39, 42, 100, 400)]
    [1.01, 1.971, inf, 37.11, 1.425, 0.911]
    """
    weight = validate.vector("weight", weight).detach().double()
    n = validate.count("n", n)
    p = validate.count("p", p, least=0, most=len(weight))
    variance = validate.number("variance", variance, least=0.0)
    inside, outside = float(weight[:p].square().sum()), float(weight[p:].square().sum())
    unexplained = outside + variance
    if p == 0 or p <= n - 2:
        grown = unexplained * p / (n - p - 1) if p else 0.0
        return MinNormRisk(unexplained + grown, inside + grown)
    if p >= n + 2:
        grown = unexplained * n / (p - n - 1)
        return MinNormRisk(inside * (1 - n / p) + unexplained + grown, inside * n / p + grown)
    return MinNormRisk(math.inf, math.inf) if unexplained else _without_noise(inside, n, p)


def _without_noise(inside: float, n: int, p: int) -> MinNormRisk:
    """Where nothing is unexplained the fit is the projection of the truth onto n directions, whatever their lengths."""
    kept = min(n / p, 1.0) if p else 1.0
    return MinNormRisk(inside * (1 - kept), inside * kept)
