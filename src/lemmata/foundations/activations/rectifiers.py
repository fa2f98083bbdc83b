r"""ReLU with the slopes it has at its kink, and GELU, its smooth relative, with its approximation.

They are elementwise and used inside networks: like torch's own, they look at no value; NaN stays NaN.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.activations.sigmoids import floating_dtype
from lemmata.marks import system

__all__ = [
    "absolute_from_relu",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "relu",
    "relu_derivative",
    "relu_from_absolute",
]

CUBIC = 0.044715  # of the tanh approximation, from Hendrycks and Gimpel


@system("relu", title="Rectified linear unit", kind="function")
def relu(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The positive part.

    $$ \mathrm{ReLU}(z) = \max(z, 0), \qquad z = \mathrm{ReLU}(z) - \mathrm{ReLU}(-z) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.relu_abs, activation.relu_derivative

    >>> relu(torch.tensor([-2.0, 3.0]))
    tensor([0., 3.])
    """
    return torch.relu(floating_dtype("z", z))


def relu_from_absolute(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The positive part, written with the absolute value.

    $$ \mathrm{ReLU}(z) = \frac{|z| + z}{2} $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.relu_abs

    >>> relu_from_absolute(torch.tensor([-2.0, 3.0]))
    tensor([0., 3.])
    """
    half = floating_dtype("z", z) / 2
    return half.abs() + half  # halved first, so that the sum of two large numbers cannot overflow


def absolute_from_relu(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The absolute value, written with two rectifiers: a network of two ReLU units computes it.

    $$ |z| = \mathrm{ReLU}(z) + \mathrm{ReLU}(-z) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.relu_abs

    >>> absolute_from_relu(torch.tensor([-2.0, 3.0]))
    tensor([2., 3.])
    """
    return relu(z) + relu(-z)


@system("relu_derivative", title="Derivative of ReLU", kind="function")
def relu_derivative(z: Float[Tensor, "..."], at_zero: int | float = 0.0) -> Float[Tensor, "..."]:
    r"""The slope of the positive part; at 0, where it has none, the element of $[0, 1]$ that is asked for.

    $$ \mathrm{ReLU}'(z) = \mathbb 1\{z > 0\}\ (z \ne 0), \qquad \partial\,\mathrm{ReLU}(0) = [0, 1] $$

    torch chooses 0 at 0, and so does this function unless told otherwise.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.relu_derivative

    >>> relu_derivative(torch.tensor([-2.0, 0.0, 3.0])), relu_derivative(torch.zeros(1), at_zero=0.5)
    (tensor([0., 0., 1.]), tensor([0.5000]))
    """
    validate.fraction("at_zero", at_zero, most=1)  # a slope of a supporting line
    chosen = torch.full_like(floating_dtype("z", z), at_zero)
    return torch.heaviside(z.detach(), chosen)


@system("gelu", title="GELU", kind="function")
def gelu(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The input times the probability that a standard normal variable does not exceed it.

    $$ \varphi(z) = z\,P(Z \le z) = z\,\Phi(z), \qquad \Phi(z) = \tfrac12\big(1 + \mathrm{erf}(z/\sqrt2)\big) $$

    Computed with erfc, which keeps full precision for negative inputs.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.gelu
    Source: Hendrycks, Gimpel 2016.

    >>> gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    return z * _normal_cdf(floating_dtype("z", z))


@system("gelu_derivative", title="Derivative of GELU", kind="function")
def gelu_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of GELU, from $-0.129$ at $z = -\sqrt2$ to $1.129$ at $z = \sqrt2$.

    $$ \varphi'(z) = \Phi(z) + z\,\phi(z), \qquad \phi(z) = e^{-z^2/2}/\sqrt{2\pi} $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.gelu

    >>> gelu_derivative(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 1.0833])
    """
    below = _normal_cdf(floating_dtype("z", z))
    return below + z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)


@system("gelu_tanh", title="GELU, approximated by tanh", kind="function")
def gelu_tanh(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The usual approximation of GELU, wrong by less than $5 \cdot 10^{-4}$ everywhere.

    $$ \tfrac z2\Big(1 + \tanh\big(\sqrt{2/\pi}\,(z + 0.044715\,z^3)\big)\Big) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.gelu
    Source: Hendrycks, Gimpel 2016.

    >>> gelu_tanh(torch.tensor([-1.0, 1.0]))
    tensor([-0.1588,  0.8412])
    """
    return z * torch.sigmoid(2 * _inner(floating_dtype("z", z)))


def gelu_tanh_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the approximation of GELU by tanh.

    $$ \sigma(2u) + 2 z\,u'\,\sigma(2u)\,\sigma(-2u), \qquad u = \sqrt{2/\pi}\,(z + 0.044715\,z^3) $$

    Shapes:
        z: (...)    returns: (...)

    >>> gelu_tanh_derivative(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 1.0830])
    """
    doubled = 2 * _inner(floating_dtype("z", z))
    slope = 2 * math.sqrt(2 / math.pi) * (1 + 3 * CUBIC * z * z)
    step = torch.sigmoid(doubled)
    return step + z * slope * step * torch.sigmoid(-doubled)


def _normal_cdf(z: Tensor) -> Tensor:
    return torch.special.erfc(-z / math.sqrt(2)) / 2


def _inner(z: Tensor) -> Tensor:
    return math.sqrt(2 / math.pi) * (z + CUBIC * z**3)
