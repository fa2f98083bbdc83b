"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.feedforward.barron import barron_network as barron_network
from lemmata.feedforward.deep_linear import DeepLinear as DeepLinear
from lemmata.feedforward.folding import folding_network as folding_network
from lemmata.feedforward.folding import sawtooth_network as sawtooth_network
from lemmata.feedforward.hyperplane_arrangement import arrangement_regions as arrangement_regions
from lemmata.feedforward.hyperplane_arrangement import most_regions as most_regions
from lemmata.feedforward.least_mean_squares import widrow_hoff as widrow_hoff
from lemmata.feedforward.linear_regression import LinearRegression as LinearRegression
from lemmata.feedforward.logistic_regression import LogisticRegression as LogisticRegression
from lemmata.feedforward.mlp import MLP as MLP
from lemmata.feedforward.mlp import MLPConfig as MLPConfig
from lemmata.feedforward.parity_networks import ExclusiveOr as ExclusiveOr
from lemmata.feedforward.parity_networks import ParityNetwork as ParityNetwork
from lemmata.feedforward.parity_networks import parity_by_terms as parity_by_terms
from lemmata.feedforward.parity_networks import parity_by_thresholds as parity_by_thresholds
from lemmata.feedforward.piecewise_linear import PiecewiseLinear as PiecewiseLinear
from lemmata.feedforward.random_features import RandomFeatures as RandomFeatures
from lemmata.feedforward.relu_regions import LinearRegions as LinearRegions
from lemmata.feedforward.relu_regions import linear_regions as linear_regions
from lemmata.feedforward.residual import DenselyConnectedBlock as DenselyConnectedBlock
from lemmata.feedforward.residual import ResidualLayer as ResidualLayer
from lemmata.feedforward.residual import ResidualMLP as ResidualMLP
from lemmata.feedforward.residual import ResidualMLPConfig as ResidualMLPConfig
from lemmata.feedforward.risk import RiskEstimate as RiskEstimate
from lemmata.feedforward.risk import empirical_risk as empirical_risk
from lemmata.feedforward.shallow_network import ShallowNetwork as ShallowNetwork
from lemmata.feedforward.softmax import binary_cross_entropy as binary_cross_entropy
from lemmata.feedforward.softmax import cross_entropy as cross_entropy
from lemmata.feedforward.uniform_distances import UniformDistance as UniformDistance
from lemmata.feedforward.uniform_distances import uniform_distance as uniform_distance
from lemmata.feedforward.uniform_fits import UniformFit as UniformFit
from lemmata.feedforward.uniform_fits import uniform_fit as uniform_fit
from lemmata.feedforward.weight_matching import interpolate_weights as interpolate_weights
from lemmata.feedforward.weight_matching import loss_barrier as loss_barrier
from lemmata.feedforward.weight_matching import match_hidden_units as match_hidden_units

__all__ = [
    "DeepLinear",
    "DenselyConnectedBlock",
    "ExclusiveOr",
    "LinearRegions",
    "LinearRegression",
    "LogisticRegression",
    "MLP",
    "MLPConfig",
    "ParityNetwork",
    "PiecewiseLinear",
    "RandomFeatures",
    "ResidualLayer",
    "ResidualMLP",
    "ResidualMLPConfig",
    "RiskEstimate",
    "ShallowNetwork",
    "UniformDistance",
    "UniformFit",
    "arrangement_regions",
    "barron_network",
    "binary_cross_entropy",
    "cross_entropy",
    "empirical_risk",
    "folding_network",
    "interpolate_weights",
    "linear_regions",
    "loss_barrier",
    "match_hidden_units",
    "most_regions",
    "parity_by_terms",
    "parity_by_thresholds",
    "sawtooth_network",
    "uniform_distance",
    "uniform_fit",
    "widrow_hoff",
]
