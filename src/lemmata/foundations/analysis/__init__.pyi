"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

from lemmata.foundations.analysis.convexity import is_convex as is_convex
from lemmata.foundations.analysis.curvature import smoothness as smoothness
from lemmata.foundations.analysis.curvature import strong_convexity as strong_convexity
from lemmata.foundations.analysis.gradient_dominance import pl_constant as pl_constant
from lemmata.foundations.analysis.lipschitz_bounds import lipschitz as lipschitz
from lemmata.foundations.analysis.measurements import Measured as Measured
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction as QuadraticFunction
from lemmata.foundations.analysis.regions import Box as Box
from lemmata.foundations.analysis.subgradients import is_subgradient as is_subgradient

__all__ = [
    "Box",
    "Measured",
    "QuadraticFunction",
    "is_convex",
    "is_subgradient",
    "lipschitz",
    "pl_constant",
    "smoothness",
    "strong_convexity",
]
