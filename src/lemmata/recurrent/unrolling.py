r"""Unrolling: a recurrent layer over T steps is a feed-forward network of T layers that share their weights."""

import copy
from typing import cast

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer

__all__ = ["Unrolled"]


class Unrolled(nn.Module):
    r"""A feed-forward network with one copy of a recurrent layer for each step, free to change its own weights.

    $$ z_t = F[\theta_t](z_{t-1}, x_t), \qquad t = 1, \dots, T $$

    With all $\theta_t = \theta$, as they are at first, it computes what the layer does, and the gradient of the shared
    weights is the sum of those of the copies: $\partial L/\partial\theta = \sum_t \partial L/\partial\theta_t$.

    Shapes:
        x: (batch, steps, inputs)    returns: outputs (batch, steps, outputs), and the last state

    Claims: rnn.unrolling

    >>> from lemmata.recurrent.elman import Elman
    >>> layer, x = Elman(3, 4), torch.randn(2, 6, 3)
    >>> unrolled = Unrolled(layer, steps=6)
    >>> torch.allclose(unrolled(x)[0], layer(x)[0], atol=1e-6)
    True
    >>> unrolled(x)[0].sum().backward()
    >>> unrolled.tied_gradients()["recurrent_weight"].shape
    torch.Size([4, 4])
    """

    def __init__(self, layer: RecurrentLayer, steps: int) -> None:
        super().__init__()
        checked_layer("layer", layer)
        self.copies = nn.ModuleList(copy.deepcopy(layer) for _ in range(validate.count("steps", steps)))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.ndim != 3 or x.shape[1] != len(self.copies):
            raise ValueError(f"x must be (batch, {len(self.copies)}, inputs), got shape {tuple(x.shape)}")
        layers, outputs = cast("list[RecurrentLayer]", list(self.copies)), []
        state = layers[0].initial_state(len(x)) if state is None else state
        for layer, now in zip(layers, x.unbind(1), strict=True):
            output, state = layer.step(now, state)  # (batch, outputs), and a state
            outputs.append(output)
        return torch.stack(outputs, dim=1), state  # (batch, steps, outputs)

    def tied_gradients(self) -> dict[str, Tensor]:
        """What the gradients of the shared weights would be: for each of them the sum over all copies."""
        gradients: dict[str, Tensor] = {}
        for layer in self.copies:
            for name, values in layer.named_parameters():
                if values.grad is not None:
                    gradients[name] = gradients[name] + values.grad if name in gradients else values.grad
        if not gradients:
            raise ValueError("there are no gradients yet: call backward() on a loss of the outputs first")
        return gradients
