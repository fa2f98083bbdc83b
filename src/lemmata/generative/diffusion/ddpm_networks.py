r"""Diffusion models with the denoisers of this room, which plain numbers describe."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lemmata import validate
from lemmata.generative.diffusion.ddpm import DDPM, DDPMConfig
from lemmata.generative.diffusion.denoiser_mlp import DenoiserMLP, DenoiserMLPConfig
from lemmata.generative.diffusion.denoiser_unet import DenoiserUNet, DenoiserUNetConfig
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["ImageDDPM", "ImageDDPMConfig", "PointDDPM", "PointDDPMConfig"]


@dataclass(frozen=True)
class PointDDPMConfig(DDPMConfig, DenoiserMLPConfig):
    """What can be chosen of a diffusion model of points."""

    def __post_init__(self) -> None:
        DDPMConfig.__post_init__(self)
        DenoiserMLPConfig.__post_init__(self)


@dataclass(frozen=True)
class ImageDDPMConfig(DDPMConfig, DenoiserUNetConfig):
    """What can be chosen of a diffusion model of images."""

    def __post_init__(self) -> None:
        DDPMConfig.__post_init__(self)
        DenoiserUNetConfig.__post_init__(self)


@system(
    "ddpm_points",
    title="Denoising diffusion model of points",
    kind="module",
    example="PointDDPM(features=3, widths=(8,), noising_steps=20)(torch.randn(5, 3), torch.randint(1, 21, (5,)))",
)
class PointDDPM(DDPM):
    r"""A `DDPM` whose denoiser is a `DenoiserMLP`.

    Shapes:
        x: (batch, features), t: (batch,) of integers from 1 to noising_steps    returns: (batch, features)

    Claims: ddpm.system, diffusion.score_model
    Source: Ho, Jain and Abbeel 2020.

    >>> PointDDPM(features=2, noising_steps=50).sample(3).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        features: int,
        widths: Sequence[int] = PointDDPMConfig.widths,
        activation: str = PointDDPMConfig.activation,
        time_width: int = PointDDPMConfig.time_width,
        noising_steps: int = PointDDPMConfig.noising_steps,
        noise_schedule: str = PointDDPMConfig.noise_schedule,
        target: str = PointDDPMConfig.target,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(PointDDPMConfig, locals())
        place = {"device": device, "dtype": dtype}
        network = DenoiserMLP(features, config.widths, config.activation, config.time_width, **place)
        super().__init__(network, (features,), config.noising_steps, config.noise_schedule, config.target)
        self.config, self.features = config, features


@system(
    "ddpm_images",
    title="Denoising diffusion model of images",
    kind="module",
    example="ImageDDPM(1, 6, 7, widths=(4,), groups=2)(torch.randn(3, 1, 6, 7), torch.randint(1, 1001, (3,)))",
)
class ImageDDPM(DDPM):
    r"""A `DDPM` whose denoiser is a `DenoiserUNet`; pixels run from -1 to 1.

    Shapes:
        x: (batch, channels, height, width), t: (batch,) of integers from 1 to noising_steps    returns: as x

    Source: Ho, Jain and Abbeel 2020.

    >>> ImageDDPM(channels=1, height=8, width=8).sample(3, sampler="ddim", steps=5).shape
    torch.Size([3, 1, 8, 8])
    """

    def __init__(
        self,
        channels: int,
        height: int,
        width: int,
        widths: Sequence[int] = ImageDDPMConfig.widths,
        blocks: int = ImageDDPMConfig.blocks,
        attention: bool = ImageDDPMConfig.attention,
        groups: int = ImageDDPMConfig.groups,
        dropout: float = ImageDDPMConfig.dropout,
        patch: int = ImageDDPMConfig.patch,
        noising_steps: int = ImageDDPMConfig.noising_steps,
        noise_schedule: str = ImageDDPMConfig.noise_schedule,
        target: str = ImageDDPMConfig.target,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(ImageDDPMConfig, locals())
        place = {"device": device, "dtype": dtype}
        network = DenoiserUNet(
            channels,
            config.widths,
            config.blocks,
            config.attention,
            config.groups,
            config.dropout,
            config.patch,
            **place,
        )
        shape = (channels, validate.count("height", height), validate.count("width", width))
        super().__init__(network, shape, config.noising_steps, config.noise_schedule, config.target, bounds=(-1.0, 1.0))
        self.config, self.channels, self.height, self.width = config, channels, height, width
