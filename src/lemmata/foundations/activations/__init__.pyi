"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.activations.rectifiers import absolute_from_relu as absolute_from_relu
from lemmata.foundations.activations.rectifiers import gelu as gelu
from lemmata.foundations.activations.rectifiers import gelu_derivative as gelu_derivative
from lemmata.foundations.activations.rectifiers import gelu_tanh as gelu_tanh
from lemmata.foundations.activations.rectifiers import gelu_tanh_derivative as gelu_tanh_derivative
from lemmata.foundations.activations.rectifiers import relu as relu
from lemmata.foundations.activations.rectifiers import relu_derivative as relu_derivative
from lemmata.foundations.activations.rectifiers import relu_from_absolute as relu_from_absolute
from lemmata.foundations.activations.sigmoids import logit as logit
from lemmata.foundations.activations.sigmoids import sigmoid as sigmoid
from lemmata.foundations.activations.sigmoids import sigmoid_derivative as sigmoid_derivative
from lemmata.foundations.activations.sigmoids import sigmoid_jacobian as sigmoid_jacobian
from lemmata.foundations.activations.sigmoids import sigmoid_second_derivative as sigmoid_second_derivative
from lemmata.foundations.activations.sigmoids import tanh_derivative as tanh_derivative
from lemmata.foundations.activations.signs import hopfield_sign as hopfield_sign
from lemmata.foundations.activations.table import ACTIVATION_TABLE as ACTIVATION_TABLE
from lemmata.foundations.activations.table import Activation as Activation
from lemmata.foundations.activations.table import ValueRange as ValueRange
from lemmata.foundations.activations.table import activation as activation

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "ValueRange",
    "absolute_from_relu",
    "activation",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "hopfield_sign",
    "logit",
    "relu",
    "relu_derivative",
    "relu_from_absolute",
    "sigmoid",
    "sigmoid_derivative",
    "sigmoid_jacobian",
    "sigmoid_second_derivative",
    "tanh_derivative",
]
