r"""A network that reads a sequence to its end and then answers: with a class, or with numbers."""

from typing import Any

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


@system(
    "sequence_reader",
    title="Sequence reader",
    kind="module",
    example="SequenceReader(inputs=2, outputs=1, cell='gru', width=6, hidden=8)(torch.randn(4, 7, 2))",
)
class SequenceReader(SequenceClassifier):
    r"""A small network for each input, recurrent layers with residuals, and an answer at the end.

    $$ e_t = \mathrm{gelu}(E x_t + e), \qquad \hat y = W\,\mathrm{norm}(y_T) + c $$

    where $y$ are the outputs of the last layer (see `ResidualBlock`), of which there are `depth`. With `vocab_size` the
    inputs are integers below it, each a learnt vector. `cell` names the layer: elman, lstm, gru, mingru, minlstm
    or lru; `memory` is the longest time in steps for which the units of the last three remember initially.

    Shapes:
        x: (batch, time, inputs), or with `vocab_size` (batch, time)    returns: (batch, outputs)

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
        vocab_size: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.count("depth", depth)
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        layers = (recurrent_layer(cell, width, hidden, memory, **factory_kwargs) for _ in range(depth))
        blocks = (ResidualBlock(layer, 2, **factory_kwargs) for layer in layers)
        super().__init__(Stacked(*blocks), outputs, vocab_size=vocab_size, **factory_kwargs)
        self.encode: nn.Module = nn.Identity()
        if not vocab_size:
            self.encode = nn.Sequential(nn.Linear(inputs, width, **factory_kwargs), nn.GELU())
        self.norm = nn.LayerNorm(width, **factory_kwargs)
        # What builds the same reader again.
        self.inputs, self.outputs, self.cell, self.width = inputs, outputs, cell, width
        self.hidden, self.depth, self.memory, self.vocab_size = hidden, depth, memory, vocab_size

    @property
    def layers(self) -> list[ResidualBlock]:
        """The recurrent layers with what surrounds them, the lowest first."""
        return list(self.layer.layers)  # type: ignore[arg-type]

    def embed(self, x: Shaped[Tensor, "..."]) -> Float[Tensor, "... width"]:
        if self.vocab_size is None and validate.inputs("x", x, self.inputs).ndim != 3:
            raise ValueError(f"x must be (batch, time, {self.inputs}), got shape {tuple(x.shape)}")
        return self.encode(super().embed(x))

    def read(self, z: Float[Tensor, "... width"]) -> Float[Tensor, "... outputs"]:
        return super().read(self.norm(z))

    def with_states(self, x: Shaped[Tensor, "batch time *_"]) -> tuple[Tensor, list[State]]:
        """The answers, and the states of the lowest layer before and after every step, one after another.

        Gradients of the answers with respect to the states tell how far back the network can learn to look.
        """
        layers = self.layers
        below = self.embed(x)  # (batch, time, width)
        state = layers[0].initial_state(below.shape[0])
        states, outputs = [_requiring_grad(state)], []
        for now in below.unbind(1):
            output, state = layers[0].step(now, states[-1])  # (batch, width), and a state
            states.append(_requiring_grad(state))
            outputs.append(output)
        top = torch.stack(outputs, dim=1)  # (batch, time, width)
        for layer in layers[1:]:
            top, _ = layer(top)
        return self.read(top[:, -1]), states  # (batch, outputs)


def _requiring_grad(state: State) -> State:
    """The state as something that gradients can be asked for."""
    if isinstance(state, tuple):
        return tuple(map(_requiring_grad, state))
    return state if state.requires_grad else state.detach().requires_grad_()
