"""Derivatives of a vector by a vector, and the gradients they carry back: each formula beside autograd."""

import torch
from torch.autograd.functional import jacobian

from lemmata.foundations.matrix_calculus.claims.derivatives import at_every_length, rows, wave
from lemmata.foundations.matrix_calculus.claims.scalars import in_order, itself, swapped, transpose
from lemmata.judge import all_of, at_least, claim, close, lie


@claim("matcalc.scalar_times_vector")
@lie("the outer product is transposed: the column is the derivative of u", order=swapped)
@lie("only f is differentiated", outer=0.0)
def a_scalar_factor_adds_an_outer_product(draw, order=in_order, outer=1.0):
    """Against autograd; f is a column and the derivative of u a row."""

    def sides(n, m):
        x, u, f = draw.normal(n), wave(draw, n), wave(draw, n, m)
        formula = u(x) * rows(f, x) + outer * torch.outer(*order(f(x), jacobian(u, x)))
        yield formula, rows(lambda x: u(x) * f(x), x)

    return at_every_length(draw, sides)


@claim("matcalc.hadamard_const")
@lie("the derivative is the vector a", derivative=lambda x, a: a)
@lie("the derivative is diag(x)", derivative=lambda x, a: torch.diag(x))
def a_product_by_entries_has_a_diagonal_derivative(draw, derivative=lambda x, a: torch.diag(a)):
    """Against autograd."""

    def sides(n):
        x, a = draw.normal(n), draw.normal(n)
        yield derivative(x, a), rows(lambda x: x * a, x)

    return at_every_length(draw, sides)


@claim("matcalc.constant_identity")
@lie("the derivative of x is the matrix of ones", identity=lambda x: torch.ones(len(x), len(x), dtype=x.dtype))
@lie("the derivative of a constant is 1 throughout", constant=1.0)
def a_constant_has_derivative_zero_and_x_the_identity(
    draw, identity=lambda x: torch.eye(len(x), dtype=x.dtype), constant=0.0
):
    """Against autograd."""

    def sides(n, m):
        x, a = draw.normal(n), draw.normal(m)
        yield torch.full((m, n), constant).double(), rows(lambda x: a, x)
        yield identity(x), rows(lambda x: x, x)

    return at_every_length(draw, sides)


@claim("matcalc.matrix_times_x")
@lie("the derivative is the transpose, as in the denominator layout", derivative=lambda x, A: A.mT)
@lie("the derivative is A + A^T, as for a quadratic form", derivative=lambda x, A: A + A.mT)
def a_linear_map_is_its_own_derivative(draw, derivative=lambda x, A: A):
    """Against autograd, with square matrices and with others, where no layout can be mistaken for the other."""

    def sides(n, m):
        x, A = draw.normal(n), draw.normal(m, n)
        yield derivative(x, A), rows(lambda x: A @ x, x)

    return at_every_length(draw, sides)


@claim("matcalc.x_transpose_a")
@lie("the derivative is A, as in the denominator layout", derivative=lambda x, A: A)
@lie("the derivative is 2 A^T", factor=2.0)
def a_row_times_a_matrix_has_the_transpose_as_derivative(draw, derivative=lambda x, A: A.mT, factor=1.0):
    """Against autograd, with square matrices and with others, where no layout can be mistaken for the other."""

    def sides(n, m):
        x, A = draw.normal(n), draw.normal(n, m)
        yield factor * derivative(x, A), rows(lambda x: x @ A, x)

    return at_every_length(draw, sides)


@claim("matcalc.constant_times_f")
@lie("the Jacobian stands before the matrix", product=lambda A, J: J @ A)
@lie("the outer product of a vector and a scalar function is transposed", order=swapped)
@lie("the number is squared", power=2.0)
def constants_stand_before_the_jacobian(draw, product=lambda A, J: A @ J, order=in_order, power=1.0):
    """A matrix, a vector and a number before a function, against autograd."""

    def sides(n, m, k):
        x, u, f = draw.normal(n), wave(draw, n), wave(draw, n, m)
        A, a, number = draw.normal(k, m), draw.normal(m), draw.uniform(low=1.5, high=3.0)
        yield product(A, rows(f, x)), rows(lambda x: A @ f(x), x)
        yield torch.outer(*order(a, jacobian(u, x))), rows(lambda x: a * u(x), x)
        yield number**power * rows(f, x), rows(lambda x: number * f(x), x)

    return at_every_length(draw, sides)


@claim("matcalc.linear_layer_weight")
@lie("the outer product is transposed", order=swapped)
@lie("the gradient with respect to the input takes W itself", matrix=itself)
def a_linear_layer_pulls_back_by_an_outer_product(draw, order=in_order, matrix=transpose):
    """Both gradients of L = sum of c sin(z) against autograd through torch's linear layer."""

    def sides(inputs, outputs):
        W, x, c = draw.normal(outputs, inputs), draw.normal(inputs), draw.normal(outputs)
        upstream = c * torch.cos(W @ x)  # dL/dz
        by_weight, by_input = jacobian(lambda W, x: (c * torch.sin(torch.nn.functional.linear(x, W))).sum(), (W, x))
        yield torch.outer(*order(upstream, x)), by_weight
        yield matrix(W) @ upstream, by_input

    return at_every_length(draw, sides)


@claim("matcalc.elementwise")
@lie("the two factors form a scalar product", pullback=torch.dot)
@lie("the slope is taken at 0", at=0.0)
def slopes_multiply_entry_by_entry(draw, pullback=torch.mul, at=1.0):
    """tanh, sine and a cube, and L = sum of c exp(z): against autograd of the loss."""
    functions = (
        (torch.tanh, lambda x: 1 - torch.tanh(x) ** 2),
        (torch.sin, torch.cos),
        (lambda x: x**3, lambda x: 3 * x**2),
    )

    def sides(n):
        x, c = draw.uniform(n, low=-1.5, high=1.5), draw.normal(n)
        for f, slope in functions:
            upstream = c * f(x).exp()  # dL/dz
            yield pullback(upstream, slope(at * x)), jacobian(lambda x, f=f: (c * f(x).exp()).sum(), x)

    return at_every_length(draw, sides)


def outer_product(z):
    return torch.outer(z, z)


def inner_product(z):
    return z @ z


@claim("matcalc.softmax_jacobian")
@lie("the outer product is added", sign=1.0)
@lie("the inner product z^T z is subtracted from every entry", product=inner_product)
@lie("the rows sum to 1", row_sum=1.0)
def the_softmax_jacobian_is_a_covariance(draw, sign=-1.0, product=outer_product, row_sum=0.0):
    """The formula against autograd of the written-out quotient; and autograd's matrix, with logits up to 1,000 too."""

    def sides(n):
        x = draw.normal(n)
        z = x.softmax(-1)
        yield torch.diag(z) + sign * product(z), rows(lambda x: x.exp() / x.exp().sum(), x)

    # Logits of usual size, and so large that all but one probability vanish.
    logits = draw.normal(6, 5) * torch.tensor([1.0, 2, 4, 10, 100, 1000]).double()[:, None]
    jacobians = torch.stack([rows(lambda x: x.softmax(-1), x) for x in logits])
    return all_of(
        at_every_length(draw, sides),
        close(jacobians, jacobians.mT, scale=1.0),
        close(jacobians.sum(-1), torch.full((6, 5), row_sum).double(), scale=1.0),
        at_least(torch.linalg.eigvalsh(jacobians) + 1e-14, 0.0),  # rounding of eigenvalues: a few units of 1e-16
    )
