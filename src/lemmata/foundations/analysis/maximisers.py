r"""All the places where a maximum is taken."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["argmax_set"]


@system("argmax_set", title="Set of maximisers", kind="function")
def argmax_set(values: Float[Tensor, "*batch points"]) -> Bool[Tensor, "*batch points"]:
    r"""Mark every maximiser, ties included, where torch.argmax names only one of them.

    $$ \arg\max_x g(x) = \{x : g(x) \ge g(y) \text{ for all } y\} $$

    A strictly increasing map of the values changes nothing; one that merely does not decrease may add maximisers.

    Shapes:
        values: (..., points)    returns: (..., points), true where the value is the largest

    Claims: calculus.argmax_monotone

    >>> argmax_set(torch.tensor([3.0, 1.0, 3.0]))
    tensor([ True, False,  True])
    """
    if isinstance(values, Tensor) and values.ndim == 0:
        raise ValueError("values must be a (..., points) tensor, got one number")
    return validate.floating("values", values) == torch.amax(values, dim=-1, keepdim=True)
