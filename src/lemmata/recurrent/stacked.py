r"""Stacked recurrent layers: at every step the output of one layer is the input of the next."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer
from lemmata.recurrent.lstm import LSTM

__all__ = ["Stacked"]

KINDS: tuple[tuple[type[nn.RNNBase], Any], ...] = ((nn.LSTM, LSTM), (nn.GRU, GRU), (nn.RNN, Elman))


@system(
    "stacked_rnn",
    title="Stacked recurrent network",
    kind="module",
    example="Stacked(Elman(3, 8), Elman(8, 5))(torch.randn(4, 7, 3))",
)
class Stacked(RecurrentLayer):
    r"""Any recurrent layers one above another; depth is the vertical axis, time the horizontal one.

    $$ z_{t,\ell} = F_\ell(z_{t-1,\ell},\, z_{t,\ell-1}), \qquad z_{t,0} = x_t, \qquad y_t = z_{t,L} $$

    Whole sequences run layer by layer, so that each layer may use its own quick way; streams run step by step.
    `dropout` is the fraction of each layer's outputs that the next does not see in a training step, as in torch.

    Shapes:
        x: (batch, time, inputs of the first layer)    state: a tuple with the state of each layer
        returns: outputs (batch, time, outputs of the last layer), and the states after the last step

    Claims: rnn.stacked
    Source: Schmidhuber 1992; Graves 2013.  Differs: torch puts the states of all layers into one tensor, whose last
    entry `h[-1]` is the last layer's; here it is `states[-1]`, (batch, hidden), for an LSTM its pair (hidden, cell).

    >>> outputs, states = Stacked(Elman(3, 8), Elman(8, 5))(torch.randn(2, 7, 3))
    >>> outputs.shape, [tuple(state.shape) for state in states]
    (torch.Size([2, 7, 5]), [(2, 8), (2, 5)])
    """

    def __init__(self, *layers: RecurrentLayer, dropout: float = 0.0) -> None:
        for layer in layers:
            checked_layer("each of layers", layer)
        if not layers:
            raise ValueError("layers must hold at least one recurrent layer")
        for number, (below, above) in enumerate(pairwise(layers), start=1):
            if below.outputs != above.inputs:
                sizes = f"layer {number} gives {below.outputs} values, layer {number + 1} takes {above.inputs}"
                raise ValueError(f"layers must fit one another: {sizes}")
        validate.fraction("dropout", dropout)
        super().__init__(layers[0].inputs, layers[-1].outputs)
        self.layers, self.dropout = nn.ModuleList(layers), dropout

    @classmethod
    def from_torch(cls, module: nn.RNNBase) -> "Stacked":
        """All layers of a torch.nn.LSTM, GRU or RNN, with copies of its weights; both directions where it has them.

        Sequences are (batch, time, inputs), whatever `batch_first` the module has. The state of a layer that runs both
        ways is the pair of its directions' states.
        """
        kind = next((ours for theirs, ours in KINDS if type(module) is theirs), None)
        if kind is None:
            raise TypeError(f"module must be a torch.nn.LSTM, GRU or RNN, got {type(module).__name__}")
        layers = []
        for number in range(module.num_layers):
            ways = [kind.from_torch(module, number, reverse) for reverse in (False, True)[: 1 + module.bidirectional]]
            layers.append(Bidirectional(*ways) if module.bidirectional else ways[0])
        return cls(*layers, dropout=module.dropout).train(module.training)

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later input."""
        return all(layer.causal for layer in self.layers)

    def initial_state(self, batch: int) -> State:
        return tuple(layer.initial_state(batch) for layer in self.layers)  # type: ignore[operator]

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self._run_upwards(lambda layer, now, before: layer.step(now, before), x, state)

    def sequence(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        return self._run_upwards(lambda layer, now, before: layer(now, before, lengths), x, state)

    def _run_upwards(self, run: Callable[..., Any], x: Tensor, state: State) -> tuple[Tensor, State]:
        after = []
        for number, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            if number > 0:
                x = functional.dropout(x, self.dropout, self.training)
            x, last = run(layer, x, before)  # (batch, time, outputs of this layer), or without time
            after.append(last)
        return x, tuple(after)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}" if self.dropout else ""
