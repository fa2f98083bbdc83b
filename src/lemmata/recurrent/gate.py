r"""What the layers with gated memory share: one matrix product for all gates, hoisted out of the loop or fused."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.fast.sequence_kernels import run_kernel
from lemmata.recurrent.layer import RecurrentLayer, State, mask_outputs, state_at_end, transformed

__all__ = ["GatedLayer"]


class GatedLayer(RecurrentLayer):
    r"""A recurrent layer whose memory is multiplied by gates between 0 and 1 at every step.

    $$ z \leftarrow \sigma \odot z, \qquad \sigma = \mathrm{sigmoid}(W[z_{t-1}, x_t] + b) \in (0,1)^m $$

    A gate near 0 forgets a coordinate, near 1 keeps it, and a gradient passes through it by the same factor.

    The matrices of all blocks (gates and candidate) stand below each other: `input_weight` multiplies $x_t$,
    `recurrent_weight` the state that feeds the gates, and there is one `bias`. A layer names its blocks and defines
    `advance`, one step from an input that is already multiplied; a whole sequence is then multiplied at once. Where
    torch has a kernel for exactly this cell, the layer names it in `kernel`.

    Claims: rnn.gate, rnn.lstm, rnn.gru
    Differs: compiled, a kernel is one operator for sequences of all lengths (see `run_kernel`); without a kernel the
        loop is unrolled, and each length is compiled on its own. Transforms of `torch.func` run the loop, `hoisted`.
    """

    BLOCKS: tuple[str, ...] = ()

    def __init__(
        self,
        inputs: int,
        hidden: int,
        bias: bool,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, validate.count("hidden", hidden))
        self.hidden = hidden
        rows = len(self.BLOCKS) * hidden
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input_weight = nn.Parameter(torch.empty(rows, inputs, **factory_kwargs))
        self.recurrent_weight = nn.Parameter(torch.empty(rows, hidden, **factory_kwargs))
        self.bias = nn.Parameter(torch.empty(rows, **factory_kwargs)) if validate.flag("bias", bias) else None

    def reset_parameters(self) -> None:
        r"""Draw every parameter from $\mathrm{Unif}[-1/\sqrt m, 1/\sqrt m]$, as torch does."""
        bound = 1 / math.sqrt(self.hidden)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def rows(self, block: str) -> slice:
        """Where a block stands in `input_weight`, `recurrent_weight` and `bias`."""
        index = self.BLOCKS.index(validate.one_of("block", block, self.BLOCKS))
        return slice(index * self.hidden, (index + 1) * self.hidden)

    def set_bias(self, block: str, value: int | float) -> None:
        """Fill the bias of a block: a gate that should start open or shut gets a large or a very negative one."""
        rows = self.rows(block)
        if self.bias is None:
            raise ValueError("the layer has no bias to set: build it with bias=True")
        nn.init.constant_(self.bias[rows], validate.finite_number("value", value))

    def project(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch rows"]:
        """The part of every block that does not depend on the state."""
        return nn.functional.linear(x, self.input_weight, self.bias)

    def advance(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        """One step from a projected input."""
        raise NotImplementedError(f"{type(self).__name__} must define advance(projected, state)")

    def kernel(self) -> str | None:
        """The name of torch's own function for a whole sequence of this cell, or None where there is none."""
        return None

    def torch_weights(self) -> list[Tensor]:
        """The weights as torch's kernel and module take them: for input and for state, and their two biases."""
        raise NotImplementedError(f"{type(self).__name__} must define torch_weights() if it has a kernel")

    def held(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Inputs and torch's weights under which whatever is not among the outputs rests after each sequence's end."""
        return x, self.torch_weights()

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self.advance(self.project(x), state)

    def sequence(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        state = tuple(state) if isinstance(state, list) else state
        if not x.numel():  # without a sequence or without a step there is nothing to gain
            return self.by_steps(x, state, lengths)
        kernel = self.kernel()
        if kernel is None or transformed():
            return self.hoisted(x, state, lengths)
        x, weights = (x, self.torch_weights()) if lengths is None else self.held(x, lengths)
        return _run_fused(kernel, weights, x, state, lengths)

    def hoisted(self, x: Tensor, state: State, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """Run a whole sequence of at least one step in a loop, its inputs multiplied beforehand in one product."""
        outputs, states = [], [state]
        for projected in self.project(x).unbind(dim=1):  # (batch, rows) of (batch, time, rows)
            output, after = self.advance(projected, states[-1])  # (batch, hidden), and a state
            outputs.append(output)
            states.append(after)
        if lengths is not None:
            states = [_states_at_end(states, lengths)]
        return mask_outputs(torch.stack(outputs, dim=1), lengths), states[-1]  # (batch, time, hidden)

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.hidden}" + (", bias=False" if self.bias is None else "")


def _states_at_end(states: list[State], lengths: Tensor) -> State:
    """Of all states, the first of which is the start, each sequence's at its own end."""
    if isinstance(states[0], tuple):
        return tuple(_states_at_end(list(part), lengths) for part in zip(*states, strict=True))
    every = torch.stack(states)  # (time + 1, batch, hidden)
    return every[lengths, torch.arange(lengths.shape[0], device=lengths.device)]  # (batch, hidden)


def _run_fused(
    kernel: str, weights: list[Tensor], x: Tensor, state: State, lengths: Tensor | None
) -> tuple[Tensor, State]:
    """A whole batch through one of torch's kernels, every sequence up to the last step."""
    start = state if isinstance(state, tuple) else (state,)  # each (batch, hidden)
    outputs, ends = run_kernel(kernel, x, start, weights)  # (batch, time, hidden), and each (batch, hidden)
    if lengths is not None:
        # Some kernels shut a gate to 1e-38 only, which nothing but an exact zero can tell from 0.
        cells = [torch.where(lengths[:, None] > 0, *pair) for pair in zip(ends[1:], start[1:], strict=True)]
        ends = (state_at_end(outputs, start[0], lengths), *cells)
    return mask_outputs(outputs, lengths), ends if isinstance(state, tuple) else ends[0]
