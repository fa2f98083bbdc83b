"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.matrix_calculus.by_matrix import BY_MATRIX as BY_MATRIX
from lemmata.foundations.matrix_calculus.derivative_rows import DerivativeRow as DerivativeRow
from lemmata.foundations.matrix_calculus.derivative_rows import check_derivative as check_derivative
from lemmata.foundations.matrix_calculus.gradient_types import GradientType as GradientType
from lemmata.foundations.matrix_calculus.gradient_types import type_check_gradient as type_check_gradient
from lemmata.foundations.matrix_calculus.jacobians import LAYOUTS as LAYOUTS
from lemmata.foundations.matrix_calculus.jacobians import chain_rule as chain_rule
from lemmata.foundations.matrix_calculus.jacobians import differenced_jacobian as differenced_jacobian
from lemmata.foundations.matrix_calculus.jacobians import gradient_of as gradient_of
from lemmata.foundations.matrix_calculus.jacobians import hessian_of as hessian_of
from lemmata.foundations.matrix_calculus.jacobians import jacobian_of as jacobian_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of as derivative_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_table as derivative_table
from lemmata.foundations.matrix_calculus.pullbacks import elementwise_pullback as elementwise_pullback
from lemmata.foundations.matrix_calculus.pullbacks import linear_pullback as linear_pullback
from lemmata.foundations.matrix_calculus.pullbacks import slope_of as slope_of
from lemmata.foundations.matrix_calculus.pullbacks import softmax_jacobian as softmax_jacobian
from lemmata.foundations.matrix_calculus.pullbacks import softmax_pullback as softmax_pullback
from lemmata.foundations.matrix_calculus.scalar_by_vector import SCALAR_BY_VECTOR as SCALAR_BY_VECTOR
from lemmata.foundations.matrix_calculus.tensor_chain import contract as contract
from lemmata.foundations.matrix_calculus.tensor_chain import contract_as_matrices as contract_as_matrices
from lemmata.foundations.matrix_calculus.tensor_chain import jacobian_tensor as jacobian_tensor
from lemmata.foundations.matrix_calculus.tensor_chain import tensor_chain_rule as tensor_chain_rule
from lemmata.foundations.matrix_calculus.vector_by_vector import VECTOR_BY_VECTOR as VECTOR_BY_VECTOR

__all__ = [
    "BY_MATRIX",
    "DerivativeRow",
    "GradientType",
    "LAYOUTS",
    "SCALAR_BY_VECTOR",
    "VECTOR_BY_VECTOR",
    "chain_rule",
    "check_derivative",
    "contract",
    "contract_as_matrices",
    "derivative_of",
    "derivative_table",
    "differenced_jacobian",
    "elementwise_pullback",
    "gradient_of",
    "hessian_of",
    "jacobian_of",
    "jacobian_tensor",
    "linear_pullback",
    "slope_of",
    "softmax_jacobian",
    "softmax_pullback",
    "tensor_chain_rule",
    "type_check_gradient",
]
