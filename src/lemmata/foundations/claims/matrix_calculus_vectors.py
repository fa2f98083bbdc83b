"""Derivatives of a vector by a vector, and the gradients they carry back: against autograd and differences."""

import torch

from lemmata.foundations.claims.matrix_calculus import against_autograd
from lemmata.foundations.jacobians import gradient_of, jacobian_of
from lemmata.foundations.matrix_derivatives import derivative_of
from lemmata.foundations.pullbacks import (
    elementwise_pullback,
    linear_pullback,
    slope_of,
    softmax_jacobian,
    softmax_pullback,
)
from lemmata.judge import all_of, at_least, claim, close, lie

SCALED = derivative_of("u(x) f(x)")


@claim("matcalc.scalar_times_vector")
@lie("the outer product is transposed: the column is the derivative of u", transposed=1.0)
@lie("only f is differentiated", outer=0.0)
def a_scalar_factor_adds_an_outer_product(draw, transposed=0.0, outer=1.0):
    """The row against autograd; f is a column and the derivative of u a row."""

    def changed(x, u, f):
        product = torch.outer(f(x), gradient_of(u, x))
        return transposed * (product.mT - product) + (outer - 1) * product

    return against_autograd(draw, SCALED, lambda x, u, f: u(x) * f(x), plus=changed)


HADAMARD = derivative_of("x o a")


@claim("matcalc.hadamard_const")
@lie("the derivative is the vector a", derivative=lambda x, a: a)
@lie("the derivative is diag(x)", derivative=lambda x, a: torch.diag(x))
@lie("every row of the derivative is a in full", off_diagonal=1.0)
def a_product_by_entries_has_a_diagonal_derivative(draw, derivative=HADAMARD.derivative, off_diagonal=0.0):
    """The row against autograd."""

    def changed(x, a):
        return off_diagonal * (a.expand(len(x), -1) - torch.diag(a))

    return against_autograd(draw, HADAMARD, lambda x, a: a * x, derivative, changed)


IDENTITY = derivative_of("x")


@claim("matcalc.constant_identity")
@lie("the derivative of x is the matrix of ones", off_diagonal=1.0)
@lie("the derivative of x is the vector of ones", identity=torch.ones_like)
@lie("the derivative of a constant is 1 throughout", constant=1.0)
def a_constant_has_derivative_zero_and_x_the_identity(
    draw, identity=IDENTITY.derivative, off_diagonal=0.0, constant=0.0
):
    """Both rows against autograd."""

    def changed(x):
        return off_diagonal * (1 - torch.eye(len(x), dtype=x.dtype))

    return all_of(
        against_autograd(draw, IDENTITY, lambda x: x, identity, changed),
        against_autograd(draw, derivative_of("a"), lambda x, a: a, plus=lambda x, a: constant),
    )


TIMES = derivative_of("A x")


@claim("matcalc.matrix_times_x")
@lie("the derivative is the transpose, as in the denominator layout", transposed=1.0)
@lie("the derivative is A + A^T, as for a quadratic form", second=1.0)
def a_linear_map_is_its_own_derivative(draw, transposed=0.0, second=0.0):
    """The row against autograd; and a 3 x 5 matrix, where the layouts cannot be mistaken for one another."""
    x, A = draw.normal(5), draw.normal(3, 5)

    def changed(x, A):
        return transposed * (A.mT - A) + second * A.mT

    return all_of(
        against_autograd(draw, TIMES, lambda x, A: (A * x).sum(1), plus=changed),
        close(TIMES.at(x, A=A), jacobian_of(lambda point: A @ point, x)),
        close(TIMES.at_each(torch.stack([x, 2 * x]), A=A), torch.stack([A, A])),
    )


ROW_TIMES = derivative_of("x^T A")


@claim("matcalc.x_transpose_a")
@lie("the derivative is A, as in the denominator layout", untransposed=1.0)
@lie("the derivative is 2 A^T", factor=2.0)
def a_row_times_a_matrix_has_the_transpose_as_derivative(draw, untransposed=0.0, factor=1.0):
    """The row against autograd; and a 3 x 5 matrix, where the layouts cannot be mistaken for one another."""
    x, A = draw.normal(3), draw.normal(3, 5)

    def changed(x, A):
        return untransposed * (A - A.mT)

    return all_of(
        against_autograd(draw, ROW_TIMES, lambda x, A: (x[:, None] * A).sum(0), plus=changed, factor=factor),
        close(ROW_TIMES.at(x, A=A), jacobian_of(lambda point: point @ A, x)),
    )


@claim("matcalc.constant_times_f")
@lie("the Jacobian stands before the matrix", swapped=1.0)
@lie("the outer product of a vector and a scalar function is transposed", transposed=1.0)
@lie("the number is squared", power=2.0)
def constants_stand_before_the_jacobian(draw, swapped=0.0, transposed=0.0, power=1.0):
    """Three rows against autograd: a number, a vector and a matrix before a function."""

    def commuted(x, A, f):
        jacobian = jacobian_of(f, x)
        return swapped * (jacobian @ A - A @ jacobian)

    def turned(x, a, u):
        product = torch.outer(a, gradient_of(u, x))
        return transposed * (product.mT - product)

    def powered(x, a, f):
        return (a.abs() ** (power - 1) - 1) * a * jacobian_of(f, x)

    return all_of(
        against_autograd(draw, derivative_of("A f(x)"), lambda x, A, f: (A * f(x)).sum(1), plus=commuted),
        against_autograd(draw, derivative_of("a u(x)"), lambda x, a, u: u(x) * a, plus=turned),
        against_autograd(draw, derivative_of("a f(x)"), lambda x, a, f: f(x) * a, plus=powered),
    )


def transposed_pullback(weight, x, upstream):
    """x (dL/dz)^T in the place of (dL/dz) x^T."""
    by_weight, by_input = linear_pullback(weight, x, upstream)
    return by_weight.mT, by_input


def forward_pullback(weight, x, upstream):
    """W in the place of its transpose for the input."""
    by_weight, _ = linear_pullback(weight, x, upstream)
    return by_weight, upstream @ weight.mT


@claim("matcalc.linear_layer_weight")
@lie("the outer product is transposed", pullback=transposed_pullback)
@lie("the gradient with respect to the input takes W itself", pullback=forward_pullback)
@lie("the gradient is the mean over the batch, not its sum", divisor=5.0)
def a_linear_layer_pulls_back_by_an_outer_product(draw, pullback=linear_pullback, divisor=1.0):
    """Weight and input gradients of a nonlinear loss against autograd: one point, and a batch of five."""
    parts = []
    for outputs, inputs, batch, rule in (
        (4, 4, (5,), pullback),
        (3, 5, (), linear_pullback),
        (6, 2, (2, 3), linear_pullback),
    ):
        weight, x, c = draw.normal(outputs, inputs), draw.normal(*batch, inputs), draw.normal(outputs)

        def loss(weight, x, c=c):
            return (c * (x @ weight.mT).sin()).sum()

        expected = torch.autograd.functional.jacobian(loss, (weight, x))
        by_weight, by_input = rule(weight, x, c * (x @ weight.mT).cos())
        by_weight = by_weight / divisor if batch == (5,) else by_weight
        parts += [close(by_weight, expected[0]), close(by_input, expected[1])]
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
    for f, slope in (
        (torch.tanh, lambda x: 1 - x.tanh() ** 2),
        (torch.sin, torch.cos),
        (lambda x: x**3, lambda x: 3 * x**2),
    ):
        x, c = draw.normal(4, 3), draw.normal(4, 3)
        expected = torch.autograd.functional.jacobian(lambda x, c=c, f=f: (c * f(x).exp()).sum(), x)
        upstream = c * f(x).exp()
        parts += [
            close(pullback(upstream, x, slope_of(f, at * x)), expected),
            close(elementwise_pullback(upstream, x, slope), expected),
        ]
    return all_of(*parts)


SOFTMAX = derivative_of("softmax(x)")


@claim("matcalc.softmax_jacobian")
@lie("the outer product is added", sign=1.0)
@lie("the inner product z^T z is subtracted from every entry", inner=1.0)
@lie("the rows sum to 1", row_sum=1.0)
def the_softmax_jacobian_is_a_covariance(draw, sign=-1.0, inner=0.0, row_sum=0.0):
    """The row and the batched function against autograd; symmetric, semidefinite, rows that sum to 0; pulled back."""

    def changed(x):
        z = x.softmax(-1)
        return (sign + 1) * torch.outer(z, z) + inner * (torch.outer(z, z) - z @ z)

    # Logits of usual size, and so large that all but one probability vanish.
    x, upstream = draw.normal(2, 3, 5) * torch.tensor([2.0, 1e3]).double()[:, None, None], draw.normal(2, 3, 5)
    jacobian = softmax_jacobian(x)
    points = [torch.autograd.functional.jacobian(lambda p: p.softmax(-1), point) for point in x.flatten(0, 1)]
    return all_of(
        against_autograd(draw, SOFTMAX, lambda x: x.exp() / x.exp().sum(), plus=changed),
        close(jacobian, torch.stack(points).reshape(2, 3, 5, 5)),
        close(jacobian, jacobian.mT),
        close(jacobian.sum(-1), torch.full((2, 3, 5), row_sum).double(), scale=1.0),
        at_least(torch.linalg.eigvalsh(jacobian) + 1e-14, 0.0),  # rounding of eigenvalues: a few units of 1e-16
        close(softmax_pullback(upstream, x), (jacobian @ upstream[..., None])[..., 0]),
    )
