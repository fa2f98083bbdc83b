"""Layouts and the chain rule, and derivatives by a matrix: shapes, entries and values against autograd."""

import functools
import itertools
import math

import torch

from lemmata.foundations.claims.matrix_calculus import against_autograd
from lemmata.foundations.derivative_rows import DerivativeRow, check_derivative
from lemmata.foundations.gradient_types import type_check_gradient
from lemmata.foundations.jacobians import chain_rule, differenced_jacobian, gradient_of, jacobian_of
from lemmata.foundations.matrix_derivatives import derivative_of, derivative_table
from lemmata.judge import all_of, always, claim, close, exactly, lie


def wave(draw, inputs, outputs):
    """A smooth map from one space to another."""
    weight, shift = draw.normal(outputs, inputs), draw.normal(outputs)
    return lambda x: torch.sin(weight @ x + shift)


def type_checks(draw):
    """What the type check says of right, transposed, scaled, misshapen and wrong derivatives."""
    A, x, X = draw.normal(3, 5), draw.normal(5), draw.normal(4, 3)
    square, point, a, b = draw.normal(3, 3), draw.normal(3), draw.normal(4), draw.normal(3)

    def linear(x):
        return A @ x

    def quadratic(x):
        return x @ x

    def form(X):
        return a @ X @ b

    asked = [
        (linear, x, A, "numerator", "right", (3, 5)),
        (linear, x, A, "denominator", "transposed", (5, 3)),
        (linear, x, A.mT, "denominator", "right", (5, 3)),
        (lambda x: square @ x, point, square, "numerator", "right", (3, 3)),
        (lambda x: square @ x, point, square.mT, "numerator", "transposed", (3, 3)),
        (lambda x: square @ x, point, square.mT + torch.eye(3), "numerator", "wrong values", (3, 3)),
        (lambda x: 0 * A @ x, x, 0 * A, "denominator", "transposed", (5, 3)),
        (quadratic, x, 2 * x, "denominator", "right", (5,)),
        (quadratic, x, 2 * x, "numerator", "right", (1, 5)),
        (quadratic, x, 2 * x[None, :], "numerator", "right", (1, 5)),
        (quadratic, x, 2 * x[:, None], "denominator", "right", (5,)),
        (quadratic, x, 2 * x[None, :], "denominator", "transposed", (5,)),
        (quadratic, x, x, "denominator", "wrong values", (5,)),
        (quadratic, x, x.flip(0), "denominator", "wrong values", (5,)),
        (quadratic, x, 0 * x, "denominator", "wrong values", (5,)),
        (quadratic, x, x[:4], "denominator", "wrong shape", (5,)),
        (form, X, torch.outer(a, b), "denominator", "right", (4, 3)),
        (form, X, torch.outer(b, a), "denominator", "transposed", (4, 3)),
        (form, X, torch.outer(b, a), "numerator", "right", (3, 4)),
        (lambda X: X @ b, X, derivative_of("X a").at(X, a=b), "numerator", "right", (4, 4, 3)),
    ]
    answers = [
        (type_check_gradient(f, x, claimed, layout), layout, verdict, shape)
        for f, x, claimed, layout, verdict, shape in asked
    ]
    unasked = type_check_gradient(linear, x)
    return all_of(
        exactly(tuple(found.verdict for found, *_ in answers), tuple(verdict for *_, verdict, _ in answers)),
        always([found.expected == shape and bool(found) == (right == "right") for found, _, right, shape in answers]),
        always([found.layout == layout for found, layout, *_ in answers]),
        exactly((unasked.kind, unasked.expected, bool(unasked)), ("vector by vector", (5, 3), True)),
        *type_check_details(),
    )


def type_check_details():
    """Factors, the worst entry, the tolerance relative to the largest entry, and tensors with three axes."""
    x = torch.tensor([3000.0, -1000.0, 0.0, 500.0], dtype=torch.float64)
    nudge = torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    cube = torch.ones(2, 3, 4, dtype=torch.float64)

    def reason(claimed):
        return type_check_gradient(lambda x: x @ x, x, claimed).reason

    flat = type_check_gradient(lambda x: x.sum((1, 2)), cube, layout="numerator")
    number = type_check_gradient(lambda x: x.sum(), cube, layout="numerator")
    curve = type_check_gradient(lambda t: t * nudge, x[0], layout="numerator")
    return [
        always(["0.5 times" in reason(x), "0 times" in reason(0 * x), "-2 times" in reason(-4 * x)]),
        always(["1e+06 times" in reason(2e6 * x * (1 + 1e-9 * nudge)), "entry (3,)" in reason(2 * x + x.eq(500))]),
        always([bool(type_check_gradient(lambda x: x @ x, x, 2 * x + 1e-5 * nudge))]),  # 6000 times 1.5e-8 is 9e-5
        exactly((flat.kind, flat.expected), ("vector by tensor with 3 axes", (2, 2, 3, 4))),
        exactly((number.kind, number.expected), ("scalar by tensor with 3 axes", (2, 3, 4))),
        exactly((curve.kind, curve.expected), ("vector by scalar", (4,))),
    ]


@claim("matcalc.layout")
@lie("the matrix of df_i/dx_j lies in R^(n x m)", printed="002/1", shape=lambda m, n: (n, m))
@lie("every row of the table is in the numerator layout", declared="numerator")
@lie("every row of the table is in the denominator layout", declared="denominator")
def numerator_and_denominator_layout_are_transposes(draw, shape=lambda m, n: (m, n), declared=None):
    """Jacobians entry by entry from differences, each row of the table in the layout it names, and the type check."""
    shapes, parts = [], []
    for m, n in itertools.permutations((1, 3, 5), 2):
        f, x = wave(draw, n, m), draw.normal(n)
        jacobian = jacobian_of(f, x)
        shapes.append(tuple(jacobian.shape) == shape(m, n))
        # Differences with steps of 6e-6 are right to their square times a third derivative of some 10.
        parts += [
            close(jacobian, differenced_jacobian(f, x), within=1e-7),
            close(jacobian_of(f, x, layout="denominator"), jacobian.mT),
            close(jacobian_of(f, x, layout="numerator"), jacobian),
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
    return all_of(
        always(shapes, detail="shapes of Jacobians"),
        always(rows, detail="rows of the table in the layout they name"),
        *parts,
        exactly(jacobian_of(lambda x: a @ x, x), a[None, :]),
        exactly(jacobian_of(lambda x: a @ x, x, layout="denominator"), a[:, None]),
        exactly(gradient_of(lambda x: a @ x, x), a),
        always([check_derivative(row, draw.generator) < 1e-12 for row in derivative_table()]),
        *broken_rows(draw),
        *looked_up(),
        type_checks(draw),
    )


def broken_rows(draw):
    """Rows that are wrong: in a value by a known amount, in the shape, or in the layout of one side."""
    quadratic = derivative_of("x^T A x")
    x, A = draw.normal(3), draw.normal(3, 3)
    args = ("denominator", {"x": "n", "A": "n n"}, "", quadratic.function)
    doubled = DerivativeRow("doubled", "x^T A x", "2Ax", *args, lambda x, A: 2 * A @ x)
    number = DerivativeRow("number", "x^T A x", "2", *args, lambda x, A: (A @ x).sum())
    times = ({"x": "n", "A": "m n"}, "m", lambda x, A: A @ x)
    both = DerivativeRow("both", "A x", "A", "both", *times, lambda x, A: A)
    columns = DerivativeRow("columns", "A x", "A^T", "denominator", *times, lambda x, A: A.mT)
    wide, upstream = draw.normal(5, 3), draw.normal(5)
    return [
        close(check_derivative(doubled, x=x, A=A), (2 * A @ x - (A + A.mT) @ x).abs().max()),
        exactly(check_derivative(number, x=x, A=A), math.inf),
        close(check_derivative(both, x=x, A=A), (A - A.mT).abs().max()),
        exactly(check_derivative(both, x=x, A=wide), math.inf),
        exactly(check_derivative(columns, x=x, A=wide), 0.0),
        close(columns.pull_back(upstream, x, A=wide), upstream @ wide),
        exactly([*columns.example()["A"].shape, *columns.example({"m": 7})["A"].shape], [4, 3, 7, 3]),
    ]


def looked_up():
    """Every row is found by its name and as it is written, whatever the spacing; X^T and x^T are told apart."""
    table = derivative_table()
    names = [derivative_of(text) is row for row in table for text in (row.name, row.name.upper(), row.written)]
    spaced = [derivative_of("x^TAx").name, derivative_of("X a").name, derivative_of("a").name]
    kinds = ("scalar by scalar", "scalar by vector", "vector by vector", "scalar by matrix", "vector by matrix")
    return [
        always(names, detail="rows by name"),
        exactly(tuple(spaced), ("quadratic form", "matrix times vector, by the matrix", "constant")),
        exactly(tuple(dict.fromkeys(row.kind for row in table)), kinds),
    ]


@claim("matcalc.chain_numerator")
@lie("two maps on the left, three on the right", maps=2)
@lie("the product is taken in the reversed order", layout="denominator")
def jacobians_multiply_from_the_outermost(draw, maps=3, layout="numerator"):
    """Compositions of two and three maps: the product of Jacobians against autograd of the composition."""
    parts = []
    for case in range(10):
        # All lengths equal first: there false forms can be computed, and give something else.
        k, j, m, n = [4] * 4 if case < 5 else (1 + draw.permutation(6)[:4]).tolist()
        f, g, h = wave(draw, j, k), wave(draw, m, j), wave(draw, n, m)
        x = draw.normal(n)
        if case < 5:
            composed = (lambda x, f=f, g=g, h=h: f(g(h(x)))) if maps == 3 else (lambda x, f=f, g=g: f(g(x)))
            expected = torch.autograd.functional.jacobian(composed, x)
            parts.append(close(chain_rule([f, g, h], x, layout), expected, ulps=512))
            continue
        expected = torch.autograd.functional.jacobian(lambda x, f=f, g=g, h=h: f(g(h(x))), x)
        steps = ((h, x), (g, h(x)), (f, g(h(x))))
        reversed_product = functools.reduce(torch.matmul, (jacobian_of(step, at, "denominator") for step, at in steps))
        parts += [
            close(chain_rule([f, g, h], x), expected, ulps=512),
            close(chain_rule([f, g, h], x, layout="denominator"), expected.mT, ulps=512),
            close(reversed_product, expected.mT, ulps=512),
            close(chain_rule([g, h], x), torch.autograd.functional.jacobian(lambda x, g=g, h=h: g(h(x)), x), ulps=512),
            close(differenced_jacobian(lambda x, f=f, g=g, h=h: f(g(h(x))), x), expected, within=1e-6),
        ]
    return all_of(*parts)


@claim("matcalc.chain_scalar_sum")
@lie("only the path through y_i reaches x_i", others=0.0)
@lie("the paths through other entries count with a minus", others=-1.0)
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
@lie("the derivative is b a^T", swapped=1.0)
def a_bilinear_form_has_an_outer_product_as_derivative(draw, derivative=AXB.derivative, swapped=0.0):
    """The row against autograd; the derivative has the shape of X."""

    def changed(X, a, b):
        return swapped * (torch.outer(b, a) - torch.outer(a, b))

    return against_autograd(draw, AXB, lambda X, a, b: (a[:, None] * X * b).sum(), derivative, changed)


AXTB = derivative_of("a^T X^T b")


@claim("matcalc.axtb")
@lie("the derivative is a b^T", swapped=1.0)
@lie("the derivative is 2 b a^T", factor=2.0)
def the_transpose_swaps_the_outer_product(draw, swapped=0.0, factor=1.0):
    """The row against autograd."""

    def changed(X, a, b):
        return swapped * (torch.outer(a, b) - torch.outer(b, a))

    return against_autograd(draw, AXTB, lambda X, a, b: (b[:, None] * X * a).sum(), plus=changed, factor=factor)


GRAM = derivative_of("a^T X^T X b")


@claim("matcalc.axtxb")
@lie("the same outer product stands twice", repeated=1.0)
@lie("X stands behind", behind=1.0)
def the_gram_form_has_both_outer_products(draw, repeated=0.0, behind=0.0):
    """The row against autograd; `repeated` is how much of b a^T stands in the place of a b^T."""

    def changed(X, a, b):
        both = torch.outer(a, b) + torch.outer(b, a)
        return repeated * X @ (torch.outer(b, a) - torch.outer(a, b)) + behind * (both @ X - X @ both)

    return against_autograd(draw, GRAM, lambda X, a, b: a @ X.mT @ X @ b, plus=changed)


XA = derivative_of("X a")


@claim("matcalc.xa_tensor")
@lie("the derivative is X^T", printed="002/1", derivative=lambda X, a: X.mT)
@lie("the indices k and l are exchanged", swapped=1.0)
@lie("the pull-back is a g^T", order=("a", "g"))
def a_matrix_times_a_vector_has_a_third_order_derivative(draw, derivative=XA.derivative, swapped=0.0, order=("g", "a")):
    """The row against autograd and, with whole numbers, entry by entry; its pull-back against the outer product."""

    def changed(X, a):
        unit = torch.eye(len(X), dtype=X.dtype)
        return swapped * (torch.einsum("il,k->ikl", unit, a) - torch.einsum("ik,l->ikl", unit, a))

    X, a, g = (draw.integers(-4, 5, *shape).double() for shape in ((3, 3), (3,), (3,)))
    given = {"a": a, "g": g}
    entries = [[[(i == k) * float(a[column]) for column in range(3)] for k in range(3)] for i in range(3)]
    return all_of(
        against_autograd(draw, XA, lambda X, a: (X * a).sum(1), derivative, changed),
        exactly(XA.at(X, a=a), torch.tensor(entries).double()),
        exactly(XA.pull_back(g, X, a=a), torch.outer(*(given[name] for name in order))),
    )
