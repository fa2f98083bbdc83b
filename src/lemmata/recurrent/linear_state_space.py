r"""A linear recurrence with any matrix: its states one after another, and as the convolution that they are."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate

__all__ = ["convolved_states", "evolve", "response_kernel"]


def evolve(
    A: Float[Tensor, "state state"],
    B: Float[Tensor, "state inputs"],
    x: Float[Tensor, "*batch time inputs"],
    z0: Float[Tensor, "*batch state"] | None = None,
) -> Float[Tensor, "*batch steps state"]:
    r"""All states of a linear system, from the first to the one after the last input.

    $$ z_{t+1} = Az_t + Bx_t, \qquad t = 0, \dots, T-1 $$

    Shapes:
        A: (state, state), B: (state, inputs), x: (..., time, inputs), z0: (..., state), zero if it is not given
        returns: (..., time + 1, state), where entry t is $z_t$

    Claims: rnn.linear.state_space
    Differs: where a text writes $z_t = Az_{t-1} + Bx_t$, its $x_t$ is our $x_{t-1}$.

    >>> A, B = torch.tensor([[0.5]]), torch.tensor([[1.0]])
    >>> evolve(A, B, torch.tensor([[1.0], [0.0], [0.0]])).flatten()
    tensor([0.0000, 1.0000, 0.5000, 0.2500])
    """
    check_system(A, B, x)
    if z0 is not None and z0.shape != (*x.shape[:-2], len(A)):
        raise ValueError(f"z0 must have the shape {(*x.shape[:-2], len(A))}, got {tuple(z0.shape)}")
    states = [x.new_zeros(*x.shape[:-2], len(A)) if z0 is None else z0]
    for driven in (x @ B.mT).unbind(-2):
        states.append(states[-1] @ A.mT + driven)
    return torch.stack(states, dim=-2)


def response_kernel(
    A: Float[Tensor, "state state"], B: Float[Tensor, "state inputs"], steps: int
) -> Float[Tensor, "steps state inputs"]:
    r"""The states that a unit of each input leaves behind, step after step.

    $$ K_k = A^kB, \qquad k = 0, \dots, \text{steps} - 1 $$

    Shapes:
        returns: (steps, state, inputs)

    Claims: rnn.linear.state_space

    >>> response_kernel(torch.tensor([[0.5]]), torch.tensor([[1.0]]), 4).flatten()
    tensor([1.0000, 0.5000, 0.2500, 0.1250])
    """
    check_system(A, B)
    kernel = [B]
    for _ in range(validate.count("steps", steps) - 1):
        kernel.append(A @ kernel[-1])
    return torch.stack(kernel)


def convolved_states(
    A: Float[Tensor, "state state"], B: Float[Tensor, "state inputs"], x: Float[Tensor, "*batch time inputs"]
) -> Float[Tensor, "*batch steps state"]:
    r"""The states of `evolve` from zero, as a causal convolution of the inputs with the response.

    $$ z_t = \sum_{s<t} A^{t-1-s}Bx_s $$

    The sums are formed in the Fourier domain, with enough zeros that nothing wraps around: the work grows as
    $T\log T$, and no step waits for the one before.

    Shapes:
        as for `evolve`    returns: (..., time + 1, state), where entry t is $z_t$ and entry 0 is zero

    Claims: rnn.linear.state_space

    >>> convolved_states(torch.tensor([[0.5]]), torch.tensor([[1.0]]), torch.tensor([[1.0], [0.0]])).shape
    torch.Size([3, 1])
    """
    check_system(A, B, x)
    time = x.shape[-2]
    start = x.new_zeros(*x.shape[:-2], 1, len(A))
    if time == 0:
        return start
    length = 2 * time  # so that the last input's response does not wrap around
    kernel = torch.fft.rfft(response_kernel(A, B, time), n=length, dim=0)
    inputs = torch.fft.rfft(x, n=length, dim=-2)
    states = torch.fft.irfft(torch.einsum("fsi,...fi->...fs", kernel, inputs), n=length, dim=-2)
    return torch.cat([start, states[..., :time, :]], dim=-2)


def check_system(A: Tensor, B: Tensor, x: Tensor | None = None) -> None:
    """Shapes and values of a linear system, and of its inputs, of which there may be none in time."""
    validate.matrix("A", A, "state, state")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"A must be square, got shape {tuple(A.shape)}")
    validate.matrix("B", B, "state, inputs")
    if len(B) != len(A):
        raise ValueError(f"B must have a row for each of the {len(A)} states, got {len(B)}")
    if x is None:
        return
    if x.ndim < 2 or x.shape[-1] != B.shape[1]:
        raise ValueError(f"x must be a (..., time, {B.shape[1]}) tensor, got shape {tuple(x.shape)}")
    if x.numel():
        validate.floating("x", x)
