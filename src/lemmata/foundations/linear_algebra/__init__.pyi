"""Made by `python3 dev.py lint --fix` from the `__all__` of the files beside this one."""

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

__all__ = [
    "CompletedSquare",
    "DiagonalPlusLowRank",
    "Hyperplane",
    "angle_between",
    "complete_square",
    "cosine_of_angle",
    "definiteness_by_minors",
    "dependent_subset",
    "exact_determinant",
    "exact_rank",
    "gram_matrix",
    "invert_permutation",
    "is_doubly_stochastic",
    "is_permutation_matrix",
    "leading_minors",
    "linear_kernel",
    "permutation_matrix",
    "permutation_of_matrix",
    "polynomial_kernel",
    "principal_minors",
    "project_onto_span",
    "projection_matrix",
    "psd_factor",
    "quadratic_form",
    "rayleigh_quotient",
    "rbf_kernel",
    "relabel_graph",
    "squared_distances",
    "trace",
    "trace_of_product",
    "two_line_notation",
]
