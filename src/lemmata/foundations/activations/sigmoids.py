r"""The logistic sigmoid, its inverse and its slope, and the slope of tanh, its rescaled twin: parts of the table.

They are elementwise and used inside networks: like torch's own, they look at no value, so that they work under
`torch.func` and `torch.compile`; NaN stays NaN.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = []  # for the table of activations


def sigmoid(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The logistic function: strictly increasing from 0 to 1, one half at 0.

    $$ \sigma(z) = \frac1{1 + e^{-z}}, \qquad \sigma(-z) = 1 - \sigma(z) $$

    Claims: activation.sigmoid, activation.sigmoid_symmetry, activation.tanh_sigmoid
    """
    return torch.sigmoid(floating_dtype("z", z))


def logit(y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The log-odds of a probability: where the sigmoid takes the value $y$, strictly between 0 and 1.

    $$ \sigma^{-1}(y) = \ln\frac{y}{1 - y} $$

    Claims: activation.sigmoid

    >>> logit(torch.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    validate.floating("y", y)
    outside = y[(y <= 0) | (y >= 1)]
    if outside.numel():
        value = f"{float(outside[0]):g}"
        raise ValueError(f"y must lie strictly between 0 and 1, got {value}: the sigmoid takes no such value")
    return torch.log(y) - torch.log1p(-y)


def sigmoid_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the logistic function, largest at 0 where it is one quarter.

    $$ \sigma'(z) = \sigma(z)\,(1 - \sigma(z)) = \tfrac14 \mathrm{sech}^2(z/2) = \tfrac14\big(1 - \tanh^2(z/2)\big) $$

    Computed as $\sigma(z)\sigma(-z)$, which keeps full precision in both tails.

    Claims: activation.sigmoid_derivative, activation.sigmoid_second_derivative
    """
    return sigmoid(z) * sigmoid(-z)


def tanh_derivative(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The slope of the hyperbolic tangent, largest at 0 where it is one.

    $$ \tanh'(z) = 1 - \tanh^2(z) = 4\,\sigma'(2z) $$

    The last form is computed: the first one is lost to rounding once $|z|$ exceeds 18.

    Claims: activation.tanh_derivative
    """
    return 4 * sigmoid_derivative(2 * z)


def floating_dtype(name: str, value: Tensor) -> Tensor:
    """A floating-point tensor, whatever it holds: the values of a tensor under vmap cannot be asked."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: use torch.as_tensor({name})")
    if not value.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {value.dtype}: use {name}.double()")
    return value
