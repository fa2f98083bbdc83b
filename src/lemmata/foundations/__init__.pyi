"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.activations import ACTIVATION_TABLE as ACTIVATION_TABLE
from lemmata.foundations.activations import Activation as Activation
from lemmata.foundations.activations import ValueRange as ValueRange
from lemmata.foundations.activations import activation as activation
from lemmata.foundations.angles import angle_between as angle_between
from lemmata.foundations.angles import cosine_of_angle as cosine_of_angle
from lemmata.foundations.angles import squared_distances as squared_distances
from lemmata.foundations.by_matrix import BY_MATRIX as BY_MATRIX
from lemmata.foundations.change_of_measure import change_of_measure_bound as change_of_measure_bound
from lemmata.foundations.change_of_measure import gibbs_distribution as gibbs_distribution
from lemmata.foundations.cholesky import psd_factor as psd_factor
from lemmata.foundations.conditioning import condition_number as condition_number
from lemmata.foundations.conditioning import function_condition as function_condition
from lemmata.foundations.convexity import chord_gap as chord_gap
from lemmata.foundations.convexity import gradient_monotony as gradient_monotony
from lemmata.foundations.convexity import is_convex as is_convex
from lemmata.foundations.convexity import is_convex_set as is_convex_set
from lemmata.foundations.convexity import jensen_gap as jensen_gap
from lemmata.foundations.convexity import least_curvature as least_curvature
from lemmata.foundations.convexity import tangent_gap as tangent_gap
from lemmata.foundations.curvature import curvature_between as curvature_between
from lemmata.foundations.curvature import quadratic_bound_gap as quadratic_bound_gap
from lemmata.foundations.curvature import smoothness as smoothness
from lemmata.foundations.curvature import strong_convexity as strong_convexity
from lemmata.foundations.definiteness import DefinitenessCertificate as DefinitenessCertificate
from lemmata.foundations.definiteness import certify_definiteness as certify_definiteness
from lemmata.foundations.densities import Density as Density
from lemmata.foundations.densities import scaled_density as scaled_density
from lemmata.foundations.densities import sum_density as sum_density
from lemmata.foundations.derivative_rows import DerivativeRow as DerivativeRow
from lemmata.foundations.derivative_rows import check_derivative as check_derivative
from lemmata.foundations.elementary_bounds import log1p_bounds as log1p_bounds
from lemmata.foundations.elementary_bounds import power_bound as power_bound
from lemmata.foundations.elementary_derivatives import ByParts as ByParts
from lemmata.foundations.elementary_derivatives import ELEMENTARY as ELEMENTARY
from lemmata.foundations.elementary_derivatives import abs_subdifferential as abs_subdifferential
from lemmata.foundations.elementary_derivatives import integrate_by_parts as integrate_by_parts
from lemmata.foundations.elementary_derivatives import quotient_derivative as quotient_derivative
from lemmata.foundations.exact_elimination import exact_determinant as exact_determinant
from lemmata.foundations.exact_elimination import exact_rank as exact_rank
from lemmata.foundations.finite_laws import FiniteDistribution as FiniteDistribution
from lemmata.foundations.finite_laws import convolve_masses as convolve_masses
from lemmata.foundations.function_values import batch_gradients as batch_gradients
from lemmata.foundations.function_values import batch_hessians as batch_hessians
from lemmata.foundations.function_values import batch_jacobians as batch_jacobians
from lemmata.foundations.function_values import batch_values as batch_values
from lemmata.foundations.gaussian import Gaussian as Gaussian
from lemmata.foundations.gaussian_divergence import gaussian_kl as gaussian_kl
from lemmata.foundations.gaussian_divergence import kl_to_isotropic as kl_to_isotropic
from lemmata.foundations.gaussian_law import GaussianLaw as GaussianLaw
from lemmata.foundations.general_position import dependent_subset as dependent_subset
from lemmata.foundations.generating_functions import bernoulli_mgf as bernoulli_mgf
from lemmata.foundations.generating_functions import binomial_mgf as binomial_mgf
from lemmata.foundations.generating_functions import gamma_mgf as gamma_mgf
from lemmata.foundations.generating_functions import mgf_of_sum as mgf_of_sum
from lemmata.foundations.generating_functions import moments_from_mgf as moments_from_mgf
from lemmata.foundations.generating_functions import normal_mgf as normal_mgf
from lemmata.foundations.generating_functions import poisson_mgf as poisson_mgf
from lemmata.foundations.geometric_series import geometric_remainder as geometric_remainder
from lemmata.foundations.geometric_series import geometric_sum as geometric_sum
from lemmata.foundations.gradient_dominance import least_squares_pl as least_squares_pl
from lemmata.foundations.gradient_dominance import pl_constant as pl_constant
from lemmata.foundations.gradient_dominance import pl_ratio as pl_ratio
from lemmata.foundations.gradient_dominance import tangent_gram as tangent_gram
from lemmata.foundations.gradient_types import GradientType as GradientType
from lemmata.foundations.gradient_types import type_check_gradient as type_check_gradient
from lemmata.foundations.gram import gram_matrix as gram_matrix
from lemmata.foundations.gram import linear_kernel as linear_kernel
from lemmata.foundations.gram import polynomial_kernel as polynomial_kernel
from lemmata.foundations.gram import rbf_kernel as rbf_kernel
from lemmata.foundations.information import cross_entropy as cross_entropy
from lemmata.foundations.information import entropy as entropy
from lemmata.foundations.information import jensen_shannon as jensen_shannon
from lemmata.foundations.information import kl_divergence as kl_divergence
from lemmata.foundations.information import surprisal as surprisal
from lemmata.foundations.information import total_variation as total_variation
from lemmata.foundations.integration import absolute_integral as absolute_integral
from lemmata.foundations.interval_curvature import curvature_bounds as curvature_bounds
from lemmata.foundations.intervals import Interval as Interval
from lemmata.foundations.jacobians import LAYOUTS as LAYOUTS
from lemmata.foundations.jacobians import chain_rule as chain_rule
from lemmata.foundations.jacobians import differenced_jacobian as differenced_jacobian
from lemmata.foundations.jacobians import gradient_of as gradient_of
from lemmata.foundations.jacobians import hessian_of as hessian_of
from lemmata.foundations.jacobians import jacobian_of as jacobian_of
from lemmata.foundations.joint_information import conditional_entropy as conditional_entropy
from lemmata.foundations.joint_information import mutual_information as mutual_information
from lemmata.foundations.joint_tables import JointTable as JointTable
from lemmata.foundations.joint_tables import bayes_posterior as bayes_posterior
from lemmata.foundations.lagrange import Lagrangian as Lagrangian
from lemmata.foundations.lagrange import StationaryPoint as StationaryPoint
from lemmata.foundations.lanczos import RitzPair as RitzPair
from lemmata.foundations.lanczos import largest_ritz_pair as largest_ritz_pair
from lemmata.foundations.lipschitz_bounds import difference_quotient as difference_quotient
from lemmata.foundations.lipschitz_bounds import lipschitz as lipschitz
from lemmata.foundations.matrix_derivatives import derivative_of as derivative_of
from lemmata.foundations.matrix_derivatives import derivative_table as derivative_table
from lemmata.foundations.maximisers import argmax_set as argmax_set
from lemmata.foundations.measurements import Measured as Measured
from lemmata.foundations.minors import definiteness_by_minors as definiteness_by_minors
from lemmata.foundations.minors import leading_minors as leading_minors
from lemmata.foundations.minors import principal_minors as principal_minors
from lemmata.foundations.moments import chebyshev_bound as chebyshev_bound
from lemmata.foundations.moments import covariance_of_image as covariance_of_image
from lemmata.foundations.moments import markov_bound as markov_bound
from lemmata.foundations.moments import variance_of_sum as variance_of_sum
from lemmata.foundations.norms import dual_exponent as dual_exponent
from lemmata.foundations.norms import frobenius_norm as frobenius_norm
from lemmata.foundations.norms import holder_bound as holder_bound
from lemmata.foundations.norms import norm_ratio_bound as norm_ratio_bound
from lemmata.foundations.norms import p_norm as p_norm
from lemmata.foundations.permutation import invert_permutation as invert_permutation
from lemmata.foundations.permutation import is_doubly_stochastic as is_doubly_stochastic
from lemmata.foundations.permutation import is_permutation_matrix as is_permutation_matrix
from lemmata.foundations.permutation import permutation_matrix as permutation_matrix
from lemmata.foundations.permutation import permutation_of_matrix as permutation_of_matrix
from lemmata.foundations.permutation import relabel_graph as relabel_graph
from lemmata.foundations.permutation import two_line_notation as two_line_notation
from lemmata.foundations.probable_norm import krylov_miss_probability as krylov_miss_probability
from lemmata.foundations.probable_norm import krylov_steps as krylov_steps
from lemmata.foundations.probable_norm import probable_spectral_norm as probable_spectral_norm
from lemmata.foundations.projection import Hyperplane as Hyperplane
from lemmata.foundations.projection import project_onto_span as project_onto_span
from lemmata.foundations.projection import projection_matrix as projection_matrix
from lemmata.foundations.pullbacks import elementwise_pullback as elementwise_pullback
from lemmata.foundations.pullbacks import linear_pullback as linear_pullback
from lemmata.foundations.pullbacks import slope_of as slope_of
from lemmata.foundations.pullbacks import softmax_jacobian as softmax_jacobian
from lemmata.foundations.pullbacks import softmax_pullback as softmax_pullback
from lemmata.foundations.quadratic import CompletedSquare as CompletedSquare
from lemmata.foundations.quadratic import complete_square as complete_square
from lemmata.foundations.quadratic import quadratic_form as quadratic_form
from lemmata.foundations.quadratic import rayleigh_quotient as rayleigh_quotient
from lemmata.foundations.quadratic_functions import QuadraticFunction as QuadraticFunction
from lemmata.foundations.rectifiers import absolute_from_relu as absolute_from_relu
from lemmata.foundations.rectifiers import gelu as gelu
from lemmata.foundations.rectifiers import gelu_derivative as gelu_derivative
from lemmata.foundations.rectifiers import gelu_tanh as gelu_tanh
from lemmata.foundations.rectifiers import gelu_tanh_derivative as gelu_tanh_derivative
from lemmata.foundations.rectifiers import relu as relu
from lemmata.foundations.rectifiers import relu_derivative as relu_derivative
from lemmata.foundations.rectifiers import relu_from_absolute as relu_from_absolute
from lemmata.foundations.regions import Box as Box
from lemmata.foundations.regions import box_region as box_region
from lemmata.foundations.sampled_information import SampledDivergence as SampledDivergence
from lemmata.foundations.sampled_information import empirical_distribution as empirical_distribution
from lemmata.foundations.sampled_information import empirical_joint as empirical_joint
from lemmata.foundations.sampled_information import sampled_entropy as sampled_entropy
from lemmata.foundations.sampled_information import sampled_kl as sampled_kl
from lemmata.foundations.scalar_by_vector import SCALAR_BY_VECTOR as SCALAR_BY_VECTOR
from lemmata.foundations.score_function import density_gradient as density_gradient
from lemmata.foundations.score_function import expectation_gradient as expectation_gradient
from lemmata.foundations.score_function import score_of as score_of
from lemmata.foundations.sigmoids import logit as logit
from lemmata.foundations.sigmoids import sigmoid as sigmoid
from lemmata.foundations.sigmoids import sigmoid_derivative as sigmoid_derivative
from lemmata.foundations.sigmoids import sigmoid_jacobian as sigmoid_jacobian
from lemmata.foundations.sigmoids import sigmoid_second_derivative as sigmoid_second_derivative
from lemmata.foundations.sigmoids import tanh_derivative as tanh_derivative
from lemmata.foundations.signs import hopfield_sign as hopfield_sign
from lemmata.foundations.signs import perceptron_sign as perceptron_sign
from lemmata.foundations.spectral import SpectralNormBounds as SpectralNormBounds
from lemmata.foundations.spectral import certified_spectral_norm as certified_spectral_norm
from lemmata.foundations.structured_gaussians import DiagonalGaussian as DiagonalGaussian
from lemmata.foundations.structured_gaussians import LowRankGaussian as LowRankGaussian
from lemmata.foundations.subgradients import MaxAffine as MaxAffine
from lemmata.foundations.subgradients import is_subgradient as is_subgradient
from lemmata.foundations.subgradients import subdifferential_interval as subdifferential_interval
from lemmata.foundations.taylor import nth_derivative as nth_derivative
from lemmata.foundations.taylor import second_order_model as second_order_model
from lemmata.foundations.taylor import taylor_polynomial as taylor_polynomial
from lemmata.foundations.taylor import taylor_remainder as taylor_remainder
from lemmata.foundations.tensor_chain import contract as contract
from lemmata.foundations.tensor_chain import contract_as_matrices as contract_as_matrices
from lemmata.foundations.tensor_chain import jacobian_tensor as jacobian_tensor
from lemmata.foundations.tensor_chain import tensor_chain_rule as tensor_chain_rule
from lemmata.foundations.traces import trace as trace
from lemmata.foundations.traces import trace_of_product as trace_of_product
from lemmata.foundations.vector_by_vector import VECTOR_BY_VECTOR as VECTOR_BY_VECTOR
from lemmata.foundations.woodbury import DiagonalPlusLowRank as DiagonalPlusLowRank

__all__ = [
    "ACTIVATION_TABLE",
    "Activation",
    "BY_MATRIX",
    "Box",
    "ByParts",
    "CompletedSquare",
    "DefinitenessCertificate",
    "Density",
    "DerivativeRow",
    "DiagonalGaussian",
    "DiagonalPlusLowRank",
    "ELEMENTARY",
    "FiniteDistribution",
    "Gaussian",
    "GaussianLaw",
    "GradientType",
    "Hyperplane",
    "Interval",
    "JointTable",
    "LAYOUTS",
    "Lagrangian",
    "LowRankGaussian",
    "MaxAffine",
    "Measured",
    "QuadraticFunction",
    "RitzPair",
    "SCALAR_BY_VECTOR",
    "SampledDivergence",
    "SpectralNormBounds",
    "StationaryPoint",
    "VECTOR_BY_VECTOR",
    "ValueRange",
    "abs_subdifferential",
    "absolute_from_relu",
    "absolute_integral",
    "activation",
    "angle_between",
    "argmax_set",
    "batch_gradients",
    "batch_hessians",
    "batch_jacobians",
    "batch_values",
    "bayes_posterior",
    "bernoulli_mgf",
    "binomial_mgf",
    "box_region",
    "certified_spectral_norm",
    "certify_definiteness",
    "chain_rule",
    "change_of_measure_bound",
    "chebyshev_bound",
    "check_derivative",
    "chord_gap",
    "complete_square",
    "condition_number",
    "conditional_entropy",
    "contract",
    "contract_as_matrices",
    "convolve_masses",
    "cosine_of_angle",
    "covariance_of_image",
    "cross_entropy",
    "curvature_between",
    "curvature_bounds",
    "definiteness_by_minors",
    "density_gradient",
    "dependent_subset",
    "derivative_of",
    "derivative_table",
    "difference_quotient",
    "differenced_jacobian",
    "dual_exponent",
    "elementwise_pullback",
    "empirical_distribution",
    "empirical_joint",
    "entropy",
    "exact_determinant",
    "exact_rank",
    "expectation_gradient",
    "frobenius_norm",
    "function_condition",
    "gamma_mgf",
    "gaussian_kl",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "geometric_remainder",
    "geometric_sum",
    "gibbs_distribution",
    "gradient_monotony",
    "gradient_of",
    "gram_matrix",
    "hessian_of",
    "holder_bound",
    "hopfield_sign",
    "integrate_by_parts",
    "invert_permutation",
    "is_convex",
    "is_convex_set",
    "is_doubly_stochastic",
    "is_permutation_matrix",
    "is_subgradient",
    "jacobian_of",
    "jacobian_tensor",
    "jensen_gap",
    "jensen_shannon",
    "kl_divergence",
    "kl_to_isotropic",
    "krylov_miss_probability",
    "krylov_steps",
    "largest_ritz_pair",
    "leading_minors",
    "least_curvature",
    "least_squares_pl",
    "linear_kernel",
    "linear_pullback",
    "lipschitz",
    "log1p_bounds",
    "logit",
    "markov_bound",
    "mgf_of_sum",
    "moments_from_mgf",
    "mutual_information",
    "norm_ratio_bound",
    "normal_mgf",
    "nth_derivative",
    "p_norm",
    "perceptron_sign",
    "permutation_matrix",
    "permutation_of_matrix",
    "pl_constant",
    "pl_ratio",
    "poisson_mgf",
    "polynomial_kernel",
    "power_bound",
    "principal_minors",
    "probable_spectral_norm",
    "project_onto_span",
    "projection_matrix",
    "psd_factor",
    "quadratic_bound_gap",
    "quadratic_form",
    "quotient_derivative",
    "rayleigh_quotient",
    "rbf_kernel",
    "relabel_graph",
    "relu",
    "relu_derivative",
    "relu_from_absolute",
    "sampled_entropy",
    "sampled_kl",
    "scaled_density",
    "score_of",
    "second_order_model",
    "sigmoid",
    "sigmoid_derivative",
    "sigmoid_jacobian",
    "sigmoid_second_derivative",
    "slope_of",
    "smoothness",
    "softmax_jacobian",
    "softmax_pullback",
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
    "tensor_chain_rule",
    "total_variation",
    "trace",
    "trace_of_product",
    "two_line_notation",
    "type_check_gradient",
    "variance_of_sum",
]
