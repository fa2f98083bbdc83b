r"""The long short-term memory: a cell that is kept, written and shown by gates."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.gate import GatedLayer
from lemmata.recurrent.torch_weights import one_layer

__all__ = ["LSTM", "LSTMGates"]


class LSTMGates(NamedTuple):
    """What an LSTM computes from an input and its hidden state: three gates in (0, 1) and a candidate in (-1, 1)."""

    input: Tensor
    forget: Tensor
    candidate: Tensor
    output: Tensor


@system("lstm", title="LSTM", kind="module", example="LSTM(3, 5)(torch.randn(4, 7, 3))")
class LSTM(GatedLayer):
    r"""Long short-term memory: the cell $z$ remembers by addition, the hidden state $\zeta$ is what it shows.

    $$ \tilde x_t = [\zeta_{t-1}, x_t], \qquad
       z_t = \sigma(F\tilde x_t) \odot z_{t-1} + \sigma(G\tilde x_t) \odot \tanh(V\tilde x_t), \qquad
       \zeta_t = \sigma(H\tilde x_t) \odot \tanh(U z_t) $$

    $F$ is the forget gate, $G$ the input gate, $V$ the candidate, $H$ the output gate, each with a bias. The standard
    LSTM has $U = I$ and runs in torch's own kernel; with `cell_matrix=True`, $U$ is learnt, starting at $I$.

    The bias of the forget gate starts at `forget_bias`: at 1, three quarters of a memory survive each step of an
    untrained layer, so that gradients reach far back.

    Shapes:
        x: (batch, time, inputs)    state: (hidden, cell), each (batch, hidden)
        input_weight: (4 hidden, inputs), recurrent_weight: (4 hidden, hidden), bias: (4 hidden,), in the blocks
            input ($G$), forget ($F$), candidate ($V$), output ($H$), which is torch's order
        returns: all hidden states (batch, time, hidden), and the state after the last step

    Claims: rnn.gate, rnn.lstm, rnn.lstm.constant_error, rnn.gru.param_count

    Source: Hochreiter and Schmidhuber 1997; the forget gate by Gers, Schmidhuber and Cummins 2000, its bias 1 by
    Jozefowicz, Zaremba and Sutskever 2015.  Differs: torch.nn.LSTM has two biases that only ever occur as their sum
    (`from_torch` adds them), starts the forget gate's like all others, and puts an axis of layers before its states:
    where `_, (h, c) = lstm(x)` gives torch's users the last layer as `h[-1]`, it is `h` itself here, and `h[-1]` would
    be the last example. On CUDA torch's kernel (cuDNN) can be differentiated once only; `by_steps` and `hoisted` have
    no such limit.

    >>> layer = LSTM(3, 5)
    >>> outputs, (hidden, cell) = layer(torch.randn(2, 7, 3))
    >>> outputs.shape, hidden.shape, cell.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 5]), torch.Size([2, 5]))
    """

    BLOCKS = ("input", "forget", "candidate", "output")

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        bias: bool = True,
        forget_bias: int | float = 1.0,
        cell_matrix: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, hidden, bias, device, dtype)
        self.forget_bias = validate.finite_number("forget_bias", forget_bias)
        self.cell_matrix = validate.flag("cell_matrix", cell_matrix)
        square = torch.empty(hidden, hidden, device=device, dtype=dtype) if cell_matrix else None
        self.cell_weight = None if square is None else nn.Parameter(square)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias is not None:
            self.set_bias("forget", self.forget_bias)
        if self.cell_weight is not None:
            nn.init.eye_(self.cell_weight)

    def initial_state(self, batch: int) -> tuple[Tensor, Tensor]:
        zero = self.recurrent_weight.new_zeros(batch, self.hidden)
        return zero, zero.clone()

    def gates(self, x: Float[Tensor, "*batch inputs"], hidden: Float[Tensor, "*batch hidden"]) -> LSTMGates:
        """The gates and the candidate at an input and the hidden state before it."""
        return self._gate_values(self.project(x), hidden)

    def advance(self, projected: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, cell = state  # each (batch, hidden)
        gates = self._gate_values(projected, hidden)  # each (batch, hidden)
        cell = gates.forget * cell + gates.input * gates.candidate
        shown = cell if self.cell_weight is None else nn.functional.linear(cell, self.cell_weight)
        hidden = gates.output * torch.tanh(shown)
        return hidden, (hidden, cell)

    def _gate_values(self, projected: Tensor, hidden: Tensor) -> LSTMGates:
        total = projected + hidden @ self.recurrent_weight.T  # (..., 4 hidden)
        input, forget, candidate, output = total.chunk(4, dim=-1)  # each (..., hidden)
        return LSTMGates(torch.sigmoid(input), torch.sigmoid(forget), torch.tanh(candidate), torch.sigmoid(output))

    def kernel(self) -> str | None:
        return "lstm" if self.cell_weight is None else None

    def torch_weights(self) -> list[Tensor]:
        zero = self.recurrent_weight.new_zeros(len(self.recurrent_weight))
        return [self.input_weight, self.recurrent_weight, zero if self.bias is None else self.bias, zero]

    def held(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        """With two more inputs, 1 after a sequence's end, that open the forget gate and shut the input gate.

        So the cell rests, and the last one, which is all that torch gives, is the one at each sequence's end. Packed
        sequences would give it too, but training on them takes up to forty times as long on the CPU. The two add up to
        more than the dtype's largest number, so that gates are exactly 1 and 0 whatever the weights say.
        """
        over = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]  # (batch, time)
        kind, dtype = x.device.type, self.recurrent_weight.dtype
        if torch.is_autocast_enabled(kind):  # cuDNN's layers run in half precision, whatever dtype was asked for
            asked = kind == "cpu" or torch.compiler.is_compiling()
            dtype = torch.get_autocast_dtype(kind) if asked else torch.float16
        # One and a half times a power of two: it stays finite, and the same, where a kernel rounds it to few bits.
        large = math.ldexp(1.5, math.frexp(torch.finfo(dtype).max)[1] - 1)
        held = self.recurrent_weight.new_tensor([-large, large, 0, 0]).repeat_interleave(self.hidden)  # (4 hidden,)
        input_weight, *others = self.torch_weights()
        x = torch.cat([x, over[..., None].expand(-1, -1, 2).to(x.dtype)], -1)  # (batch, time, inputs + 2)
        return x, [torch.cat([input_weight, held[:, None].expand(-1, 2)], 1), *others]

    @classmethod
    def from_torch(cls, module: nn.LSTM, layer: int | None = None, reverse: bool | None = None) -> "LSTM":
        """One layer and direction of a torch.nn.LSTM, with copies of its weights: the two biases are added.

        `Stacked.from_torch(module)` takes all layers and both directions; of such a module it must be said which one is
        meant here. Sequences are (batch, time, inputs), whatever `batch_first` the module has.
        """
        if not isinstance(module, nn.LSTM):
            raise TypeError(f"module must be a torch.nn.LSTM, got {type(module).__name__}")
        if module.proj_size:
            raise ValueError(f"module must have no projection of the hidden state, got proj_size={module.proj_size}")
        weights = one_layer(module, layer, reverse)
        factory_kwargs: dict[str, Any] = {"device": weights[0].device, "dtype": weights[0].dtype}
        made = cls(weights[0].shape[1], module.hidden_size, bias=module.bias, **factory_kwargs)
        given = {"input_weight": weights[0], "recurrent_weight": weights[1]}
        if module.bias:
            given["bias"] = weights[2] + weights[3]
        made.load_state_dict(given)
        return made.train(module.training)

    def to_torch(self) -> nn.LSTM:
        """A torch.nn.LSTM (batch first) with copies of these weights: its second bias is zero."""
        if self.cell_weight is not None:
            raise ValueError("torch.nn.LSTM has no matrix U between cell and output: build LSTM with cell_matrix=False")
        made = nn.LSTM(self.inputs, self.hidden, bias=self.bias is not None, batch_first=True).to(self.input_weight)
        made.load_state_dict(dict(zip(made.state_dict(), self.torch_weights(), strict=False)))  # two without a bias
        return made.train(self.training)

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.cell_weight is None else ", cell_matrix=True")
