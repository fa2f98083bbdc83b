r"""How far a linear model's answer is from another one, in any norm, and the shortest way there, in closed form."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.robustness.norm_ball import steepest_direction

__all__ = ["LinearDistance", "linear_distance"]


@dataclass(frozen=True)
class LinearDistance:
    """The nearest points at which a linear model hesitates."""

    distances: Float[Tensor, "batch"]
    """Length of each shortest perturbation, which can be differentiated; infinity where no class can be reached."""
    perturbations: Float[Tensor, "batch inputs"]
    """The perturbations themselves, which lead to the boundary and not beyond it; NaN where there is none."""
    nearest: Int[Tensor, "batch"]
    """The class on the other side."""


@system("linear_distance", title="Distance of a linear model's boundary", kind="function")
def linear_distance(
    weight: Float[Tensor, "classes inputs"],
    bias: Float[Tensor, "classes"],
    x: Float[Tensor, "batch inputs"],
    norm: int | float = 2,
) -> LinearDistance:
    r"""The smallest $\|\delta\|_p$ with which another logit of $f(x)=Wx+b$ is as large as that of the answer $k$.

    $$ \min_{i\ne k}\frac{f_k(x)-f_i(x)}{\|w_k-w_i\|_q},\quad \tfrac1p+\tfrac1q=1, \qquad
       \delta^*_2 = \frac{f_k(x)-f_i(x)}{\|w_k-w_i\|_2^2}\,(w_i-w_k) $$

    Each pair of classes has one plane between them. By Hölder's inequality no shorter $\delta$ crosses it, and the
    direction in which that is an equality crosses it first. One row of `weight` is a binary classifier: its classes 1
    and 0 are the signs of $w^\top x+b$. Any $p\ge1$ will do, infinity too. The rows i and j of a larger model, as
    `weight[[i, j]]`, give the distance between these two. No box is minded.

    Shapes:
        weight: (classes, inputs), bias: (classes,), x: (batch, inputs)    returns: LinearDistance

    Claims: attack.linear_flip, attack.linear_min_l2, attack.linear_pair, attack.linear_multiclass,
        attack.linear_dual_norm

    >>> import torch
    >>> found = linear_distance(torch.tensor([[3.0, 4.0]]), torch.tensor([0.0]), torch.tensor([[1.0, 0.5]]))
    >>> found.distances, found.perturbations
    (tensor([1.]), tensor([[-0.6000, -0.8000]]))
    """
    weight, bias = _two_rows(validate.matrix("weight", weight, "classes, inputs"), bias)
    validate.fits("x", x, (len(x), weight.shape[1]), weight, "weight")
    if norm != math.inf:
        validate.number("norm", norm, least=1)
    logits = x @ weight.mT + bias  # (batch, classes)
    answer = logits.argmax(1)
    gaps = logits.amax(1, keepdim=True) - logits  # (batch, classes), zero for the answer itself
    towards = weight - weight[answer][:, None]  # (batch, classes, inputs)
    # the direction is the dual norm's own gradient, and need not be differentiated itself
    directions = steepest_direction(towards.detach().flatten(0, 1), norm).view_as(towards)
    dual_norms = (towards * directions).sum(-1)  # (batch, classes), what a step of length one gains
    parallel = dual_norms == 0
    distances = torch.where(parallel & (gaps > 0), math.inf, gaps / torch.where(parallel, 1, dual_norms))
    distances = distances.scatter(1, answer[:, None], math.inf)
    least, nearest = distances.min(1)
    chosen = directions[torch.arange(len(x), device=x.device), nearest]  # (batch, inputs)
    perturbations = torch.where(least.isinf()[:, None], math.nan, least.detach()[:, None] * chosen)
    return LinearDistance(least, perturbations, nearest)


def _two_rows(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A binary classifier as one with two logits, 0 and w.x + b."""
    bias = validate.fits("bias", bias, (len(weight),), weight, "weight")
    if len(weight) > 1:
        return weight, bias
    return torch.cat([torch.zeros_like(weight), weight]), torch.cat([torch.zeros_like(bias), bias])
