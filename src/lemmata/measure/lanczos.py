r"""Lanczos's iteration: the largest eigenvalue that the powers of a symmetric operator can see from one vector."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["RitzPair", "largest_ritz_pair"]

CHECKED_EVERY = 8  # steps between tests of convergence, each an eigenproblem


class RitzPair(NamedTuple):
    """An approximate eigenvalue, its unit vector, and the length of what the operator leaves beside it."""

    value: Tensor
    vector: Tensor
    residual: Tensor


@system("lanczos", title="Lanczos iteration", kind="function")
def largest_ritz_pair(
    operator: Callable[[Tensor], Tensor], start: Float[Tensor, "*batch n"], steps: int, accuracy: int | float = 0.0
) -> RitzPair:
    r"""The largest Rayleigh quotient of a positive semidefinite operator in a Krylov space.

    $$ \theta = \max_{x \in K} \frac{x^\top G x}{x^\top x}, \qquad
       K = \mathrm{span}\{b, Gb, \dots, G^{k-1}b\}, \qquad \theta \le \lambda_{\max}(G) $$

    The operator is only ever applied to vectors. All vectors are kept orthogonal. It ends after `steps` steps, or when
    the residual $\|Gx - \theta x\|$ is at most `accuracy` times $\theta$: then some eigenvalue is as near as that to
    $\theta$, but nothing says that it is the largest.

    Shapes:
        operator: from (..., n) to (..., n), start: (..., n)    returns: value (...), vector (..., n), residual (...)

    Claims: linalg.spectral_norm

    >>> diagonal = torch.tensor([1.0, 2.0, 3.0])
    >>> largest_ritz_pair(lambda x: diagonal * x, torch.ones(3), steps=3).value
    tensor(3.0000)
    """
    validate.floating("start", start)
    if start.ndim == 0 or (start == 0).all(-1).any():
        raise ValueError("start must be a (..., n) tensor without zero vectors")
    last = min(validate.count("steps", steps), start.shape[-1])  # n steps span the whole space
    validate.finite_number("accuracy", accuracy)
    # Vectors are rows, without gaps, and room for all of them is taken once.
    basis = start.new_empty(*start.shape[:-1], last, start.shape[-1])
    basis[..., 0, :] = torch.nn.functional.normalize(start.detach(), dim=-1)
    diagonal, beside = [], []
    for step in range(1, last + 1):
        known = basis[..., :step, :]
        newest = known[..., -1, :]
        image = operator(newest)
        diagonal.append((image * newest).sum(-1))
        for _ in range(2):  # twice: once leaves what rounding put there
            image = image - (known.mT @ (known @ image[..., None]))[..., 0]
        rest = torch.linalg.vector_norm(image, dim=-1)
        beside.append(rest)
        if step == last or step % CHECKED_EVERY == 0:
            values, vectors = torch.linalg.eigh(_tridiagonal(diagonal, beside[:-1]))
            residual = rest * vectors[..., -1, -1].abs()
            if step == last or (residual <= accuracy * values[..., -1]).all():
                break
        # Where the space is exhausted only rounding is left: a zero vector follows, with the eigenvalue 0.
        exhausted = start.shape[-1] * torch.finfo(start.dtype).eps * torch.stack(diagonal).amax(0)
        basis[..., step, :] = torch.where((rest > exhausted)[..., None], image / rest[..., None], 0.0)
    top = (known.mT @ vectors[..., -1, None])[..., 0]
    # The vector of a zero operator may be one of the zero vectors.
    top = torch.where((top == 0).all(-1, keepdim=True), basis[..., 0, :], top)
    return RitzPair(values[..., -1], torch.nn.functional.normalize(top, dim=-1), residual)


def _tridiagonal(diagonal: list[Tensor], beside: list[Tensor]) -> Tensor:
    matrix = torch.diag_embed(torch.stack(diagonal, dim=-1))
    if beside:
        matrix = matrix + torch.diag_embed(torch.stack(beside, dim=-1), offset=-1)  # eigh reads the lower triangle
    return matrix
