r"""A small U-Net that is given the time in every block: the denoiser of images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.convolution.image_input import images
from lemmata.generative.diffusion.denoiser_mlp import encoded_time
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.self_attention import SelfAttention

__all__ = ["DenoiserUNet", "DenoiserUNetConfig"]


@dataclass(frozen=True)
class DenoiserUNetConfig:
    """Configuration of a denoiser of images; their channels follow from the data."""

    widths: tuple[int, ...] = (32, 64)
    """Channels of each level; each has half the resolution of that above it."""
    blocks: int = 1
    """Residual blocks of each level on the way down; one more on the way up."""
    attention: bool = True
    """Whether the pixels of the lowest level look at each other."""
    groups: int = 8
    """Groups of channels that are normalised together."""
    dropout: float = 0.0
    """Dropout probability inside the blocks."""
    patch: int = 1
    """Side of the squares of pixels that enter as channels of one: 2 halves the resolution, and the work by four."""

    def __post_init__(self) -> None:
        if not isinstance(self.widths, tuple) or not self.widths:
            raise TypeError(f"widths must be a tuple of integers such as (32, 64), got {self.widths!r}")
        validate.count("groups", self.groups)
        for width in self.widths:
            if validate.count("widths", width) % (2 * self.groups // math.gcd(2, self.groups)):
                raise ValueError(f"widths must be even multiples of groups={self.groups}, got {width}")
        validate.count("blocks", self.blocks)
        validate.flag("attention", self.attention)
        validate.fraction("dropout", self.dropout)
        validate.count("patch", self.patch)


@system(
    "denoiser_unet",
    title="Denoiser of images",
    kind="module",
    example="DenoiserUNet(channels=1, widths=(4, 8), groups=2)(torch.randn(3, 1, 6, 7), torch.rand(3))",
)
class DenoiserUNet(nn.Module):
    r"""Down and up again by residual blocks that know the time, with what was seen on the way down.

    $$ e_\ell = C_\ell(D e_{\ell-1}, \tau), \qquad d_\ell = C'_\ell\big(e_\ell, U d_{\ell+1}, \tau\big), \qquad
       C(x, \tau) = W x + K_2\, \sigma\big((1 + a_\tau) \odot N(K_1 \sigma(N x)) + b_\tau\big) $$

    $\tau$ is the time as sines and cosines through two affine maps, of which every block makes its scale $a_\tau$ and
    shift $b_\tau$; $N$ normalises groups of channels, so that an image never hears of the others in its batch; $D$ is a
    convolution of stride 2, $U$ repeats pixels to the size that was left, whatever it was: sides may be odd. On the
    lowest level pixels look at each other. The last convolution is zero at first, and says that there is no noise.

    Shapes:
        x: (batch, channels, height, width), time: (batch,)    returns: as x

    Source: Ronneberger, Fischer and Brox 2015; Ho, Jain and Abbeel 2020; scale and shift: Dhariwal and Nichol 2021.
    Differs: pixels look at each other on the lowest level alone.

    >>> DenoiserUNet()(torch.randn(2, 1, 9, 8), torch.rand(2)).shape
    torch.Size([2, 1, 9, 8])
    """

    def __init__(
        self,
        channels: int = 1,
        widths: Sequence[int] = DenoiserUNetConfig.widths,
        blocks: int = DenoiserUNetConfig.blocks,
        attention: bool = DenoiserUNetConfig.attention,
        groups: int = DenoiserUNetConfig.groups,
        dropout: float = DenoiserUNetConfig.dropout,
        patch: int = DenoiserUNetConfig.patch,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config = config_of(DenoiserUNetConfig, locals())
        self.channels = validate.count("channels", channels)
        place = {"device": device, "dtype": dtype}
        first, last = config.widths[0], config.widths[-1]
        block = {"time": 4 * first, "groups": config.groups, "dropout": config.dropout, "place": place}
        self.time = nn.Sequential(
            nn.Linear(first, 4 * first, **place), nn.SiLU(), nn.Linear(4 * first, 4 * first, **place)
        )
        self.stem = nn.Conv2d(channels * patch**2, first, 3, padding=1, **place)
        self.shrink = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2, padding=1, **place) for a, b in pairwise(config.widths)
        )
        self.down = nn.ModuleList(
            nn.ModuleList(_ResidualBlock(width, width, **block) for _ in range(config.blocks))
            for width in config.widths
        )
        self.before, self.after = (_ResidualBlock(last, last, **block) for _ in range(2))
        self.attend = _PixelAttention(last, config.groups, place) if attention else None
        upwards = config.widths[::-1]  # the lowest level first
        self.up = nn.ModuleList(
            nn.ModuleList(_ResidualBlock(2 * width, width, **block) for _ in range(config.blocks + 1))
            for width in upwards
        )
        self.enlarge = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1, **place) for b, a in pairwise(upwards))
        self.normalise = nn.GroupNorm(config.groups, first, **place)
        self.head = nn.Conv2d(first, channels * patch**2, 3, padding=1, **place)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights anew: torch's own, but zero where a block or the network ends."""
        for part in self.modules():
            if part is not self and hasattr(part, "reset_parameters"):
                part.reset_parameters()  # type: ignore[operator]
        ends = [part.second for part in self.modules() if isinstance(part, _ResidualBlock)]
        for end in [*ends, self.head]:
            nn.init.zeros_(end.weight)
            nn.init.zeros_(end.bias)  # type: ignore[arg-type]

    def forward(
        self, x: Float[Tensor, "batch channels height width"], time: Float[Tensor, " batch"]
    ) -> Float[Tensor, "batch channels height width"]:
        images("x", x, self.channels)
        if x.shape[2] % self.config.patch or x.shape[3] % self.config.patch:
            sides = f"{x.shape[2]} x {x.shape[3]}"
            raise ValueError(f"x must have sides that are multiples of patch={self.config.patch}, got {sides}")
        said = functional.silu(self.time(encoded_time(time, x, self.config.widths[0])))  # (batch, 4 width)
        hidden = self.stem(functional.pixel_unshuffle(x, self.config.patch))  # (batch, width, height, width)
        seen = [hidden]
        for level, blocks in enumerate(self.down):
            if level:
                hidden = self.shrink[level - 1](hidden)  # half the size, rounded up
                seen.append(hidden)
            for block in blocks:  # type: ignore[attr-defined]
                hidden = block(hidden, said)
                seen.append(hidden)
        hidden = self.before(hidden, said)
        hidden = self.after(hidden if self.attend is None else self.attend(hidden), said)
        for level, blocks in enumerate(self.up):
            if level:
                hidden = functional.interpolate(hidden, size=seen[-1].shape[2:])  # the size that was left
                hidden = self.enlarge[level - 1](hidden)
            for block in blocks:  # type: ignore[attr-defined]
                hidden = block(torch.cat([hidden, seen.pop()], dim=1), said)
        hidden = self.head(functional.silu(self.normalise(hidden)))
        return functional.pixel_shuffle(hidden, self.config.patch)  # (batch, channels, height, width)

    def extra_repr(self) -> str:
        return f"widths={self.config.widths}, blocks={self.config.blocks}"


class _ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut; the time scales and shifts what is between them."""

    def __init__(
        self, inputs: int, outputs: int, time: int, groups: int, dropout: float, place: dict[str, Any]
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.normalise = nn.ModuleList(nn.GroupNorm(groups, channels, **place) for channels in (inputs, outputs))
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1, **place)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, **place)
        self.time = nn.Linear(time, 2 * outputs, **place)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, **place)

    def forward(self, x: Tensor, said: Tensor) -> Tensor:
        hidden = self.first(functional.silu(self.normalise[0](x)))  # (batch, outputs, height, width)
        scale, shift = self.time(said)[:, :, None, None].chunk(2, dim=1)  # each (batch, outputs, 1, 1)
        hidden = functional.silu(torch.addcmul(shift, self.normalise[1](hidden), 1 + scale))
        hidden = functional.dropout(hidden, self.dropout, self.training)
        return self.shortcut(x) + self.second(hidden)


class _PixelAttention(nn.Module):
    """Every pixel looks at every other, beside a shortcut."""

    def __init__(self, width: int, groups: int, place: dict[str, Any]) -> None:
        super().__init__()
        self.normalise = nn.GroupNorm(groups, width, **place)
        self.attention = SelfAttention(width, heads=max(1, width // 64), **place)

    def forward(self, x: Tensor) -> Tensor:
        pixels = self.normalise(x).flatten(2).mT  # (batch, pixels, width)
        return x + self.attention(pixels).mT.unflatten(2, x.shape[2:])
