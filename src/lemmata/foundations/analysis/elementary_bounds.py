r"""Inequalities around the exponential and the logarithm, as bounds to compute with."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["log1p_bounds", "power_bound"]


@system("log1p_bounds", title="Bounds on log(1 + x)", kind="function")
def log1p_bounds(x: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    r"""A lower and an upper bound on log(1 + x), both exact to first order at 0.

    $$ x - \tfrac{x^2}{2} \le \log(1+x) \le x \quad (x \ge 0), \qquad
       \frac{x}{1+x} \le \log(1+x) \le x \quad (-1 < x < 0) $$

    Shapes:
        x: any shape, above -1    returns: lower and upper bound, each in the shape of x

    Claims: calculus.log1p

    >>> log1p_bounds(torch.tensor([0.1, -0.5]))
    (tensor([ 0.0950, -1.0000]), tensor([ 0.1000, -0.5000]))
    """
    if (validate.floating("x", x) <= -1).any():
        raise ValueError(f"x must be > -1, where log(1 + x) is defined, got {x.min().item():g}")
    return torch.where(x >= 0, x - x.square() / 2, x / (1 + x)), x


@system("power_bound", title="Bound on a power of 1 - epsilon", kind="function")
def power_bound(epsilon: Float[Tensor, "..."], n: int | Tensor) -> Float[Tensor, "..."]:
    r"""The exponential that bounds the probability of surviving n independent risks of size epsilon.

    $$ (1 - \epsilon)^n \le e^{-n\epsilon}, \qquad \epsilon \le 1 $$

    It follows from $1 - x \le e^{-x}$, which holds for every x, only as long as $1 - \epsilon \ge 0$.

    Shapes:
        epsilon: any shape, at most 1; n: a whole number >= 0 or a tensor of them    returns: broadcast shape

    Claims: calculus.one_minus_x_exp

    >>> power_bound(torch.tensor(0.1), 10)
    tensor(0.3679)
    """
    if (validate.floating("epsilon", epsilon) > 1).any():
        raise ValueError(f"epsilon must be <= 1, or the bound may fail, got {epsilon.max().item():g}")
    if (torch.as_tensor(n) < 0).any():
        raise ValueError(f"n must be >= 0, got {n}")
    return torch.exp(-n * epsilon)
