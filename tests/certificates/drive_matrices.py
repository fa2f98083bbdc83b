"""Drivers of what is proved about matrices: definiteness, spectral norms, Ritz pairs, rank, signs."""

import dataclasses
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import torch
from tests.certificates import truths
from tests.certificates.instances import FLOATS, INTEGERS, Source
from tests.certificates.registry import Certificate, Refused, demand

from lemmata.certified.definiteness import certify_definiteness
from lemmata.certified.exact_elimination import exact_rank
from lemmata.certified.rounding import exact_signs
from lemmata.foundations.linear_algebra.general_position import dependent_subset
from lemmata.measure.lanczos import largest_ritz_pair
from lemmata.measure.probable_norm import krylov_miss_probability, krylov_steps, probable_spectral_norm
from lemmata.measure.spectral import certified_spectral_norm

LARGE = 8  # from here on a matrix has one entry in each row and column, and its norm is the largest one


# ---------------------------------------------------------------- definiteness


def draw_symmetric(source: Source) -> tuple:
    if source.chance(0.15):
        half = source.integers(3, 3, source.one_of((*INTEGERS, torch.bool)))
        rows = half.tolist()  # older versions of torch choose no entries of the widest integers
        return torch.tensor([[rows[max(i, j)][min(i, j)] for j in range(3)] for i in range(3)], dtype=half.dtype), 0.0
    matrix = source.symmetric(0 if source.chance(0.02) else source.whole(1, 5), source.floating())
    matrix = source.slightly_asymmetric(matrix) if source.chance(0.15) else matrix
    largest = max(map(abs, matrix.double().flatten().tolist()), default=1.0)
    return matrix, 0.0 if source.chance(0.8) else source.one_of((1e-3, 1.0)) * largest


def judge_definiteness(answer, matrix, tolerance: float) -> float | None:
    rows = truths.symmetric_part(truths.exact(matrix))
    below, zero, _ = truths.inertia(rows)
    floor, ceiling = float(answer.floor), float(answer.ceiling)
    demand(floor <= ceiling, f"floor {floor} above ceiling {ceiling}")
    demand(floor < math.inf and ceiling > -math.inf, f"no number lies above {floor} or below {ceiling}")
    if floor > -math.inf:
        demand(truths.eigenvalues_below(rows, Fraction(floor)) == 0, f"an eigenvalue is below the floor {floor}")
    if ceiling < math.inf:
        demand(truths.inertia(truths.shifted(rows, Fraction(ceiling)))[2] < len(rows), f"all are above {ceiling}")
    demand(not answer.definite or below + zero == 0, "not positive definite")
    violations = truths.eigenvalues_below(rows, -Fraction(tolerance))
    demand(not answer.semidefinite or violations == 0, "not positive semidefinite")
    demand(not answer.violated or violations > 0, "positive semidefinite, but said to be violated")
    if not (answer.semidefinite or answer.violated):
        raise Refused
    size = float(matrix.double().abs().max())
    return (ceiling - floor) / size if 1e-290 < size < 1e290 else None


def definiteness_in(dtype: torch.dtype, allowed: float = 0.0):
    def subject(matrix, tolerance: float):
        value = torch.linalg.eigvalsh(matrix.to(dtype))[0].double()
        bound = -tolerance - allowed
        return SimpleNamespace(
            floor=value, ceiling=value, definite=value > -allowed, semidefinite=value >= bound, violated=value < bound
        )

    return subject


def one_triangle(matrix, tolerance: float):
    matrix = matrix if matrix.is_floating_point() else matrix.double()
    return certify_definiteness(torch.where(torch.ones_like(matrix).tril().bool(), matrix, matrix.mT), tolerance)


definiteness = Certificate(
    "certify_definiteness",
    certify_definiteness,
    draw_symmetric,
    judge_definiteness,
    {
        "eigenvalues in double": definiteness_in(torch.float64),
        "eigenvalues in single": definiteness_in(torch.float32),
        "a tolerance": lambda matrix, tolerance: dataclasses.replace(
            certify_definiteness(matrix), tolerance=1e-12 + tolerance
        ),
        "one triangle": one_triangle,
    },
)


# ---------------------------------------------------------------- spectral norms


def judge_norm(bounds, matrix, *_) -> float | None:
    lower, upper = float(bounds.lower), float(bounds.upper)
    demand(0 <= lower <= upper, f"bounds {lower} and {upper}")
    demand(lower < math.inf, f"a lower bound of {lower}")
    if max(matrix.shape) > LARGE:
        norm = float(matrix.double().abs().max())
        demand(lower <= norm <= upper, f"{norm} is not between {lower} and {upper}")
    else:
        gram = truths.gram(truths.exact(matrix))
        above = truths.inertia(truths.shifted(gram, Fraction(lower) ** 2))
        demand(above[0] < len(gram), f"the norm is below {lower}")
        if upper < math.inf:
            above = truths.inertia(truths.shifted(gram, Fraction(upper) ** 2))
            demand(above[2] == 0, f"the norm is above {upper}")
    return upper / lower if lower > 1e-290 and upper < math.inf else None


def draw_matrix(source: Source) -> tuple:
    if source.chance(0.02):
        return (torch.zeros(source.whole(0, 2), 0),)
    return (source.matrix(source.floating()),)


def norm_in(dtype: torch.dtype):
    def bounds(matrix, *_):
        norm = torch.linalg.matrix_norm(matrix.to(dtype), 2).double()
        return SimpleNamespace(lower=norm, upper=norm)

    return bounds


certified_norm = Certificate(
    "certified_spectral_norm",
    certified_spectral_norm,
    draw_matrix,
    judge_norm,
    {
        "singular values in double": norm_in(torch.float64),
        "singular values in single": norm_in(torch.float32),
        "a Ritz value as upper bound": lambda matrix: dataclasses.replace(
            certified_spectral_norm(matrix), upper=certified_spectral_norm(matrix).lower
        ),
    },
)


def draw_flat(source: Source) -> tuple:
    """Matrices of all kinds; some are large, with one entry in each row, almost all of them equal."""
    tolerance = source.one_of((1e-2, 1e-3, 1e-3, 1e-6))
    dtype = source.one_of((torch.float32, torch.float64))
    if source.chance(0.8):
        return (source.matrix(dtype, most=6), tolerance, source.random.getrandbits(40))
    size = source.one_of((20, 60, 150) if source.chance(0.8) else (300, 400, 1000))
    order, scale = source.random.sample(range(size), size), source.one_of((1e-30, 1e-12, 1e-11, 1.0, 1.0, 1e11))
    matrix = torch.zeros(size, size, dtype=dtype)
    matrix[torch.arange(size), torch.tensor(order)] = scale
    matrix[0, order[0]] *= 1 + source.one_of((1.2, 2.0, 0.1, -0.1)) * tolerance
    return (matrix, tolerance, source.random.getrandbits(40))


def probable(matrix, tolerance: float, seed: int):
    return probable_spectral_norm(matrix, tolerance, generator=torch.Generator().manual_seed(seed))


def power_iteration(steps: int, dtype: torch.dtype):
    def bounds(matrix, tolerance: float, seed: int):
        a = matrix.to(dtype)
        x = torch.randn(a.shape[1], 1, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        for _ in range(steps):
            x = a.mT @ (a @ x)
            x = x / x.norm()
        length = (a @ x).norm().double().nan_to_num(0.0)
        return SimpleNamespace(lower=length * (1 - 1e-5), upper=length * (1 + tolerance))

    return bounds


probable_norm = Certificate(
    "probable_spectral_norm",
    probable,
    draw_flat,
    judge_norm,
    {
        "few steps": power_iteration(4, torch.float64),
        "single precision without scaling": power_iteration(500, torch.float32),
        "no tolerance": lambda matrix, tolerance, seed: dataclasses.replace(
            probable(matrix, tolerance, seed), upper=probable(matrix, tolerance, seed).lower * (1 + tolerance / 1e9)
        ),
    },
    share=0.3,
)


# ---------------------------------------------------------------- Krylov spaces


def draw_operator(source: Source) -> tuple:
    dtype = source.one_of((torch.float32, torch.float64))
    size = source.whole(1, 5)
    matrix = source.symmetric(size, dtype)
    matrix = -matrix if source.chance(0.3) else matrix  # the largest eigenvalue beside much larger ones below zero
    start = source.stored([[source.normal() for _ in range(size)]], dtype, source.scale(dtype))[0]
    return matrix, start, source.whole(1, size + 1)


def ritz(matrix, start, steps: int):
    """By an operator whose images are right but for their own rounding: how much a product loses is its own affair."""
    rows = truths.exact(matrix)

    def operator(x):
        exact = truths.exact(x)
        return torch.tensor([float(truths.dot(row, exact)) for row in rows], dtype=torch.float64).to(x.dtype)

    return largest_ritz_pair(operator, start, steps)


def judge_ritz(pair, matrix, start, steps: int) -> float | None:
    rows = truths.symmetric_part(truths.exact(matrix))
    value, residual = truths.exact(pair.value), truths.exact(pair.residual)
    near = truths.inertia(truths.shifted(rows, value - residual))[0]
    far = truths.inertia(truths.shifted(rows, value + residual))
    demand(near < far[0] + far[1], f"no eigenvalue within {float(residual)} of {float(value)}")
    return None


def clamped(matrix, start, steps: int):
    """One step from a start that is normalised as torch does it."""
    vector = torch.nn.functional.normalize(start, dim=-1)
    image = matrix @ vector
    value = vector @ image
    return SimpleNamespace(value=value, residual=(image - value * vector).norm())


ritz_pair = Certificate(
    "largest_ritz_pair", ritz, draw_operator, judge_ritz,
    {
        "a clamped start": clamped,
        "no residual": lambda *given: ritz(*given)._replace(residual=torch.zeros((), dtype=torch.float64)),
        "rounding in its favour": lambda *given: ritz(*given)._replace(value=ritz(*given).value * (1 + 1e-9)),
    },
)  # fmt: skip


def draw_krylov(source: Source) -> tuple:
    error = source.one_of((*(10.0**-k for k in range(1, 9)), 0.5, 0.9, source.random.random()))
    return source.one_of((1, 2, 7, 100, 4096, 10**7)), source.whole(1, 400), error


def miss_probability(size: int, steps: int, error: float) -> mpmath.mpf:
    """The formula to sixty digits."""
    e = truths.high(error)
    chebyshev = mpmath.cosh((steps - 1) * mpmath.acosh((1 + e) / (1 - e)))
    return mpmath.sqrt(2 * size / mpmath.pi) / chebyshev


def judge_miss(found, size: int, steps: int, error: float) -> float:
    truth = miss_probability(size, steps, error)
    demand(truths.high(found) >= min(1, truth), f"{found} is below {mpmath.nstr(truth, 20)}")
    return float(found / truth) if 1e-300 < truth < 1 else 1.0


krylov_probability = Certificate(
    "krylov_miss_probability", krylov_miss_probability, draw_krylov, judge_miss,
    {
        "rounded to nearest": lambda *given: float(min(1, miss_probability(*given))),
        "one step more": lambda size, steps, error: krylov_miss_probability(size, steps + 1, error),
    },
)  # fmt: skip


def judge_steps(found, size: int, steps: int, error: float) -> float:
    """`steps` is not asked here; the failure allowed is the usual one."""
    enough = found >= size or miss_probability(size, found, error) <= truths.high(1e-9)
    demand(enough, f"{found} steps miss too often")
    return 1.0


krylov = Certificate(
    "krylov_steps", lambda size, steps, error: krylov_steps(size, error), draw_krylov, judge_steps,
    {"one step less": lambda size, steps, error: max(1, krylov_steps(size, error) - 1)},
)  # fmt: skip


# ---------------------------------------------------------------- rank, signs


def draw_any_matrix(source: Source) -> tuple:
    if source.chance(0.02):
        return (torch.zeros(source.whole(0, 1), 0),)
    if source.chance(0.4):
        return (source.integers(source.whole(1, 4), source.whole(1, 4), source.one_of((*INTEGERS, torch.bool))),)
    return (source.matrix(source.one_of(FLOATS)),)


def judge_rank(found: int, matrix) -> None:
    truth = truths.rank(truths.exact(matrix))
    demand(found == truth, f"rank {found}, truth {truth}")


rank = Certificate(
    "exact_rank", exact_rank, draw_any_matrix, judge_rank,
    {
        "singular values": lambda matrix: int(torch.linalg.matrix_rank(matrix.double())),
        "integers in int32": lambda matrix: exact_rank(matrix.to(torch.int32)),
    },
)  # fmt: skip


def draw_points(source: Source) -> tuple:
    return source.points(source.whole(1, 5), source.whole(1, 3)), source.chance(0.5)


def judge_dependence(found, points, affine: bool) -> None:
    rows = [[*row, *([truths.ONE] if affine else [])] for row in truths.exact(points)]
    dependent = truths.dependent_subsets(rows, min(len(rows), len(rows[0])))
    if found is None:
        demand(not dependent, f"in general position, but {dependent[:1]} are dependent")
    else:
        demand(found in dependent, f"{found} are independent")
        demand(len(found) == len(dependent[0]), f"{found} is larger than {dependent[:1]}")


def dependent_in_floats(points, affine: bool):
    rows = torch.nn.functional.pad(points.double(), (0, 1), value=1.0) if affine else points.double()
    for size in range(1, min(rows.shape) + 1):
        for subset in torch.combinations(torch.arange(len(rows)), size).tolist():
            if torch.linalg.matrix_rank(rows[subset]) < size:
                return tuple(subset)
    return None


dependence = Certificate(
    "dependent_subset", dependent_subset, draw_points, judge_dependence, {"singular values": dependent_in_floats}
)


def draw_product(source: Source) -> tuple:
    size = source.whole(1, 5)
    dtype, other = source.floating(), source.floating()
    values = [source.normal() * 10.0 ** source.whole(-3, 8) for _ in range(size)]
    rows = [[source.normal() for _ in values] for _ in range(3)]
    if source.chance(0.7):  # almost perpendicular, as far as the digits allow
        rows[0][0] = -math.fsum(a * b for a, b in zip(rows[0][1:], values[1:], strict=True)) / values[0]
    vector = source.stored([values], other, source.scale(other))[0]
    return source.stored(rows, dtype, source.scale(dtype)), vector


def judge_signs(found, rows, vector) -> None:
    exact = truths.exact(vector)
    for sign, row in zip(found.tolist(), truths.exact(rows), strict=True):
        product = truths.dot(row, exact)
        demand(sign == (product > 0) - (product < 0), f"sign {sign} of {float(product)}")


signs = Certificate(
    "exact_signs", exact_signs, draw_product, judge_signs,
    {
        "signs in double": lambda rows, vector: (rows.double() @ vector.double()).sign(),
        "signs in single": lambda rows, vector: (rows.float() @ vector.float()).nan_to_num().sign(),
    },
)  # fmt: skip

CERTIFICATES = (
    definiteness, certified_norm, probable_norm, ritz_pair, krylov_probability, krylov, rank, dependence, signs,
)  # fmt: skip
