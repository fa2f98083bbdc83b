r"""The logistic sigmoid, its inverse and its derivatives, and the derivative of tanh, its rescaled twin.

They are elementwise and used inside networks: like torch's own, they look at no value, so that they work under
`torch.func` and `torch.compile`; NaN stays NaN.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = [
    "logit",
    "sigmoid",
    "sigmoid_derivative",
    "sigmoid_jacobian",
    "sigmoid_second_derivative",
    "tanh_derivative",
]


@system("sigmoid", title="Logistic sigmoid", kind="function")
def sigmoid(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The logistic function: strictly increasing from 0 to 1, one half at 0.

    $$ \sigma(z) = \frac1{1 + e^{-z}}, \qquad \sigma(-z) = 1 - \sigma(z) $$

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sigmoid, activation.sigmoid_symmetry, activation.tanh_sigmoid

    >>> sigmoid(torch.tensor([-800.0, 0.0, 800.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return torch.sigmoid(floating_dtype("z", z))


@system("logit", title="Logit, the inverse of the sigmoid", kind="function")
def logit(y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The log-odds of a probability: where the sigmoid takes the value $y$.

    $$ \sigma^{-1}(y) = \ln\frac{y}{1 - y}, \qquad 0 < y < 1 $$

    Shapes:
        y: (...) between 0 and 1, both excluded    returns: (...)

    Claims: activation.sigmoid

    >>> logit(torch.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    validate.floating("y", y)
    if ((y <= 0) | (y >= 1)).any():
        raise ValueError(f"y must lie strictly between 0 and 1, got {_outside(y):g}: the sigmoid takes no such value")
    return torch.log(y) - torch.log1p(-y)


@system("sigmoid_derivative", title="Derivative of the sigmoid", kind="function")
def sigmoid_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the logistic function, largest at 0 where it is one quarter.

    $$ \sigma'(z) = \sigma(z)\,(1 - \sigma(z)) = \tfrac14 \mathrm{sech}^2(z/2) = \tfrac14\big(1 - \tanh^2(z/2)\big) $$

    Computed as $\sigma(z)\sigma(-z)$, which keeps full precision in both tails.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sigmoid_derivative

    >>> sigmoid_derivative(torch.tensor([0.0, 1.3]))
    tensor([0.2500, 0.1683])
    """
    return sigmoid(z) * sigmoid(-z)


def sigmoid_jacobian(x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n"]:
    r"""The Jacobian of the sigmoid of a vector: a diagonal matrix, for each output depends on its own input alone.

    $$ J_\sigma(x) = \mathrm{diag}\big(\sigma(x) \odot (1 - \sigma(x))\big) $$

    Shapes:
        x: (..., n)    returns: (..., n, n)

    Claims: activation.sigmoid_derivative

    >>> sigmoid_jacobian(torch.zeros(2))
    tensor([[0.2500, 0.0000],
            [0.0000, 0.2500]])
    """
    if floating_dtype("x", x).ndim == 0:
        raise ValueError("x must be a (..., n) tensor, got shape (): use x[None]")
    return torch.diag_embed(sigmoid_derivative(x))


@system("sigmoid_second_derivative", title="Second derivative of the sigmoid", kind="function")
def sigmoid_second_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""How the slope of the logistic function changes: positive left of 0, negative right of it.

    $$ \sigma''(z) = \sigma(z)\,(1 - \sigma(z))\,(1 - 2\sigma(z)) $$

    The last factor is computed as $-\tanh(z/2)$, which does not cancel near 0.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.sigmoid_second_derivative

    >>> sigmoid_second_derivative(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([ 0.0909, -0.0000, -0.0909])
    """
    return -sigmoid_derivative(z) * torch.tanh(z / 2)


@system("tanh_derivative", title="Derivative of tanh", kind="function")
def tanh_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the hyperbolic tangent, largest at 0 where it is one.

    $$ \tanh'(z) = 1 - \tanh^2(z) = 4\,\sigma'(2z) $$

    The last form is computed: the first one is lost to rounding once $|z|$ exceeds 18.

    Shapes:
        z: (...)    returns: (...)

    Claims: activation.tanh_derivative

    >>> tanh_derivative(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.4200])
    """
    return 4 * sigmoid_derivative(2 * z)


def floating_dtype(name: str, value: Tensor) -> Tensor:
    """A floating-point tensor, whatever it holds: the values of a tensor under vmap cannot be asked."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: use torch.as_tensor({name})")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}: use {name}.double()")
    return value


def _outside(y: Tensor) -> float:
    return float(y[(y <= 0) | (y >= 1)][0])
