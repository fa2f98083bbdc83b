"""Derivatives of one number by a vector: the formulas and the rows of the table against autograd."""

import torch

from lemmata.foundations.matrix_calculus.jacobians import gradient_of, jacobian_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of
from lemmata.foundations.matrix_calculus.pullbacks import slope_of
from lemmata.judge import all_of, claim, close, lie


def transpose(matrix):
    return matrix.mT


def itself(value):
    return value


def swapped(first, second):
    return second, first


def in_order(first, second):
    return first, second


def columns(function, x):
    """The Jacobian in the denominator layout."""
    return jacobian_of(function, x, layout="denominator")


def arranged(tensor, x, layout):
    """All partial derivatives, (axes of the value, axes of x), with the axes of x first in the denominator layout."""
    outputs = tensor.ndim - x.ndim
    return tensor if layout != "denominator" else tensor.permute([*range(outputs, tensor.ndim), *range(outputs)])


def against_autograd(draw, row, written, formula=None):
    """Six instances with all lengths equal, for the formula, and six with lengths of their own, for the row.

    What is differentiated is `written` out in the claim, and the function of the row must be that. A false formula that
    is a shape error in general can be computed where all lengths are equal, and is wrong there too.
    """
    parts = []
    formula = formula or row.derivative
    for case in range(12):
        if case < 6:
            sizes = dict.fromkeys(row.letters(), 1 + case)
        else:
            sizes = dict(zip(row.letters(), (1 + draw.permutation(6)).tolist(), strict=False))
        x, *others = row.example(sizes, generator=draw.generator).values()

        def value(point, others=others):
            return written(point, *others)

        autograd = arranged(torch.autograd.functional.jacobian(value, x), x, row.layout)
        scale = 1 + float(autograd.abs().max())
        if case < 6:
            parts.append(close(formula(x, *others), autograd, ulps=256, scale=scale))
            continue
        names, size = dict(zip(list(row.shapes)[1:], others, strict=True)), 1 + float(value(x).abs().max())
        parts += [
            close(row.function(x, *others), value(x), ulps=256, scale=size),
            close(row.at(x, **names), autograd, ulps=256, scale=scale),
            pulled_back(draw, row, x, names, value),
        ]
    return all_of(*parts)


def pulled_back(draw, row, x, names, value):
    """L = sum of w sin(z): the row's pull-back of dL/dz against autograd through the whole of it."""
    z = value(x)
    weights = draw.normal(*z.shape)
    expected = torch.autograd.functional.jacobian(lambda point: (weights * value(point).sin()).sum(), x)
    return close(
        row.pull_back(weights * z.cos(), x, **names), expected, ulps=1024, scale=1 + float(expected.abs().max())
    )


@claim("matcalc.product_scalar")
@lie("the second term is subtracted", sign=-1.0)
def both_factors_are_differentiated(draw, sign=1.0):
    """The formula and the row against autograd."""
    return against_autograd(
        draw,
        derivative_of("u(x) v(x)"),
        lambda x, u, v: u(x) * v(x),
        lambda x, u, v: u(x) * gradient_of(v, x) + sign * v(x) * gradient_of(u, x),
    )


def inner_value(x, v):
    return v(x)


def the_input(x, v):
    return x


def without_gradient(v, x):
    return torch.ones_like(x)


@claim("matcalc.chain_scalar")
@lie("the outer derivative is taken at x", at=the_input)
@lie("the inner derivative is left out", inner=without_gradient)
def the_outer_derivative_is_taken_at_the_inner_value(draw, at=inner_value, inner=gradient_of):
    """The formula and the row against autograd."""
    return against_autograd(
        draw,
        derivative_of("u(v(x))"),
        lambda x, u, v: u(v(x)),
        lambda x, u, v: slope_of(u, at(x, v)) * inner(v, x),
    )


@claim("matcalc.inner_product")
@lie("each Jacobian meets its own function", order=in_order)
@lie("only the first function is differentiated", second=0.0)
def each_jacobian_meets_the_other_function(draw, order=swapped, second=1.0):
    """The formula and the row against autograd, and the numerator form against its transpose."""
    row = derivative_of("f(x)^T g(x)")
    x, f, g = row.example(generator=draw.generator).values()

    def formula(x, f, g):
        by_f, by_g = order(f(x), g(x))
        return columns(f, x) @ by_f + second * columns(g, x) @ by_g

    return all_of(
        against_autograd(draw, row, lambda x, f, g: (f(x) * g(x)).sum(), formula),
        close(g(x) @ jacobian_of(f, x) + f(x) @ jacobian_of(g, x), row.at(x, f=f, g=g), detail="numerator"),
    )


@claim("matcalc.bilinear_fg")
@lie("the second term is J_g A f, without the transpose", matrix=itself)
@lie("only the first function is differentiated", second=0.0)
def the_second_term_takes_the_transpose(draw, matrix=transpose, second=1.0):
    """The formula and the row against autograd, with A that is not symmetric."""
    return against_autograd(
        draw,
        derivative_of("f(x)^T A g(x)"),
        lambda x, f, A, g: (f(x)[:, None] * A * g(x)).sum(),
        lambda x, f, A, g: columns(f, x) @ A @ g(x) + second * columns(g, x) @ matrix(A) @ f(x),
    )


LINEAR = derivative_of("a^T x")


@claim("matcalc.linear_form")
@lie("the derivative is x", derivative=lambda x, a: x)
@lie("the derivative is 2a", factor=2.0)
def a_linear_form_has_its_coefficients_as_gradient(draw, derivative=LINEAR.derivative, factor=1.0):
    """The row against autograd, in both orders of the product."""
    x, a = LINEAR.example(generator=draw.generator).values()
    return all_of(
        against_autograd(draw, LINEAR, lambda x, a: (a * x).sum(), lambda x, a: factor * derivative(x, a)),
        close(gradient_of(lambda point: point @ a, x), LINEAR.at(x, a=a)),
    )


def sum_of_entries(x):
    return x.sum() * torch.ones_like(x)


@claim("matcalc.squared_norm")
@lie("the derivative is x", coefficient=1.0)
@lie("the derivative is 2 times the sum of x", vector=sum_of_entries)
def the_squared_norm_has_twice_the_vector_as_gradient(draw, coefficient=2.0, vector=itself):
    """The formula and the row against autograd."""
    return against_autograd(draw, derivative_of("x^T x"), lambda x: (x * x).sum(), lambda x: coefficient * vector(x))


@claim("matcalc.bilinear_form")
@lie("the derivative is A b", matrix=itself)
def a_bilinear_form_has_the_transpose_in_its_gradient(draw, matrix=transpose):
    """The formula and the row against autograd, with A that is not symmetric."""
    return against_autograd(
        draw, derivative_of("b^T A x"), lambda x, b, A: (b[:, None] * A * x).sum(), lambda x, b, A: matrix(A) @ b
    )


@claim("matcalc.quadratic_form")
@lie("the derivative is 2Ax for every A", other=itself)
@lie("the derivative is Ax", second=0.0)
def a_quadratic_form_adds_the_transpose(draw, other=transpose, second=1.0):
    """The formula and the row against autograd, with A that is not symmetric; and 2Ax where A is symmetric."""
    row = derivative_of("x^T A x")
    x, A = draw.normal(5), draw.covariance(5)
    return all_of(
        against_autograd(draw, row, lambda x, A: (x[:, None] * A * x).sum(), lambda x, A: (A + second * other(A)) @ x),
        close(row.at(x, A=A), 2 * A @ x, detail="symmetric"),
    )


def gram_of_columns(A):
    return A.mT @ A


def gram_of_rows(A):
    return A @ A.mT


@claim("matcalc.half_squared_ax")
@lie("the derivative is A A^T x", gram=gram_of_rows)
@lie("the half is not cancelled", factor=0.5)
def half_the_squared_norm_has_the_gram_matrix_in_its_gradient(draw, gram=gram_of_columns, factor=1.0):
    """The formula and the row, pulled back through a loss, against autograd; A does not commute with its transpose."""
    return against_autograd(
        draw, derivative_of("1/2 |A x|^2"), lambda x, A: (A @ x) @ (A @ x) / 2, lambda x, A: factor * gram(A) @ x
    )


@claim("matcalc.affine_bilinear")
@lie("the outer matrices are exchanged", order=in_order)
@lie("only the second factor is differentiated", second=0.0)
@lie("C is not transposed", matrix=itself)
def a_form_of_affine_maps_crosses_its_matrices(draw, order=swapped, second=1.0, matrix=transpose):
    """The formula and the row against autograd."""

    def written(x, A, b, C, D, e):
        return ((A @ x + b)[:, None] * C * (D @ x + e)).sum()

    def formula(x, A, b, C, D, e):
        left, right = order(A, D)
        return left.mT @ matrix(C) @ (A @ x + b) + second * right.mT @ C @ (D @ x + e)

    return against_autograd(draw, derivative_of("(A x + b)^T C (D x + e)"), written, formula)


@claim("matcalc.squared_norm_f")
@lie("the factor 2 is left out", coefficient=1.0)
@lie("the Jacobian is transposed", jacobian=jacobian_of)
def the_squared_norm_of_a_function_doubles_its_jacobian(draw, coefficient=2.0, jacobian=columns):
    """The formula and the row against autograd."""
    return against_autograd(
        draw, derivative_of("|f(x)|^2"), lambda x, f: f(x) @ f(x), lambda x, f: coefficient * jacobian(f, x) @ f(x)
    )
