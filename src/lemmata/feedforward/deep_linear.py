r"""Deep linear networks: layers without an activation, which together are one affine map."""

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["DeepLinear"]


@system(
    "deep_linear",
    title="Deep linear network",
    kind="module",
    example="DeepLinear(4, 3, widths=(6, 2))(torch.randn(5, 4))",
)
class DeepLinear(nn.Module):
    r"""Affine layers one after the other, with nothing between them.

    $$ f(x) = W_L(\dots W_2(W_1 x + b_1) + b_2 \dots) + b_L = Wx + b, \qquad
       W = W_L \cdots W_1, \quad b = \sum_{\ell=1}^{L} W_L \cdots W_{\ell+1} b_\ell $$

    It represents exactly the affine maps whose rank is at most that of its narrowest layer, `rank_bound`. What depth
    changes is how it learns: the loss is not convex in the factors. Initially $b = 0$ and $W_\ell$ is normal with
    deviation $\sqrt{1/n}$ for $n$ inputs of the layer.

    Shapes:
        x: (..., inputs)    returns: (..., outputs)

    Claims: linear.composition, linear.network
    Source: A. Saxe, J. McClelland and S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear
        neural networks (2014).

    >>> network, x = DeepLinear(4, 3, widths=(8, 2)), torch.rand(5, 4)
    >>> network.rank_bound, torch.allclose(network.collapse()(x), network(x), atol=1e-6)
    (2, True)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: tuple[int, ...] | list[int] = (),
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(widths, tuple | list):
            raise TypeError(f"widths must be a tuple of integers such as (8, 8), got {widths!r}")
        hidden = [validate.count("widths", width) for width in widths]
        self.sizes = [validate.count("inputs", inputs), *hidden, validate.count("outputs", outputs)]
        validate.flag("bias", bias)
        self.layers = nn.ModuleList(
            nn.Linear(a, b, bias=bias, device=device, dtype=dtype) for a, b in pairwise(self.sizes)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew."""
        for name, values in self.layers.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(values)
            else:
                nn.init.normal_(values, std=1 / math.sqrt(values.shape[1]))

    @property
    def rank_bound(self) -> int:
        """The largest rank of a map that the network represents: the width of its narrowest layer."""
        return min(self.sizes)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        hidden = validate.inputs("x", x, self.sizes[0])
        for layer in self.layers:
            hidden = layer(hidden)  # (..., width)
        return hidden

    @torch.no_grad()
    def collapse(self) -> nn.Linear:
        """The one layer that computes the same."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        biased = first.bias is not None
        weight = torch.eye(self.sizes[0], dtype=first.weight.dtype, device=first.weight.device)
        bias = weight.new_zeros(self.sizes[0])
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            weight, bias = layer.weight @ weight, layer.weight @ bias  # (width, inputs), (width,)
            bias = bias + layer.bias if biased else bias
        single = nn.Linear(self.sizes[0], self.sizes[-1], bias=biased, device=weight.device, dtype=weight.dtype)
        single.weight.copy_(weight)
        if biased:
            single.bias.copy_(bias)
        return single

    def extra_repr(self) -> str:
        return f"sizes={self.sizes}"
