"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

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

__all__ = [
    "Box",
    "Interval",
    "MaxAffine",
    "Measured",
    "QuadraticFunction",
    "batch_gradients",
    "batch_hessians",
    "batch_jacobians",
    "batch_values",
    "box_region",
    "chord_gap",
    "condition_number",
    "curvature_between",
    "curvature_bounds",
    "difference_quotient",
    "function_condition",
    "gradient_monotony",
    "is_convex",
    "is_convex_set",
    "is_subgradient",
    "jensen_gap",
    "least_curvature",
    "least_squares_pl",
    "lipschitz",
    "nth_derivative",
    "pl_constant",
    "pl_ratio",
    "quadratic_bound_gap",
    "second_order_model",
    "smoothness",
    "strong_convexity",
    "subdifferential_interval",
    "tangent_gap",
    "tangent_gram",
    "taylor_polynomial",
    "taylor_remainder",
]
