r"""A pixel network: binary images, pixel by pixel, each from all that stand above it or to its left."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["PixelNetwork", "PixelNetworkConfig"]


@dataclass(frozen=True)
class PixelNetworkConfig:
    """Configuration of a pixel network."""

    width: int = 32
    """Channels of each of its two streams."""
    depth: int = 4
    """Number of layers."""
    kernel_size: int = 3
    """Kernel size, odd: how far a layer sees to either side, and upwards, is half of it."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("depth", self.depth)
        if validate.count("kernel_size", self.kernel_size, least=3) % 2 == 0:
            raise ValueError(f"kernel_size must be odd, got {self.kernel_size}: use {self.kernel_size + 1}")


class _TwoStreams(nn.Module):
    """One layer: a stream that knows the rows up to its own, and one that knows its own row up to the pixel."""

    def __init__(self, inputs: int, width: int, kernel_size: int, place: dict) -> None:
        super().__init__()
        self.reach = kernel_size // 2
        self.above = nn.Conv2d(inputs, width, (self.reach + 1, kernel_size), **place)
        self.left = nn.Conv2d(inputs, width, (1, self.reach + 1), **place)
        self.join = nn.Conv2d(2 * width, width, 1, **place)

    def forward(self, above: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
        reach = self.reach
        above = self.above(functional.pad(above, (reach, reach, reach, 0))).relu()  # (batch, width, height, width)
        left = self.left(functional.pad(left, (reach, 0, 0, 0)))
        return above, self.join(torch.cat([above, left], 1).relu())


@system(
    "pixel_network",
    title="Pixel network",
    kind="module",
    example="PixelNetwork(width=4, depth=2)(torch.randn(3, 5, 6))",
)
class PixelNetwork(nn.Module):
    r"""A law of binary images, row by row and pixel by pixel, from convolutions that look up and to the left alone.

    $$ p(x) = \prod_{r,c} p(x_{rc} \mid x_{<rc}), \qquad
       x_{<rc} = \{x_{r'c'} : r' < r, \text{ or } r' = r \text{ and } c' < c\} $$

    Two streams: one is moved down by a row at the start and sees what is above, to both sides; the other is moved right
    by a pixel, sees its own row, and hears of the first. Together they see every pixel before their own, as far as
    `depth` layers reach, and no other. Images may have any size.

    Shapes:
        x: (batch, height, width)    forward: logits (batch, height, width)    log_prob: (batch,)

    Claims: ar.neural
    Source: A. van den Oord et al., Conditional image generation with PixelCNN decoders (2016).
    Differs: images are moved before the first layer, where the original masks weights: no blind spot; without gates.

    >>> model = PixelNetwork(width=8, depth=2)
    >>> model.log_prob(model.sample(3, height=4, width=5)).shape
    torch.Size([3])
    """

    def __init__(
        self,
        width: int = PixelNetworkConfig.width,
        depth: int = PixelNetworkConfig.depth,
        kernel_size: int = PixelNetworkConfig.kernel_size,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(PixelNetworkConfig, locals())
        place = {"device": device, "dtype": dtype}
        # Beside each pixel a one, so that zeros inside the image are not the nothing around it.
        self.layers = nn.ModuleList(_TwoStreams(width if k else 2, width, kernel_size, place) for k in range(depth))
        self.head = nn.Conv2d(width, 1, 1, **place)

    def forward(self, x: Float[Tensor, "batch height width"]) -> Float[Tensor, "batch height width"]:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.ndim != 3 or 0 in x.shape[1:]:
            raise ValueError(f"x must be (batch, height, width), got shape {tuple(x.shape)}")
        seen = torch.stack([2 * x - 1, torch.ones_like(x)], 1)  # (batch, 2, height, width)
        above = functional.pad(seen, (0, 0, 1, 0))[:, :, :-1]  # the row above each
        left = functional.pad(seen, (1, 0, 0, 0))[:, :, :, :-1]  # the pixel before each
        for number, layer in enumerate(self.layers):
            up, row = layer(above, left)
            above, left = (above + up, left + row) if number else (up, row)
        return self.head(left.relu())[:, 0]

    def log_prob(self, x: Float[Tensor, "batch height width"]) -> Float[Tensor, " batch"]:
        """The log probability of each image of 0 and 1, in nats."""
        if validate.visible(x) and not bool(((x == 0) | (x == 1)).all()):
            raise ValueError("x must hold only 0 and 1, for a Bernoulli law knows no grey: use (x > 0.5).float()")
        logits = self(x)
        return -functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum((1, 2))

    def loss(self, x: Float[Tensor, "batch height width"]) -> Float[Tensor, ""]:
        """The negative log-likelihood of an image, in the mean over the batch."""
        return -self.log_prob(x).mean()

    @torch.no_grad()
    def sample(
        self, n: int, *, height: int, width: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "n height width"]:
        """So many images of 0 and 1; one pass a pixel, through the rows that matter to it."""
        validate.count("n", n)
        like = self.head.weight
        x = like.new_zeros(n, validate.count("height", height), validate.count("width", width))
        reach = (self.config.kernel_size // 2) * self.config.depth + 1  # rows above that a pixel can depend on
        for row in range(height):
            first = max(0, row - reach)
            for column in range(width):
                chance = torch.rand(n, generator=generator, dtype=like.dtype, device=like.device)
                probability = self(x[:, first : row + 1])[:, -1, column].sigmoid()
                x[:, row, column] = (chance < probability).to(x)
        return x
