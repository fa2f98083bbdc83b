r"""A critic for images: convolutions of stride 2 down to small maps, and one number."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.generative.adversarial.deconvolution_network import KERNEL, halvings, image_shape
from lemmata.marks import system

__all__ = ["StridedCritic"]

SLOPE = 0.2  # of a leaky relu below zero: a critic must send a gradient everywhere


@system("strided_critic", title="Convolutional critic", kind="module",
        example="StridedCritic((1, 8, 8), channels=4)(torch.randn(5, 1, 8, 8))")  # fmt: skip
class StridedCritic(nn.Module):
    r"""The deconvolution network the right way up: 4 x 4 convolutions of stride 2 halve the sides, then a dense layer.

    $$ h_\ell = \phi(K_\ell h_{\ell-1} + b_\ell), \qquad \eta(x) = w^\top h_L + b, \qquad \phi(u) = \max(u, u/5) $$

    No normalisation: each image is judged by itself, as a gradient penalty demands.

    Shapes:
        x: (batch, channels of the image, height, width)    returns: (batch, 1)

    Source: A. Radford, L. Metz and S. Chintala 2015.

    >>> StridedCritic((1, 28, 28))(torch.rand(5, 1, 28, 28)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self,
        shape: Sequence[int],
        channels: int = 32,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.shape, levels = image_shape(shape), halvings(image_shape(shape))
        widths = [validate.count("channels", channels) * 2**level for level in range(levels)]
        self.layers = nn.ModuleList(
            nn.Conv2d(a, b, KERNEL, stride=2, padding=1, **options)
            for a, b in zip([self.shape[0], *widths], widths, strict=False)
        )
        self.head = nn.Linear(widths[-1] * math.prod(side // 2**levels for side in self.shape[1:]), 1, **options)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew: He's for the leaky relu, without constants."""
        for part in (*self.layers, self.head):
            assert isinstance(part, nn.Conv2d | nn.Linear)
            gain = 2 / (1 + SLOPE**2) if part is not self.head else 1.0
            nn.init.normal_(part.weight, std=math.sqrt(gain / part.weight[0].numel()))
            assert part.bias is not None
            nn.init.zeros_(part.bias)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch 1"]:
        if images("x", x, self.shape[0]).shape[1:] != self.shape:
            raise ValueError(f"x must be images of shape {self.shape}, got {tuple(x.shape[1:])}")
        for layer in self.layers:
            x = functional.leaky_relu(layer(x), SLOPE)  # twice the channels, half the sides
        return self.head(x.flatten(1))  # (batch, 1)
