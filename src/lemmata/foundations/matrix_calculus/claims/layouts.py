"""Layouts, the chain rule and derivatives by a matrix: each formula beside autograd or differences."""

import functools
import itertools

import torch
from torch.autograd.functional import jacobian

from lemmata.foundations.matrix_calculus.claims.derivatives import (
    at_every_length,
    central_differences,
    columns,
    rows,
    wave,
)
from lemmata.judge import all_of, always, claim, close, lie


@claim("matcalc.layout")
@lie("the matrix of df_i/dx_j lies in R^(n x m)", shape=lambda m, n: (n, m))
@lie("every row of the table is in the numerator layout", declared="numerator")
def numerator_and_denominator_layout_are_transposes(draw, shape=lambda m, n: (m, n), declared=None):
    """Jacobians entry by entry from differences; and a table whose rows are right in the layout they state."""
    shapes, entries = [], []
    for m, n in itertools.permutations((1, 3, 5), 2):
        x, f = draw.normal(n), wave(draw, n, m)
        differences = central_differences(f, x)
        shapes.append(tuple(differences.shape) == shape(m, n) and tuple(columns(f, x).shape) == shape(m, n)[::-1])
        # Differences with steps of 6e-6 are right to their square times a third derivative of some 10.
        entries.append(close(rows(f, x), differences, within=1e-7))
    x, a, S, A, B = (draw.normal(*sizes) for sizes in ((4,), (4,), (4, 4), (3, 4), (4, 3)))
    table = [
        (lambda x: a @ x, a[:, None], "denominator"),
        (lambda x: x @ S @ x, ((S + S.mT) @ x)[:, None], "denominator"),
        (lambda x: A @ x, A, "numerator"),
        (lambda x: x @ B, B.mT, "numerator"),
    ]
    layouts = {"numerator": rows, "denominator": columns}
    return all_of(
        always(shapes, detail="shapes of Jacobians"),
        *entries,
        *(close(derivative, layouts[declared or stated](f, x)) for f, derivative, stated in table),
    )


def outermost_first(jacobians):
    return jacobians


def innermost_first(jacobians):
    return jacobians[::-1]


def composed(maps):
    return lambda x: functools.reduce(lambda value, step: step(value), reversed(maps), x)


@claim("matcalc.chain_numerator")
@lie("two maps on the left, three on the right", maps=2)
@lie("the product is taken in the reversed order", order=innermost_first)
def jacobians_multiply_from_the_outermost(draw, maps=3, order=outermost_first):
    """Two and three maps, in both layouts: against central differences, for autograd is nothing but this rule."""

    def sides(n, m, j, k):
        x = draw.normal(n)
        f, g, h = chain = wave(draw, j, k), wave(draw, m, j), wave(draw, n, m)
        factors = [rows(f, g(h(x))), rows(g, h(x)), rows(h, x)]
        whole = central_differences(composed((chain * 2)[:maps]), x)
        yield functools.reduce(torch.matmul, order(factors)), whole
        yield columns(h, x) @ columns(g, h(x)) @ columns(f, g(h(x))), whole.mT
        yield rows(g, h(x)) @ rows(h, x), central_differences(lambda x: g(h(x)), x)

    # Differences are off by the square of their step, 4e-11, times third derivatives of some 1,000.
    return at_every_length(draw, sides, judge=functools.partial(close, within=1e-6))


@claim("matcalc.chain_scalar_sum")
@lie("only the path through y_i reaches x_i", others=0.0)
def every_path_adds_its_derivative(draw, others=1.0):
    """L = product of y, y = tanh(Wx): the sum over paths against central differences, for autograd is this rule."""

    def sides(n, m):
        x, W = draw.normal(n), draw.normal(m, n)
        y = torch.tanh(W @ x)
        paths = jacobian(torch.prod, y)[:, None] * (1 - y[:, None] ** 2) * W  # (m, n): dL/dy_j times dy_j/dx_i
        weights = others + (1 - others) * torch.eye(m, n).double()
        yield (weights * paths).sum(0), central_differences(lambda x: torch.tanh(W @ x).prod(), x)

    # Differences are off by the square of their step, 4e-11, times third derivatives of some 1,000.
    return at_every_length(draw, sides, judge=functools.partial(close, within=1e-6))


@claim("matcalc.axb")
@lie("the derivative is a^T", derivative=lambda X, a, b: a)
@lie("the derivative is b a^T", derivative=lambda X, a, b: torch.outer(b, a))
def a_bilinear_form_has_an_outer_product_as_derivative(draw, derivative=lambda X, a, b: torch.outer(a, b)):
    """Against autograd; the derivative has the shape of X."""

    def sides(m, n):
        X, a, b = draw.normal(m, n), draw.normal(m), draw.normal(n)
        yield derivative(X, a, b), jacobian(lambda X: a @ X @ b, X)

    return at_every_length(draw, sides)


@claim("matcalc.axtb")
@lie("the derivative is a b^T", derivative=lambda X, a, b: torch.outer(a, b))
@lie("the derivative is 2 b a^T", factor=2.0)
def the_transpose_swaps_the_outer_product(draw, derivative=lambda X, a, b: torch.outer(b, a), factor=1.0):
    """Against autograd."""

    def sides(m, n):
        X, a, b = draw.normal(m, n), draw.normal(n), draw.normal(m)
        yield factor * derivative(X, a, b), jacobian(lambda X: a @ X.mT @ b, X)

    return at_every_length(draw, sides)


@claim("matcalc.axtxb")
@lie("the same outer product stands twice", derivative=lambda X, a, b: 2 * X @ torch.outer(b, a))
@lie("X stands behind", derivative=lambda X, a, b: (torch.outer(a, b) + torch.outer(b, a)) @ X)
def the_gram_form_has_both_outer_products(draw, derivative=lambda X, a, b: X @ (torch.outer(a, b) + torch.outer(b, a))):
    """Against autograd."""

    def sides(m, n):
        X, a, b = draw.normal(m, n), draw.normal(n), draw.normal(n)
        yield derivative(X, a, b), jacobian(lambda X: a @ X.mT @ X @ b, X)

    return at_every_length(draw, sides)


@claim("matcalc.xa_tensor")
@lie("the derivative is X^T", printed="002/1", derivative=lambda X, a: X.mT)
@lie(
    "the indices k and l are exchanged",
    derivative=lambda X, a: torch.einsum("il,k->ikl", torch.eye(len(X), dtype=X.dtype), a),
)
@lie("the pull-back is a g^T", order=("a", "g"))
def a_matrix_times_a_vector_has_a_third_order_derivative(
    draw,
    derivative=lambda X, a: torch.einsum("ik,l->ikl", torch.eye(len(X), dtype=X.dtype), a),
    order=("g", "a"),
):
    """The tensor, and the pull-back of L = sum of c sin(Xa), against autograd."""

    def sides(m, n):
        X, a, c = draw.normal(m, n), draw.normal(n), draw.normal(m)
        yield derivative(X, a), jacobian(lambda X: X @ a, X)
        given = {"a": a, "g": c * torch.cos(X @ a)}  # g = dL/dz at z = Xa
        first, second = (given[name] for name in order)
        yield torch.outer(first, second), jacobian(lambda X: (c * torch.sin(X @ a)).sum(), X)

    return at_every_length(draw, sides)
