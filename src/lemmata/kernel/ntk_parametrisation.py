r"""Dense layers in the parametrisation in which tangent kernels stay finite: standard normals are what is trained."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system

__all__ = ["NTKLinear", "ntk_mlp"]


@system(
    "ntk_linear", title="Linear layer, NTK parametrisation", kind="module", example="NTKLinear(3, 5)(torch.randn(4, 3))"
)
class NTKLinear(nn.Module):
    r"""A linear layer whose parameters are standard normals: the factors stand in front of them.

    $$ y = \frac{\sigma_w}{\sqrt m}\,\varepsilon x + \sigma_b\,\beta, \qquad
       \varepsilon_{ij}, \beta_i \sim \mathcal N(0, 1) $$

    for $m$ inputs. What it computes is what a layer with weights of variance $\sigma_w^2/m$ computes; but a gradient in
    $\varepsilon$ is smaller by $\sigma_w/\sqrt m$, so the tangent kernel has a limit as the network becomes wide.

    Shapes:
        x: (..., inputs)    returns: (..., outputs)

    Claims: ntk.parametrisation, ntk.deterministic_limit
    Source: A. Jacot, F. Gabriel and C. Hongler 2018.

    >>> layer = NTKLinear(100, 2)
    >>> bool(layer(torch.ones(100)).equal(layer.weight.sum(1) * math.sqrt(2) / 10)), layer.bias
    (False, None)
    >>> layer(torch.ones(100)).allclose(layer.weight.sum(1) * math.sqrt(2) / 10, atol=1e-5)
    True
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        weight_variance: float = 2.0,
        bias_variance: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.weight_variance = validate.positive("weight_variance", weight_variance)
        self.bias_variance = validate.number("bias_variance", bias_variance, least=0)
        factory_kwargs: Any = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(outputs, inputs, **factory_kwargs))
        self.bias = nn.Parameter(torch.empty(outputs, **factory_kwargs)) if bias_variance else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        nn.init.normal_(self.weight)
        if self.bias is not None:
            nn.init.normal_(self.bias)

    def forward(self, x: Float[Tensor, "... inputs"]) -> Float[Tensor, "... outputs"]:
        x = validate.inputs("x", x, self.inputs) * math.sqrt(self.weight_variance / self.inputs)
        if self.bias is None:
            return functional.linear(x, self.weight)
        factor = math.sqrt(
            self.bias_variance
        )  # in front of both, so that the operation reads the parameters as they are
        return factor * functional.linear(x / factor, self.weight, self.bias)

    def extra_repr(self) -> str:
        bias = f", bias_variance={self.bias_variance:g}" if self.bias_variance else ""
        return f"{self.inputs}, {self.outputs}, weight_variance={self.weight_variance:g}{bias}"


def ntk_mlp(
    widths: Sequence[int],
    activation: type[nn.Module] = nn.ReLU,
    weight_variance: float = 2.0,
    bias_variance: float = 0.0,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> nn.Sequential:
    """A dense network of such layers, whose kernels `nngp` and `infinite_ntk` are where it becomes wide.

    >>> ntk_mlp([3, 8, 1])
    Sequential(
      (0): NTKLinear(3, 8, weight_variance=2)
      (1): ReLU()
      (2): NTKLinear(8, 1, weight_variance=2)
    )
    """
    if len(widths) < 2:
        raise ValueError(f"widths must have two entries at least, inputs and outputs, got {list(widths)}")
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        if layers:
            layers.append(activation())
        layers.append(NTKLinear(inputs, outputs, weight_variance, bias_variance, device, dtype))
    return nn.Sequential(*layers)
