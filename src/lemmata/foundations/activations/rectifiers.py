r"""ReLU with the slope that torch gives it at its kink, and GELU with its approximation: parts of the table.

They are elementwise and used inside networks: like torch's own, they look at no value. Values are by torch's kernels,
which go over memory once; slopes are written out, with full precision in both tails.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata.foundations.activations.sigmoids import floating_dtype

__all__ = []  # for the table of activations

CUBIC = 0.044715  # of the tanh approximation, from Hendrycks and Gimpel


def relu(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The positive part.

    $$ \mathrm{ReLU}(z) = \max(z, 0), \qquad z = \mathrm{ReLU}(z) - \mathrm{ReLU}(-z) $$

    Claims: activation.relu_abs, activation.relu_derivative
    """
    return torch.relu(floating_dtype("z", z))


def relu_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the positive part; at 0, where it has none, torch's choice among those in $[0, 1]$, which is 0.

    $$ \mathrm{ReLU}'(z) = \mathbb 1\{z > 0\} $$

    Claims: activation.relu_derivative

    >>> relu_derivative(torch.tensor([-2.0, 0.0, 3.0]))
    tensor([0., 0., 1.])
    """
    return (floating_dtype("z", z) > 0).to(z.dtype)


def gelu(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The input times the probability that a standard normal variable does not exceed it.

    $$ \varphi(z) = z\,P(Z \le z) = z\,\Phi(z), \qquad \Phi(z) = \tfrac12\big(1 + \mathrm{erf}(z/\sqrt2)\big) $$

    Claims: activation.gelu
    Source: Hendrycks, Gimpel 2016.
    """
    return functional.gelu(floating_dtype("z", z))


def gelu_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of GELU, from $-0.129$ at $z = -\sqrt2$ to $1.129$ at $z = \sqrt2$.

    $$ \varphi'(z) = \Phi(z) + z\,\phi(z), \qquad \phi(z) = e^{-z^2/2}/\sqrt{2\pi} $$

    Claims: activation.gelu
    """
    below = _normal_cdf(floating_dtype("z", z))
    return below + z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def gelu_tanh(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The usual approximation of GELU, wrong by less than $5 \cdot 10^{-4}$ everywhere.

    $$ \tfrac z2\Big(1 + \tanh\big(\sqrt{2/\pi}\,(z + 0.044715\,z^3)\big)\Big) $$

    Claims: activation.gelu
    Source: Hendrycks, Gimpel 2016.
    """
    return functional.gelu(floating_dtype("z", z), approximate="tanh")


def gelu_tanh_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the approximation of GELU by tanh.

    $$ \sigma(2u) + 2 z\,u'\,\sigma(2u)\,\sigma(-2u), \qquad u = \sqrt{2/\pi}\,(z + 0.044715\,z^3) $$
    """
    doubled = 2 * _tanh_argument(floating_dtype("z", z))
    slope = 2 * math.sqrt(2 / math.pi) * (1 + 3 * CUBIC * z * z)
    step = torch.sigmoid(doubled)
    return step + z * slope * step * torch.sigmoid(-doubled)


def _normal_cdf(z: Tensor) -> Tensor:
    return torch.special.erfc(-z / math.sqrt(2)) / 2


def _tanh_argument(z: Tensor) -> Tensor:
    return math.sqrt(2 / math.pi) * (z + CUBIC * z**3)
