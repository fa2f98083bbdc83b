r"""A multilayer perceptron with a mask for each weight matrix, which is saved and loaded with it."""

from collections.abc import Sequence

import torch

from lemmata.feedforward.mlp import MLP, MLPConfig
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.tricks.pruning import masks_of, prune

__all__ = ["PrunedMLP"]


@system(
    "pruned_mlp",
    title="Multilayer perceptron with masks",
    kind="module",
    example="PrunedMLP(inputs=6, outputs=3, widths=(8,))(torch.randn(5, 6))",
)
class PrunedMLP(MLP):
    r"""An `MLP` whose weights have masks: at first all are kept, and `prune` makes more and more of them zero.

    $$ h_l = \phi\big((m_l \odot W_l) h_{l-1} + b_l\big), \qquad m_l \in \{0, 1\}^{n_l \times n_{l-1}} $$

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (batch, outputs)

    Claims: prune.lottery_ticket
    Source: J. Frankle and M. Carbin, The lottery ticket hypothesis (2019).

    >>> prune(PrunedMLP(4, 2, widths=(10,)), 0.75).kept
    0.25
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: Sequence[int] = MLPConfig.widths,
        activation: str = MLPConfig.activation,
        dropout: float = MLPConfig.dropout,
        bias: bool = MLPConfig.bias,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(MLPConfig, locals())
        super().__init__(inputs, outputs, **vars(config), device=device, dtype=dtype)
        prune(self, 0.0)

    @property
    def kept(self) -> float:
        """The fraction of the weights that are not zero for good."""
        masks = masks_of(self).values()
        return sum(int(mask.sum()) for mask in masks) / sum(mask.numel() for mask in masks)
