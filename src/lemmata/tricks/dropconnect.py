r"""DropConnect: weights left out at random, one by one, where dropout leaves out units and all that they send."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["DropConnect"]


@system(
    "dropconnect", title="Linear layer with DropConnect", kind="module", example="DropConnect(6, 3)(torch.randn(4, 6))"
)
class DropConnect(nn.Linear):
    r"""A linear layer that leaves out each of its weights with probability `p` while it trains, for each example anew.

    $$ y_i = \sum_j \frac{M_{ij}}{\pi}\,w_{ij}\,x_j + b_i, \qquad M_{ij} \sim \mathrm{Be}(\pi), \quad \pi = 1 - p,
       \qquad \mathrm{Cov}(y_i, y_k) = \delta_{ik}\,\frac{1-\pi}{\pi} \sum_j w_{ij}^2 x_j^2 $$

    Dropout of the inputs has one $b_j$ in place of the $M_{ij}$: the same mean and the same variances, but outputs that
    fall together, $\mathrm{Cov}(y_i, y_k) = \frac{1-\pi}\pi \sum_j w_{ij} w_{kj} x_j^2$. Evaluation is that of a plain
    linear layer, whose `state_dict` it has. With `per_example=False` one mask serves the whole batch, which takes
    neither the time nor the memory of a matrix for each example.

    Shapes:
        x: (..., inputs)    returns: (..., outputs); masks: (..., outputs, inputs)

    Claims: reg.dropconnect
    Source: L. Wan, M. Zeiler, S. Zhang, Y. LeCun and R. Fergus, Regularization of neural networks using DropConnect
        (2013).
    Differs: kept weights are divided by $\pi$ while training, and evaluation uses the mean; the paper samples it.

    >>> layer = DropConnect(2, 3, p=0.5, bias=False)
    >>> _ = nn.init.ones_(layer.weight)
    >>> set(layer(torch.ones(50, 2)).flatten().tolist()) <= {0.0, 2.0, 4.0}, layer.eval()(torch.ones(2)).detach()
    (True, tensor([2., 2., 2.]))
    >>> DropConnect(2, 3, p=1.2)
    Traceback (most recent call last):
    ValueError: p must be in [0, 1], got 1.2
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        p: int | float = 0.5,
        bias: bool = True,
        per_example: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.count("inputs", inputs)
        validate.count("outputs", outputs)
        super().__init__(inputs, outputs, validate.flag("bias", bias), device, dtype)
        self.p = float(validate.fraction("p", p, most=1.0))
        self.per_example = validate.flag("per_example", per_example)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        validate.inputs("x", x, self.in_features)
        if not self.training or self.p == 0:
            return functional.linear(x, self.weight, self.bias)
        if not self.per_example:
            return functional.linear(x, functional.dropout(self.weight, self.p), self.bias)
        weights = self.weight.expand(*x.shape[:-1], *self.weight.shape)  # (..., outputs, inputs)
        y = (functional.dropout(weights, self.p) @ x[..., None])[..., 0]  # (..., outputs)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, p={self.p}" + ("" if self.per_example else ", per_example=False")
