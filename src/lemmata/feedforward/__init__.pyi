"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.feedforward.mlp import MLP as MLP
from lemmata.feedforward.mlp import MLPConfig as MLPConfig

__all__ = [
    "MLP",
    "MLPConfig",
]
