"""Squares completed, Woodbury's identity, general position, ranks and permutations."""

import itertools

import sympy
import torch

from lemmata.certified.exact_elimination import exact_rank
from lemmata.certified.norms import frobenius_norm
from lemmata.foundations.linear_algebra.general_position import dependent_subset
from lemmata.foundations.linear_algebra.woodbury import DiagonalPlusLowRank
from lemmata.judge import (
    all_of,
    always,
    at_most,
    claim,
    close,
    exactly,
    lie,
    symbolic,
)


@claim("linalg.completing_square")
@lie("the constant is added", sign=1)
@lie("the matrix need not be symmetric", skew=0.5)
def a_quadratic_is_a_square_about_its_centre(draw, sign=-1, skew=0.0):
    """In symbols for 2 x 2 matrices, where b = Mc; in numbers at random points, and where the gradient is 0."""
    a, b, c, p, q, x, y = sympy.symbols("a b c p q x y", real=True)
    matrix, point, centre = sympy.Matrix([[a, b], [b, c]]), sympy.Matrix([x, y]), sympy.Matrix([p, q])
    linear, offset = matrix * centre, point - centre
    left = (point.T * matrix * point)[0] - 2 * linear.dot(point)
    right = (offset.T * matrix * offset)[0] + sign * linear.dot(centre)
    parts = [symbolic(sympy.expand(left), sympy.expand(right), points=3)]
    for n, size in ((1, 1.0), (3, 2.0**-200), (8, 2.0**200)):
        # Eigenvalues of both signs, from a thousandth to a thousand: some of these matrices are nearly singular.
        q, spread = draw.orthogonal(n), 10 ** draw.uniform(70, 1, n, low=-3.0, high=3.0)
        matrices = size * (q * draw.signs(70, 1, n) * spread) @ q.T
        matrices = (matrices + matrices.mT) / 2
        half = draw.normal(n, n)
        bent = matrices + skew * size * (half - half.T)
        linear, points = size * draw.normal(70, n), draw.normal(70, n)
        centre = torch.linalg.solve(bent, linear[..., None])[..., 0].requires_grad_()
        value, least = quadratic(bent, linear, points), quadratic(bent, linear, centre)
        (slope,) = torch.autograd.grad(least.sum(), centre)
        constant = sign * (linear * centre).sum(-1).detach()
        square = quadratic(bent, torch.zeros_like(linear), points - centre.detach())
        # All terms are forms of points and centres; a solve leaves as much as the rounding of such a form.
        lengths = points.norm(dim=-1) + centre.detach().norm(dim=-1)
        parts += [
            close(square + constant, value, scale=frobenius_norm(bent) * lengths**2),
            close(slope, torch.zeros(70, n).double(), scale=(frobenius_norm(bent) * lengths)[:, None]),
        ]
    return all_of(*parts)


def quadratic(matrix, linear, x):
    """x^T M x - 2 b^T x."""
    return torch.einsum("bi,bij,bj->b", x, matrix, x) - 2 * (linear * x).sum(-1)


@claim("linalg.woodbury")
@lie("the correction is added", sign=1.0)
@lie("twice the identity stands inside", inside=2.0)
@lie("I + UV is inverted in the middle, where it does not fit", raises=RuntimeError, middle=lambda u, v: u @ v)
def a_low_rank_change_is_undone_by_a_small_inverse(draw, sign=-1.0, inside=1.0, middle=lambda u, v: v @ u):
    """The formula multiplied by I + UV, far from singular and near; and the shipped inverse, which uses it."""
    parts = []
    for (n, k), gap in itertools.product(((5, 2), (8, 8), (3, 7), (6, 1), (1, 1)), (1.0, 1e-4, 1e-8, 1e-12)):
        u, v = nearly_singular(draw, n, k, gap)
        identity, core = torch.eye(n).double(), middle(u, v)
        small = torch.linalg.solve(inside * torch.eye(core.shape[-1]).double() + core, v)
        inverse = identity + sign * u @ small
        # A residual is the rounding of the terms that are added up in it, whatever the condition of the matrix.
        factors = (1 + frobenius_norm(u) * frobenius_norm(v))[:, None, None]
        grown = (1 + frobenius_norm(u) * frobenius_norm(small))[:, None, None]  # at least the norm of the inverse
        shipped = DiagonalPlusLowRank(torch.ones(n).double(), u, v).inverse()
        parts += [
            close((identity + u @ v) @ inverse, identity.expand(60, n, n), scale=factors * grown),
            close(shipped, inverse, scale=factors * grown**2),
        ]
    return all_of(*parts)


def nearly_singular(draw, n, k, gap):
    """Factors for which one eigenvalue of I + UV, and of I + VU, is `gap`; all others lie between 1 and 3."""
    size = min(n, k)
    q, values = draw.orthogonal(size), draw.uniform(60, size, high=2.0)
    values[:, 0] = gap - 1
    core = q @ (torch.diag_embed(values) + 0.3 * draw.normal(60, size, size).triu(1)) @ q.T
    if k <= n:
        u = draw.normal(60, n, k)
        return u, core @ torch.linalg.pinv(u)  # so that VU is the core
    v = draw.normal(60, k, n)
    return core @ torch.linalg.pinv(v), v  # so that UV is


@claim("linalg.general_position")
@lie("it is enough that any d - 1 are independent", linear=-1)
@lie("affinely, d points at a time are enough", affine=0)
def general_position_is_independence_of_all_small_subsets(draw, linear=0, affine=1):
    """Random, lattice and degenerate sets: ranks of all subsets by singular values against the subset that is named."""
    flat = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]).double()
    line = torch.tensor([[0, 0, 1], [1, 1, 0], [2, 2, -1], [3, 0, 0], [0, 5, 1]]).double()
    plane = torch.tensor([[0, 0, 1], [1, 0, 1], [0, 1, 1], [2, 3, 1]]).double()  # no three of them on a line
    repeated = torch.cat([draw.normal(3, 3), draw.normal(1, 3).repeat(2, 1) * torch.tensor([[1.0], [-2.0]]).double()])
    # Far from general position only by the size of their numbers, and in it only by the last digits of one of them.
    scaled, nearly = 2.0**-500 * line, torch.cat([flat[:2], flat[2:3] + 1e-9 * flat[3:], flat[3:]])
    sets = [draw.normal(5, 3), flat, line, plane, repeated, torch.zeros(1, 3).double(), flat[:2], scaled, nearly]
    sets += [draw.integers(-2, 3, 5, 3).double() for _ in range(8)]
    agree, named = [], []
    for points in sets:
        # One more feature that is the same for all; of the size of the others, so that singular values tell.
        ones = torch.cat([points, points.abs().max().clamp(min=1e-300).expand(len(points), 1)], dim=1)
        for rows, size, found in (
            (points, 3 + linear, dependent_subset(points)),
            (ones, 3 + affine, dependent_subset(points, affine=True)),
        ):
            independent = all(
                torch.linalg.matrix_rank(rows[list(subset)]) == count
                for count in range(1, min(len(rows), size) + 1)
                for subset in itertools.combinations(range(len(rows)), count)
            )
            agree.append(independent == (found is None))
            named.append(found is None or exact_rank(rows[list(found)]) == len(found) - 1)
    return all_of(always(agree), always(named, detail="the subset that is named is dependent"))


@claim("linalg.rank_product")
@lie("the rank of a product is the smaller of the two ranks", relation=int.__eq__)
@lie("the rank of a product is below the smaller of the two ranks", offset=-1)
@lie("a rectangular matrix may have one rank more than it has rows or columns", beyond=1)
def a_product_has_at_most_the_smaller_rank(draw, relation=int.__le__, offset=0, beyond=0):
    """Whole-number matrices of prescribed ranks, ranks without rounding; orthogonal projections for the strict case."""
    first = torch.tensor([[1, 0], [0, 0]])
    second = torch.tensor([[0, 0], [0, 1]])
    pairs = [(first, second), (first, first)]
    for _ in range(40):
        m, n, k = (int(size) for size in draw.integers(1, 6, 3))
        pairs.append((prescribed(draw, m, n), prescribed(draw, n, k)))
    products, smaller = zip(*((exact_rank(a @ b), min(exact_rank(a), exact_rank(b))) for a, b in pairs), strict=True)
    shapes = [(exact_rank(a), min(a.shape) + beyond) for a, _ in pairs]
    values = torch.linalg.matrix_rank
    return all_of(
        always([relation(rank, most) for rank, most in zip(products, smaller, strict=True)]),
        at_most(products, [most + offset for most in smaller], attained=True),
        at_most([rank for rank, _ in shapes], [most for _, most in shapes], attained=True),
        exactly([exact_rank(a) for a, _ in pairs], [int(values(a.double())) for a, _ in pairs]),
    )


def prescribed(draw, m, n):
    """Whole numbers with a rank of at most a number drawn between 0 and the smaller side."""
    rank = int(draw.integers(0, min(m, n) + 1, 1))
    return draw.integers(-3, 4, m, rank) @ draw.integers(-3, 4, rank, n)


def is_permutation_matrix(matrix):
    """Zeros and ones, of which every row and every column sums to 1."""
    bits = ((matrix == 0) | (matrix == 1)).all(-1).all(-1)
    return bits & (matrix.sum(-1) == 1).all(-1) & (matrix.sum(-2) == 1).all(-1)


def is_doubly_stochastic(matrix):
    """Nothing negative, and every row and every column sums to 1, up to the rounding of a mean."""
    sums = torch.cat([matrix.sum(-1), matrix.sum(-2)], dim=-1).double()
    return (matrix >= 0).all(-1).all(-1) & ((sums - 1).abs() <= matrix.shape[-1] * 2.0**-50).all(-1)


def columns_sum_to_one(matrix):
    """The same sum twice: columns alone, and nothing said about the entries."""
    return (matrix.sum(-2) == 1).all(-1)


@claim("linalg.permutation_matrix")
@lie("columns that sum to 1 make a permutation matrix", recognise=columns_sum_to_one)
@lie("rows and columns that sum to 1 make a permutation matrix", recognise=is_doubly_stochastic)
@lie("every permutation matrix is its own inverse", inverse=lambda matrix: matrix)
def permutation_matrices_are_orthogonal_zeros_and_ones(
    draw, recognise=is_permutation_matrix, inverse=lambda matrix: matrix.mT
):
    """All permutations up to n = 5, all 0/1 matrices for n = 3, and the mean of all, whose inverse is no transpose."""
    parts = []
    for n in (1, 2, 3, 4, 5):
        permutations = torch.tensor(list(itertools.permutations(range(n))))
        matrices = torch.eye(n).double()[permutations]  # row i has its one in column pi(i)
        x, square = draw.integers(-9, 10, n, 4).double(), draw.integers(-9, 10, n, n).double()
        mean = matrices.mean(0)
        parts += [
            exactly(recognise(torch.cat([matrices, mean[None]])), [True] * len(matrices) + [n == 1]),
            always(is_doubly_stochastic(torch.cat([matrices, mean[None]]))),
            exactly(matrices @ inverse(matrices), torch.eye(n).double().expand_as(matrices)),
            exactly(matrices @ x, x[permutations]),
            exactly(x.T @ matrices.mT, x.T[:, permutations].movedim(0, 1)),
            exactly(matrices @ square @ matrices.mT, torch.stack([square[p][:, p] for p in permutations])),
        ]
    every = torch.tensor(list(itertools.product((0, 1), repeat=9))).reshape(-1, 3, 3)
    return all_of(*parts, exactly(int(recognise(every).sum()), 6, detail="all 0/1 matrices with three rows"))
