"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.activations.signs import hopfield_sign as hopfield_sign
from lemmata.foundations.activations.table import ACTIVATION_TABLE as ACTIVATION_TABLE
from lemmata.foundations.activations.table import Activation as Activation
from lemmata.foundations.activations.table import ValueRange as ValueRange
from lemmata.foundations.activations.table import activation as activation

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "ValueRange",
    "activation",
    "hopfield_sign",
]
