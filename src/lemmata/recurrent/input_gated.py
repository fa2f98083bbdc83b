r"""What minGRU and minLSTM share: a gate that sees only the input, so that the state evolves linearly."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.scan import linear_scan
from lemmata.recurrent.layer import RecurrentLayer, mask_outputs, state_at_end

__all__ = ["InputGatedLayer", "InputGates"]


class InputGates(NamedTuple):
    """What such a layer computes from an input: the fraction of the state kept, in (0, 1), and the candidate."""

    keep: Tensor
    candidate: Tensor


class InputGatedLayer(RecurrentLayer):
    r"""A state that moves towards a candidate; the fraction it keeps of itself depends on the input alone.

    $$ z_t = \sigma_t\odot z_{t-1} + (1-\sigma_t)\odot\tilde z_t, \qquad \tilde z_t = Vx_t $$

    A layer names its blocks (gates, and the candidate last), whose rows stand below each other in `input_weight` and
    `bias`, and defines `keep`. Since the gate does not see the state, all gates and candidates of a sequence come from
    one matrix product and the states from one linear scan.

    With `memory`, the gates' biases start so that the units keep their state for times spread evenly on a logarithmic
    scale from 1 to so many steps; without, for about two steps.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, hidden), state (batch, hidden)

    Claims: rnn.mingru
    """

    BLOCKS: tuple[str, ...] = ()

    def __init__(
        self,
        inputs: int,
        hidden: int,
        bias: bool = True,
        memory: int | float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, validate.count("hidden", hidden))
        if memory is not None:
            validate.number("memory", memory, above=1)
        if memory is not None and not bias:
            raise ValueError("memory is set in the biases: use bias=True")
        self.memory = memory
        rows = len(self.BLOCKS) * hidden
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input_weight = nn.Parameter(torch.empty(rows, inputs, **factory_kwargs))
        self.bias = nn.Parameter(torch.empty(rows, **factory_kwargs)) if validate.flag("bias", bias) else None
        self.reset_parameters()

    @property
    def hidden(self) -> int:
        """The number of values in the state."""
        return self.outputs

    def reset_parameters(self) -> None:
        """Uniform weights and biases of torch.nn.Linear; then the gates' biases, if a memory is wanted."""
        bound = 1 / math.sqrt(self.inputs)
        nn.init.uniform_(self.input_weight, -bound, bound)
        if self.bias is None:
            return
        nn.init.uniform_(self.bias, -bound, bound)
        if self.memory is not None:
            # A unit that keeps the fraction s of its state forgets in 1 / (1 - s) steps: s = (t - 1) / t.
            ends, double = (0, math.log10(self.memory)), {"dtype": torch.float64, "device": self.bias.device}
            steps = torch.logspace(*ends, self.outputs + 2, **double)[1:-1]  # (hidden,)
            with torch.no_grad():
                self.bias[: -self.outputs] = self.bias_for_fraction((steps - 1) / steps).to(self.bias)

    def keep(self, total: Tensor) -> Tensor:
        """The fraction of the state that is kept, from the linear maps of the input for all gates."""
        raise NotImplementedError(f"{type(self).__name__} must define keep(total)")

    def bias_for_fraction(self, fraction: Tensor) -> Tensor:
        """Biases of the gates under which units keep these fractions of their state at the input zero."""
        raise NotImplementedError(f"{type(self).__name__} must define bias_for_fraction(fraction)")

    def gates(self, x: Float[Tensor, "*batch inputs"]) -> InputGates:
        r"""The fractions $\sigma_t$ that are kept and the candidates $\tilde z_t$ at an input."""
        total = functional.linear(x, self.input_weight, self.bias)  # (..., blocks * hidden)
        total = total.to(self.input_weight.dtype)  # not autocast's: fractions near 1
        total, candidate = total.split([len(self.BLOCKS[1:]) * self.outputs, self.outputs], dim=-1)
        return InputGates(self.keep(total), candidate)  # both (..., hidden)

    def initial_state(self, batch: int) -> Tensor:
        return self.input_weight.new_zeros(batch, self.outputs)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        keep, candidate = self.gates(x)  # both (batch, hidden)
        state = keep * state + (1 - keep) * candidate
        return state, state

    def sequence(self, x: Tensor, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        keep, candidate = self.gates(x)  # both (batch, time, hidden)
        driven = torch.addcmul(candidate, keep, candidate, value=-1)  # (1 - keep) * candidate
        states = linear_scan(keep, driven, state)  # (batch, time, hidden)
        return mask_outputs(states, lengths), state_at_end(states, state, lengths)

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.outputs}"
