r"""The gated recurrent unit: reset after or before the matrix product, with an update gate that keeps or writes."""

from copy import deepcopy
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.gate import GatedLayer
from lemmata.recurrent.torch_weights import one_layer

__all__ = ["GRU", "GRUGates"]

RESETS, UPDATES = ("after", "before"), ("keep", "write")


class GRUGates(NamedTuple):
    """What a GRU computes from an input and its state: two gates in (0, 1) and a candidate in (-1, 1)."""

    reset: Tensor
    update: Tensor
    candidate: Tensor


@system("gru", title="GRU", kind="module", example="GRU(3, 5)(torch.randn(4, 7, 3))")
class GRU(GatedLayer):
    r"""Gated recurrent unit: the state moves by a convex combination towards a candidate.

    $$ z_t = \sigma_t \odot z_{t-1} + (1 - \sigma_t) \odot \tilde z_t, \qquad
       \sigma_t = \sigma(G[z_{t-1}, x_t]), \quad r_t = \sigma(H[z_{t-1}, x_t]) $$

    $$ \tilde z_t = \tanh(r_t \odot (V_z z_{t-1} + c) + V_x x_t) \ \text{(reset="after")}, \qquad
       \tilde z_t = \tanh(V[r_t \odot z_{t-1}, x_t]) \ \text{(reset="before")} $$

    $G$ is the update gate, $H$ the reset gate, $V = [V_z, V_x]$ the candidate, each with a bias. Two choices are made
    differently from text to text:

    - `reset`: "after" the matrix product (torch and cuDNN, and what "gru" means everywhere here; it needs one more bias
      $c$ and runs in torch's own kernel), or "before" it (the paper). With the same weights these are different
      functions, unless $V_z$ commutes with the gate (as a diagonal matrix does): there is no conversion, and `to_torch`
      refuses the second.
    - `update`: the gate $\sigma_t$ "keep"s the state (above, and in torch), or "write"s the candidate, with
      $\sigma_t$ and $1 - \sigma_t$ exchanged. The same weights give different functions; `with_update` converts by
      negating $G$ and its bias.

    Shapes:
        x: (batch, time, inputs)    state: (batch, hidden)
        input_weight: (3 hidden, inputs), recurrent_weight: (3 hidden, hidden), bias: (3 hidden,), in the blocks
            reset ($H$), update ($G$), candidate ($V$), which is torch's order; inner_bias ($c$): (hidden,)
        returns: all states (batch, time, hidden), and the last one

    Claims: rnn.gate, rnn.gru, rnn.gru.convention, rnn.gru.reset_placement, rnn.gru.param_count

    Source: Cho et al. 2014.  Differs: torch.nn.GRU has two biases for each block, of which those of the gates only
    ever occur as their sum (`from_torch` adds them), and puts an axis of layers before its state: where
    `_, h = gru(x)` gives torch's users the last layer as `h[-1]`, it is `h` itself here, and `h[-1]` the last example.
    On CUDA its kernel (cuDNN) can be differentiated once only; `by_steps` and `hoisted` have no such limit.

    >>> layer = GRU(3, 5)
    >>> outputs, state = layer(torch.randn(2, 7, 3))
    >>> outputs.shape, state.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 5]))
    >>> bool((outputs.abs() < 1).all())  # a convex combination of numbers between -1 and 1
    True
    """

    BLOCKS = ("reset", "update", "candidate")

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        reset: Literal["before", "after"] = "after",
        update: Literal["keep", "write"] = "keep",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, hidden, bias, device, dtype)
        self.reset, self.update = validate.one_of("reset", reset, RESETS), validate.one_of("update", update, UPDATES)
        inner = bias and reset == "after"
        self.inner_bias = nn.Parameter(torch.empty(hidden, device=device, dtype=dtype)) if inner else None
        self.reset_parameters()

    def initial_state(self, batch: int) -> Tensor:
        return self.recurrent_weight.new_zeros(batch, self.hidden)

    def gates(self, x: Tensor, state: Tensor) -> GRUGates:
        """The gates and the candidate at an input and the state before it."""
        return self._gate_values(self.project(x), state)

    def advance(self, projected: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        _, update, candidate = self._gate_values(projected, state)  # each (batch, hidden)
        keep = update if self.update == "keep" else 1 - update
        state = keep * state + (1 - keep) * candidate
        return state, state

    def _gate_values(self, projected: Tensor, state: Tensor) -> GRUGates:
        of_gates, of_candidate = self.recurrent_weight.split([2 * self.hidden, self.hidden])  # rows: 2 hidden, hidden
        to_gates, to_candidate = projected.split(
            [2 * self.hidden, self.hidden], dim=-1
        )  # (..., 2 hidden), (..., hidden)
        reset, update = torch.sigmoid(to_gates + state @ of_gates.T).chunk(2, dim=-1)  # each (..., hidden)
        if self.reset == "before":
            recalled = (reset * state) @ of_candidate.T
        else:
            recalled = reset * nn.functional.linear(state, of_candidate, self.inner_bias)
        return GRUGates(reset, update, torch.tanh(to_candidate + recalled))

    def kernel(self) -> str | None:
        return "gru" if self.reset == "after" else None

    def torch_weights(self) -> list[Tensor]:
        flip = _with_negated_update if self.update == "write" else lambda weight: weight
        zero = self.recurrent_weight.new_zeros(len(self.recurrent_weight))
        weights = [flip(self.input_weight), flip(self.recurrent_weight)]
        if self.bias is None or self.inner_bias is None:
            return [*weights, zero, zero]
        return [*weights, flip(self.bias), torch.cat([zero[self.hidden :], self.inner_bias])]

    def with_update(self, update: Literal["keep", "write"]) -> "GRU":
        r"""A copy that computes the same with that kind of update gate, because $\sigma(-a) = 1 - \sigma(a)$."""
        copied = deepcopy(self)
        if validate.one_of("update", update, UPDATES) != self.update:
            copied.update = update
            for parameter in (copied.input_weight, copied.recurrent_weight, copied.bias):
                if parameter is not None:
                    parameter.data = _with_negated_update(parameter.data)
        return copied

    @classmethod
    def from_torch(cls, module: nn.GRU, layer: int | None = None, reverse: bool | None = None) -> "GRU":
        """One layer and direction of a torch.nn.GRU, with copies of its weights: reset after the product, gate keeps.

        The two biases of the gates are added; those of the candidate stay apart as `bias` and `inner_bias`.
        `Stacked.from_torch(module)` takes all layers and both directions; of such a module it must be said which one is
        meant here. Sequences are (batch, time, inputs), whatever `batch_first` the module has.
        """
        if not isinstance(module, nn.GRU):
            raise TypeError(f"module must be a torch.nn.GRU, got {type(module).__name__}")
        weights = one_layer(module, layer, reverse)
        factory_kwargs: dict[str, Any] = {"device": weights[0].device, "dtype": weights[0].dtype}
        made = cls(weights[0].shape[1], module.hidden_size, reset="after", bias=module.bias, **factory_kwargs)
        given = {"input_weight": weights[0], "recurrent_weight": weights[1]}
        if module.bias:
            of_gates, inner = weights[3].split([2 * made.hidden, made.hidden])
            given |= {"bias": weights[2] + torch.cat([of_gates, torch.zeros_like(inner)]), "inner_bias": inner}
        made.load_state_dict(given)
        return made.train(module.training)

    def to_torch(self) -> nn.GRU:
        """A torch.nn.GRU (batch first) with copies of these weights; a gate that writes becomes one that keeps."""
        if self.reset == "before":
            raise ValueError("torch.nn.GRU resets after the matrix product: only GRU(reset='after') converts to it")
        made = nn.GRU(self.inputs, self.hidden, bias=self.bias is not None, batch_first=True).to(self.input_weight)
        made.load_state_dict(dict(zip(made.state_dict(), self.torch_weights(), strict=False)))  # two without a bias
        return made.train(self.training)

    def extra_repr(self) -> str:
        return super().extra_repr() + f", reset={self.reset!r}, update={self.update!r}"


def _with_negated_update(weight: Tensor) -> Tensor:
    """The same rows with those of the update gate negated."""
    reset, update, candidate = weight.chunk(3)
    return torch.cat([reset, -update, candidate])
