"""The trace and the Frobenius norm: what they are and what leaves them unchanged."""

import functools
import itertools

import torch

from lemmata.certified.norms import frobenius_norm, p_norm
from lemmata.judge import all_of, claim, close, exactly, lie


def trace(matrices):
    """The traces of a batch; torch.trace takes one matrix."""
    return torch.einsum("...ii", matrices)


@claim("linalg.trace_definition")
@lie("all entries are added", off_diagonal=1)
@lie("the other diagonal is added", orient=torch.fliplr)
def the_trace_of_an_outer_product_is_the_inner_product(draw, off_diagonal=0, orient=lambda a: a):
    """Every matrix is a sum of outer products, whose traces are inner products: whole numbers, so exactly."""
    measured, expected = [], []
    for n in (1, 2, 6):
        x, y = draw.integers(-9, 10, 200, 3, n), draw.integers(-9, 10, 200, 3, n)
        matrices = torch.einsum("...ki,...kj->...ij", x, y)
        inner = (x * y).sum((-2, -1))
        others = matrices.sum((-2, -1)) - inner
        measured.append(torch.stack([torch.trace(orient(matrix)) for matrix in matrices]) + off_diagonal * others)
        expected.append(inner)
    return exactly(torch.cat(measured), torch.cat(expected))


def different(values):
    """The sum of all values that differ."""
    return torch.stack(list({value.item(): value for value in values}.values())).sum()


@claim("linalg.trace_eigenvalues")
@lie("the trace is the sum of the singular values", values=torch.linalg.svdvals)
@lie("the squares of the eigenvalues are added", power=2)
@lie("every eigenvalue is added once, whatever its multiplicity", multiple=different)
def the_trace_is_the_sum_of_the_eigenvalues(draw, values=torch.linalg.eigvals, power=1, multiple=torch.sum):
    """Random real matrices, whose complex eigenvalues come in pairs; and the eigenvalue 3, three times over."""
    parts = []
    for n in (1, 2, 5, 8):
        a = draw.normal(70, n, n)
        # Eigenvalues of a matrix that is not symmetric may be ill-conditioned; their sum is not.
        parts.append(close((values(a) ** power).sum(-1), trace(a).to(torch.complex128), scale=n * frobenius_norm(a)))
    # Triangular, so that rounding leaves the eigenvalues alone; the first has one direction for all three of them.
    for above in (1.0, 0.0):
        block = 3 * torch.eye(3).double() + above * torch.diag(torch.ones(2), 1).double()
        parts.append(close(multiple(values(block)).real, trace(block)))
    return all_of(*parts)


@claim("linalg.trace_cyclic")
@lie("any order of the factors gives the same trace", order=(0, 2, 1))
def factors_of_a_trace_may_move_round(draw, order=(1, 2, 0)):
    """Square factors in the given order; rectangular ones in all turns, against their contraction in one sum."""
    square = draw.normal(3, 200, 4, 4)
    product, moved = (functools.reduce(torch.matmul, square[list(taken)]) for taken in ((0, 1, 2), order))
    parts = [close(trace(moved), trace(product), scale=frobenius_norm(square).prod(0))]
    for sizes in ((2, 5, 3), (7, 1, 4), (1, 1, 6), (4, 2), (3,), (2, 3, 4, 5)):
        chain = [draw.normal(50, m, n) for m, n in itertools.pairwise((*sizes, sizes[0]))]
        letters = "abcd"[: len(sizes)]
        terms = ",".join(f"z{i}{j}" for i, j in itertools.pairwise(letters + letters[0]))
        contracted = torch.einsum(f"{terms}->z", *chain)
        scale = torch.stack([frobenius_norm(factor) for factor in chain]).prod(0)
        turns = [[*chain[turn:], *chain[:turn]] for turn in range(len(chain))]
        parts += [close(trace(functools.reduce(torch.matmul, turned)), contracted, scale=scale) for turned in turns]
    return all_of(*parts)


@claim("linalg.trace_linear")
@lie("a factor comes out with the power n, as it does from the determinant", power=3)
@lie("transposing changes the sign", transposed=-1)
@lie("the trace of a sum counts the second matrix twice", second=2)
def the_trace_is_linear_and_blind_to_transposition(draw, power=1, transposed=1, second=1):
    """Whole-number matrices, so exactly."""
    a, b, c = draw.integers(-9, 10, 300, 3, 3), draw.integers(-9, 10, 300, 3, 3), draw.integers(-5, 6, 300)
    return all_of(
        exactly(trace(a + b), trace(a) + second * trace(b)),
        exactly(trace(c[:, None, None] * a), c**power * trace(a)),
        exactly(trace(a.mT), transposed * trace(a)),
    )


@claim("linalg.frobenius_definition")
@lie("the sizes of the entries are added", power=1.0)
@lie("the root is taken twice", root=4.0)
def the_frobenius_norm_is_the_length_of_all_entries(draw, power=2.0, root=2.0):
    """Entries that are pasted into one vector; torch's norm; and the law of the parallelogram, as for any length."""
    parts = []
    for (m, n), size in (((1, 1), 2.0**-600), ((3, 5), 1.0), ((20, 7), 2.0**600)):
        a, b = draw.normal(50, m, n), draw.normal(50, m, n)
        vectors = torch.cat([a[:, i] for i in range(m)], dim=-1)
        squares = frobenius_norm(a) ** 2 + frobenius_norm(b) ** 2
        parts += [
            # The squares of such entries would overflow or vanish; their norm does not.
            close(frobenius_norm(size * a) / size, (vectors.abs() ** power).sum(-1) ** (1 / root)),
            close(frobenius_norm(a), torch.linalg.matrix_norm(a, "fro")),
            close(frobenius_norm(a + b) ** 2 + frobenius_norm(a - b) ** 2, 2 * squares),
        ]
    return all_of(*parts)


def squared_trace(a):
    """The square of the trace of A itself, for as many rows as columns."""
    n = min(a.shape[-2:])
    return trace(a[..., :n, :n]) ** 2


def trace_of_gram(a):
    """The trace of the product of A with its transpose."""
    return trace(a.mT @ a)


@claim("linalg.frobenius_trace")
@lie("the trace of A is squared", squared=squared_trace)
@lie("no root is taken", root=1.0)
def the_squared_frobenius_norm_is_a_trace(draw, squared=trace_of_gram, root=2.0):
    """Rectangular matrices, and the trace on either side, which the cyclic property makes equal."""
    parts = []
    for m, n in ((1, 4), (3, 3), (6, 2)):
        a = draw.normal(200, m, n)
        parts += [
            close(frobenius_norm(a), squared(a) ** (1 / root)),
            close(frobenius_norm(a) ** 2, trace(a @ a.mT)),
        ]
    return all_of(*parts)


@claim("linalg.frobenius_singular")
@lie("the singular values are added, as for the nuclear norm", p=1.0)
@lie("the largest singular value is meant, as for the spectral norm", p=float("inf"))
def the_frobenius_norm_is_the_length_of_the_singular_values(draw, p=2.0):
    """Rectangular matrices, the last of rank two, against their singular values, of which they have several."""
    parts = []
    for m, n in ((2, 5), (4, 4), (8, 3)):
        a = draw.normal(200, m, n)
        a[-1] = draw.normal(m, 2) @ draw.normal(2, n)
        parts.append(close(frobenius_norm(a), p_norm(torch.linalg.svdvals(a), p)))
    return all_of(*parts)


@claim("linalg.frobenius_orthogonal")
@lie("every invertible matrix leaves the norm unchanged", bend=0.3)
def turning_leaves_the_frobenius_norm_unchanged(draw, bend=0.0):
    """Random turns and reflections from either side; bent ones are still invertible, but not orthogonal."""
    parts = []
    for n in (1, 2, 6, 20):
        q, a = draw.orthogonal(n), draw.normal(10, n, 3)
        q = q + bend * torch.eye(n).double()
        parts += [
            close(frobenius_norm(q @ a), frobenius_norm(a)),
            close(frobenius_norm(a.mT @ q), frobenius_norm(a)),
        ]
    return all_of(*parts)
