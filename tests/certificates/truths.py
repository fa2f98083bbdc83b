r"""Exact answers to what certificates speak of: every stored number is a fraction, and fractions are not rounded.

Nothing here shares a line with the library. Matrices are lists of rows of `Fraction`; small ones only.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product

import mpmath

Row = list[Fraction]
Rows = list[Row]

mpmath.mp.dps = 60
ONE, ZERO = Fraction(1), Fraction(0)


def exact(value):
    """The numbers of a tensor as they are stored, in lists as deep as its shape."""
    value = value.detach()
    listed = (value.double() if value.is_floating_point() else value).tolist()

    def deep(entry):
        return [deep(one) for one in entry] if isinstance(entry, list) else Fraction(entry)

    return deep(listed)


def high(value: Fraction | float) -> mpmath.mpf:
    """A number with sixty digits."""
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), ZERO)


def times(left: Rows, right: Rows) -> Rows:
    columns = list(zip(*right, strict=True))
    return [[dot(row, column) for column in columns] for row in left]


def identity(size: int) -> Rows:
    return [[Fraction(i == j) for j in range(size)] for i in range(size)]


def symmetric_part(rows: Rows) -> Rows:
    """The matrix of the quadratic form: all that $x^T M x$ knows of a matrix."""
    return [[(rows[i][j] + rows[j][i]) / 2 for j in range(len(rows))] for i in range(len(rows))]


def shifted(rows: Rows, by: Fraction) -> Rows:
    """The matrix less a multiple of the identity."""
    return [[value - by * (i == j) for j, value in enumerate(row)] for i, row in enumerate(rows)]


def negative(rows: Rows) -> Rows:
    return [[-value for value in row] for row in rows]


def gram(rows: Rows) -> Rows:
    """The smaller one of $A^T A$ and $A A^T$: their positive eigenvalues are the same."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    vectors = rows if len(rows) <= len(columns) else columns
    return [[dot(a, b) for b in vectors] for a in vectors]


def inertia(rows: Rows) -> tuple[int, int, int]:
    """How many eigenvalues of a symmetric matrix are negative, zero and positive (Sylvester's law)."""
    rest, negatives, positives = [list(row) for row in rows], 0, 0
    while any(map(any, rest)):
        pivot = next((i for i in range(len(rest)) if rest[i][i]), None)
        if pivot is None:  # the diagonal is zero: adding a row and its column to another puts 2b there
            i, j = next((i, j) for i, row in enumerate(rest) for j, value in enumerate(row) if value)
            rest[i] = [a + b for a, b in zip(rest[i], rest[j], strict=True)]
            for row in rest:
                row[i] += row[j]
            continue
        top, d = rest[pivot], rest[pivot][pivot]
        positives, negatives = positives + (d > 0), negatives + (d < 0)
        kept = [i for i in range(len(rest)) if i != pivot]
        rest = [[rest[i][j] - rest[i][pivot] * top[j] / d for j in kept] for i in kept]
    return negatives, len(rows) - negatives - positives, positives


def eigenvalues_below(rows: Rows, limit: Fraction) -> int:
    """How many eigenvalues of a symmetric matrix are smaller than a number."""
    return inertia(shifted(rows, limit))[0]


def rank(rows: Iterable[Row]) -> int:
    """The rank by elimination."""
    rest, found = [list(row) for row in rows], 0
    for column in range(len(rest[0]) if rest else 0):
        pivot = next((i for i in range(found, len(rest)) if rest[i][column]), None)
        if pivot is None:
            continue
        rest[found], rest[pivot] = rest[pivot], rest[found]
        for i in range(found + 1, len(rest)):
            factor = rest[i][column] / rest[found][column]
            rest[i] = [a - factor * b for a, b in zip(rest[i], rest[found], strict=True)]
        found += 1
    return found


def dependent_subsets(rows: Rows, most: int) -> list[tuple[int, ...]]:
    """The subsets of at most so many rows that are linearly dependent, smaller ones first."""
    subsets = (subset for size in range(1, most + 1) for subset in combinations(range(len(rows)), size))
    return [subset for subset in subsets if rank([rows[i] for i in subset]) < len(subset)]


def in_general_position(rows: Rows) -> bool:
    size = min(len(rows), len(rows[0]))
    return all(rank([rows[i] for i in subset]) == size for subset in combinations(range(len(rows)), size))


def signed(x: Rows, y: Sequence[int], bias: bool) -> Rows:
    """The rows with which a separating unit has positive products."""
    return [[label * value for value in (*point, *([ONE] if bias else []))] for point, label in zip(x, y, strict=True)]


def separating_plane(rows: Rows) -> Row | None:
    """A vector with a positive product with every row, or None where none exists; either answer is checked.

    The simplex method on the alternative (Gordan): multipliers >= 0 of sum 1 with which the rows add up to zero. Its
    artificial variables are driven out by Bland's rule, which never circles; if some stay, their prices are the plane.
    """
    points, inputs = len(rows), len(rows[0])
    # One equation for each input, and one for the sum; right-hand sides are not negative.
    table = [[rows[i][j] for i in range(points)] + [Fraction(j == k) for k in range(inputs + 1)] + [ZERO]
             for j in range(inputs)]  # fmt: skip
    table.append([ONE] * points + [Fraction(k == inputs) for k in range(inputs + 1)] + [ONE])
    basis = list(range(points, points + inputs + 1))
    # What one more unit of each variable lowers the sum of the artificial ones by.
    price = [sum(column) for column in zip(*table, strict=True)]
    price[points : points + inputs + 1] = [ZERO] * (inputs + 1)
    while (enters := next((j for j in range(points) if price[j] > 0), None)) is not None:
        ratios = [(row[-1] / row[enters], basis[i], i) for i, row in enumerate(table) if row[enters] > 0]
        _, _, leaves = min(ratios)
        pivot = [value / table[leaves][enters] for value in table[leaves]]
        table[leaves], basis[leaves] = pivot, enters
        for i, row in enumerate(table):
            if i != leaves and row[enters]:
                table[i] = [a - row[enters] * b for a, b in zip(row, pivot, strict=True)]
        price = [a - price[enters] * b for a, b in zip(price, pivot, strict=True)]
    if price[-1] == 0:
        multipliers = [sum((table[i][-1] for i in range(len(basis)) if basis[i] == p), ZERO) for p in range(points)]
        assert min(multipliers) >= 0
        assert sum(multipliers) == 1
        assert all(dot(multipliers, column) == 0 for column in zip(*rows, strict=True))
        return None
    plane = [-1 - price[points + j] for j in range(inputs)]  # the dual variables, whose bound is 1
    assert all(dot(row, plane) > 0 for row in rows)
    return plane


def separable_labellings(x: Rows, bias: bool) -> set[tuple[int, ...]]:
    """All labellings that some unit realises, by trying every one."""
    return {y for y in product((-1, 1), repeat=len(x)) if separating_plane(signed(x, y, bias)) is not None}


def angle(left: Row, right: Row) -> mpmath.mpf:
    """The angle between two vectors in the plane or in space, in all digits however small it is."""
    inner = dot(left, right)
    crossed = dot(left, left) * dot(right, right) - inner * inner  # the square of the cross product, exactly
    return mpmath.atan2(mpmath.sqrt(high(crossed)), high(inner))


def cross(a: Row, b: Row) -> Row:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


@mpmath.workdps(700)  # cones may be as thin as the smallest numbers are small
def fraction_of_directions(rows: Rows) -> mpmath.mpf:
    """The fraction of all directions in the plane or in space that have a positive product with every row."""
    if separating_plane(rows) is None:
        return mpmath.mpf(0)
    if rank(rows) < 3:  # a half space, or a wedge between the two rows that are furthest apart
        return min(angle(a, [-value for value in b]) for a in rows for b in rows) / (2 * mpmath.pi)
    normals = [[sign * value for value in cross(a, b)] for a, b in combinations(rows, 2) for sign in (1, -1)]
    edges: Rows = []  # of the cone of directions
    for normal in normals:
        inside = any(normal) and all(dot(row, normal) >= 0 for row in rows)
        if inside and not any(not any(cross(normal, edge)) and dot(normal, edge) > 0 for edge in edges):
            edges.append(normal)
    lengths = [mpmath.sqrt(high(dot(edge, edge))) for edge in edges]
    units = [
        mpmath.matrix([high(value) / length for value in edge]) for edge, length in zip(edges, lengths, strict=True)
    ]
    centre = sum(units[1:], units[0])
    # Around the centre: angles in the plane across it, from two directions in that plane.
    first = units[0] - centre * (_inner(units[0], centre) / _inner(centre, centre))
    second = mpmath.matrix(_crossed(centre, first)) / mpmath.norm(centre)
    ring = sorted(units, key=lambda unit: mpmath.atan2(_inner(unit, second), _inner(unit, first)))
    triangles = (_solid_angle(ring[0], ring[i], ring[i + 1]) for i in range(1, len(ring) - 1))
    return sum(triangles, mpmath.mpf(0)) / (4 * mpmath.pi)


def _inner(a, b) -> mpmath.mpf:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _crossed(a, b) -> list:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _solid_angle(a, b, c) -> mpmath.mpf:
    """Of a triangle on the unit sphere (van Oosterom and Strackee)."""
    volume = abs(_inner(a, _crossed(b, c)))
    return 2 * mpmath.atan2(volume, 1 + _inner(a, b) + _inner(b, c) + _inner(c, a))


# ---------------------------------------------------------------- powers of a matrix


def characteristic(rows: Rows) -> Row:
    """The coefficients of det(zI - A), that of the highest power first (Faddeev and LeVerrier)."""
    size, found, product_ = len(rows), [ONE], identity(len(rows))
    for k in range(1, size + 1):
        moved = times(rows, product_)
        found.append(-sum((moved[i][i] for i in range(size)), ZERO) / k)
        product_ = shifted(moved, -found[-1])
    return found


def powers_stay_bounded(rows: Rows) -> tuple[bool, bool]:
    """Whether the powers of a matrix tend to zero, and whether they stay bounded."""
    polynomial = _without_zero_roots(characteristic(rows))
    if _all_inside(polynomial):
        return True, True
    if not _none_outside(polynomial):
        return False, False
    on_circle = _common(polynomial, polynomial[::-1])
    simple = _quotient(on_circle, _common(on_circle, _derivative(on_circle)))
    image = _at(simple, rows)  # its null space grows when squared iff some eigenvalue on the circle has a Jordan block
    return False, rank(image) == rank(times(image, image))


def _all_inside(p: Row) -> bool:
    """Whether all roots are smaller than 1 (Schur and Cohn)."""
    while len(p) > 1:
        if abs(p[-1]) >= abs(p[0]):
            return False
        p = [p[0] * a - p[-1] * b for a, b in zip(p[:-1], p[:0:-1], strict=True)]
    return True


def _none_outside(p: Row) -> bool:
    """Whether no root is larger than 1: what a polynomial shares with its mirror image has all roots on the circle
    iff its derivative has none outside (Cohn), and the rest has no root there."""
    p = _without_zero_roots(p)
    mirrored = _common(p, p[::-1])
    return _all_inside(_quotient(p, mirrored)) and (len(mirrored) == 1 or _none_outside(_derivative(mirrored)))


def _without_zero_roots(p: Row) -> Row:
    while len(p) > 1 and p[-1] == 0:
        p = p[:-1]
    return p


def _derivative(p: Row) -> Row:
    return [value * (len(p) - 1 - i) for i, value in enumerate(p[:-1])] or [ZERO]


def _divided(p: Row, by: Row) -> tuple[Row, Row]:
    p, found = list(p), []
    while len(p) >= len(by):
        found.append(p[0] / by[0])
        p = [a - found[-1] * b for a, b in zip(p, by + [ZERO] * (len(p) - len(by)), strict=True)][1:]
    return found, p


def _quotient(p: Row, by: Row) -> Row:
    found, rest = _divided(p, by)
    assert not any(rest)
    return found


def _common(p: Row, q: Row) -> Row:
    """The greatest common divisor."""
    while any(q):
        while q[0] == 0:
            q = q[1:]
        p, q = q, _divided(p, q)[1]
    return [value / p[0] for value in p]


def _at(p: Row, rows: Rows) -> Rows:
    """A polynomial of a matrix (Horner)."""
    found = [[ZERO] * len(rows) for _ in rows]
    for value in p:
        found = shifted(times(found, rows), -value)
    return found
