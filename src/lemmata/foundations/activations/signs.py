r"""The sign of Hopfield networks, which unlike torch's has no third value."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.marks import system

__all__ = ["hopfield_sign"]


@system("hopfield_sign", title="Sign with sgn(0) = +1", kind="function")
def hopfield_sign(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The sign in the convention of Hopfield networks: a tie gives $+1$, so every answer is a state.

    $$ \mathrm{sgn}(z) = +1\ (z \ge 0), \quad -1\ (z < 0) $$

    The perceptron's convention is `torch.sign`: a zero activation is no label, so it counts as a mistake. Values are
    not looked at, for networks take this sign once for each unit; NaN, which is not at least 0, gives $-1$.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sgn

    >>> hopfield_sign(torch.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.,  1.,  1.])
    """
    one = z.new_ones(())
    return torch.where(z >= 0, one, -one)
