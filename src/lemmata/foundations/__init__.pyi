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
from lemmata.foundations.activations.signs import perceptron_sign as perceptron_sign
from lemmata.foundations.activations.table import ACTIVATION_TABLE as ACTIVATION_TABLE
from lemmata.foundations.activations.table import Activation as Activation
from lemmata.foundations.activations.table import ValueRange as ValueRange
from lemmata.foundations.activations.table import activation as activation
from lemmata.foundations.analysis.conditioning import condition_number as condition_number
from lemmata.foundations.analysis.conditioning import function_condition as function_condition
from lemmata.foundations.analysis.convexity import chord_gap as chord_gap
from lemmata.foundations.analysis.convexity import gradient_monotony as gradient_monotony
from lemmata.foundations.analysis.convexity import is_convex as is_convex
from lemmata.foundations.analysis.convexity import is_convex_set as is_convex_set
from lemmata.foundations.analysis.convexity import jensen_gap as jensen_gap
from lemmata.foundations.analysis.convexity import least_curvature as least_curvature
from lemmata.foundations.analysis.convexity import tangent_gap as tangent_gap
from lemmata.foundations.analysis.curvature import curvature_between as curvature_between
from lemmata.foundations.analysis.curvature import quadratic_bound_gap as quadratic_bound_gap
from lemmata.foundations.analysis.curvature import smoothness as smoothness
from lemmata.foundations.analysis.curvature import strong_convexity as strong_convexity
from lemmata.foundations.analysis.function_values import batch_gradients as batch_gradients
from lemmata.foundations.analysis.function_values import batch_hessians as batch_hessians
from lemmata.foundations.analysis.function_values import batch_jacobians as batch_jacobians
from lemmata.foundations.analysis.function_values import batch_values as batch_values
from lemmata.foundations.analysis.gradient_dominance import least_squares_pl as least_squares_pl
from lemmata.foundations.analysis.gradient_dominance import pl_constant as pl_constant
from lemmata.foundations.analysis.gradient_dominance import pl_ratio as pl_ratio
from lemmata.foundations.analysis.gradient_dominance import tangent_gram as tangent_gram
from lemmata.foundations.analysis.interval_curvature import curvature_bounds as curvature_bounds
from lemmata.foundations.analysis.intervals import Interval as Interval
from lemmata.foundations.analysis.lipschitz_bounds import difference_quotient as difference_quotient
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz as lipschitz
from lemmata.foundations.analysis.measurements import Measured as Measured
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction as QuadraticFunction
from lemmata.foundations.analysis.regions import Box as Box
from lemmata.foundations.analysis.regions import box_region as box_region
from lemmata.foundations.analysis.subgradients import MaxAffine as MaxAffine
from lemmata.foundations.analysis.subgradients import is_subgradient as is_subgradient
from lemmata.foundations.analysis.subgradients import subdifferential_interval as subdifferential_interval
from lemmata.foundations.analysis.taylor import nth_derivative as nth_derivative
from lemmata.foundations.analysis.taylor import second_order_model as second_order_model
from lemmata.foundations.analysis.taylor import taylor_polynomial as taylor_polynomial
from lemmata.foundations.analysis.taylor import taylor_remainder as taylor_remainder
from lemmata.foundations.information.change_of_measure import change_of_measure_bound as change_of_measure_bound
from lemmata.foundations.information.change_of_measure import gibbs_distribution as gibbs_distribution
from lemmata.foundations.information.discrete import cross_entropy as cross_entropy
from lemmata.foundations.information.discrete import entropy as entropy
from lemmata.foundations.information.discrete import jensen_shannon as jensen_shannon
from lemmata.foundations.information.discrete import kl_divergence as kl_divergence
from lemmata.foundations.information.discrete import surprisal as surprisal
from lemmata.foundations.information.discrete import total_variation as total_variation
from lemmata.foundations.information.joint_information import conditional_entropy as conditional_entropy
from lemmata.foundations.information.joint_information import mutual_information as mutual_information
from lemmata.foundations.information.sampled_information import SampledDivergence as SampledDivergence
from lemmata.foundations.information.sampled_information import empirical_distribution as empirical_distribution
from lemmata.foundations.information.sampled_information import empirical_joint as empirical_joint
from lemmata.foundations.information.sampled_information import sampled_entropy as sampled_entropy
from lemmata.foundations.information.sampled_information import sampled_kl as sampled_kl
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
from lemmata.foundations.probability.densities import Density as Density
from lemmata.foundations.probability.densities import scaled_density as scaled_density
from lemmata.foundations.probability.densities import sum_density as sum_density
from lemmata.foundations.probability.finite_laws import FiniteDistribution as FiniteDistribution
from lemmata.foundations.probability.finite_laws import convolve_masses as convolve_masses
from lemmata.foundations.probability.gaussian import Gaussian as Gaussian
from lemmata.foundations.probability.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.probability.gaussian_divergence import kl_to_isotropic as kl_to_isotropic
from lemmata.foundations.probability.gaussian_law import GaussianLaw as GaussianLaw
from lemmata.foundations.probability.generating_functions import bernoulli_mgf as bernoulli_mgf
from lemmata.foundations.probability.generating_functions import binomial_mgf as binomial_mgf
from lemmata.foundations.probability.generating_functions import gamma_mgf as gamma_mgf
from lemmata.foundations.probability.generating_functions import mgf_of_sum as mgf_of_sum
from lemmata.foundations.probability.generating_functions import moments_from_mgf as moments_from_mgf
from lemmata.foundations.probability.generating_functions import normal_mgf as normal_mgf
from lemmata.foundations.probability.generating_functions import poisson_mgf as poisson_mgf
from lemmata.foundations.probability.integration import absolute_integral as absolute_integral
from lemmata.foundations.probability.joint_tables import JointTable as JointTable
from lemmata.foundations.probability.joint_tables import bayes_posterior as bayes_posterior
from lemmata.foundations.probability.moments import chebyshev_bound as chebyshev_bound
from lemmata.foundations.probability.moments import covariance_of_image as covariance_of_image
from lemmata.foundations.probability.moments import markov_bound as markov_bound
from lemmata.foundations.probability.moments import variance_of_sum as variance_of_sum
from lemmata.foundations.probability.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian as LowRankGaussian

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "Box",
    "CompletedSquare",
    "Density",
    "DiagonalGaussian",
    "DiagonalPlusLowRank",
    "FiniteDistribution",
    "Gaussian",
    "GaussianLaw",
    "Hyperplane",
    "Interval",
    "JointTable",
    "LowRankGaussian",
    "MaxAffine",
    "Measured",
    "QuadraticFunction",
    "SampledDivergence",
    "ValueRange",
    "absolute_from_relu",
    "absolute_integral",
    "activation",
    "angle_between",
    "batch_gradients",
    "batch_hessians",
    "batch_jacobians",
    "batch_values",
    "bayes_posterior",
    "bernoulli_mgf",
    "binomial_mgf",
    "box_region",
    "change_of_measure_bound",
    "chebyshev_bound",
    "chord_gap",
    "complete_square",
    "condition_number",
    "conditional_entropy",
    "convolve_masses",
    "cosine_of_angle",
    "covariance_of_image",
    "cross_entropy",
    "curvature_between",
    "curvature_bounds",
    "definiteness_by_minors",
    "dependent_subset",
    "difference_quotient",
    "empirical_distribution",
    "empirical_joint",
    "entropy",
    "exact_determinant",
    "exact_rank",
    "function_condition",
    "gamma_mgf",
    "gaussian_kl",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "gibbs_distribution",
    "gradient_monotony",
    "gram_matrix",
    "hopfield_sign",
    "invert_permutation",
    "is_convex",
    "is_convex_set",
    "is_doubly_stochastic",
    "is_permutation_matrix",
    "is_subgradient",
    "jensen_gap",
    "jensen_shannon",
    "kl_divergence",
    "kl_to_isotropic",
    "leading_minors",
    "least_curvature",
    "least_squares_pl",
    "linear_kernel",
    "lipschitz",
    "logit",
    "markov_bound",
    "mgf_of_sum",
    "moments_from_mgf",
    "mutual_information",
    "normal_mgf",
    "nth_derivative",
    "perceptron_sign",
    "permutation_matrix",
    "permutation_of_matrix",
    "pl_constant",
    "pl_ratio",
    "poisson_mgf",
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
    "sampled_entropy",
    "sampled_kl",
    "scaled_density",
    "second_order_model",
    "sigmoid",
    "sigmoid_derivative",
    "sigmoid_jacobian",
    "sigmoid_second_derivative",
    "smoothness",
    "squared_distances",
    "strong_convexity",
    "subdifferential_interval",
    "sum_density",
    "surprisal",
    "tangent_gap",
    "tangent_gram",
    "tanh_derivative",
    "taylor_polynomial",
    "taylor_remainder",
    "total_variation",
    "trace",
    "trace_of_product",
    "two_line_notation",
    "variance_of_sum",
]
