r"""Whether a linear recurrence forgets, remembers for ever, or explodes, and why."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.recurrent.linear_state_space import check_system

__all__ = ["Stability", "is_stable", "steady_state"]


@dataclass(frozen=True)
class Stability:
    """What becomes of the states of a linear recurrence; true if they stay bounded under every bounded input.

    `powers_bounded`: states stay bounded without input. `states_bounded`: also with any bounded input, and the first
    state is forgotten. `radius` is the largest modulus of an eigenvalue; `reason` says in words what decided.

    Claims: rnn.linear.stability
    """

    states_bounded: bool
    powers_bounded: bool
    radius: float
    reason: str

    def __bool__(self) -> bool:
        return self.states_bounded


def is_stable(system: Tensor, tolerance: float = 1e-6) -> Stability:
    r"""The stability of $z_{t+1} = Az_t + Bx_t$, from the matrix or, for a diagonal system, from its eigenvalues.

    $$ \max_j|\lambda_j| < 1: \text{ bounded states}, \qquad \max_j|\lambda_j| \le 1
       \text{ and no Jordan block on the circle}: \text{ bounded powers} $$

    The moduli of a matrix's eigenvalues are known only up to rounding, of which a Jordan block makes its square root:
    within `tolerance` of one they count as one. Eigenvalues given as a vector are taken as they are.

    Shapes:
        system: a matrix (state, state), or real or complex eigenvalues (state,)

    Claims: rnn.linear.stability

    >>> bool(is_stable(torch.tensor([0.9, -0.5])))
    True
    >>> is_stable(torch.tensor([[1.0, 1.0], [0.0, 1.0]])).reason
    'a Jordan block at eigenvalue 1 on the unit circle: powers grow like a power of the time'
    >>> is_stable(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).reason
    'eigenvalue 0+1i on the unit circle: powers stay bounded, but an input in step with it makes the state grow'
    """
    if not isinstance(system, Tensor) or system.ndim not in (1, 2) or system.numel() == 0:
        told = f"shape {tuple(system.shape)}" if isinstance(system, Tensor) else type(system).__name__
        raise ValueError(f"system must be a matrix (state, state) or a vector of eigenvalues, got {told}")
    validate.floating("system", torch.view_as_real(system) if system.is_complex() else system)
    if system.ndim == 1:
        return _verdict(system, 0.0, None)
    if system.shape[0] != system.shape[1]:
        raise ValueError(f"system must be a square matrix, got shape {tuple(system.shape)}")
    matrix = system.to(torch.complex128 if system.is_complex() else torch.float64)
    return _verdict(torch.linalg.eigvals(matrix), validate.positive("tolerance", tolerance), matrix)


def steady_state(
    A: Float[Tensor, "state state"], B: Float[Tensor, "state inputs"], x: Float[Tensor, " inputs"]
) -> Float[Tensor, " state"]:
    r"""The state to which a constant input leads, whatever the first state was.

    $$ z_\infty = (I-A)^{-1}Bx, \qquad \max_j|\lambda_j| < 1 $$

    Shapes:
        A: (state, state), B: (state, inputs), x: (inputs,)    returns: (state,)

    Claims: rnn.linear.stability

    >>> steady_state(torch.tensor([[0.5]]), torch.tensor([[1.0]]), torch.tensor([3.0]))
    tensor([6.])
    """
    check_system(A, B)
    validate.vector("x", x, B.shape[1])
    verdict = is_stable(A)
    if not verdict:
        raise ValueError(f"A must be stable, but has {verdict.reason}")
    return torch.linalg.solve(torch.eye(len(A), dtype=A.dtype, device=A.device) - A, B @ x)


def _verdict(eigenvalues: Tensor, tolerance: float, matrix: Tensor | None) -> Stability:
    moduli = eigenvalues.abs()
    radius = float(moduli.max())
    largest = f"eigenvalue {_told(eigenvalues[moduli.argmax()])}"
    if radius < 1 - tolerance:
        return Stability(True, True, radius, f"{largest} as the largest, inside the unit circle: states are forgotten")
    if radius > 1 + tolerance:
        return Stability(False, False, radius, f"{largest} outside the unit circle: powers grow exponentially")
    for eigenvalue in eigenvalues[moduli >= 1 - tolerance]:
        times = int(((eigenvalues - eigenvalue).abs() <= tolerance).sum())
        if matrix is not None and _eigenvectors(matrix, eigenvalue, tolerance) < times:
            block = f"a Jordan block at eigenvalue {_told(eigenvalue)} on the unit circle"
            return Stability(False, False, radius, f"{block}: powers grow like a power of the time")
    told = "powers stay bounded, but an input in step with it makes the state grow"
    return Stability(False, True, radius, f"{largest} on the unit circle: {told}")


def _eigenvectors(matrix: Tensor, eigenvalue: Tensor, tolerance: float) -> int:
    """How many independent eigenvectors an eigenvalue has, up to rounding."""
    identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    lengths = torch.linalg.svdvals(matrix - eigenvalue * identity)
    return int((lengths <= tolerance * torch.linalg.matrix_norm(matrix, 2)).sum())


def _told(eigenvalue: Tensor) -> str:
    real, imaginary = (round(part, 6) + 0.0 for part in (complex(eigenvalue).real, complex(eigenvalue).imag))
    return f"{real:g}" if imaginary == 0 else f"{real:g}{imaginary:+g}i"
