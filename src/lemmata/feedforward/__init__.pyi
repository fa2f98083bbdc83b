"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.feedforward.folding import folding_network as folding_network
from lemmata.feedforward.folding import sawtooth_network as sawtooth_network
from lemmata.feedforward.hyperplane_arrangement import arrangement_regions as arrangement_regions
from lemmata.feedforward.hyperplane_arrangement import most_regions as most_regions
from lemmata.feedforward.mlp import MLP as MLP
from lemmata.feedforward.mlp import MLPConfig as MLPConfig
from lemmata.feedforward.piecewise_linear import PiecewiseLinear as PiecewiseLinear
from lemmata.feedforward.relu_regions import LinearRegions as LinearRegions
from lemmata.feedforward.relu_regions import linear_regions as linear_regions

__all__ = [
    "LinearRegions",
    "MLP",
    "MLPConfig",
    "PiecewiseLinear",
    "arrangement_regions",
    "folding_network",
    "linear_regions",
    "most_regions",
    "sawtooth_network",
]
