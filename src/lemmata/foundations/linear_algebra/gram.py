r"""Kernels and their Gram matrices, which are positive semidefinite whatever the points are."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.linear_algebra.angles import squared_distances
from lemmata.marks import system
from lemmata.validate import broadcast, fits, matrices

__all__ = ["linear_kernel", "polynomial_kernel", "rbf_kernel", "gram_matrix"]

Kernel = Callable[[Tensor, Tensor], Tensor]


def linear_kernel(
    x: Float[Tensor, "*#batch points d"], y: Float[Tensor, "*#batch others d"]
) -> Float[Tensor, "*#batch points others"]:
    r"""The inner product itself, whose feature map is the identity.

    $$ k(x, \xi) = x^\top \xi $$

    Shapes:
        x: (..., points, d), y: (..., others, d)    returns: (..., points, others)

    Claims: linalg.kernel_psd

    >>> linear_kernel(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[11.,  2.]])
    """
    _points(x, y)
    return x @ y.mT


def polynomial_kernel(
    x: Float[Tensor, "*#batch points d"],
    y: Float[Tensor, "*#batch others d"],
    degree: int = 2,
    offset: int | float = 1.0,
) -> Float[Tensor, "*#batch points others"]:
    r"""A power of the inner product, whose features are the monomials up to that degree.

    $$ k(x, \xi) = (x^\top \xi + c)^m, \qquad c \ge 0,\ m \in \{1, 2, \dots\} $$

    Shapes:
        x: (..., points, d), y: (..., others, d)    returns: (..., points, others)

    Claims: linalg.kernel_psd

    >>> polynomial_kernel(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), degree=3, offset=0.0)
    tensor([[1331.]])
    """
    validate.count("degree", degree)
    if validate.finite_number("offset", offset) < 0:
        raise ValueError(f"offset must be >= 0, got {offset}: below 0 the Gram matrix need not be semidefinite")
    return (linear_kernel(x, y) + offset) ** degree


@system("rbf_kernel", title="Radial basis function kernel", kind="function")
def rbf_kernel(
    x: Float[Tensor, "*#batch points d"], y: Float[Tensor, "*#batch others d"], gamma: int | float = 1.0
) -> Float[Tensor, "*#batch points others"]:
    r"""A similarity that falls off with the distance; its Gram matrix is definite for distinct points.

    $$ k(x, \xi) = e^{-\gamma\,\|x - \xi\|^2}, \qquad \gamma > 0 $$

    Shapes:
        x: (..., points, d), y: (..., others, d)    returns: (..., points, others)

    Claims: linalg.kernel_psd

    >>> rbf_kernel(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, 1.0]]), gamma=0.5)
    tensor([[1.0000, 0.3679]])
    """
    validate.positive("gamma", gamma)
    _points(x, y)
    return torch.exp(-gamma * squared_distances(x, y))


def gram_matrix(kernel: Kernel, x: Float[Tensor, "*#batch points d"]) -> Float[Tensor, "*batch points points"]:
    r"""All values of a kernel among some points, symmetric to the last bit.

    $$ K_{ij} = k(x_i, x_j) = \langle\phi(x_i), \phi(x_j)\rangle \quad\Rightarrow\quad K \succeq 0 $$

    `certify_definiteness` tests whether a function of your own is a kernel on given points: one violating vector
    shows that it is none.

    Shapes:
        kernel: from (..., points, d) and (..., others, d) to (..., points, others), x: (..., points, d)
        returns: (..., points, points)

    Claims: linalg.kernel_psd

    >>> gram_matrix(linear_kernel, torch.tensor([[1.0], [2.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    matrices("x", x, "points, features")
    values, points = kernel(x, x), x.shape[-2]
    if values.shape[-2:] != (points, points):
        raise ValueError(f"kernel must return ({points}, {points}) values here, got shape {tuple(values.shape)}")
    return (values + values.mT) / 2


def _points(x: Tensor, y: Tensor) -> None:
    matrices("x", x, "points, features")
    fits("y", matrices("y", y, "points, features"), (x.shape[-1],), like=x, whose="x")
    broadcast(x=tuple(x.shape[:-2]), y=tuple(y.shape[:-2]))
