r"""Traces of matrices and of products of matrices, batched."""

import functools

import torch
from jaxtyping import Num
from torch import Tensor

from lemmata.marks import system

__all__ = ["trace", "trace_of_product"]


@system("trace", title="Trace", kind="function")
def trace(matrix: Num[Tensor, "*batch n n"]) -> Num[Tensor, "*batch"]:
    r"""The sum of the diagonal entries, which is the sum of the eigenvalues.

    $$ \mathrm{Tr}\,A = \sum_i a_{ii} = \sum_i \lambda_i $$

    Shapes:
        matrix: (..., n, n), floating point, complex or integer    returns: (...)

    Claims: linalg.trace_definition, linalg.trace_eigenvalues, linalg.trace_linear
    Differs: torch.trace takes one matrix; this takes any number of them.

    >>> trace(torch.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]))
    tensor([ 5, 13])
    """
    _matrix("matrix", matrix)
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"matrix must be a (..., n, n) tensor, got shape {tuple(matrix.shape)}")
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def trace_of_product(*factors: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    r"""The trace of a product, without forming the last product.

    $$ \mathrm{Tr}(A_1 \cdots A_k) = \sum_{ij} (A_1 \cdots A_{k-1})_{ij}\,(A_k)_{ji} $$

    By the cyclic property it may start at any factor; it starts where the largest inner matrix is smallest.

    Shapes:
        factors: (..., n1, n2), (..., n2, n3), ..., (..., nk, n1)    returns: (...)

    Claims: linalg.trace_cyclic, linalg.frobenius_trace

    >>> a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
    >>> trace_of_product(a, b), trace_of_product(b, a)
    (tensor(11.), tensor(11.))
    """
    _chain(factors)
    if len(factors) == 1:
        return trace(factors[0])
    # Between the first k - 1 factors and the last stands a matrix of (first rows) x (last rows) entries.
    # Every start gives the same trace; the smallest such matrix is the cheapest.
    sizes = [factors[start].shape[-2] * factors[start - 1].shape[-2] for start in range(len(factors))]
    first = sizes.index(min(sizes))
    factors = factors[first:] + factors[:first]
    return (functools.reduce(torch.matmul, factors[:-1]) * factors[-1].mT).sum((-2, -1))


def _matrix(name: str, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: use torch.as_tensor({name})")
    if value.ndim < 2 or not value.numel():
        raise ValueError(f"{name} must be a (..., rows, columns) tensor that is not empty, got {tuple(value.shape)}")
    if not torch.isfinite(value).all():
        raise ValueError(f"{name} must be finite, found {int((~torch.isfinite(value)).sum())} NaN or infinite values")


def _chain(factors: tuple[Tensor, ...]) -> None:
    if not factors:
        raise ValueError("factors must hold at least one matrix, got none")
    for position, factor in enumerate(factors):
        _matrix(f"factors[{position}]", factor)
    for position, (factor, other) in enumerate(zip(factors, factors[1:] + factors[:1], strict=True)):
        if factor.shape[-1] != other.shape[-2]:
            shapes = " and ".join(str(tuple(f.shape)) for f in (factor, other))
            after = (position + 1) % len(factors)
            raise ValueError(f"factors[{position}] and factors[{after}] must fit together, got shapes {shapes}")
