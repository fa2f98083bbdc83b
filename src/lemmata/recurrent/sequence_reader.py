r"""A network that reads a sequence to its end and then answers: with a class, or with numbers."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.cells import recurrent_layer
from lemmata.recurrent.layer import State
from lemmata.recurrent.output_map import SequenceClassifier
from lemmata.recurrent.residual_block import ResidualBlock
from lemmata.recurrent.stacked import Stacked

__all__ = ["SequenceReader"]


@system("sequence_reader", title="Sequence reader", kind="module")
class SequenceReader(SequenceClassifier):
    r"""A small network for each input, floors of recurrent layers with residuals, and an answer at the end.

    $$ e_t = \mathrm{gelu}(E x_t + e), \qquad \hat y = W\,\mathrm{norm}(y_T) + c $$

    where $y$ are the outputs of the floors (see `ResidualBlock`). With `symbols` the inputs are whole numbers below it,
    each a learnt vector. `cell` names the layer: elman, lstm, gru, mingru, minlstm or lru; `memory` is the longest
    time in steps for which the units of the last three remember initially.

    Shapes:
        x: (batch, time, inputs), or with `symbols` (batch, time)    returns: (batch, outputs)

    Claims: rnn.output_map, rnn.gradient.vanishing

    >>> reader = SequenceReader(inputs=2, outputs=1, cell="gru", width=8, hidden=16)
    >>> reader(torch.randn(5, 100, 2)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        cell: str = "lru",
        width: int = 32,
        hidden: int = 64,
        depth: int = 1,
        memory: int = 100,
        symbols: int | None = None,
    ) -> None:
        validate.count("depth", depth)
        floors = (ResidualBlock(recurrent_layer(cell, width, hidden, memory), 2) for _ in range(depth))
        super().__init__(Stacked(*floors), outputs, symbols=symbols)
        self.encode = nn.Identity() if symbols else nn.Sequential(nn.Linear(inputs, width), nn.GELU())
        self.norm = nn.LayerNorm(width)

    @property
    def floors(self) -> list[ResidualBlock]:
        """The recurrent layers with what surrounds them, the lowest first."""
        return list(self.layer.layers)  # type: ignore[arg-type]

    def embed(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "... width"]:
        return self.encode(super().embed(x))

    def read(self, z: Float[Tensor, "... width"]) -> Float[Tensor, "... outputs"]:
        return super().read(self.norm(z))

    def with_states(self, x: Shaped[Tensor, "batch time *_"]) -> tuple[Tensor, list[State]]:
        """The answers, and the states of the lowest floor before and after every step, one after another.

        Gradients of the answers with respect to the states tell how far back the network can learn to look.
        """
        floors = self.floors
        below = self.embed(x)
        state = floors[0].initial_state(len(below))
        states, outputs = [_asking(state)], []
        for now in below.unbind(1):
            output, state = floors[0].step(now, states[-1])
            states.append(_asking(state))
            outputs.append(output)
        top = torch.stack(outputs, dim=1)
        for floor in floors[1:]:
            top, _ = floor(top)
        return self.read(top[:, -1]), states


def _asking(state: State) -> State:
    """The state as something that gradients can be asked for."""
    if isinstance(state, tuple):
        return tuple(map(_asking, state))
    return state if state.requires_grad else state.detach().requires_grad_()
