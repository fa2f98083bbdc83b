"""Layouts and the chain rule, and derivatives by a matrix: shapes, entries and values against autograd."""

import functools
import itertools
import math

import torch

from lemmata.foundations.matrix_calculus.claims.scalars import against_autograd
from lemmata.foundations.matrix_calculus.derivative_rows import check_derivative
from lemmata.foundations.matrix_calculus.gradient_types import type_check_gradient
from lemmata.foundations.matrix_calculus.jacobians import chain_rule, differenced_jacobian, gradient_of, jacobian_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of, derivative_table
from lemmata.judge import all_of, always, claim, close, exactly, lie


def wave(draw, inputs, outputs):
    """A smooth map from one space to another."""
    weight, shift = draw.normal(outputs, inputs), draw.normal(outputs)
    return lambda x: torch.sin(weight @ x + shift)


@claim("matcalc.layout")
@lie("the matrix of df_i/dx_j lies in R^(n x m)", printed="002/1", shape=lambda m, n: (n, m))
@lie("every row of the table is in the numerator layout", declared="numerator")
def numerator_and_denominator_layout_are_transposes(draw, shape=lambda m, n: (m, n), declared=None):
    """Jacobians entry by entry from differences, gradients, and each row of the table in the layout it names."""
    shapes, parts = [], []
    for m, n in itertools.permutations((1, 3, 5), 2):
        f, x = wave(draw, n, m), draw.normal(n)
        jacobian = jacobian_of(f, x)
        shapes.append(tuple(jacobian.shape) == shape(m, n))
        # Differences with steps of 6e-6 are right to their square times a third derivative of some 10.
        parts += [
            close(jacobian, differenced_jacobian(f, x), within=1e-7),
            close(jacobian_of(f, x, layout="denominator"), jacobian.mT),
        ]
    a, x = draw.normal(4), draw.normal(4)
    rows = []
    for row in derivative_table():
        point, *others = row.example(generator=draw.generator).values()
        value = lambda point, row=row, others=others: row.function(point, *others)  # noqa: E731
        derivative = row.derivative(point, *others)
        if row.layout == "denominator" and derivative.ndim == 1:
            derivative = derivative[:, None]  # a column
        asked = ("numerator", "denominator") if row.layout == "both" else (declared or row.layout,)
        rows.append(all(type_check_gradient(value, point, derivative, layout) for layout in asked))
        rows.append(check_derivative(row, draw.generator) < 1e-12)
    return all_of(
        always(shapes, detail="shapes of Jacobians"),
        always(rows, detail="rows of the table in the layout they name"),
        *parts,
        exactly(jacobian_of(lambda x: a @ x, x), a[None, :]),
        exactly(jacobian_of(lambda x: a @ x, x, layout="denominator"), a[:, None]),
        exactly(gradient_of(lambda x: a @ x, x), a),
    )


def outermost_first(jacobians):
    return jacobians


def innermost_first(jacobians):
    return jacobians[::-1]


@claim("matcalc.chain_numerator")
@lie("two maps on the left, three on the right", maps=2)
@lie("the product is taken in the reversed order", order=innermost_first)
def jacobians_multiply_from_the_outermost(draw, maps=3, order=outermost_first):
    """Compositions of two and three maps: products of Jacobians, written out and shipped, against autograd."""
    parts = []
    for case in range(10):
        # All lengths equal first: there false forms can be computed, and give something else.
        k, j, m, n = [4] * 4 if case < 5 else (1 + draw.permutation(6)[:4]).tolist()
        f, g, h = chain = wave(draw, j, k), wave(draw, m, j), wave(draw, n, m)
        x = draw.normal(n)
        expected, two = (torch.autograd.functional.jacobian(composed(used), x) for used in (chain, chain[1:]))
        if case < 5:
            written = order([jacobian_of(f, g(h(x))), jacobian_of(g, h(x)), jacobian_of(h, x)])
            left = torch.autograd.functional.jacobian(composed((chain * 2)[:maps]), x)
            parts.append(close(functools.reduce(torch.matmul, written), left, ulps=512))
        parts += [
            close(chain_rule(chain, x), expected, ulps=512),
            close(chain_rule(chain, x, layout="denominator"), expected.mT, ulps=512),
            close(chain_rule(chain[1:], x), two, ulps=512),
        ]
    return all_of(*parts)


def composed(maps):
    return lambda x: functools.reduce(lambda value, step: step(value), reversed(maps), x)


@claim("matcalc.chain_scalar_sum")
@lie("only the path through y_i reaches x_i", others=0.0)
def every_path_adds_its_derivative(draw, others=1.0):
    """L = product of y, y = tanh(Wx) from R^4 to R^3: the chain rule, and autograd, against the sum written out."""
    parts = []
    for _ in range(10):
        W, x = draw.normal(3, 4), draw.normal(4)
        y = torch.tanh(W @ x)
        sums = torch.zeros(4).double()
        for i, j in itertools.product(range(4), range(3)):
            by_y = math.prod(float(y[k]) for k in range(3) if k != j)
            sums[i] += (1.0 if i == j else others) * by_y * float((1 - y[j] ** 2) * W[j, i])
        maps = [torch.prod, lambda x, W=W: torch.tanh(W @ x)]
        scale = float(W.abs().max()) * 3
        parts += [
            close(chain_rule(maps, x)[0], sums, scale=scale),
            close(gradient_of(lambda x, maps=maps: maps[0](maps[1](x)), x), sums, scale=scale),
        ]
    return all_of(*parts)


AXB = derivative_of("a^T X b")


@claim("matcalc.axb")
@lie("the derivative is a^T", derivative=lambda X, a, b: a)
@lie("the derivative is b a^T", derivative=lambda X, a, b: torch.outer(b, a))
def a_bilinear_form_has_an_outer_product_as_derivative(draw, derivative=AXB.derivative):
    """The row against autograd; the derivative has the shape of X."""
    return against_autograd(draw, AXB, lambda X, a, b: (a[:, None] * X * b).sum(), derivative)


AXTB = derivative_of("a^T X^T b")


@claim("matcalc.axtb")
@lie("the derivative is a b^T", derivative=lambda X, a, b: torch.outer(a, b))
@lie("the derivative is 2 b a^T", factor=2.0)
def the_transpose_swaps_the_outer_product(draw, derivative=AXTB.derivative, factor=1.0):
    """The row against autograd."""
    return against_autograd(
        draw, AXTB, lambda X, a, b: (b[:, None] * X * a).sum(), lambda X, a, b: factor * derivative(X, a, b)
    )


GRAM = derivative_of("a^T X^T X b")


@claim("matcalc.axtxb")
@lie("the same outer product stands twice", derivative=lambda X, a, b: 2 * X @ torch.outer(b, a))
@lie("X stands behind", derivative=lambda X, a, b: (torch.outer(a, b) + torch.outer(b, a)) @ X)
def the_gram_form_has_both_outer_products(draw, derivative=GRAM.derivative):
    """The row against autograd."""
    return against_autograd(draw, GRAM, lambda X, a, b: a @ X.mT @ X @ b, derivative)


XA = derivative_of("X a")


@claim("matcalc.xa_tensor")
@lie("the derivative is X^T", printed="002/1", derivative=lambda X, a: X.mT)
@lie(
    "the indices k and l are exchanged",
    derivative=lambda X, a: torch.einsum("il,k->ikl", torch.eye(len(X), dtype=X.dtype), a),
)
@lie("the pull-back is a g^T", order=("a", "g"))
def a_matrix_times_a_vector_has_a_third_order_derivative(draw, derivative=XA.derivative, order=("g", "a")):
    """The row against autograd and, with whole numbers, entry by entry; its pull-back against the outer product."""
    X, a, g = (draw.integers(-4, 5, *shape).double() for shape in ((3, 3), (3,), (3,)))
    given = {"a": a, "g": g}
    entries = [[[(i == k) * float(a[column]) for column in range(3)] for k in range(3)] for i in range(3)]
    return all_of(
        against_autograd(draw, XA, lambda X, a: (X * a).sum(1), derivative),
        exactly(XA.at(X, a=a), torch.tensor(entries).double()),
        exactly(XA.pull_back(g, X, a=a), torch.outer(*(given[name] for name in order))),
    )
