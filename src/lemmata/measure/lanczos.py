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
EPS = torch.finfo(torch.float64).eps
EXHAUSTED = 4  # times eps times the largest image: what is left of an image below that is rounding


class RitzPair(NamedTuple):
    """An approximate eigenvalue, its unit vector, and the length of what the operator leaves beside it."""

    value: Tensor
    vector: Tensor
    residual: Tensor


class KrylovSpace(NamedTuple):
    """Basis vectors as rows; what the operator is among them, and the length it leaves beside, over 2^exponent."""

    basis: Tensor
    tridiagonal: Tensor
    remainder: Tensor
    exponent: Tensor


@system("lanczos", title="Lanczos iteration", kind="function")
def largest_ritz_pair(
    operator: Callable[[Tensor], Tensor],
    start: Float[Tensor, "*batch n"],
    steps: int,
    accuracy: int | float = 0.0,
    generator: torch.Generator | None = None,
) -> RitzPair:
    r"""The largest Rayleigh quotient of a symmetric operator in a Krylov space.

    $$ \theta = \max_{x \in K} \frac{x^\top G x}{x^\top x}, \qquad
       K = \mathrm{span}\{b, Gb, \dots, G^{k-1}b\}, \qquad |\lambda - \theta| \le \|Gx - \theta x\| $$

    The operator is only ever applied to vectors. All vectors are kept orthogonal. It ends after `steps` steps, or when
    the residual $\|Gx - \theta x\|$ is estimated to be at most `accuracy` times $\theta$. Some eigenvalue $\lambda$ is
    as near as that to $\theta$, but nothing says that it is the largest: a start may miss that. Where nothing but
    rounding is left, a random vector, orthogonal to the others, carries on.

    Value and residual are measured in double precision at the vector that is returned, whatever the iteration lost.
    The residual is rounded up and includes $n u\,\|Gx\|$ for what the operator itself may lose in the dtype of the
    start; by as much the value may exceed the largest eigenvalue. A product with a matrix in which large terms cancel
    loses more, in the size of $|G||x|$: so far a residual says nothing. Starts and operators may be of any size: powers
    of two are taken out, so that nothing underflows.

    Shapes:
        operator: from (..., n) to (..., n), start: (..., n)    returns: value (...), vector (..., n), residual (...)

    Claims: linalg.spectral_norm

    >>> diagonal = torch.tensor([1.0, 2.0, 3.0])
    >>> largest_ritz_pair(lambda x: diagonal * x, torch.ones(3), steps=3).value
    tensor(3.)
    """
    validate.finite_number("accuracy", accuracy)

    def done(space: KrylovSpace) -> bool:
        values, vectors = torch.linalg.eigh(space.tridiagonal)
        residual = space.remainder * vectors[..., -1, -1].abs()
        return bool((residual <= accuracy * values[..., -1].abs()).all())

    space = krylov_space(operator, start, steps, generator, done, CHECKED_EVERY if accuracy > 0 else 0)
    vectors = torch.linalg.eigh(space.tridiagonal).eigenvectors
    top = (space.basis.mT @ vectors[..., -1, None].to(start))[..., 0]
    return measured_pair(operator, _unit_vector(top), lost=(start.shape[-1] + 1) * torch.finfo(start.dtype).eps / 2)


def krylov_space(
    operator: Callable[[Tensor], Tensor],
    start: Float[Tensor, "*batch n"],
    steps: int,
    generator: torch.Generator | None = None,
    done: Callable[[KrylovSpace], bool] | None = None,
    checked_every: int = 1,
) -> KrylovSpace:
    r"""An orthonormal basis of the space of the powers of an operator, in which it is a tridiagonal matrix.

    $$ GQ = QT + \beta\, q\, e_k^\top, \qquad Q^\top Q = I $$

    It ends after `steps` steps, or when `done`, which is asked every few of them, says so.

    Shapes:
        operator: from (..., n) to (..., n), start: (..., n)    returns: basis (..., k, n), tridiagonal (..., k, k)

    >>> diagonal = torch.tensor([1.0, 2.0, 3.0])
    >>> space = krylov_space(lambda x: diagonal * x, torch.ones(3), steps=3)
    >>> torch.ldexp(torch.linalg.eigvalsh(space.tridiagonal), space.exponent)
    tensor([1.0000, 2.0000, 3.0000], dtype=torch.float64)
    """
    validate.floating("start", start)
    if start.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"start must be float32 or float64, got {start.dtype}: use start.float()")
    if start.ndim == 0 or (start == 0).all(-1).any():
        raise ValueError("start must be a (..., n) tensor without zero vectors")
    last = min(validate.count("steps", steps), start.shape[-1])  # n steps span the whole space
    # Vectors are rows, without gaps, and room for all of them is taken once.
    basis = start.new_empty(*start.shape[:-1], last, start.shape[-1])
    basis[..., 0, :] = _unit_vector(start.detach())
    diagonal, beside, sizes, exponents = [], [], [], []
    for step in range(1, last + 1):
        known = basis[..., :step, :]
        newest = known[..., -1, :]
        image, exponent = _apply_operator(operator, newest)
        diagonal.append((image * newest).sum(-1))
        sizes.append(torch.linalg.vector_norm(image, dim=-1))
        exponents.append(exponent)
        image = _orthogonal_part(known, image)
        rest = torch.linalg.vector_norm(image, dim=-1)
        powers = torch.stack(exponents)
        most = powers.amax(0)
        shares = torch.ldexp(rest.new_ones(powers.shape), powers - most)
        largest = (torch.stack(sizes) * shares).amax(0)
        exhausted = rest * shares[-1] <= EXHAUSTED * torch.finfo(start.dtype).eps * largest
        beside.append(torch.where(exhausted, 0.0, rest))
        asked = done is not None and checked_every > 0 and step % checked_every == 0
        if step == last or asked:
            matrix = _tridiagonal_matrix(diagonal, beside[:-1], shares).double()
            space = KrylovSpace(known, matrix, (rest * shares[-1]).double(), most)
            if step == last or (done is not None and done(space)):
                return space
        following = image / rest[..., None]
        if exhausted.any():
            following = torch.where(exhausted[..., None], _fresh_vector(known, generator), following)
        basis[..., step, :] = following
    raise AssertionError("the last step returns")


def _unit_vector(vector: Tensor) -> Tensor:
    """The unit vector along one of any size; its largest entry is made about 1 first, so that no square underflows."""
    scaled = _raise_by_power(vector, -torch.frexp(vector.abs().amax(-1, keepdim=True)).exponent)
    return scaled / torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)


def _apply_operator(operator: Callable[[Tensor], Tensor], vector: Tensor) -> tuple[Tensor, Tensor]:
    """The image of a unit vector with its largest entry about 1, and the exponent of the power of two taken out."""
    image = operator(vector)
    largest = image.abs().amax(-1)
    end = torch.frexp(vector.new_tensor(torch.finfo(vector.dtype).tiny)).exponent.item() // 2
    # Images that are nearly subnormal, or infinite, are taken again of a vector of another size.
    lift = torch.where(torch.frexp(largest).exponent < end, -end, 0)
    lift = torch.where(largest == 0, -end, torch.where(largest.isfinite(), lift, end))
    if lift.any():
        image = operator(torch.ldexp(vector, lift[..., None]))
        largest = image.abs().amax(-1)
    if not largest.isfinite().all():
        raise ValueError("operator must give finite images, got infinite or NaN values: scale it")
    exponent = torch.frexp(largest).exponent
    return torch.ldexp(image, -exponent[..., None]), exponent - lift


def _orthogonal_part(known: Tensor, vector: Tensor) -> Tensor:
    """What of a vector is orthogonal to all known ones."""
    for _ in range(2):  # twice: once leaves what rounding put there
        vector = vector - (known.mT @ (known @ vector[..., None]))[..., 0]
    return vector


def _fresh_vector(known: Tensor, generator: torch.Generator | None) -> Tensor:
    """A random unit vector that is orthogonal to all known ones; drawn again where it is none beside rounding."""
    shape, least = known[..., 0, :].shape, torch.finfo(known.dtype).eps ** 0.5
    while True:
        drawn = _unit_vector(torch.randn(shape, generator=generator, dtype=known.dtype, device=known.device))
        left = _orthogonal_part(known, drawn)
        if (torch.linalg.vector_norm(left, dim=-1) > least).all():
            return _unit_vector(left)


def _tridiagonal_matrix(diagonal: list[Tensor], beside: list[Tensor], shares: Tensor) -> Tensor:
    matrix = torch.diag_embed((torch.stack(diagonal) * shares).movedim(0, -1))
    if beside:
        below = (torch.stack(beside) * shares[:-1]).movedim(0, -1)
        matrix = matrix + torch.diag_embed(below, offset=-1)  # eigh reads the lower triangle
    return matrix


def measured_pair(
    operator: Callable[[Tensor], Tensor], vector: Tensor, lost: float = 0.0, lost_at_most: float = 0.0
) -> RitzPair:
    """The quotient of a unit vector and its residual, in double precision from the definition, rounded up.

    The residual includes what the operator itself may have lost to rounding, as far as it is known: a part `lost` of
    the image, and `lost_at_most` whatever its size.
    """
    image, exponent = _apply_operator(operator, vector)
    x, image = vector.double(), image.double()
    length = torch.linalg.vector_norm(x, dim=-1)
    value = _raise_by_power((image * x).sum(-1) / length.square(), exponent).to(vector.dtype)
    if not value.isfinite().all():
        raise ValueError(f"operator must have eigenvalues that {vector.dtype} can hold: scale it")
    kept = _raise_by_power(value.double(), -exponent)  # as it was rounded
    residual = torch.linalg.vector_norm(image - kept[..., None] * x, dim=-1) / length
    # Differences round by 3 u of the image or of what is subtracted, sums by (n + 3) u of the result.
    residual = residual * (1 + (x.shape[-1] + 8) * EPS) + (lost + 2 * EPS) * torch.linalg.vector_norm(image, dim=-1)
    rounded = (_raise_by_power(residual, exponent) + lost_at_most * (1 + 4 * EPS)).to(vector.dtype)
    above = rounded.nextafter(rounded.new_tensor(torch.inf))  # also where nothing is left of it
    return RitzPair(value, vector, torch.where((residual == 0) & (rounded == 0), rounded, above))


def _raise_by_power(number: Tensor, exponent: Tensor) -> Tensor:
    """A number times a power of two, in two steps, for that power may be too large or too small to store."""
    half = exponent // 2
    return torch.ldexp(torch.ldexp(number, half), exponent - half)
