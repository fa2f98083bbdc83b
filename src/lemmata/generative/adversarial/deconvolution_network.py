r"""The deconvolution network: from a vector to an image, by a convolutional network turned upside down."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.tricks.batch_norm import BatchNorm

__all__ = ["DeconvolutionNetwork"]

KERNEL = 4  # with stride 2 and padding 1 a transposed convolution doubles the sides, and no pixel gets more than others
SEED = 4  # pixels along the longer side from which no further halving is wanted


@system("deconvolution_network", title="Deconvolution network", kind="module",
        example="DeconvolutionNetwork(6, (1, 8, 8), channels=4)(torch.randn(5, 6))")  # fmt: skip
class DeconvolutionNetwork(nn.Module):
    r"""A dense layer makes small maps of a vector; transposed convolutions of stride 2 double their sides to an image.

    $$ h_0 = \operatorname{relu}(W z + b), \qquad h_\ell = \operatorname{relu}(K_\ell^\top h_{\ell-1} + b_\ell), \qquad
       x = \sigma(K_L^\top h_{L-1} + b_L) $$

    $K_\ell^\top$ is the transpose of a 4 x 4 convolution of stride 2, with half as many channels as before: sides of an
    image are a few pixels times a power of two. Before each relu stands batch normalisation, if `norm`.

    Shapes:
        z: (batch, latent)    returns: pixels from 0 to 1 (batch, channels of the image, height, width)

    Claims: gan.deconv
    Source: M. Zeiler et al. 2010; A. Radford, L. Metz and S. Chintala, Unsupervised representation learning with deep
        convolutional generative adversarial networks (2015).
    Differs: pixels from 0 to 1 by a sigmoid, where the paper has -1 to 1 by a tanh.

    >>> DeconvolutionNetwork(latent=10, shape=(1, 28, 28))(torch.randn(5, 10)).shape
    torch.Size([5, 1, 28, 28])
    """

    def __init__(
        self,
        latent: int,
        shape: Sequence[int],
        channels: int = 32,
        norm: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.latent, self.shape = validate.count("latent", latent), image_shape(shape)
        validate.count("channels", channels)
        levels = halvings(self.shape)
        widths = [channels * 2**level for level in range(levels)][::-1]  # of the maps, the smallest maps first
        self.seed_shape = (widths[0], *(side // 2**levels for side in self.shape[1:]))
        self.seed = nn.Linear(latent, math.prod(self.seed_shape), bias=not norm, **options)
        self.layers = nn.ModuleList(
            nn.ConvTranspose2d(a, b, KERNEL, stride=2, padding=1, bias=last or not norm, **options)
            for a, b, last in zip(widths, [*widths[1:], self.shape[0]], [*[False] * (levels - 1), True], strict=True)
        )
        self.norms = nn.ModuleList(BatchNorm(width, **options) if norm else nn.Identity() for width in widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew: He's, where each pixel is reached by a quarter of each kernel."""
        nn.init.normal_(self.seed.weight, std=math.sqrt(2 / self.latent))
        for layer in self.layers:
            assert isinstance(layer, nn.ConvTranspose2d)
            nn.init.normal_(layer.weight, std=math.sqrt(2 / (layer.in_channels * KERNEL)))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch channels height width"]:
        maps = self.seed(validate.examples("z", z, self.latent)).unflatten(
            1, self.seed_shape
        )  # (batch, width, few, few)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            maps = layer(torch.relu(norm(maps)))  # half the channels, twice the sides
        return torch.sigmoid(maps)  # (batch, channels, height, width)


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width), with sides that can be halved at least once."""
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width), got {tuple(shape)}")
    channels, height, width = (validate.count("shape", size) for size in shape)
    if height % 2 or width % 2:
        raise ValueError(f"shape must have even sides, got {height} x {width}: pad the images")
    return channels, height, width


def halvings(shape: tuple[int, int, int]) -> int:
    """How often both sides are halved: until they are small, or odd."""
    height, width = shape[1:]
    times = 0
    while height % 2 == 0 and width % 2 == 0 and max(height, width) > SEED - 1:
        height, width, times = height // 2, width // 2, times + 1
    return max(times, 1)
