r"""Bidirectional recurrent layers: one reads a sequence forwards, one backwards, and every output sees all of it."""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from lemmata.marks import system
from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer, mask_outputs

__all__ = ["Bidirectional", "reverse_sequences"]


@system(
    "bidirectional_rnn",
    title="Bidirectional recurrent network",
    kind="module",
    example="Bidirectional(Elman(3, 4), Elman(3, 4))(torch.randn(4, 7, 3))",
)
class Bidirectional(RecurrentLayer):
    r"""Two recurrent layers on one sequence, their outputs side by side.

    $$ y_t = [z_t;\, \tilde z_t], \qquad z_t = F(z_{t-1}, x_t), \qquad \tilde z_t = \tilde F(\tilde z_{t+1}, x_t) $$

    A readout of the pair is the sum of two: $[W, \tilde W][z_t; \tilde z_t] = W z_t + \tilde W \tilde z_t$. Each
    sequence is reversed within its own length. The layer cannot stream: its first output needs the last input.

    Shapes:
        x: (batch, time, inputs)    state: the pair of the layers' states, the second one after each sequence's end
        returns: outputs (batch, time, sum of the layers' outputs), and the pair of states that the layers end with

    Claims: rnn.bidirectional
    Source: Schuster, Paliwal 1997.

    >>> from lemmata.recurrent.elman import Elman
    >>> outputs, (end, start) = Bidirectional(Elman(3, 4), Elman(3, 4))(torch.randn(2, 7, 3))
    >>> outputs.shape, torch.equal(outputs[:, -1, :4], end), torch.equal(outputs[:, 0, 4:], start)
    (torch.Size([2, 7, 8]), True, True)
    """

    causal = False

    def __init__(self, forwards: RecurrentLayer, backwards: RecurrentLayer) -> None:
        for name, layer in (("forwards", forwards), ("backwards", backwards)):
            checked_layer(name, layer)
        if forwards is backwards:
            raise ValueError("backwards must be a layer of its own: use copy.deepcopy(forwards) for equal weights")
        if forwards.inputs != backwards.inputs:
            counts = f"{forwards.inputs} and {backwards.inputs}"
            raise ValueError(f"forwards and backwards must take equally many inputs, got {counts}")
        super().__init__(forwards.inputs, forwards.outputs + backwards.outputs)
        self.forwards, self.backwards = forwards, backwards

    def initial_state(self, batch: int) -> State:
        return self.forwards.initial_state(batch), self.backwards.initial_state(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        raise NotImplementedError("a bidirectional layer cannot run step by step: give it whole sequences")

    def sequence(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        start, end = state
        there = self.forwards(x, start, lengths)  # outputs (batch, time, outputs of the layer), state
        back = self.backwards(reverse_sequences(x, lengths), end, lengths)
        return _both_ways(there, back, lengths)

    def by_steps(self, x: Tensor, state: State | None = None, lengths: Tensor | None = None) -> tuple[Tensor, State]:
        """Each of the two layers one step after another."""
        start, end = self._checked_state(state, x.shape[0])
        there = self.forwards.by_steps(x, start, lengths)
        back = self.backwards.by_steps(reverse_sequences(x, lengths), end, lengths)
        return _both_ways(there, back, lengths)


def _both_ways(there: tuple[Tensor, State], back: tuple[Tensor, State], lengths: Tensor | None) -> tuple[Tensor, State]:
    outputs = torch.cat([there[0], reverse_sequences(back[0], lengths)], dim=-1)  # (batch, time, sum of both)
    return mask_outputs(outputs, lengths), (there[1], back[1])


def reverse_sequences(
    x: Shaped[Tensor, "batch time *features"], lengths: Int[Tensor, " batch"] | None = None
) -> Shaped[Tensor, "batch time *features"]:
    r"""Each sequence backwards, within its own length; what pads it stays where it is. Its own inverse.

    $$ x'_t = x_{n+1-t} \quad (t \le n), \qquad x'_t = x_t \quad (t > n) $$

    Shapes:
        x: (batch, time, ...), lengths: (batch,)    returns: (batch, time, ...)

    Claims: rnn.bidirectional

    >>> reverse_sequences(torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([3, 2]))
    tensor([[3, 2, 1],
            [5, 4, 0]])
    """
    if lengths is None:
        return x.flip(1)
    time, lengths = torch.arange(x.shape[1], device=x.device), lengths.to(x.device)[:, None]
    order = torch.where(time < lengths, lengths - 1 - time, time)  # (batch, time)
    return x[torch.arange(x.shape[0], device=x.device)[:, None], order]
