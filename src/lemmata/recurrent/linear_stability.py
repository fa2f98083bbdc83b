r"""Whether a linear recurrence forgets, remembers for ever, or explodes, and why."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.recurrent.linear_state_space import check_system
from lemmata.recurrent.unit_circle import Place, computed_eigenvalues, place_of, place_of_eigenvalues, squared_modulus

__all__ = ["Stability", "is_stable", "steady_state"]


@dataclass(frozen=True)
class Stability:
    """What becomes of the states of a linear recurrence; true if it is proved that bounded inputs keep them bounded.

    `powers_bounded`: states stay bounded without input. `states_bounded`: also with any bounded input, and the first
    state is forgotten. Both are proved, whichever they say, and None where no proof was found. `reason` says in words
    what decided. `radius` is the largest modulus of an eigenvalue as computed, which proves nothing: rounding moves the
    eigenvalues of a Jordan block of n rows by the n-th root of its own size.

    Claims: rnn.linear.stability
    """

    states_bounded: bool | None
    powers_bounded: bool | None
    radius: float
    reason: str

    def __bool__(self) -> bool:
        return self.states_bounded is True


def is_stable(system: Tensor) -> Stability:
    r"""The stability of $z_{t+1} = Az_t + Bx_t$, from the matrix or, for a diagonal system, from its eigenvalues.

    $$ \max_j|\lambda_j| < 1: \text{ bounded states}, \qquad \max_j|\lambda_j| \le 1
       \text{ and no Jordan block on the circle}: \text{ bounded powers} $$

    The verdict is that of the numbers as they are stored, however near the circle. Of a matrix it rests on a quadratic
    form that every step makes smaller, checked in double precision with all rounding; where that does not decide, on
    its characteristic polynomial in integers, for up to about 16 states; beyond, near the circle or with nearly
    dependent eigenvectors, it may be undecided. Moduli of given eigenvalues are compared with 1 exactly: $0.6 + 0.8i$,
    once stored in binary, lies $2 \cdot 10^{-17}$ outside.

    Shapes:
        system: a matrix (state, state), or real or complex eigenvalues (state,)

    Claims: rnn.linear.stability

    >>> bool(is_stable(torch.tensor([0.9, -0.5])))
    True
    >>> is_stable(torch.tensor([[1.0, 1e-8], [0.0, 1.0]])).reason
    'a Jordan block at eigenvalue 1 on the unit circle: powers grow like a power of the time'
    >>> is_stable(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).reason
    'eigenvalue 0+1i on the unit circle: powers stay bounded, but an input in step with it makes the state grow'
    """
    if not isinstance(system, Tensor) or system.ndim not in (1, 2) or system.numel() == 0:
        told = f"shape {tuple(system.shape)}" if isinstance(system, Tensor) else type(system).__name__
        raise ValueError(f"system must be a matrix (state, state) or a vector of eigenvalues, got {told}")
    validate.floating("system", torch.view_as_real(system) if system.is_complex() else system)
    system = system.detach().to(torch.complex128 if system.is_complex() else torch.float64)
    if system.ndim == 1:
        place, eigenvalue = place_of_eigenvalues(system)
        radius = math.hypot(eigenvalue.real, eigenvalue.imag)
    elif system.shape[0] != system.shape[1]:
        raise ValueError(f"system must be a square matrix, got shape {tuple(system.shape)}")
    else:
        place, eigenvalue = place_of(system)
        values = computed_eigenvalues(system)
        radius = float(values.abs().max())
        eigenvalue = complex(values[values.abs().argmax()]) if eigenvalue is None else eigenvalue
    return _stability_verdict(place, eigenvalue, radius)


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


def _stability_verdict(place: Place | None, eigenvalue: complex, radius: float) -> Stability:
    at = f"eigenvalue {_eigenvalue_message(eigenvalue)}"
    if place == "inside":
        why = f"{at} as the largest, inside the unit circle{_circle_distance(eigenvalue, -1)}: states are forgotten"
        return Stability(True, True, radius, why)
    if place == "outside":
        why = f"{at} outside the unit circle{_circle_distance(eigenvalue, 1)}: powers grow exponentially"
        return Stability(False, False, radius, why)
    if place == "block":
        why = f"a Jordan block at {at} on the unit circle: powers grow like a power of the time"
        return Stability(False, False, radius, why)
    if place == "circle":
        why = f"{at} on the unit circle: powers stay bounded, but an input in step with it makes the state grow"
        return Stability(False, True, radius, why)
    why = f"{at} as the largest, on a side of the unit circle that double precision cannot prove: undecided"
    return Stability(None, None, radius, why)


def _circle_distance(eigenvalue: complex, side: int) -> str:
    """How far from the circle, where the digits of an eigenvalue do not show it; `side` is 1 outside and -1 inside."""
    square = squared_modulus(eigenvalue) - 1
    if abs(square) > 1e-5:
        return ""
    beyond = side * float(square) / (1 + math.sqrt(1 + square))  # the modulus less one, without cancellation
    return f" by {beyond:.1g}" if beyond > 0 else " by less than the rounding of eigenvalues shows"


def _eigenvalue_message(eigenvalue: complex) -> str:
    real, imaginary = (round(part, 6) + 0.0 for part in (eigenvalue.real, eigenvalue.imag))
    return f"{real:g}" if imaginary == 0 else f"{real:g}{imaginary:+g}i"
