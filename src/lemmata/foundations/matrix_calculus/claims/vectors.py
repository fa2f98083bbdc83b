"""Derivatives of a vector by a vector, and the gradients they carry back: against autograd."""

import torch

from lemmata.foundations.matrix_calculus.claims.scalars import against_autograd, in_order, itself, swapped, transpose
from lemmata.foundations.matrix_calculus.jacobians import gradient_of, jacobian_of
from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of
from lemmata.foundations.matrix_calculus.pullbacks import (
    elementwise_pullback,
    linear_pullback,
    slope_of,
    softmax_jacobian,
    softmax_pullback,
)
from lemmata.judge import all_of, at_least, claim, close, lie


@claim("matcalc.scalar_times_vector")
@lie("the outer product is transposed: the column is the derivative of u", order=swapped)
@lie("only f is differentiated", outer=0.0)
def a_scalar_factor_adds_an_outer_product(draw, order=in_order, outer=1.0):
    """The formula and the row against autograd; f is a column and the derivative of u a row."""

    def formula(x, u, f):
        return u(x) * jacobian_of(f, x) + outer * torch.outer(*order(f(x), gradient_of(u, x)))

    return against_autograd(draw, derivative_of("u(x) f(x)"), lambda x, u, f: u(x) * f(x), formula)


HADAMARD = derivative_of("x o a")


@claim("matcalc.hadamard_const")
@lie("the derivative is the vector a", derivative=lambda x, a: a)
@lie("the derivative is diag(x)", derivative=lambda x, a: torch.diag(x))
def a_product_by_entries_has_a_diagonal_derivative(draw, derivative=HADAMARD.derivative):
    """The row against autograd."""
    return against_autograd(draw, HADAMARD, lambda x, a: a * x, derivative)


IDENTITY = derivative_of("x")


@claim("matcalc.constant_identity")
@lie("the derivative of x is the matrix of ones", identity=lambda x: torch.ones(len(x), len(x), dtype=x.dtype))
@lie("the derivative of a constant is 1 throughout", constant=1.0)
def a_constant_has_derivative_zero_and_x_the_identity(draw, identity=IDENTITY.derivative, constant=0.0):
    """Both rows against autograd."""
    row = derivative_of("a")
    rows = (
        (IDENTITY, lambda x: x, identity),
        (row, lambda x, a: a, lambda x, a: row.derivative(x, a) + constant),
    )
    return all_of(*(against_autograd(draw, *each) for each in rows))


TIMES = derivative_of("A x")


@claim("matcalc.matrix_times_x")
@lie("the derivative is the transpose, as in the denominator layout", derivative=lambda x, A: A.mT)
@lie("the derivative is A + A^T, as for a quadratic form", derivative=lambda x, A: A + A.mT)
def a_linear_map_is_its_own_derivative(draw, derivative=TIMES.derivative):
    """The row against autograd; and a 3 x 5 matrix, where the layouts cannot be mistaken for one another."""
    x, A = draw.normal(5), draw.normal(3, 5)
    return all_of(
        against_autograd(draw, TIMES, lambda x, A: (A * x).sum(1), derivative),
        close(TIMES.at(x, A=A), jacobian_of(lambda point: A @ point, x)),
    )


ROW_TIMES = derivative_of("x^T A")


@claim("matcalc.x_transpose_a")
@lie("the derivative is A, as in the denominator layout", derivative=lambda x, A: A)
@lie("the derivative is 2 A^T", factor=2.0)
def a_row_times_a_matrix_has_the_transpose_as_derivative(draw, derivative=ROW_TIMES.derivative, factor=1.0):
    """The row against autograd; and a 3 x 5 matrix, where the layouts cannot be mistaken for one another."""
    x, A = draw.normal(3), draw.normal(3, 5)
    return all_of(
        against_autograd(draw, ROW_TIMES, lambda x, A: (x[:, None] * A).sum(0), lambda x, A: factor * derivative(x, A)),
        close(ROW_TIMES.at(x, A=A), jacobian_of(lambda point: point @ A, x)),
    )


@claim("matcalc.constant_times_f")
@lie("the Jacobian stands before the matrix", product=lambda A, J: J @ A)
@lie("the outer product of a vector and a scalar function is transposed", order=swapped)
@lie("the number is squared", power=2.0)
def constants_stand_before_the_jacobian(draw, product=lambda A, J: A @ J, order=in_order, power=1.0):
    """Three rows against autograd: a number, a vector and a matrix before a function."""

    def by_matrix(x, A, f):
        return product(A, jacobian_of(f, x))

    def by_vector(x, a, u):
        return torch.outer(*order(a, gradient_of(u, x)))

    def by_number(x, a, f):
        return a.sign() * a.abs() ** power * jacobian_of(f, x)

    rows = (
        ("A f(x)", lambda x, A, f: (A * f(x)).sum(1), by_matrix),
        ("a u(x)", lambda x, a, u: u(x) * a, by_vector),
        ("a f(x)", lambda x, a, f: f(x) * a, by_number),
    )
    return all_of(*(against_autograd(draw, derivative_of(name), *functions) for name, *functions in rows))


@claim("matcalc.linear_layer_weight")
@lie("the outer product is transposed", order=swapped)
@lie("the gradient with respect to the input takes W itself", matrix=itself)
def a_linear_layer_pulls_back_by_an_outer_product(draw, order=in_order, matrix=transpose):
    """Both gradients of a nonlinear loss, shipped and, where every form fits, written out, against autograd."""
    parts = []
    for outputs, inputs in ((4, 4), (3, 5), (6, 2)):
        weight, x, c = draw.normal(outputs, inputs), draw.normal(inputs), draw.normal(outputs)
        by_weight, by_input = torch.autograd.functional.jacobian(
            lambda weight, x, c=c: (c * (weight @ x).sin()).sum(), (weight, x)
        )
        upstream = c * (weight @ x).cos()
        found = linear_pullback(weight, x, upstream)
        parts += [close(found[0], by_weight), close(found[1], by_input)]
        if outputs == inputs:
            parts += [close(torch.outer(*order(upstream, x)), by_weight), close(matrix(weight) @ upstream, by_input)]
    return all_of(*parts)


def scalar_product(upstream, x, slope):
    """One number, the sum of the products, in the place of the products."""
    return elementwise_pullback(upstream, x, slope).sum()


@claim("matcalc.elementwise")
@lie("the two factors form a scalar product", pullback=scalar_product)
@lie("the slope is taken at 0", at=0.0)
def slopes_multiply_entry_by_entry(draw, pullback=elementwise_pullback, at=1.0):
    """tanh, sine and a cube on a batch, with a nonlinear loss: against autograd; and the row diag(f'(x))."""
    parts = [against_autograd(draw, derivative_of("f(x) element-wise"), lambda x, f: torch.stack([f(e) for e in x]))]
    for f in (torch.tanh, torch.sin, lambda x: x**3):
        x, c = draw.normal(4, 3), draw.normal(4, 3)
        expected = torch.autograd.functional.jacobian(lambda x, c=c, f=f: (c * f(x).exp()).sum(), x)
        parts.append(close(pullback(c * f(x).exp(), x, slope_of(f, at * x)), expected))
    return all_of(*parts)


def outer_product(z):
    return torch.outer(z, z)


def inner_product(z):
    return z @ z


@claim("matcalc.softmax_jacobian")
@lie("the outer product is added", sign=1.0)
@lie("the inner product z^T z is subtracted from every entry", product=inner_product)
@lie("the rows sum to 1", row_sum=1.0)
def the_softmax_jacobian_is_a_covariance(draw, sign=-1.0, product=outer_product, row_sum=0.0):
    """The formula, the row and the batched function against autograd; semidefinite, rows that sum to 0; pulled back."""

    def formula(x):
        z = x.softmax(-1)
        return torch.diag(z) + sign * product(z)

    # Logits of usual size, and so large that all but one probability vanish.
    x, upstream = draw.normal(2, 3, 5) * torch.tensor([2.0, 1e3]).double()[:, None, None], draw.normal(2, 3, 5)
    jacobian = softmax_jacobian(x)
    return all_of(
        against_autograd(draw, derivative_of("softmax(x)"), lambda x: x.exp() / x.exp().sum(), formula),
        close(jacobian.sum(-1), torch.full((2, 3, 5), row_sum).double(), scale=1.0),
        at_least(torch.linalg.eigvalsh(jacobian) + 1e-14, 0.0),  # rounding of eigenvalues: a few units of 1e-16
        close(softmax_pullback(upstream, x), (jacobian @ upstream[..., None])[..., 0]),
    )
