r"""The two sign functions of the course, which differ at 0 and only there."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["hopfield_sign", "perceptron_sign"]


@system("perceptron_sign", title="Sign with sgn(0) = 0", kind="function")
def perceptron_sign(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The sign in the convention of the perceptron: zero activation is no label, so it counts as a mistake.

    $$ \mathrm{sgn}(z) = +1\ (z > 0), \quad -1\ (z < 0), \quad 0\ (z = 0) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sgn

    >>> perceptron_sign(torch.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    return torch.sign(validate.floating("z", z))


@system("hopfield_sign", title="Sign with sgn(0) = +1", kind="function")
def hopfield_sign(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The sign in the convention of Hopfield networks: a tie gives $+1$, so every answer is a state.

    $$ \mathrm{sgn}(z) = +1\ (z \ge 0), \quad -1\ (z < 0) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sgn

    >>> hopfield_sign(torch.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.,  1.,  1.])
    """
    validate.floating("z", z)
    return torch.where(z >= 0, 1.0, -1.0).to(z)
