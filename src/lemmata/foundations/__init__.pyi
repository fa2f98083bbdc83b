"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations import activations as activations
from lemmata.foundations import analysis as analysis
from lemmata.foundations import information as information
from lemmata.foundations import linear_algebra as linear_algebra
from lemmata.foundations import matrix_calculus as matrix_calculus
from lemmata.foundations import probability as probability
from lemmata.foundations.activations.signs import hopfield_sign as hopfield_sign
from lemmata.foundations.activations.table import ACTIVATION_TABLE as ACTIVATION_TABLE
from lemmata.foundations.activations.table import Activation as Activation
from lemmata.foundations.activations.table import ValueRange as ValueRange
from lemmata.foundations.activations.table import activation as activation
from lemmata.foundations.analysis.convexity import is_convex as is_convex
from lemmata.foundations.analysis.curvature import smoothness as smoothness
from lemmata.foundations.analysis.curvature import strong_convexity as strong_convexity
from lemmata.foundations.analysis.gradient_dominance import pl_constant as pl_constant
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz as lipschitz
from lemmata.foundations.analysis.measurements import Measured as Measured
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction as QuadraticFunction
from lemmata.foundations.analysis.regions import Box as Box
from lemmata.foundations.analysis.subgradients import is_subgradient as is_subgradient
from lemmata.foundations.information.discrete import cross_entropy as cross_entropy
from lemmata.foundations.information.discrete import entropy as entropy
from lemmata.foundations.information.discrete import jensen_shannon as jensen_shannon
from lemmata.foundations.information.discrete import kl_divergence as kl_divergence
from lemmata.foundations.information.discrete import mutual_information as mutual_information
from lemmata.foundations.information.discrete import total_variation as total_variation
from lemmata.foundations.linear_algebra.general_position import dependent_subset as dependent_subset
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank as DiagonalPlusLowRank
from lemmata.foundations.probability.gaussian import Gaussian as Gaussian
from lemmata.foundations.probability.gaussian_distribution import GaussianDistribution as GaussianDistribution
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian as LowRankGaussian

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "Box",
    "DiagonalGaussian",
    "DiagonalPlusLowRank",
    "Gaussian",
    "GaussianDistribution",
    "LowRankGaussian",
    "Measured",
    "QuadraticFunction",
    "ValueRange",
    "activation",
    "cross_entropy",
    "dependent_subset",
    "entropy",
    "gaussian_kl",
    "hopfield_sign",
    "is_convex",
    "is_subgradient",
    "jensen_shannon",
    "kl_divergence",
    "lipschitz",
    "mutual_information",
    "pl_constant",
    "smoothness",
    "strong_convexity",
    "total_variation",
]
