r"""Gradients of recurrent layers from the states that they returned: backpropagation through time, written out.

All gates follow at once from the inputs and the states; only the gradients to the states are found step by step.
"""

import torch
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.fast.scan import linear_scan

__all__ = []  # for `sequence_kernels`


def kernel_gradients(
    kernel: str,
    grad: Tensor,
    grad_cell: Tensor,
    x: Tensor,
    hidden: Tensor,
    cell: Tensor | None,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    input_bias: Tensor,
    recurrent_bias: Tensor,
    outputs: Tensor,
) -> tuple[Tensor | None, ...]:
    r"""From the gradients to the outputs and the last cell of `run_kernel` to those of x, start and weights.

    $$ a_t = V x_t + b, \quad q_t = R h_{t-1} + c, \qquad
       \bar V = \sum_t \bar a_t x_t^\top, \quad \bar R = \sum_t \bar q_t h_{t-1}^\top, \quad
       \bar x_t = V^\top \bar a_t $$

    Shapes:
        grad, outputs: (batch, time, hidden), grad_cell: (batch, hidden)    the others and the result: as `run_kernel`'s
    """
    before = torch.cat([hidden[:, None], outputs[:, :-1]], 1)  # (batch, time, hidden)
    to_cell = None
    if kernel in ("rnn_tanh", "rnn_relu"):
        slope = 1 - outputs**2 if kernel == "rnn_tanh" else (outputs > 0).to(outputs)
        states, to_hidden = _adjoint_states(grad, slope[:, :, None], recurrent_weight)
        of_input = of_state = states * slope  # (batch, time, rows)
    else:
        from_input = functional.linear(x, input_weight, input_bias)  # (batch, time, rows)
        from_state = functional.linear(before, recurrent_weight, recurrent_bias)
        if kernel == "gru":
            of_input, of_state, to_hidden = _gru_gradients(grad, from_input, from_state, before, recurrent_weight)
        else:
            total = from_input + from_state
            of_input, to_hidden, to_cell = _lstm_gradients(grad, grad_cell, total, cell, recurrent_weight)
            of_state = of_input
    rows_input, rows_state = of_input.flatten(0, 1), of_state.flatten(0, 1)  # (batch * time, rows)
    to_weights = rows_input.mT @ x.flatten(0, 1), rows_state.mT @ before.flatten(0, 1)
    return of_input @ input_weight, to_hidden, to_cell, *to_weights, rows_input.sum(0), rows_state.sum(0)


def _gru_gradients(
    grad: Tensor, from_input: Tensor, from_state: Tensor, before: Tensor, recurrent_weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients to both linear maps (batch, time, 3 hidden), of the input and of the state, and to the first state."""
    recalled = from_state.chunk(3, -1)[2]  # (batch, time, hidden)
    reset, update = torch.sigmoid(from_input + from_state).chunk(3, -1)[:2]
    candidate = torch.tanh(from_input.chunk(3, -1)[2] + reset * recalled)
    inner = (1 - update) * (1 - candidate**2)  # of the candidate's argument
    gates = inner * recalled * reset * (1 - reset), (before - candidate) * update * (1 - update)
    of_state = torch.stack([*gates, inner * reset], 2)  # (batch, time, 3, hidden)
    of_input = torch.stack([*gates, inner], 2)
    states, first = _adjoint_states(grad, of_state, recurrent_weight, update)
    return (of_input * states[:, :, None]).flatten(2), (of_state * states[:, :, None]).flatten(2), first


def _lstm_gradients(
    grad: Tensor, grad_cell: Tensor, total: Tensor, cell: Tensor | None, recurrent_weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients to the linear map (batch, time, 4 hidden), to the first hidden state and to the first cell."""
    write, keep, candidate, output = total.chunk(4, -1)  # each (batch, time, hidden)
    write, keep, output = torch.sigmoid(write), torch.sigmoid(keep), torch.sigmoid(output)
    candidate = torch.tanh(candidate)
    cells = linear_scan(keep, write * candidate, cell)
    before = torch.cat([torch.zeros_like(cells[:, :1]) if cell is None else cell[:, None], cells[:, :-1]], 1)
    bent = torch.tanh(cells)
    of_cell = candidate * write * (1 - write), before * keep * (1 - keep), write * (1 - candidate**2)
    factors = torch.stack([*of_cell, bent * output * (1 - output)], 2)  # (batch, time, 4, hidden)
    shown = output * (1 - bent**2)
    states, first, to_cells, first_cell = _adjoint_states(grad, factors, recurrent_weight, keep, grad_cell, shown)
    return (factors * torch.stack([to_cells, to_cells, to_cells, states], 2)).flatten(2), first, first_cell


def _adjoint_states(grad: Tensor, factors: Tensor, weight: Tensor, *others: Tensor) -> list[Tensor]:
    return torch.ops.lemmata.adjoint_states(grad, factors, weight, *others, *[None] * (3 - len(others)))


# --- The sequential part, an operator of its own: a compiler would unroll it ---

_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(
    "adjoint_states(Tensor grad, Tensor factors, Tensor recurrent_weight, Tensor? keep, Tensor? grad_cell,"
    " Tensor? shown) -> Tensor[]"
)


def _by_steps(
    grad: Tensor,
    factors: Tensor,
    recurrent_weight: Tensor,
    keep: Tensor | None,
    grad_cell: Tensor | None,
    shown: Tensor | None,
) -> list[Tensor]:
    r"""Gradients to the hidden states (and cells) of all steps, and to the first.

    $$ \bar h_t = g_t + k_{t+1} \odot \bar h_{t+1} + R^\top \bar a_{t+1}, \qquad \bar a_t = f_t \odot \bar h_t $$

    With cells, $\bar h_t = g_t + R^\top \bar a_{t+1}$ and $\bar c_t = k_{t+1} \odot \bar c_{t+1} +
    s_t \odot \bar h_t$, and $\bar a_t$ is $f_t$ times $\bar c_t$ in all blocks but the last.

    Shapes:
        grad $g$, keep $k$, shown $s$: (batch, time, hidden)    grad_cell: (batch, hidden), to the last cell
        factors $f$: (batch, time, blocks, hidden)    recurrent_weight $R$: (blocks * hidden, hidden)
    """
    _check_adjoint(grad, factors, recurrent_weight, keep, grad_cell, shown)
    blocks, back, cell = factors.shape[2], torch.zeros_like(grad[:, 0]), grad_cell
    states, cells = grad.new_empty(grad.shape), grad.new_empty(grad.shape if grad_cell is not None else 0)
    for t in reversed(range(grad.shape[1])):
        now = grad[:, t] + back  # (batch, hidden)
        states[:, t] = now
        if cell is None or keep is None or shown is None:
            total = factors[:, t] * now[:, None]  # (batch, blocks, hidden)
            back = total.flatten(1) @ recurrent_weight
            back = back if keep is None else back + keep[:, t] * now
        else:
            cell = cell + shown[:, t] * now
            cells[:, t] = cell
            total = factors[:, t] * torch.stack([*[cell] * (blocks - 1), now], 1)  # (batch, blocks, hidden)
            back, cell = total.flatten(1) @ recurrent_weight, keep[:, t] * cell
    return [states, back] if cell is None else [states, back, cells, cell]


def _check_adjoint(grad: Tensor, factors: Tensor, recurrent_weight: Tensor, *others: Tensor | None) -> None:
    """Refuse what does not fit: torch would repeat a short tensor in silence."""
    for name, value in (("grad", grad), ("factors", factors), ("recurrent_weight", recurrent_weight)):
        validate.tensor(name, value)
    if grad.ndim != 3 or 0 in grad.shape or not grad.is_floating_point() or grad.layout is not torch.strided:
        told = f"{grad.dtype} {grad.layout} of shape {tuple(grad.shape)}"
        raise ValueError(f"grad must be dense floating point (batch, time, hidden), at least one of each, got {told}")
    if factors.ndim != 4 or not factors.shape[2]:
        raise ValueError(f"factors must be (batch, time, blocks, hidden), got shape {tuple(factors.shape)}")
    (batch, time, size), blocks = grad.shape, factors.shape[2]
    keep, grad_cell, shown = others
    if grad_cell is not None and (keep is None or shown is None):
        raise ValueError("keep and shown must be given where grad_cell is")
    check_alike(
        "grad", grad,
        ("factors", factors, (batch, time, blocks, size)),
        ("recurrent_weight", recurrent_weight, (blocks * size, size)),
        ("keep", keep, grad.shape), ("grad_cell", grad_cell, (batch, size)), ("shown", shown, grad.shape),
    )  # fmt: skip


def check_alike(like: str, given: Tensor, *others: tuple[str, Tensor | None, tuple[int, ...]]) -> None:
    """Other tensors have their shapes, and the dtype, device and density of the first."""
    for name, value, shape in others:
        if value is None:
            continue
        if value.shape != shape:
            raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(value.shape)}")
        if (value.dtype, value.device, value.layout) != (given.dtype, given.device, torch.strided):
            told = f"{value.dtype} {value.layout} on {value.device}"
            raise TypeError(f"{name} must be dense {given.dtype} on {given.device} as {like} is, got {told}")


def _by_steps_like(
    grad: Tensor,
    factors: Tensor,
    recurrent_weight: Tensor,
    keep: Tensor | None,
    grad_cell: Tensor | None,
    shown: Tensor | None,
) -> list[Tensor]:
    state = grad.shape[0], grad.shape[2]
    return [grad.new_empty(shape) for shape in (grad.shape, state) * (1 if grad_cell is None else 2)]


_library.impl("adjoint_states", _by_steps, "CompositeExplicitAutograd")
torch.library.register_fake("lemmata::adjoint_states", _by_steps_like, lib=_library)
