"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations import activations as activations
from lemmata.foundations import analysis as analysis
from lemmata.foundations import information as information
from lemmata.foundations import linear_algebra as linear_algebra
from lemmata.foundations import matrix_calculus as matrix_calculus
from lemmata.foundations import probability as probability
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
from lemmata.foundations.analysis.convexity import is_convex as is_convex
from lemmata.foundations.analysis.curvature import curvature_between as curvature_between
from lemmata.foundations.analysis.curvature import quadratic_bound_gap as quadratic_bound_gap
from lemmata.foundations.analysis.curvature import smoothness as smoothness
from lemmata.foundations.analysis.curvature import strong_convexity as strong_convexity
from lemmata.foundations.analysis.gradient_dominance import pl_constant as pl_constant
from lemmata.foundations.analysis.lipschitz_bounds import difference_quotient as difference_quotient
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
from lemmata.foundations.linear_algebra.angles import angle_between as angle_between
from lemmata.foundations.linear_algebra.angles import cosine_of_angle as cosine_of_angle
from lemmata.foundations.linear_algebra.angles import squared_distances as squared_distances
from lemmata.foundations.linear_algebra.cholesky import psd_factor as psd_factor
from lemmata.foundations.linear_algebra.exact_elimination import exact_determinant as exact_determinant
from lemmata.foundations.linear_algebra.exact_elimination import exact_rank as exact_rank
from lemmata.foundations.linear_algebra.general_position import dependent_subset as dependent_subset
from lemmata.foundations.linear_algebra.gram import gram_matrix as gram_matrix
from lemmata.foundations.linear_algebra.gram import linear_kernel as linear_kernel
from lemmata.foundations.linear_algebra.gram import polynomial_kernel as polynomial_kernel
from lemmata.foundations.linear_algebra.gram import rbf_kernel as rbf_kernel
from lemmata.foundations.linear_algebra.minors import definiteness_by_minors as definiteness_by_minors
from lemmata.foundations.linear_algebra.minors import leading_minors as leading_minors
from lemmata.foundations.linear_algebra.minors import principal_minors as principal_minors
from lemmata.foundations.linear_algebra.permutation import invert_permutation as invert_permutation
from lemmata.foundations.linear_algebra.permutation import is_doubly_stochastic as is_doubly_stochastic
from lemmata.foundations.linear_algebra.permutation import is_permutation_matrix as is_permutation_matrix
from lemmata.foundations.linear_algebra.permutation import permutation_matrix as permutation_matrix
from lemmata.foundations.linear_algebra.permutation import permutation_of_matrix as permutation_of_matrix
from lemmata.foundations.linear_algebra.permutation import relabel_graph as relabel_graph
from lemmata.foundations.linear_algebra.permutation import two_line_notation as two_line_notation
from lemmata.foundations.linear_algebra.projection import Hyperplane as Hyperplane
from lemmata.foundations.linear_algebra.projection import project_onto_span as project_onto_span
from lemmata.foundations.linear_algebra.projection import projection_matrix as projection_matrix
from lemmata.foundations.linear_algebra.quadratic import CompletedSquare as CompletedSquare
from lemmata.foundations.linear_algebra.quadratic import complete_square as complete_square
from lemmata.foundations.linear_algebra.quadratic import quadratic_form as quadratic_form
from lemmata.foundations.linear_algebra.quadratic import rayleigh_quotient as rayleigh_quotient
from lemmata.foundations.linear_algebra.traces import trace as trace
from lemmata.foundations.linear_algebra.traces import trace_of_product as trace_of_product
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank as DiagonalPlusLowRank
from lemmata.foundations.probability.gaussian import Gaussian as Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.probability.gaussian_law import GaussianLaw as GaussianLaw
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian as LowRankGaussian

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "Box",
    "CompletedSquare",
    "DiagonalGaussian",
    "DiagonalPlusLowRank",
    "Gaussian",
    "GaussianLaw",
    "Hyperplane",
    "LowRankGaussian",
    "Measured",
    "QuadraticFunction",
    "ValueRange",
    "absolute_from_relu",
    "activation",
    "angle_between",
    "complete_square",
    "cosine_of_angle",
    "cross_entropy",
    "curvature_between",
    "definiteness_by_minors",
    "dependent_subset",
    "difference_quotient",
    "entropy",
    "exact_determinant",
    "exact_rank",
    "gaussian_kl",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "gram_matrix",
    "hopfield_sign",
    "invert_permutation",
    "is_convex",
    "is_doubly_stochastic",
    "is_permutation_matrix",
    "is_subgradient",
    "jensen_shannon",
    "kl_divergence",
    "leading_minors",
    "linear_kernel",
    "lipschitz",
    "logit",
    "mutual_information",
    "permutation_matrix",
    "permutation_of_matrix",
    "pl_constant",
    "polynomial_kernel",
    "principal_minors",
    "project_onto_span",
    "projection_matrix",
    "psd_factor",
    "quadratic_bound_gap",
    "quadratic_form",
    "rayleigh_quotient",
    "rbf_kernel",
    "relabel_graph",
    "relu",
    "relu_derivative",
    "relu_from_absolute",
    "sigmoid",
    "sigmoid_derivative",
    "sigmoid_jacobian",
    "sigmoid_second_derivative",
    "smoothness",
    "squared_distances",
    "strong_convexity",
    "tanh_derivative",
    "total_variation",
    "trace",
    "trace_of_product",
    "two_line_notation",
]
