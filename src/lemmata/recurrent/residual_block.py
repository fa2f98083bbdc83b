r"""A recurrent layer as one block of a deep network: normalised before, added to its input after."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.recurrent.layer import RecurrentLayer, State, checked_layer, mask_outputs

__all__ = ["ResidualBlock"]


class ResidualBlock(RecurrentLayer):
    r"""Any recurrent layer between a normalisation and a sum, then a small network for each step by itself.

    $$ u_t = x_t + P\,F(\mathrm{norm}(x_t), z_{t-1}), \qquad y_t = u_t + W_2\,\mathrm{gelu}(W_1\,\mathrm{norm}(u_t)) $$

    The sums let gradients pass every block unchanged, so that many can be stacked (`Stacked`). The network of each step
    gives layers that are linear in their state the nonlinearity that they lack; it has `expansion` times as many hidden
    units as inputs, and with 0 it is left out.

    Shapes:
        x: (batch, time, inputs)    returns: outputs (batch, time, inputs), and the state of the layer

    Source: residuals: He et al. 2015; the order of normalisation and sum: Xiong et al. 2020.

    >>> from lemmata.recurrent.min_gru import MinGRU
    >>> block = ResidualBlock(MinGRU(8, 12))
    >>> outputs, state = block(torch.randn(2, 100, 8))
    >>> outputs.shape, state.shape
    (torch.Size([2, 100, 8]), torch.Size([2, 12]))
    """

    def __init__(
        self,
        layer: RecurrentLayer,
        expansion: int = 2,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        checked_layer("layer", layer)
        super().__init__(layer.inputs, layer.inputs)
        validate.count("expansion", expansion, least=0)
        validate.fraction("dropout", dropout)
        features, inside = layer.inputs, expansion * layer.inputs
        self.layer, self.dropout = layer, dropout
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.before = nn.LayerNorm(features, **factory_kwargs)
        self.project = nn.Linear(layer.outputs, features, **factory_kwargs)
        self.network = None
        if expansion:
            self.network = nn.Sequential(
                nn.LayerNorm(features, **factory_kwargs),
                nn.Linear(features, inside, **factory_kwargs),
                nn.GELU(),
                nn.Linear(inside, features, **factory_kwargs),
            )

    @property
    def causal(self) -> bool:
        """Whether no output depends on a later input."""
        return self.layer.causal

    def initial_state(self, batch: int) -> State:
        return self.layer.initial_state(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        inside, state = self.layer.step(self.before(x), state)  # (batch, outputs of the layer)
        return self._with_residuals(x, inside), state

    def sequence(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        inside, state = self.layer(self.before(x), state, lengths)  # (batch, time, outputs of the layer)
        return mask_outputs(self._with_residuals(x, inside), lengths), state

    def _with_residuals(self, x: Tensor, inside: Tensor) -> Tensor:
        x = x + self._with_dropout(self.project(inside))  # (..., inputs)
        return x if self.network is None else x + self._with_dropout(self.network(x))

    def _with_dropout(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.dropout, self.training)
