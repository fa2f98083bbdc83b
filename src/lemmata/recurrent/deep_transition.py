r"""Deep transition: the map from one state to the next is a multilayer perceptron."""

from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.foundations.activations import activation as activation_named
from lemmata.marks import system
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.layer import RecurrentLayer, mask_outputs, state_at_end

__all__ = ["DeepTransition"]


@system(
    "deep_transition",
    title="Recurrent network with a deep transition",
    kind="module",
    example="DeepTransition(inputs=3, hidden=5, widths=(8,))(torch.randn(4, 7, 3))",
)
class DeepTransition(RecurrentLayer):
    r"""Elman's network with hidden layers between one state and the next.

    $$ h_1 = \varphi(A z_{t-1} + B x_t + b_1), \quad h_l = \varphi(W_l h_{l-1} + b_l), \qquad
       z_t = \phi(W h_L + b) $$

    `activation` is $\phi$, that of the state; `inner` is $\varphi$, that of the hidden units; `widths` are their
    numbers. Linear hidden units add nothing: `collapsed` gives the equal Elman layer. Where one of the widths is
    smaller than the state, linear hidden units even take something away.

    Shapes:
        x: (batch, time, inputs), state: (batch, hidden)    returns: outputs (batch, time, hidden), and the last state

    Claims: rnn.deep_transition, rnn.evolution
    Source: Pascanu et al. 2014.
    Differs: a compiler unrolls the loop over time, so that each length is compiled on its own; for the same reason the
        layer does not pass `export_lengths`: an exported one takes sequences of one length.

    >>> layer = DeepTransition(inputs=3, hidden=5, widths=(16, 16))
    >>> layer(torch.randn(2, 7, 3))[0].shape
    torch.Size([2, 7, 5])
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        widths: tuple[int, ...] = (64,),
        activation: str = "tanh",
        inner: str = "tanh",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, validate.count("hidden", hidden))
        self.activation = activation_named(activation).name
        if not widths:
            raise ValueError("widths must hold at least one number: without hidden layers use Elman")
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        inner = activation_named(inner).name
        self.transition = MLP(hidden + inputs, hidden, widths, inner, bias=bias, **factory_kwargs)

    @property
    def hidden(self) -> int:
        """The number of values in the state."""
        return self.outputs

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        self.transition.reset_parameters()

    def initial_state(self, batch: int) -> Float[Tensor, "batch hidden"]:
        return next(self.parameters()).new_zeros(batch, self.hidden)

    def step(
        self, x: Float[Tensor, "batch inputs"], state: Float[Tensor, "batch hidden"]
    ) -> tuple[Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"]]:
        joined = torch.cat([state, x], dim=1)  # (batch, hidden + inputs)
        state = ACTIVATION_TABLE[self.activation](self.transition(joined))  # (batch, hidden)
        return state, state

    def sequence(self, x: Tensor, state: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        if x.shape[1] == 0:
            return x.new_empty(x.shape[0], 0, self.hidden), state
        start, states = state, []
        phi, inner = ACTIVATION_TABLE[self.activation], ACTIVATION_TABLE[self.transition.config.activation]
        first, *rest = self._transition_layers()
        from_state, from_input = first.weight.split([self.hidden, self.inputs], dim=1)
        # The part of the input, which needs no state, is one product for all steps.
        parts = functional.linear(x, from_input, first.bias)  # (batch, time, first of the widths)
        for part in parts.unbind(1):
            total = torch.addmm(part, state, from_state.T)  # (batch, first of the widths)
            for layer in rest:
                total = layer(inner(total))
            state = phi(total)  # (batch, hidden)
            states.append(state)
        outputs = torch.stack(states, dim=1)  # (batch, time, hidden)
        return mask_outputs(outputs, lengths), state_at_end(outputs, start, lengths)

    def collapsed(self) -> Elman:
        r"""The Elman layer that equals this one, which exists where the hidden units are linear: $U = W \cdots A$."""
        if self.transition.config.activation != "identity":
            raise ValueError(f"only linear hidden units collapse, these are {self.transition.config.activation}")
        first, *rest = self._transition_layers()
        product, offset = first.weight, first.bias
        for layer in rest:
            product = layer.weight @ product
            offset = None if offset is None else layer(offset)
        made = Elman(self.inputs, self.hidden, self.activation, self.transition.config.bias).to(product)
        weights = {"recurrent_weight": product[:, : self.hidden], "input_weight": product[:, self.hidden :]}
        made.load_state_dict(weights if offset is None else weights | {"bias": offset})
        return made

    def _transition_layers(self) -> list[nn.Linear]:
        return cast("list[nn.Linear]", list(self.transition.layers))

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, hidden={self.hidden}, activation={self.activation}"
