r"""A decoder that makes examples of noise, and a critic that judges them: what adversarial models share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.generative.adversarial.deconvolution_network import DeconvolutionNetwork
from lemmata.generative.adversarial.strided_critic import StridedCritic
from lemmata.generative.adversarial.two_player import Player

__all__ = ["AdversarialConfig", "AdversarialPair"]


@dataclass(frozen=True)
class AdversarialConfig:
    """What can be chosen of a decoder and its critic; the shape of an example follows from the data."""

    latent: int = 16
    """Numbers of noise from which an example is made."""
    network: str = "mlp"
    """Both networks: mlp, or convolution for images."""
    widths: tuple[int, ...] = (128, 128)
    """Units of each hidden layer of an mlp."""
    channels: int = 32
    """Channels of the largest maps of a convolution; each level below has twice as many."""

    def __post_init__(self) -> None:
        validate.count("latent", self.latent)
        validate.one_of("network", self.network, ("mlp", "convolution"))
        validate.count("channels", self.channels)


class AdversarialPair(nn.Module, ABC):
    r"""Examples $x = G(z)$ of noise $z \sim \mathcal N(0, I)$, and a critic that gives each example one number.

    Examples of one axis are plain numbers; those of two or three, (height, width) or (channels, height, width), are
    pixels from 0 to 1.

    Shapes:
        x: (batch, *shape)    returns: what the critic says (batch,)
    """

    def __init__(
        self,
        shape: Sequence[int],
        config: AdversarialConfig,
        decoder: nn.Module | None,
        critic: nn.Module | None,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        if not shape or len(shape) > 3:
            raise ValueError(f"shape must be that of one example, such as (2,) or (1, 28, 28), got {tuple(shape)}")
        for size in shape:
            validate.count("shape", size)
        self.shape, self.latent = tuple(shape), config.latent
        options = {"device": device, "dtype": dtype}
        self.decoder = _make_decoder(self.shape, config, options) if decoder is None else decoder
        self.critic = _make_critic(self.shape, config, options) if critic is None else critic
        for name, part in (("decoder", self.decoder), ("critic", self.critic)):
            validate.module(name, part)
        self.check_critic()

    @abstractmethod
    def check_critic(self) -> None:
        """Refuse a critic with which the losses would not mean what they say."""

    @abstractmethod
    def loss(self, x: Tensor, *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What the decoder lowers, on as many examples of its own as x has."""

    @abstractmethod
    def critic_loss(self, x: Tensor, *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What the critic lowers, on x and on as many examples of the decoder."""

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        if validate.tensor("x", x).shape[1:] != self.shape:
            wanted = ", ".join(map(str, self.shape))
            raise ValueError(f"x must be (batch, {wanted}), got shape {tuple(x.shape)}")
        return self.critic(x).flatten()  # (batch, 1) or (batch,) -> (batch,)

    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        """The examples that noise stands for."""
        return self.decoder(validate.inputs("z", z, self.latent))  # (batch, *shape)

    def made(self, n: int, generator: torch.Generator | None = None) -> Float[Tensor, "batch ..."]:
        """As `sample`, with the gradient of the decoder."""
        home = next(self.decoder.parameters())
        z = torch.randn(n, self.latent, generator=generator, device=home.device, dtype=home.dtype)
        return self.decode(z)

    @torch.no_grad()
    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "batch ..."]:
        """So many new examples."""
        return self.made(validate.count("n", n), generator)

    def players(self, lr: float = 1e-3, critic_lr: float | None = None) -> tuple[Player, Player]:
        """The decoder and the critic, for `TwoPlayer(model, *model.players())`."""
        decoder = Player(list(self.decoder.parameters()), lambda model, batch: model.loss(batch.x), lr)
        critic = list(self.critic.parameters())
        return decoder, Player(critic, lambda model, batch: model.critic_loss(batch.x), critic_lr or lr)


def _make_decoder(shape: tuple[int, ...], config: AdversarialConfig, options: dict) -> nn.Module:
    if config.network == "mlp":
        values = torch.Size(shape).numel()
        points = MLP(config.latent, values, config.widths, **options)
        return points if len(shape) == 1 else nn.Sequential(points, nn.Unflatten(1, shape), nn.Sigmoid())
    images = DeconvolutionNetwork(config.latent, _image_shape(shape), config.channels, **options)
    return images if len(shape) == 3 else nn.Sequential(images, nn.Flatten(1, 2))  # (batch, 1, height, width)


def _make_critic(shape: tuple[int, ...], config: AdversarialConfig, options: dict) -> nn.Module:
    if config.network == "mlp":
        return MLP(torch.Size(shape).numel(), 1, config.widths, activation="leaky_relu", **options)
    critic = StridedCritic(_image_shape(shape), config.channels, **options)
    return critic if len(shape) == 3 else nn.Sequential(nn.Unflatten(1, (1, shape[0])), critic)


def _image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(channels, height, width) of an example."""
    if len(shape) == 1:
        raise ValueError(f"network must be mlp for examples that are no images, got 'convolution' for shape {shape}")
    channels, height, width = (1, *shape) if len(shape) == 2 else shape
    return channels, height, width
