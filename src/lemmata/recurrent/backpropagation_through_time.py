r"""Backpropagation through time of Elman's network, written out; and the same gradients carried forwards."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.output_map import OutputMap

__all__ = ["TimeGradients", "backpropagate_through_time", "forward_sensitivities", "through_readout"]


@dataclass(frozen=True, eq=False)
class TimeGradients:
    r"""The gradients of a loss, and what each step contributes to those of the weights.

    `states` are the total derivatives $dL/dz_t$ through all later steps, `initial` is $dL/dz_0$.

    Shapes:
        states: (batch, time, hidden), initial: (batch, hidden), x: (batch, time, inputs),
        recurrent_weight: (time, hidden, hidden), input_weight: (time, hidden, inputs), bias: (time, hidden)

    Claims: rnn.bptt.weights, rnn.bptt.state
    """

    states: Float[Tensor, "batch time hidden"]
    initial: Float[Tensor, "batch hidden"]
    x: Float[Tensor, "batch time inputs"]
    recurrent_weight: Float[Tensor, "time hidden hidden"]
    input_weight: Float[Tensor, "time hidden inputs"]
    bias: Float[Tensor, "time hidden"]

    def weights(self) -> dict[str, Tensor]:
        """The gradient of each weight matrix and of the bias: what all steps contribute, added up."""
        return {name: getattr(self, name).sum(0) for name in ("recurrent_weight", "input_weight", "bias")}


@torch.no_grad()
def backpropagate_through_time(
    layer: Elman,
    x: Float[Tensor, "batch time inputs"],
    immediate: Float[Tensor, "batch time hidden"],
    state: Float[Tensor, "batch hidden"] | None = None,
) -> TimeGradients:
    r"""All gradients of a loss, from its immediate derivatives with respect to the states.

    $$ \frac{dL}{dz_t} = \frac{\partial L}{\partial z_t} + U^\top \dot\Phi_{t+1} \frac{dL}{dz_{t+1}}, \qquad
       \frac{dL}{dU} = \sum_t \dot\Phi_t \frac{dL}{dz_t}\, z_{t-1}^\top, \qquad
       \frac{dL}{dV} = \sum_t \dot\Phi_t \frac{dL}{dz_t}\, x_t^\top $$

    `immediate` holds $\partial L/\partial z_t$ with all other states fixed: what a readout at step t gives (see
    `through_readout`). In $dL/dU$ the first factor is total and the second, $\dot\Phi_t z_{t-1}^\top$, immediate.

    Shapes:
        x: (batch, time, inputs), immediate: (batch, time, hidden), state: (batch, hidden)

    Claims: rnn.bptt.weights, rnn.bptt.state
    Source: Werbos 1990.

    >>> layer, x = Elman(2, 3), torch.randn(1, 4, 2)
    >>> layer(x)[0].sum().backward()
    >>> found = backpropagate_through_time(layer, x, torch.ones(1, 4, 3)).weights()
    >>> torch.allclose(found["recurrent_weight"], layer.recurrent_weight.grad, atol=1e-6)
    True
    """
    before, slopes = _run_states(layer, x, state)
    if immediate.shape != slopes.shape:
        raise ValueError(f"immediate must have shape {tuple(slopes.shape)}, got {tuple(immediate.shape)}")
    carried, totals = torch.zeros_like(before[:, 0]), []
    for now, slope in zip(reversed(immediate.unbind(1)), reversed(slopes.unbind(1)), strict=True):
        total = now + carried  # (batch, hidden)
        totals.append(total)
        carried = (total * slope) @ layer.recurrent_weight
    states = torch.stack(totals[::-1], dim=1)  # (batch, time, hidden)
    delta = states * slopes  # (batch, time, hidden)
    return TimeGradients(
        states, carried, delta @ layer.input_weight,
        torch.einsum("bti,btj->tij", delta, before), torch.einsum("bti,btj->tij", delta, x), delta.sum(0),
    )  # fmt: skip


@torch.no_grad()
def forward_sensitivities(
    layer: Elman, x: Float[Tensor, "batch time inputs"], state: Float[Tensor, "batch hidden"] | None = None
) -> Float[Tensor, "batch time hidden hidden columns"]:
    r"""The total derivative of every state with respect to every weight, carried along with the states.

    $$ \frac{dz_t}{dU} = \dot\Phi_t \Big( U \frac{dz_{t-1}}{dU} + \frac{\partial^+ (Uz_{t-1})}{\partial U} \Big) $$

    Entry (k, i, j) is the derivative of unit k with respect to row i and column j of $[U, V, b]$. With them
    $dL/dU = \sum_t \frac{\partial L}{\partial z_t} \frac{dz_t}{dU}$: the first factor is immediate here, the second
    total. Nothing is carried back, so a stream can be learnt from (real-time recurrent learning), at the price of
    $m^3$ numbers.

    Shapes:
        x: (batch, time, inputs)    returns: (batch, time, hidden, hidden, hidden + inputs + 1)

    Claims: rnn.bptt.weights
    Source: Williams, Zipser 1989.

    >>> forward_sensitivities(Elman(2, 3), torch.randn(1, 4, 2)).shape
    torch.Size([1, 4, 3, 3, 6])
    """
    before, slopes = _run_states(layer, x, state)
    columns = functional.pad(torch.cat([before, x], dim=-1), (0, 1), value=1.0)  # (batch, time, hidden + inputs + 1)
    units = torch.eye(layer.hidden, dtype=x.dtype, device=x.device)
    direct = torch.einsum("ki,btj->btkij", units, columns)  # (batch, time, hidden, hidden, columns)
    total, all_totals = torch.zeros_like(direct[:, 0]), []
    for now, slope in zip(direct.unbind(1), slopes.unbind(1), strict=True):
        total = slope[:, :, None, None] * (now + torch.einsum("kl,blij->bkij", layer.recurrent_weight, total))
        all_totals.append(total)
    return torch.stack(all_totals, dim=1)


@torch.no_grad()
def through_readout(
    head: OutputMap, z: Float[Tensor, "batch time features"], delta: Float[Tensor, "batch time outputs"]
) -> Float[Tensor, "batch time features"]:
    r"""The derivative of a loss with respect to what a head reads, from that with respect to its outputs.

    $$ \frac{\partial L}{\partial z_j} = \sum_k \delta_k\, \dot\psi_k\, w_{kj}, \qquad
       \delta_k = \frac{\partial L}{\partial \hat y_k}, \quad \hat y = \psi(Wz + c) $$

    Shapes:
        z: (batch, time, features), delta: (batch, time, outputs)    returns: (batch, time, features)

    Claims: rnn.bptt.weights
    """
    slope = ACTIVATION_TABLE[head.activation].derivative(head.readout(z))
    return (delta * slope) @ head.readout.weight


def _run_states(layer: Elman, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """The states before every step, and the slopes of the activation at it."""
    if not isinstance(layer, Elman):
        raise TypeError(f"layer must be an Elman layer, got {type(layer).__name__}: use autograd for others")
    validate.floating("x", x)
    start = layer.initial_state(len(x)) if state is None else state
    outputs, _ = layer(x, start)
    before = torch.cat([start[:, None], outputs[:, :-1]], dim=1)
    totals = functional.linear(before, layer.recurrent_weight) + functional.linear(x, layer.input_weight, layer.bias)
    return before, ACTIVATION_TABLE[layer.activation].derivative(totals)
