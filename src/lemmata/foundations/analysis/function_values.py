r"""Values, gradients and Hessians of a function of one vector, at many points at once."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = []  # for measurements and claims; users meet only their answers

Function = Callable[[Tensor], Tensor]


def batch_values(f: Function, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    r"""The values of a function of one vector at a batch of points.

    $$ f(x_1), \dots, f(x_m), \qquad f : \mathbb R^n \to \mathbb R $$

    `f` takes one vector (n,) and returns one number; it is batched by `torch.func.vmap`, or by a loop where it looks
    at the values it is given.

    Shapes:
        x: (..., n)    returns: (...)

    Claims: convex.function, convex.jensen, smooth.descent_lemma

    >>> batch_values(lambda x: x.square().sum(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([ 5., 25.])
    """
    return _batched_values(_scalar_value(f), x)


def batch_gradients(f: Function, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    r"""The gradients of a function of one vector at a batch of points.

    $$ \nabla f(x_1), \dots, \nabla f(x_m) $$

    Shapes:
        x: (..., n)    returns: (..., n)

    Claims: convex.first_order, convex.monotone_gradient, smooth.definition, pl.definition

    >>> batch_gradients(lambda x: x.square().sum(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [6., 8.]])
    """
    return _batched_values(torch.func.grad(_scalar_value(f)), x)


def batch_hessians(f: Function, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n n"]:
    r"""The matrices of second derivatives of a function of one vector at a batch of points, exactly symmetric.

    $$ [\nabla^2 f(x)]_{ij} = \frac{\partial^2 f}{\partial x_i\,\partial x_j} $$

    Shapes:
        x: (..., n)    returns: (..., n, n)

    Claims: convex.second_order, analysis.taylor_second_order

    >>> batch_hessians(lambda x: x[0] * x[1], torch.tensor([1.0, 2.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    found = _batched_values(torch.func.jacrev(torch.func.grad(_scalar_value(f))), x)
    return (found + found.mT) / 2


def batch_jacobians(f: Function, x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch m n"]:
    r"""The Jacobians of a map between vectors at a batch of points; a scalar function has one row.

    $$ [Df(x)]_{ij} = \frac{\partial f_i}{\partial x_j} $$

    Shapes:
        x: (..., n)    returns: (..., m, n)

    Claims: smooth.lipschitz, pl.tangent_kernel

    >>> batch_jacobians(lambda x: torch.stack([x[0] * x[1], x[0]]), torch.tensor([2.0, 3.0]))
    tensor([[3., 2.],
            [1., 0.]])
    """
    return _batched_values(torch.func.jacrev(lambda point: f(point).reshape(-1)), x)


def _scalar_value(f: Function) -> Function:
    if not callable(f):
        raise TypeError(f"f must be a function of one vector, got {type(f).__name__}")

    def value(point: Tensor) -> Tensor:
        found = f(point)
        if not isinstance(found, Tensor) or found.numel() != 1:
            got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise ValueError(f"f must return one number for one vector, got {got}")
        return found.reshape(())

    return value


def _batched_values(function: Function, x: Tensor) -> Tensor:
    if isinstance(x, Tensor) and x.ndim == 0:
        raise ValueError("x must be a (..., n) tensor, got shape (): use x[None]")
    points = validate.floating("x", x).reshape(-1, x.shape[-1])
    try:
        found = torch.func.vmap(function)(points)
    except RuntimeError as error:
        if "vmap" not in str(error) and "data-dependent" not in str(error):
            raise
        found = torch.stack([function(point) for point in points])
    return found.reshape((*x.shape[:-1], *found.shape[1:]))
