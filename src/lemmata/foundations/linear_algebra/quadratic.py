r"""Quadratic forms: their values, their values per squared length, and their squares completed."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.validate import broadcast, fits, square, symmetric

__all__ = ["CompletedSquare", "complete_square", "quadratic_form", "rayleigh_quotient"]


def quadratic_form(matrix: Float[Tensor, "*#batch n n"], x: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*#batch"]:
    r"""The value of a quadratic form.

    $$ x^\top M x $$

    Shapes:
        matrix: (..., n, n), x: (..., n)    returns: (...)

    Claims: linalg.psd_definition, linalg.rayleigh, linalg.completing_square

    >>> quadratic_form(torch.tensor([[2.0, 0.0], [0.0, -1.0]]), torch.tensor([[1.0, 0.0], [1.0, 3.0]]))
    tensor([ 2., -7.])
    """
    square("matrix", matrix)
    fits("x", x, (matrix.shape[-1],), like=matrix, whose="matrix")
    broadcast(matrix=tuple(matrix.shape[:-2]), x=tuple(x.shape[:-1]))
    return torch.einsum("...i,...ij,...j->...", x, matrix, x)


@system("rayleigh_quotient", title="Rayleigh quotient", kind="function")
def rayleigh_quotient(
    matrix: Float[Tensor, "*#batch n n"], vector: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*#batch"]:
    r"""The curvature of a quadratic form along a vector, between the smallest and the largest eigenvalue.

    $$ \lambda_{\min} \le \frac{v^\top H v}{\|v\|^2} \le \lambda_{\max}, \qquad H = H^\top,\ v \ne 0 $$

    Shapes:
        matrix: (..., n, n) symmetric, vector: (..., n)    returns: (...)

    Claims: linalg.rayleigh

    >>> rayleigh_quotient(torch.diag(torch.tensor([1.0, 3.0])), torch.tensor([5.0, 5.0]))
    tensor(2.)
    """
    symmetric("matrix", matrix)
    validate.floating("vector", vector)
    if vector.ndim and (vector == 0).all(-1).any():
        raise ValueError("vector must not be zero: a quotient by its length is not defined")
    # No rescaling changes the quotient; this one keeps squares from overflowing.
    largest = vector.detach().abs().amax(-1, keepdim=True) if vector.ndim else vector
    vector = vector / largest
    return quadratic_form(matrix, vector) / (vector * vector).sum(-1)


class CompletedSquare(NamedTuple):
    """Where a quadratic function has its stationary point, and its value there."""

    centre: Tensor
    value: Tensor


@system("completed_square", title="Completing the square", kind="function")
def complete_square(matrix: Float[Tensor, "*#batch n n"], linear: Float[Tensor, "*#batch n"]) -> CompletedSquare:
    r"""Write a quadratic function as a pure square around its stationary point.

    $$ x^\top M x - 2 b^\top x = (x - c)^\top M (x - c) + v, \qquad c = M^{-1} b, \quad v = -b^\top M^{-1} b $$

    Shapes:
        matrix: (..., n, n) symmetric and invertible, linear: (..., n)    returns: centre (..., n), value (...)

    Claims: linalg.completing_square

    >>> complete_square(torch.tensor([[2.0]]), torch.tensor([3.0]))
    CompletedSquare(centre=tensor([1.5000]), value=tensor(-4.5000))
    """
    symmetric("matrix", matrix)
    fits("linear", linear, (matrix.shape[-1],), like=matrix, whose="matrix")
    broadcast(matrix=tuple(matrix.shape[:-2]), linear=tuple(linear.shape[:-1]))
    solved = torch.linalg.solve_ex(matrix, linear[..., None])
    if solved.info.any():
        raise ValueError("matrix must be invertible, but a pivot is zero: a singular form has no single centre")
    centre = solved.result[..., 0]
    return CompletedSquare(centre, -(linear * centre).sum(-1))
