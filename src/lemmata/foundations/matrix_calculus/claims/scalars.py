"""Derivatives of one number by a vector: each formula on one line, autograd on the next."""

import torch
from torch.autograd.functional import jacobian

from lemmata.foundations.matrix_calculus.claims.derivatives import at_every_length, columns, rows, wave
from lemmata.judge import all_of, claim, close, lie


def transpose(matrix):
    return matrix.mT


def itself(value):
    return value


def swapped(first, second):
    return second, first


def in_order(first, second):
    return first, second


@claim("matcalc.product_scalar")
@lie("the second term is subtracted", sign=-1.0)
def both_factors_are_differentiated(draw, sign=1.0):
    """Against autograd of the product."""

    def sides(n):
        x, u, v = draw.normal(n), wave(draw, n), wave(draw, n)
        formula = u(x) * jacobian(v, x) + sign * v(x) * jacobian(u, x)
        yield formula, jacobian(lambda x: u(x) * v(x), x)

    return at_every_length(draw, sides)


def inner_value(x, v):
    return v(x)


def the_input(x, v):
    return x


def without_gradient(v, x):
    return torch.ones_like(x)


@claim("matcalc.chain_scalar")
@lie("the outer derivative is taken at x", at=the_input)
@lie("the inner derivative is left out", inner=without_gradient)
def the_outer_derivative_is_taken_at_the_inner_value(draw, at=inner_value, inner=jacobian):
    """Sine and cube after a function of x: against autograd of the composition."""

    def sides(n):
        x, v = draw.normal(n), wave(draw, n)
        for u, slope in ((torch.sin, torch.cos), (lambda z: z**3, lambda z: 3 * z**2)):
            formula = slope(at(x, v)) * inner(v, x)
            yield formula, jacobian(lambda x, u=u: u(v(x)), x)

    return at_every_length(draw, sides)


@claim("matcalc.inner_product")
@lie("each Jacobian meets its own function", order=in_order)
@lie("only the first function is differentiated", second=0.0)
def each_jacobian_meets_the_other_function(draw, order=swapped, second=1.0):
    """Against autograd of the inner product, in both layouts."""

    def sides(n, m):
        x, f, g = draw.normal(n), wave(draw, n, m), wave(draw, n, m)
        by_f, by_g = order(f(x), g(x))
        formula = columns(f, x) @ by_f + second * columns(g, x) @ by_g
        yield formula, jacobian(lambda x: f(x) @ g(x), x)
        numerator = g(x) @ rows(f, x) + f(x) @ rows(g, x)
        yield numerator, jacobian(lambda x: f(x) @ g(x), x)

    return at_every_length(draw, sides)


@claim("matcalc.bilinear_fg")
@lie("the second term is J_g A f, without the transpose", matrix=itself)
@lie("only the first function is differentiated", second=0.0)
def the_second_term_takes_the_transpose(draw, matrix=transpose, second=1.0):
    """Against autograd, with A that is not symmetric."""

    def sides(n, m, k):
        x, f, A, g = draw.normal(n), wave(draw, n, m), draw.normal(m, k), wave(draw, n, k)
        formula = columns(f, x) @ A @ g(x) + second * columns(g, x) @ matrix(A) @ f(x)
        yield formula, jacobian(lambda x: f(x) @ A @ g(x), x)

    return at_every_length(draw, sides)


@claim("matcalc.linear_form")
@lie("the derivative is x", derivative=lambda x, a: x)
@lie("the derivative is 2a", factor=2.0)
def a_linear_form_has_its_coefficients_as_gradient(draw, derivative=lambda x, a: a, factor=1.0):
    """Against autograd, in both orders of the product; and pulled back through a loss, L = sin z."""

    def sides(n):
        x, a = draw.normal(n), draw.normal(n)
        formula = factor * derivative(x, a)
        yield formula, jacobian(lambda x: a @ x, x)
        yield formula, jacobian(lambda x: x @ a, x)
        yield torch.cos(a @ x) * formula, jacobian(lambda x: torch.sin(a @ x), x)

    return at_every_length(draw, sides)


def sum_of_entries(x):
    return x.sum() * torch.ones_like(x)


@claim("matcalc.squared_norm")
@lie("the derivative is x", coefficient=1.0)
@lie("the derivative is 2 times the sum of x", vector=sum_of_entries)
def the_squared_norm_has_twice_the_vector_as_gradient(draw, coefficient=2.0, vector=itself):
    """Against autograd."""

    def sides(n):
        x = draw.normal(n)
        yield coefficient * vector(x), jacobian(lambda x: x @ x, x)

    return at_every_length(draw, sides)


@claim("matcalc.bilinear_form")
@lie("the derivative is A b", matrix=itself)
def a_bilinear_form_has_the_transpose_in_its_gradient(draw, matrix=transpose):
    """Against autograd, with A that is not symmetric."""

    def sides(n, m):
        x, b, A = draw.normal(n), draw.normal(m), draw.normal(m, n)
        yield matrix(A) @ b, jacobian(lambda x: b @ A @ x, x)

    return at_every_length(draw, sides)


@claim("matcalc.quadratic_form")
@lie("the derivative is 2Ax for every A", other=itself)
@lie("the derivative is Ax", second=0.0)
def a_quadratic_form_adds_the_transpose(draw, other=transpose, second=1.0):
    """Against autograd, with A that is not symmetric; and 2Ax where A is symmetric."""

    def sides(n):
        x, A = draw.normal(n), draw.normal(n, n)
        yield (A + second * other(A)) @ x, jacobian(lambda x: x @ A @ x, x)

    x, S = draw.normal(5), draw.covariance(5)
    symmetric = close(2 * S @ x, jacobian(lambda x: x @ S @ x, x), detail="symmetric")
    return all_of(at_every_length(draw, sides), symmetric)


def gram_of_columns(A):
    return A.mT @ A


def gram_of_rows(A):
    return A @ A.mT


@claim("matcalc.half_squared_ax")
@lie("the derivative is A A^T x", gram=gram_of_rows)
@lie("the half is not cancelled", factor=0.5)
def half_the_squared_norm_has_the_gram_matrix_in_its_gradient(draw, gram=gram_of_columns, factor=1.0):
    """Against autograd through L = sin z, with A that does not commute with its transpose."""

    def sides(n, m):
        x, A = draw.normal(n), draw.normal(m, n)

        def z(x):
            return (A @ x).square().sum() / 2

        yield torch.cos(z(x)) * factor * gram(A) @ x, jacobian(lambda x: torch.sin(z(x)), x)

    return at_every_length(draw, sides)


@claim("matcalc.affine_bilinear")
@lie("the outer matrices are exchanged", order=in_order)
@lie("only the second factor is differentiated", second=0.0)
@lie("C is not transposed", matrix=itself)
def a_form_of_affine_maps_crosses_its_matrices(draw, order=swapped, second=1.0, matrix=transpose):
    """Against autograd."""

    def sides(n, m, k):
        x, A, b, C, D, e = (draw.normal(*shape) for shape in ((n,), (m, n), (m,), (m, k), (k, n), (k,)))
        left, right = order(A, D)
        formula = left.mT @ matrix(C) @ (A @ x + b) + second * right.mT @ C @ (D @ x + e)
        yield formula, jacobian(lambda x: (A @ x + b) @ C @ (D @ x + e), x)

    return at_every_length(draw, sides)


@claim("matcalc.squared_norm_f")
@lie("the factor 2 is left out", coefficient=1.0)
@lie("the Jacobian is transposed", jacobian=rows)
def the_squared_norm_of_a_function_doubles_its_jacobian(draw, coefficient=2.0, jacobian=columns):
    """Against autograd of the squared norm."""

    def sides(n, m):
        x, f = draw.normal(n), wave(draw, n, m)
        yield coefficient * jacobian(f, x) @ f(x), columns(lambda x: f(x).square().sum(), x)[:, 0]

    return at_every_length(draw, sides)
