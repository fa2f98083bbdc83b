r"""Derivatives of functions as matrices, with the layout said aloud: gradients, Jacobians, Hessians, the chain rule."""

import functools
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.tensor_chain import jacobian_tensor
from lemmata.marks import system

__all__ = ["LAYOUTS", "chain_rule", "differenced_jacobian", "gradient_of", "hessian_of", "jacobian_of"]

LAYOUTS = ("numerator", "denominator")

Function = Callable[[Tensor], Tensor]


@system("jacobian", title="Jacobian matrix in a stated layout", kind="function")
def jacobian_of(function: Function, x: Float[Tensor, "n"], layout: str = "numerator") -> Float[Tensor, "rows columns"]:
    r"""The matrix of partial derivatives of a vector with respect to a vector, by autograd.

    $$ \Big(\frac{\partial f}{\partial x}\Big)_{ij} = \frac{\partial f_i}{\partial x_j} \in \mathbb R^{m \times n}
       \quad\text{(numerator)}, \qquad \frac{\partial f_j}{\partial x_i} \in \mathbb R^{n \times m}
       \quad\text{(denominator)} $$

    A function with one number as its value counts as m = 1: its derivative is a row (1, n) in the numerator layout and
    a column (n, 1) in the denominator layout. `gradient_of` gives the same numbers in the shape of x.

    Shapes:
        function: (n,) to (m,) or (), x: (n,)    returns: (m, n) or (n, m)

    Claims: matcalc.layout, matcalc.inner_product, matcalc.scalar_times_vector
    Differs: torch.func.jacrev knows the numerator layout alone, and drops the row of a scalar function.

    >>> a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> jacobian_of(lambda x: a @ x, torch.ones(3))
    tensor([[1., 2., 3.],
            [4., 5., 6.]])
    >>> jacobian_of(lambda x: a @ x, torch.ones(3), layout="denominator").shape
    torch.Size([3, 2])
    """
    validate.vector("x", x)
    _layout(layout)
    tensor = jacobian_tensor(function, x)
    if tensor.ndim > 2:
        raise ValueError(f"function must return a vector or one number, got shape {tuple(tensor.shape[:-1])}")
    rows = tensor.reshape(-1, len(x))
    return rows if layout == "numerator" else rows.mT


@system("gradient", title="Gradient", kind="function")
def gradient_of(function: Function, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The gradient of a function with one number as its value: always in the shape of the input.

    $$ \nabla f(x) \in \mathbb R^{n}, \qquad (\nabla f(x))_i = \frac{\partial f}{\partial x_i} $$

    Shapes:
        function: from the shape of x to one number, x: any shape    returns: the shape of x

    Claims: calculus.gradient_hessian, matcalc.product_scalar

    >>> gradient_of(lambda x: x @ x, torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    tensor = jacobian_tensor(function, x)
    outputs = tensor.shape[: tensor.ndim - x.ndim]
    if outputs.numel() != 1:
        raise ValueError(
            f"function must return one number, got shape {tuple(outputs)}: use jacobian_of for several values"
        )
    return tensor.reshape(x.shape)


@system("hessian", title="Hessian", kind="function")
def hessian_of(function: Function, x: Float[Tensor, "n"]) -> Float[Tensor, "n n"]:
    r"""The matrix of second derivatives, symmetric where they are continuous.

    $$ (\nabla^2 f(x))_{ij} = \frac{\partial^2 f}{\partial x_j\,\partial x_i} $$

    Shapes:
        function: (n,) to one number, x: (n,)    returns: (n, n)

    Claims: calculus.gradient_hessian

    >>> hessian_of(lambda x: x[0] ** 2 * x[1], torch.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    validate.vector("x", x)
    return jacobian_of(lambda point: gradient_of(function, point), x)


def differenced_jacobian(
    function: Function, x: Float[Tensor, "..."], step: int | float | None = None
) -> Float[Tensor, "..."]:
    r"""The derivatives without autograd, by central differences: the witness to ask when a derivative is in doubt.

    $$ \frac{\partial f}{\partial x_j} \approx \frac{f(x + h e_j) - f(x - h e_j)}{2h} $$

    The error is of the order $h^2 + \epsilon/h$; the default $h = \epsilon^{1/3}$ balances the two (6e-6 in float64).

    Shapes:
        function: from the shape of x to any shape, x: any shape    returns: (output axes ..., input axes ...)

    Claims: calculus.gradient_hessian, matcalc.layout

    >>> differenced_jacobian(lambda x: x**2, torch.tensor([1.0, 3.0], dtype=torch.float64)).round(decimals=6)
    tensor([[2., 0.],
            [0., 6.]], dtype=torch.float64)
    """
    validate.floating("x", x)
    # The cube root balances rounding (eps/h) against the error of the difference (h^2).
    h = torch.finfo(x.dtype).eps ** (1 / 3) if step is None else validate.positive("step", step)
    moves = h * torch.eye(x.numel(), dtype=x.dtype, device=x.device).reshape(-1, *x.shape)
    columns = [(function(x + move) - function(x - move)) / (2 * h) for move in moves]
    return torch.stack(columns, dim=-1).reshape([*columns[0].shape, *x.shape])


@system("chain_rule", title="Chain rule for vector functions", kind="function")
def chain_rule(
    functions: Sequence[Function], x: Float[Tensor, "n"], layout: str = "numerator"
) -> Float[Tensor, "rows columns"]:
    r"""The Jacobian of a composition as the product of the Jacobians of its parts.

    $$ \frac{\partial}{\partial x} f(g(h(x))) = \frac{\partial f}{\partial g}\frac{\partial g}{\partial h}
       \frac{\partial h}{\partial x} \quad\text{(numerator; reversed in the denominator layout)} $$

    Each part is differentiated where it is used: $\partial f/\partial g$ at $g(h(x))$.

    Shapes:
        functions: vector functions, the outermost first; x: (n,)    returns: (m, n) or (n, m)

    Claims: matcalc.chain_numerator, matcalc.chain_scalar_sum

    >>> chain_rule([torch.sum, torch.square], torch.tensor([1.0, 2.0]))
    tensor([[2., 4.]])
    """
    validate.vector("x", x)
    _layout(layout)
    if not functions:
        raise ValueError("functions must hold at least one function, got none")
    factors, point = [], x
    for function in reversed(functions):
        factors.insert(0, jacobian_of(function, point))
        point = function(point)
    product = functools.reduce(torch.matmul, factors)
    return product if layout == "numerator" else product.mT


def _layout(layout: str) -> None:
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'numerator' or 'denominator', got {layout!r}")
