r"""What minGRU and minLSTM share: a gate that sees only the input, so that the state evolves linearly."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.scan import linear_scan
from lemmata.recurrent.layer import RecurrentLayer, mask_outputs, state_at_end

__all__ = ["InputGatedLayer"]


class InputGatedLayer(RecurrentLayer):
    r"""A state that moves towards a candidate; the share it keeps of itself depends on the input alone.

    $$ z_t = \sigma_t\odot z_{t-1} + (1-\sigma_t)\odot\tilde z_t, \qquad \tilde z_t = Vx_t $$

    A layer defines `gates` (how many linear maps of the input its gate needs) and `keep`. Since the gate does not see
    the state, all gates and candidates of a sequence come from one matrix product and the states from one linear scan.
    The last `hidden` rows of `weight` and `bias` are the candidate's, those before are the gates'.

    With `memory`, the gates' biases start so that the units keep their state for times spread evenly on a logarithmic
    scale from 1 to so many steps; without, for about two steps.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, hidden), state (batch, hidden)

    Claims: rnn.mingru
    """

    gates: int

    def __init__(self, inputs: int, hidden: int, bias: bool = True, memory: int | float | None = None) -> None:
        super().__init__(inputs, validate.count("hidden", hidden))
        if memory is not None and validate.finite_number("memory", memory) <= 1:
            raise ValueError(f"memory must be > 1 step, got {memory}")
        if memory is not None and not bias:
            raise ValueError("memory is set in the biases: use bias=True")
        self.memory = memory
        rows = (self.gates + 1) * hidden
        self.weight = nn.Parameter(torch.empty(rows, inputs))
        self.bias = nn.Parameter(torch.empty(rows)) if validate.flag("bias", bias) else None
        self.reset_parameters()

    @property
    def hidden(self) -> int:
        """The number of values in the state."""
        return self.outputs

    def reset_parameters(self) -> None:
        """Uniform weights and biases of torch.nn.Linear; then the gates' biases, if a memory is wanted."""
        bound = 1 / math.sqrt(self.inputs)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is None:
            return
        nn.init.uniform_(self.bias, -bound, bound)
        if self.memory is not None:
            # A unit that keeps the share s of its state forgets in 1 / (1 - s) steps: s = (t - 1) / t.
            steps = torch.logspace(0, math.log10(self.memory), self.outputs + 2, dtype=torch.float64)[1:-1]
            with torch.no_grad():
                self.bias[: -self.outputs] = self.bias_for_share((steps - 1) / steps).to(self.bias)

    def keep(self, gates: Tensor) -> Tensor:
        """The share of the state that is kept, from the linear maps of the input (..., gates * hidden)."""
        raise NotImplementedError(f"{type(self).__name__} must define keep(gates)")

    def bias_for_share(self, share: Tensor) -> Tensor:
        """Biases (gates * hidden,) under which units keep these shares of their state at the input zero."""
        raise NotImplementedError(f"{type(self).__name__} must define bias_for_share(share)")

    def keep_and_candidate(self, x: Float[Tensor, "*batch inputs"]) -> tuple[Tensor, Tensor]:
        r"""The shares $\sigma_t$ and the candidates $\tilde z_t$, both (..., hidden)."""
        mapped = functional.linear(x, self.weight, self.bias).to(self.weight.dtype)  # not autocast's: shares near 1
        gates, candidate = mapped.split([self.gates * self.outputs, self.outputs], dim=-1)
        return self.keep(gates), candidate

    def initial_state(self, batch: int) -> Tensor:
        return self.weight.new_zeros(batch, self.outputs)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        keep, candidate = self.keep_and_candidate(x)
        state = keep * state + (1 - keep) * candidate
        return state, state

    def sequence(self, x: Tensor, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        keep, candidate = self.keep_and_candidate(x)
        driven = torch.addcmul(candidate, keep, candidate, value=-1)
        states = linear_scan(keep, driven, state)
        return mask_outputs(states, lengths), state_at_end(states, state, lengths)

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.outputs}"
