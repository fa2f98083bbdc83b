r"""U-Net: a network that gives every pixel a class."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["UNet", "UNetConfig"]


@dataclass(frozen=True)
class UNetConfig:
    """Configuration of a U-Net; channels and classes follow from the data."""

    width: int = 64
    """Channels of the first level; each level below has twice as many."""
    levels: int = 4
    """Number of times the resolution is halved."""
    same: bool = True
    """Whether convolutions are padded to keep the size; the original's are not: 572 x 572 pixels become 388 x 388."""

    def __post_init__(self) -> None:
        validate.count("width", self.width)
        validate.count("levels", self.levels, most=8)
        validate.flag("same", self.same)


@system(
    "unet",
    title="U-Net",
    kind="module",
    example="UNet(channels=3, classes=2, width=4, levels=2)(torch.randn(3, 3, 16, 24))",
)
class UNet(nn.Module):
    r"""Down by convolutions and max pooling, up by transposed convolutions, with what was seen on the way down.

    $$ e_\ell = C_\ell(P e_{\ell-1}), \qquad d_\ell = D_\ell\big(\operatorname{crop} e_\ell,\; U_\ell d_{\ell+1}\big),
       \qquad f(x) = K * d_0 $$

    $C_\ell$ and $D_\ell$ are two 3 x 3 convolutions with relu, $P$ a 2 x 2 max pooling, $U_\ell$ a 2 x 2 transposed
    convolution of stride 2 that halves the channels; both arguments of $D_\ell$ are concatenated, and $K$ is 1 x 1.

    Shapes:
        x: (batch, channels, height, width)    returns: logits (batch, classes, height, width), smaller unless `same`;
        sides are multiples of 2^levels if `same`, and else even before every pooling

    Claims: conv.unet
    Source: O. Ronneberger, P. Fischer and T. Brox, U-Net: convolutional networks for biomedical image segmentation
        (2015).
    Differs: sizes are kept by default; no dropout. Initial weights are He's.

    >>> UNet(channels=3, classes=5, width=4, levels=2)(torch.rand(2, 3, 32, 48)).shape
    torch.Size([2, 5, 32, 48])
    >>> UNet(same=False, device="meta")(torch.empty(1, 1, 572, 572, device="meta")).shape
    torch.Size([1, 2, 388, 388])
    """

    def __init__(
        self,
        channels: int = 1,
        classes: int = 2,
        width: int = UNetConfig.width,
        levels: int = UNetConfig.levels,
        same: bool = UNetConfig.same,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(UNetConfig, locals())
        self.channels, self.classes = validate.count("channels", channels), validate.count("classes", classes)
        place = {"device": device, "dtype": dtype}
        widths = [width * 2**level for level in range(levels + 1)]
        self.down = nn.ModuleList(
            _double_convolution(inputs, outputs, same, place)
            for inputs, outputs in zip([channels, *widths], widths, strict=False)
        )
        upwards = widths[:-1][::-1]  # the lowest level first
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * n, n, 2, stride=2, **place) for n in upwards)
        self.join = nn.ModuleList(_double_convolution(2 * n, n, same, place) for n in upwards)
        self.head = nn.Conv2d(width, classes, 1, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: He's, without constants."""
        for part in self.modules():
            if isinstance(part, (nn.Conv2d, nn.ConvTranspose2d)):
                # Each value of a transposed convolution of stride 2 comes from one place: its fan-in is its channels.
                fan_in = part.in_channels * (9 if part.kernel_size == (3, 3) else 1)
                nn.init.normal_(part.weight, std=(2 / fan_in) ** 0.5)
                assert part.bias is not None
                nn.init.zeros_(part.bias)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes rows columns"]:
        self._check_sides(images("x", x, self.channels))
        seen = [self.down[0](x)]  # (batch, width, height, width)
        for level in self.down[1:]:
            seen.append(level(functional.max_pool2d(seen[-1], 2)))  # twice the channels, half the size
        hidden = seen.pop()
        for up, join in zip(self.up, self.join, strict=True):
            hidden = up(hidden)  # half the channels, twice the size
            hidden = join(torch.cat([_crop_maps(seen.pop(), hidden), hidden], dim=1))
        return self.head(hidden)  # (batch, classes, rows, columns)

    def _check_sides(self, x: Tensor) -> None:
        """Sides that can be halved on every level, and of which something is left at the end."""
        lost = 0 if self.config.same else 4  # pixels, by two convolutions
        for side in x.shape[2:]:
            size, even = side - lost, True
            for _ in range(self.config.levels):
                even, size = even and size % 2 == 0, size // 2 - lost
            for _ in range(self.config.levels):
                size = 2 * size - lost
            if not even or size < 1:
                wanted = f"multiples of {2**self.config.levels}" if self.config.same else "even before every pooling"
                told = f"got {x.shape[2]} x {x.shape[3]}: pad or crop it"
                raise ValueError(f"x must have sides that are {wanted}, {told}")

    def extra_repr(self) -> str:
        return f"width={self.config.width}, levels={self.config.levels}, same={self.config.same}"


def _double_convolution(inputs: int, outputs: int, same: bool, place: dict) -> nn.Sequential:
    first = nn.Conv2d(inputs, outputs, 3, padding=int(same), **place)
    second = nn.Conv2d(outputs, outputs, 3, padding=int(same), **place)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())


def _crop_maps(maps: Tensor, like: Tensor) -> Tensor:
    """The middle of the maps, as large as another."""
    top, left = ((maps.shape[axis] - like.shape[axis]) // 2 for axis in (2, 3))
    return maps[:, :, top : top + like.shape[2], left : left + like.shape[3]]
