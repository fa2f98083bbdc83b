"""Derivatives of one number by a vector: every row of the table against autograd and against differences."""

import torch

from lemmata.foundations.gradient_types import type_check_gradient
from lemmata.foundations.jacobians import differenced_jacobian, gradient_of, jacobian_of
from lemmata.foundations.matrix_derivatives import derivative_of
from lemmata.foundations.pullbacks import slope_of
from lemmata.judge import all_of, claim, close, exactly, lie


def nothing(*_arguments):
    """What the truth adds to a row."""
    return 0.0


def arranged(tensor, x, layout):
    """All partial derivatives, (axes of the value, axes of x), with the axes of x first in the denominator layout."""
    outputs = tensor.ndim - x.ndim
    return tensor if layout != "denominator" else tensor.permute([*range(outputs, tensor.ndim), *range(outputs)])


def against_autograd(draw, row, written, derivative=None, plus=nothing, factor=1.0):
    """Six instances with all lengths equal, for the form in question, and six with lengths of their own, for the row.

    What is differentiated is `written` out in the claim, and the function of the row must be that. A false form that is
    a shape error in general can be computed where all lengths are equal, and is wrong there too.
    """
    parts = []
    derivative = derivative or row.derivative
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
            formula, change = factor * derivative(x, *others), plus(x, *others)
            if not isinstance(change, torch.Tensor) or change.shape == formula.shape:  # a wrong shape stays as it is
                formula = formula + change
            parts.append(close(formula, autograd, ulps=256, scale=scale))
            continue
        names, size = dict(zip(list(row.shapes)[1:], others, strict=True)), 1 + float(value(x).abs().max())
        # The steps are 6e-6: differences are off by their square, 4e-11, times third derivatives of some 100.
        parts += [
            close(row.function(x, *others), value(x), ulps=256, scale=size),
            close(row.at(x, **names), autograd, ulps=256, scale=scale),
            close(arranged(differenced_jacobian(value, x), x, row.layout), autograd, within=1e-7 * scale),
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


PRODUCT = derivative_of("u(x) v(x)")


@claim("matcalc.product_scalar")
@lie("the second term is subtracted", sign=-1.0)
@lie("only the second factor is differentiated", sign=0.0)
@lie("it is a derivative by a matrix", kind="scalar by matrix")
def both_factors_are_differentiated(draw, sign=1.0, kind="scalar by vector"):
    """The row against autograd, and the kind that the type check gives it."""
    x, u, v = PRODUCT.example(generator=draw.generator).values()
    return all_of(
        against_autograd(
            draw, PRODUCT, lambda x, u, v: u(x) * v(x), plus=lambda x, u, v: (sign - 1) * v(x) * gradient_of(u, x)
        ),
        exactly(type_check_gradient(lambda point: PRODUCT.function(point, u, v), x).kind, kind),
        exactly(PRODUCT.kind, kind),
    )


COMPOSITION = derivative_of("u(v(x))")


@claim("matcalc.chain_scalar")
@lie("the outer derivative is taken at x", derivative=lambda x, u, v: slope_of(u, x) * gradient_of(v, x))
@lie("the inner derivative is left out", derivative=lambda x, u, v: gradient_of(u, v(x)) * torch.ones_like(x))
@lie("the outer derivative is taken at 0", inner=0.0)
def the_outer_derivative_is_taken_at_the_inner_value(draw, derivative=COMPOSITION.derivative, inner=1.0):
    """The row against autograd; with `inner` other than 1 the outer derivative is taken at that multiple of v(x)."""

    def moved(x, u, v):
        return (gradient_of(u, inner * v(x)) - gradient_of(u, v(x))) * gradient_of(v, x)

    return against_autograd(draw, COMPOSITION, lambda x, u, v: u(v(x)), derivative, moved)


def columns(function, x):
    """The Jacobian in the denominator layout."""
    return jacobian_of(function, x, layout="denominator")


INNER = derivative_of("f(x)^T g(x)")


@claim("matcalc.inner_product")
@lie(
    "each Jacobian meets its own function",
    derivative=lambda x, f, g: columns(f, x) @ f(x) + columns(g, x) @ g(x),
)
@lie("only the first function is differentiated", second=0.0)
@lie("the second term is subtracted", second=-1.0)
def each_jacobian_meets_the_other_function(draw, derivative=INNER.derivative, second=1.0):
    """The row against autograd, and the numerator form against its transpose."""
    x, f, g = INNER.example(generator=draw.generator).values()

    def changed(x, f, g):
        return (second - 1) * columns(g, x) @ f(x)

    return all_of(
        against_autograd(draw, INNER, lambda x, f, g: (f(x) * g(x)).sum(), derivative, changed),
        close(g(x) @ jacobian_of(f, x) + f(x) @ jacobian_of(g, x), INNER.at(x, f=f, g=g), detail="numerator"),
    )


FORM_OF_FUNCTIONS = derivative_of("f(x)^T A g(x)")


@claim("matcalc.bilinear_fg")
@lie("the second term is J_g A f, without the transpose", transposed=0.0)
@lie("only the first function is differentiated", second=0.0)
def the_second_term_takes_the_transpose(draw, transposed=1.0, second=1.0):
    """The row against autograd, with A that is not symmetric."""

    def changed(x, f, A, g):
        untransposed = (1 - transposed) * columns(g, x) @ (A - A.mT) @ f(x)
        return untransposed + (second - 1) * columns(g, x) @ A.mT @ f(x)

    return against_autograd(draw, FORM_OF_FUNCTIONS, lambda x, f, A, g: (f(x)[:, None] * A * g(x)).sum(), plus=changed)


LINEAR = derivative_of("a^T x")


@claim("matcalc.linear_form")
@lie("the derivative is x", derivative=lambda x, a: x)
@lie("the derivative is 2a", factor=2.0)
def a_linear_form_has_its_coefficients_as_gradient(draw, derivative=LINEAR.derivative, factor=1.0):
    """The row against autograd, in both orders of the product."""
    x, a = LINEAR.example(generator=draw.generator).values()
    return all_of(
        against_autograd(draw, LINEAR, lambda x, a: (a * x).sum(), derivative, factor=factor),
        close(gradient_of(lambda point: point @ a, x), LINEAR.at(x, a=a)),
    )


SQUARED = derivative_of("x^T x")


@claim("matcalc.squared_norm")
@lie("the derivative is x", coefficient=1.0)
@lie("the derivative is 2 times the sum of x", derivative=lambda x: 2 * x.sum() * torch.ones_like(x))
def the_squared_norm_has_twice_the_vector_as_gradient(draw, derivative=SQUARED.derivative, coefficient=2.0):
    """The row against autograd."""
    return against_autograd(draw, SQUARED, lambda x: (x * x).sum(), derivative, lambda x: (coefficient - 2) * x)


BILINEAR = derivative_of("b^T A x")


@claim("matcalc.bilinear_form")
@lie("the derivative is A b", untransposed=1.0)
@lie("the derivative is the row b^T A", derivative=lambda x, b, A: (b @ A)[None, :])
def a_bilinear_form_has_the_transpose_in_its_gradient(draw, derivative=BILINEAR.derivative, untransposed=0.0):
    """The row against autograd, with A that is not symmetric; `untransposed` is the share of A in its place."""

    def changed(x, b, A):
        return untransposed * (A - A.mT) @ b

    return against_autograd(draw, BILINEAR, lambda x, b, A: (b[:, None] * A * x).sum(), derivative, changed)


QUADRATIC = derivative_of("x^T A x")


@claim("matcalc.quadratic_form")
@lie("the derivative is 2Ax for every A", untransposed=1.0)
@lie("the derivative is Ax", second=0.0)
def a_quadratic_form_adds_the_transpose(draw, untransposed=0.0, second=1.0):
    """The row against autograd, with A that is not symmetric; and 2Ax where A is symmetric."""

    def changed(x, A):
        return untransposed * (A - A.mT) @ x + (second - 1) * A.mT @ x

    x, A = draw.normal(5), draw.covariance(5)
    return all_of(
        against_autograd(draw, QUADRATIC, lambda x, A: (x[:, None] * A * x).sum(), plus=changed),
        close(QUADRATIC.at(x, A=A), 2 * A @ x, detail="symmetric"),
    )


HALF = derivative_of("1/2 |A x|^2")


@claim("matcalc.half_squared_ax")
@lie("the derivative is A A^T x", swapped=1.0)
@lie("the half is not cancelled", factor=0.5)
def half_the_squared_norm_has_the_gram_matrix_in_its_gradient(draw, swapped=0.0, factor=1.0):
    """The row against autograd, with A that does not commute with its transpose; and pulled back through a loss."""

    def changed(x, A):
        return swapped * (A @ A.mT - A.mT @ A) @ x

    return against_autograd(draw, HALF, lambda x, A: (A @ x) @ (A @ x) / 2, plus=changed, factor=factor)


AFFINE = derivative_of("(A x + b)^T C (D x + e)")


def exchanged(x, A, b, C, D, e):
    """A and D change places outside."""
    return A.mT @ C.mT @ (A @ x + b) + D.mT @ C @ (D @ x + e)


@claim("matcalc.affine_bilinear")
@lie("the outer matrices are exchanged", derivative=exchanged)
@lie("only the second factor is differentiated", second=0.0)
@lie("C is not transposed", untransposed=1.0)
def a_form_of_affine_maps_crosses_its_matrices(draw, derivative=AFFINE.derivative, second=1.0, untransposed=0.0):
    """The row against autograd."""

    def changed(x, A, b, C, D, e):
        mistaken = untransposed * D.mT @ (C - C.mT) @ (A @ x + b)
        return mistaken + (second - 1) * A.mT @ C @ (D @ x + e)

    def written(x, A, b, C, D, e):
        return ((A @ x + b)[:, None] * C * (D @ x + e)).sum()

    return against_autograd(draw, AFFINE, written, derivative, changed)


SQUARED_FUNCTION = derivative_of("|f(x)|^2")


@claim("matcalc.squared_norm_f")
@lie("the factor 2 is left out", coefficient=1.0)
@lie("the Jacobian is transposed", transposed=1.0)
def the_squared_norm_of_a_function_doubles_its_jacobian(draw, coefficient=2.0, transposed=0.0):
    """The row against autograd."""

    def changed(x, f):
        jacobian = columns(f, x)
        return (coefficient - 2) * jacobian @ f(x) + 2 * transposed * (jacobian.mT - jacobian) @ f(x)

    return against_autograd(draw, SQUARED_FUNCTION, lambda x, f: f(x) @ f(x), plus=changed)
