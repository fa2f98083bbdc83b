r"""Deep Sets whose two networks are multilayer perceptrons of plain sizes, which a run can build again."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.geometric.deep_sets import DeepSets
from lemmata.marks import system

__all__ = ["SetNetwork"]


@system(
    "set_network",
    title="Deep Sets of two perceptrons",
    kind="module",
    example="SetNetwork(inputs=3, outputs=2, width=8, latent=4)(torch.randn(5, 4, 3))",
)
class SetNetwork(DeepSets):
    r"""Deep Sets with one hidden layer in each of the networks.

    $$ f(X) = W_4 \big(W_3 z + b_3\big)_+ + b_4, \qquad z = \sum_m W_2 \big(W_1 x_m + b_1\big)_+ + b_2 $$

    Shapes:
        x: (..., elements, inputs)    mask: (..., elements), true for those that are in the set
        returns: (..., outputs)

    Source: Zaheer et al. 2017.

    >>> SetNetwork(inputs=64, outputs=1)(torch.rand(5, 7, 64)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int = 128,
        latent: int = 64,
        reduce: str = "sum",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.count("inputs", inputs)
        validate.count("outputs", outputs)
        validate.count("width", width)
        validate.count("latent", latent)
        factory = {"device": device, "dtype": dtype}
        phi, rho = _two_layers(inputs, width, latent, **factory), _two_layers(latent, width, outputs, **factory)
        super().__init__(phi, rho, reduce)
        self.inputs, self.outputs, self.width, self.latent = inputs, outputs, width, latent

    def forward(
        self, x: Float[Tensor, "*batch elements inputs"], mask: Bool[Tensor, "*batch elements"] | None = None
    ) -> Float[Tensor, "*batch outputs"]:
        return super().forward(validate.inputs("x", x, self.inputs), mask)


def _two_layers(inputs: int, width: int, outputs: int, **factory: object) -> nn.Sequential:
    first, second = nn.Linear(inputs, width, **factory), nn.Linear(width, outputs, **factory)  # type: ignore[arg-type]
    return nn.Sequential(first, nn.ReLU(), second)
