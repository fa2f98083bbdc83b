r"""How far back the gradient of a task reaches, measured, beside what theory allows."""

import copy
import math

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.figure import Figure, Line
from lemmata.recurrent.gradient_flow import known_step_bound
from lemmata.recurrent.input_gated import InputGatedLayer
from lemmata.recurrent.layer import RecurrentLayer
from lemmata.recurrent.lru import LRU
from lemmata.recurrent.sequence_reader import SequenceReader

__all__ = ["gradient_reach"]

SEEN = (1e-16, 1e4)  # sizes that the figure shows: below, nothing is left in double precision


def gradient_reach(system: SequenceReader, batch: Examples) -> Figure:
    r"""How much the loss depends on the state of the lowest layer k steps before the end, relative to the last state.

    $$ \|\partial L/\partial z_{T-k}\| \,/\, \|\partial L/\partial z_T\| $$

    In double precision, with what theory says where it says something of a single layer: no more than
    $(\alpha\,\sigma_1(U))^k$ for Elman's network, $\max_i|\lambda_i|^k$ for the LRU, and the product of the largest
    gates of the last k steps for minGRU and minLSTM. A state counts with all that it leads to: the cell of an LSTM also
    with the output that it makes in its own step, and every state with what layers above read from it.
    """
    system = copy.deepcopy(system).to("cpu", torch.float64).eval()
    x = batch.x.cpu().double() if batch.x.is_floating_point() else batch.x.cpu()
    norms = _gradient_norms(system, x, batch.y.cpu())
    lags = torch.arange(len(norms))
    shown = lags[:: max(1, len(lags) // 200)]
    relative = norms / norms[0]
    typical = relative.median(1).values
    marks = [Line(shown.tolist(), _within_range(typical[shown]), "measured, median over sequences")]
    lowest = system.layers[0]
    bound, label = _theory_bound(lowest.layer, lowest.before(system.embed(x)).detach(), len(norms))
    note = "No bound is known for this layer."
    if bound is not None and len(system.layers) == 1 and _bound_exceeded(relative, bound):
        note = "This layer exceeds the bound of its kind: it is not drawn."
    elif bound is not None:
        above = "The bound is that of the lowest layer alone; gradients also pass above it."
        note = above if len(system.layers) > 1 else ""
        marks.append(Line(shown.tolist(), _within_range(bound[shown]), label))
    title = "How far back the gradient reaches"
    return Figure(title, "steps before the end", "gradient, relative to the last", marks, y_log=True, note=note)


@torch.enable_grad()
def _gradient_norms(system: SequenceReader, x: Tensor, y: Tensor) -> Tensor:
    """Norms (lags, batch) of the gradients of each sequence's loss with respect to its states, the last state first."""
    answers, states = system.with_states(x)
    if y.is_floating_point():
        total = (answers[:, 0] - y).square().sum()
    else:
        total = functional.cross_entropy(answers, y, reduction="sum")
    parts = [part for state in states for part in (state if isinstance(state, tuple) else (state,))]
    found = torch.autograd.grad(total, parts)
    norms = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in found])
    return norms.unflatten(0, (len(states), -1)).norm(dim=1).flip(0)


def _theory_bound(layer: RecurrentLayer, x: Tensor, lags: int) -> tuple[Tensor | None, str]:
    """What the gradient cannot exceed at each lag, relative to the last state, but for rounding; and its name."""
    steps = torch.arange(lags, dtype=torch.float64)
    factor = known_step_bound(layer)
    if factor is not None:
        return factor**steps, f"bound (α σ₁)ᵏ, α σ₁ = {factor:.3g}"
    if isinstance(layer, LRU):
        largest = layer.eigenvalues.detach().abs().max()
        return largest**steps, f"bound max |λ|ᵏ, max |λ| = {largest:.4g}"
    if isinstance(layer, InputGatedLayer):
        keep = layer.gates(x)[0].detach().amax((0, 2))
        return torch.cat([keep.new_ones(1), keep.flip(0)]).cumprod(0), "bound: product of the largest gates"
    return None, ""


def _bound_exceeded(measured: Tensor, bound: Tensor) -> bool:
    """Whether a subclass, a hook or a patch made more of a layer than theory knows: not by rounding, and where seen."""
    rounding = 1e-9  # thousands of steps of thousands of terms
    return bool((measured > bound[:, None] * (1 + rounding))[bound >= SEEN[0]].any())


def _within_range(values: Tensor) -> list[float]:
    return torch.where((values >= SEEN[0]) & (values <= SEEN[1]), values, math.nan).tolist()
