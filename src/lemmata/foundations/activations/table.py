r"""One table of activation functions: values, derivatives, inverses, ranges, monotony and Lipschitz constants."""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations.rectifiers import (
    gelu,
    gelu_derivative,
    gelu_tanh,
    gelu_tanh_derivative,
    relu,
    relu_derivative,
)
from lemmata.foundations.activations.sigmoids import logit, sigmoid, sigmoid_derivative, tanh_derivative
from lemmata.marks import system

__all__ = ["ACTIVATION_TABLE", "Activation", "ValueRange", "activation"]

HE, LECUN = math.sqrt(2), 1.0  # the gain of a layer that drops about half of its input, and of one that keeps it
LEAK = 0.01


@dataclass(frozen=True)
class ValueRange:
    """The interval of values that a function takes; `attained` says whether the lower end is one of them.

    >>> str(ValueRange(0.0, math.inf, attained=True)), str(ValueRange(-1.0, 1.0))
    ('[0, inf)', '(-1, 1)')
    """

    low: float = -math.inf
    high: float = math.inf
    attained: bool = False

    def __contains__(self, value: float) -> bool:
        return (self.low <= value if self.attained else self.low < value) and value < self.high

    def __str__(self) -> str:
        return f"{'[' if self.attained else '('}{self.low:g}, {self.high:g})"


@dataclass(frozen=True)
class Activation:
    r"""An activation function with what is known about it; called, it gives its value.

    `derivative` is that of torch at a kink. `lipschitz` is the smallest constant, the largest size of the slope, or
    the next float above it;
    `gain` the factor of initial weights whose deviation is gain / sqrt(inputs) (He's where about half of the input is
    dropped, LeCun's elsewhere). `inverse` is None where two inputs share a value; outside the range it has no meaning:
    use `invert`, which says so in words.

    $$ |\phi(a) - \phi(b)| \le L\,|a - b|, \qquad L = \sup_z |\phi'(z)| $$

    Claims: smooth.lipschitz, activation.sigmoid

    >>> activation("tanh").invert(torch.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """

    name: str
    value: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor] | None
    range: ValueRange
    monotone: bool
    lipschitz: float
    gain: float

    def __call__(self, z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.value(z)

    def invert(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The input at which the function takes the value $y$; an error where there is none or more than one."""
        if self.inverse is None:
            raise ValueError(f"{self.name} has no inverse: it takes some values more than once")
        validate.floating("y", y)
        wrong = [value for value in (float(y.min()), float(y.max())) if value not in self.range]
        if wrong:
            raise ValueError(f"y must lie in {self.range}, the range of {self.name}, got {wrong[0]:g}")
        return self.inverse(y)


@system("activation", title="Activation functions with derivatives, inverses and ranges", kind="function")
def activation(name: str) -> Activation:
    r"""The activation function of that name, with its derivative, inverse, range and Lipschitz constant.

    $$ \phi, \quad \phi', \quad \phi^{-1}, \quad \phi(\mathbb R), \quad \sup_z |\phi'(z)| $$

    Shapes:
        every function of it: (...) to (...)

    Claims: smooth.lipschitz, activation.sigmoid

    >>> known = activation("sigmoid")
    >>> known.lipschitz, known.monotone, str(known.range), known(torch.zeros(1))
    (0.25, True, '(0, 1)', tensor([0.5000]))
    >>> activation("rleu")
    Traceback (most recent call last):
    ValueError: unknown activation 'rleu': did you mean relu?
    """
    if not isinstance(name, str) or name not in ACTIVATION_TABLE:
        near = difflib.get_close_matches(str(name), ACTIVATION_TABLE, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(ACTIVATION_TABLE)}"
        raise ValueError(f"unknown activation {name!r}: {hint}")
    return ACTIVATION_TABLE[name]


def _same_value(z: Tensor) -> Tensor:
    return z


def _leaky_slope(z: Tensor) -> Tensor:
    return torch.where(z > 0, torch.ones_like(z), LEAK)


def _leaky_inverse(y: Tensor) -> Tensor:
    return torch.where(y > 0, y, y / LEAK)


def _elu_slope(z: Tensor) -> Tensor:
    return torch.exp(z.clamp(max=0.0))


def _elu_inverse(y: Tensor) -> Tensor:
    return torch.where(y > 0, y, torch.log1p(y))


def _silu_slope(z: Tensor) -> Tensor:
    return sigmoid(z) + z * sigmoid_derivative(z)


def _softplus_inverse(y: Tensor) -> Tensor:
    return y + torch.log(-torch.expm1(-y))


def _exact_softplus(z: Tensor) -> Tensor:
    """Exact in the tails too, where torch's own switches to a straight line above 20."""
    return torch.logaddexp(z, torch.zeros_like(z))


def _softsign_slope(z: Tensor) -> Tensor:
    return (1 + z.abs()) ** -2


def _softsign_inverse(y: Tensor) -> Tensor:
    return y / (1 - y.abs())


# The least values of gelu, its approximation and silu, and their steepest slopes (where z = sqrt 2 for gelu), are
# roots of transcendental equations: -0.1699712 = min z Phi(z); silu's least value is -W(1/e). What bounds is rounded
# outwards, the slopes up and the values down.
_ENTRIES = (
    Activation(
        "relu", relu, relu_derivative, None, ValueRange(0.0, attained=True),
        monotone=True, lipschitz=1.0, gain=HE,
    ),
    Activation(
        "leaky_relu", functional.leaky_relu, _leaky_slope, _leaky_inverse, ValueRange(),
        monotone=True, lipschitz=1.0, gain=HE,
    ),
    Activation(
        "elu", functional.elu, _elu_slope, _elu_inverse, ValueRange(-1.0),
        monotone=True, lipschitz=1.0, gain=HE,
    ),
    Activation(
        "gelu", gelu, gelu_derivative, None, ValueRange(-0.16997120747990369, attained=True),
        monotone=False, lipschitz=1.128904145185155, gain=HE,
    ),
    Activation(
        "gelu_tanh", gelu_tanh, gelu_tanh_derivative, None, ValueRange(-0.17004075057125406, attained=True),
        monotone=False, lipschitz=1.128993068658772, gain=HE,
    ),
    Activation(
        "silu", functional.silu, _silu_slope, None, ValueRange(-0.2784645427610738, attained=True),
        monotone=False, lipschitz=1.099839320128867, gain=HE,
    ),
    Activation(
        "softplus", _exact_softplus, sigmoid, _softplus_inverse, ValueRange(0.0),
        monotone=True, lipschitz=1.0, gain=HE,
    ),
    Activation(
        "tanh", torch.tanh, tanh_derivative, torch.atanh, ValueRange(-1.0, 1.0),
        monotone=True, lipschitz=1.0, gain=LECUN,
    ),
    Activation(
        "sigmoid", sigmoid, sigmoid_derivative, logit, ValueRange(0.0, 1.0),
        monotone=True, lipschitz=0.25, gain=LECUN,
    ),
    Activation(
        "softsign", functional.softsign, _softsign_slope, _softsign_inverse, ValueRange(-1.0, 1.0),
        monotone=True, lipschitz=1.0, gain=LECUN,
    ),
    Activation(
        "identity", _same_value, torch.ones_like, _same_value, ValueRange(),
        monotone=True, lipschitz=1.0, gain=LECUN,
    ),
)  # fmt: skip

ACTIVATION_TABLE: Mapping[str, Activation] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
