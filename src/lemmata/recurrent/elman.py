r"""Elman's network: the state is an activation of a linear map of the state before and of the input."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.sequence_kernels import run_kernel
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.recurrent.layer import RecurrentLayer, mask_outputs, state_at_end, transformed
from lemmata.recurrent.torch_weights import one_layer

__all__ = ["Elman"]

FUSED = {"tanh": "rnn_tanh", "relu": "rnn_relu"}  # torch runs a whole sequence of these in one call


@system("elman", title="Elman network", kind="module", example="Elman(inputs=3, hidden=5)(torch.randn(4, 7, 3))")
class Elman(RecurrentLayer):
    r"""The simplest recurrent layer: its output is its state.

    $$ z_t = \phi(U z_{t-1} + V x_t + b), \qquad z_0 = 0 $$

    `recurrent_weight` is $U$ (hidden, hidden), `input_weight` is $V$ (hidden, inputs), `bias` is $b$ or None; $\phi$ is
    any entry of the table of activations. A readout $\psi(W z_t)$ is a head of its own: `Tagger`, `Autoregressor`,
    `SequenceClassifier`. All weights are initially uniform on $\pm 1/\sqrt m$ for $m$ hidden units, as torch draws
    them.

    Shapes:
        x: (batch, time, inputs), state: (batch, hidden)    returns: outputs (batch, time, hidden), and the last state

    Claims: rnn.elman, rnn.evolution
    Source: Elman 1990.  Differs: one bias where torch.nn.RNN adds two, and no axis of layers before the state: where
    `_, h = rnn(x)` gives torch's users the last layer as `h[-1]`, it is `h` itself here, and `h[-1]` the last example.
    Compiled, other activations than tanh and relu are a loop that is unrolled, and each length is compiled on its own.

    >>> layer = Elman(inputs=3, hidden=5, activation="relu")
    >>> outputs, state = layer(torch.randn(2, 7, 3))
    >>> outputs.shape, torch.equal(outputs[:, -1], state)
    (torch.Size([2, 7, 5]), True)
    """

    bias: Tensor | None

    def __init__(
        self,
        inputs: int,
        hidden: int,
        activation: str = "tanh",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, validate.count("hidden", hidden))
        self.activation = activation_named(activation).name
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.recurrent_weight = nn.Parameter(torch.empty(hidden, hidden, **factory_kwargs))
        self.input_weight = nn.Parameter(torch.empty(hidden, inputs, **factory_kwargs))
        added = nn.Parameter(torch.empty(hidden, **factory_kwargs)) if validate.flag("bias", bias) else None
        self.register_parameter("bias", added)
        self.reset_parameters()

    @property
    def hidden(self) -> int:
        """The number of hidden units."""
        return self.outputs

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        bound = 1 / math.sqrt(self.hidden)
        for values in self.parameters():
            nn.init.uniform_(values, -bound, bound)

    def initial_state(self, batch: int) -> Float[Tensor, "batch hidden"]:
        return self.recurrent_weight.new_zeros(batch, self.hidden)

    def step(
        self, x: Float[Tensor, "batch inputs"], state: Float[Tensor, "batch hidden"]
    ) -> tuple[Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"]]:
        from_state = functional.linear(state, self.recurrent_weight)  # (batch, hidden)
        from_input = functional.linear(x, self.input_weight, self.bias)  # (batch, hidden)
        state = ACTIVATION_TABLE[self.activation](from_state + from_input)
        return state, state

    def sequence(self, x: Tensor, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        if x.shape[1] == 0:
            return x.new_empty(x.shape[0], 0, self.hidden), state
        run = self._looped_states if transformed() or self.activation not in FUSED else self._fused_states
        states = run(x, state)  # (batch, time, hidden)
        return mask_outputs(states, lengths), state_at_end(states, state, lengths)

    def _fused_states(self, x: Tensor, state: Tensor) -> Tensor:
        none = self.recurrent_weight.new_zeros(self.hidden)
        bias = none if self.bias is None else self.bias
        weights = [self.input_weight, self.recurrent_weight, bias, none]
        return run_kernel(FUSED[self.activation], x, (state,), weights)[0]

    def _looped_states(self, x: Tensor, state: Tensor) -> Tensor:
        """The part of the input, which needs no state, is one product for all steps."""
        phi, states = ACTIVATION_TABLE[self.activation], []
        from_inputs = functional.linear(x, self.input_weight, self.bias)  # (batch, time, hidden)
        for from_input in from_inputs.unbind(1):  # (batch, hidden)
            state = phi(torch.addmm(from_input, state, self.recurrent_weight.T))
            states.append(state)
        return torch.stack(states, dim=1)  # (batch, time, hidden)

    @classmethod
    def from_torch(cls, module: nn.RNN, layer: int | None = None, reverse: bool | None = None) -> "Elman":
        """One layer and direction of torch's module, with copies of its weights: the two biases are added up.

        `Stacked.from_torch(module)` takes all layers and both directions; of such a module it must be said which one is
        meant here. Sequences are (batch, time, inputs), whatever `batch_first` the module has.
        """
        if type(module) is not nn.RNN:
            raise TypeError(f"module must be a torch.nn.RNN, got {type(module).__name__}")
        input_weight, recurrent_weight, *biases = one_layer(module, layer, reverse)
        sizes, kind = (input_weight.shape[1], module.hidden_size), module.nonlinearity
        made = cls(*sizes, kind, module.bias, device=input_weight.device, dtype=input_weight.dtype)
        weights = {"recurrent_weight": recurrent_weight, "input_weight": input_weight}
        if module.bias:
            weights["bias"] = biases[0] + biases[1]
        made.load_state_dict(weights)
        return made.train(module.training)

    def to_torch(self) -> nn.RNN:
        """Torch's own module, batch first, with copies of the weights: its second bias is zero."""
        if self.activation not in FUSED:
            raise ValueError(f"torch.nn.RNN has no {self.activation}: only tanh and relu")
        made = nn.RNN(self.inputs, self.hidden, nonlinearity=self.activation, bias=self.bias is not None)
        made = made.to(self.recurrent_weight)
        made.batch_first = True
        weights = {"weight_hh_l0": self.recurrent_weight, "weight_ih_l0": self.input_weight}
        if self.bias is not None:
            weights |= {"bias_ih_l0": self.bias, "bias_hh_l0": torch.zeros_like(self.bias)}
        made.load_state_dict(weights)
        return made.train(self.training)

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.hidden}, activation={self.activation}, bias={self.bias is not None}"
