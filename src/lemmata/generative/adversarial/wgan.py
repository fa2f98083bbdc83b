r"""The Wasserstein adversarial network: a critic of bounded slope measures how far two distributions are apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from lemmata import validate
from lemmata.generative.adversarial.adversarial_pair import AdversarialConfig, AdversarialPair
from lemmata.generative.adversarial.slope_penalty import gradient_penalty
from lemmata.generative.adversarial.two_player import Player
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.tricks.batch_norm import BatchNorm

__all__ = ["WGAN", "WGANConfig"]

CONSTRAINTS = ("penalty", "clipping", "spectral")


@dataclass(frozen=True)
class WGANConfig(AdversarialConfig):
    """What can be chosen of a Wasserstein network."""

    constraint: str = "penalty"
    """What bounds the critic's slope: penalty, clipping of its weights, or spectral normalisation of its layers."""
    penalty_weight: float = 10.0
    """Weight of the gradient penalty."""
    largest_weight: float = 0.01
    """Largest size of a weight where they are clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("constraint", self.constraint, CONSTRAINTS)
        validate.positive("penalty_weight", self.penalty_weight)
        validate.positive("largest_weight", self.largest_weight)


@system("wgan", title="Wasserstein adversarial network", kind="module",
        example="WGAN((3,), latent=4, widths=(8,))(torch.randn(5, 3))")  # fmt: skip
class WGAN(AdversarialPair):
    r"""A decoder against a critic that may be no steeper than 1, whose best value is the distance $W_1$.

    $$ \min_G \max_{\|\eta\|_L \le 1}\; \mathbb E_{x\sim p}\, \eta(x) - \mathbb E_z\, \eta(G(z)) $$

    The slope is held near 1 by a gradient penalty (`penalty`), below some unknown number by clipping each weight after
    each step of the critic (`clipping`), or at most 1 by dividing each layer by its spectral norm (`spectral`). As
    `GAN`, it is trained by `TwoPlayer(model, *model.players(), critic_steps=5)`.

    Shapes:
        x: (batch, *shape)    returns: what the critic says (batch,)

    Claims: wasserstein.wgan
    Source: M. Arjovsky, S. Chintala and L. Bottou 2017; I. Gulrajani et al. 2017; T. Miyato et al. 2018.
    Differs: the spectral norm of a convolution is that of its kernel as a matrix, as in the paper, not of the map.
        Does not pass `used_parameters`, for what the critic says of x does not depend on the decoder.

    >>> model = WGAN((2,), latent=3, widths=(16,))
    >>> model.critic_loss(torch.randn(8, 2)).shape
    torch.Size([])
    """

    def __init__(
        self,
        shape: Sequence[int],
        latent: int = WGANConfig.latent,
        network: str = WGANConfig.network,
        widths: Sequence[int] = WGANConfig.widths,
        channels: int = WGANConfig.channels,
        constraint: str = WGANConfig.constraint,
        penalty_weight: float = WGANConfig.penalty_weight,
        largest_weight: float = WGANConfig.largest_weight,
        decoder: nn.Module | None = None,
        critic: nn.Module | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.config = config_of(WGANConfig, locals())
        super().__init__(shape, self.config, decoder, critic, device, dtype)
        if constraint == "spectral":
            for part in self.critic.modules():
                if isinstance(part, nn.Linear | nn.Conv2d):
                    parametrizations.spectral_norm(part)
        self.clip_critic()

    def check_critic(self) -> None:
        """With batch normalisation what the critic says of one example depends on the others: it has no slope."""
        kinds = (nn.modules.batchnorm._BatchNorm, BatchNorm)
        for name, part in self.critic.named_modules():
            if isinstance(part, kinds):
                raise ValueError(
                    f"critic must judge each example by itself, but {name or 'it'} is a {type(part).__name__}: "
                    "use a LayerNorm, or none"
                )

    def loss(self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What the decoder lowers, on as many examples of its own as x has."""
        return -self(self.made(len(x), generator)).mean()

    def critic_loss(
        self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None
    ) -> Float[Tensor, ""]:
        """What the critic lowers, on x and on as many examples of the decoder: minus the distance, and the penalty."""
        fake = self.sample(len(x), generator=generator)
        apart = self.distance(x, fake)
        if self.config.constraint != "penalty":
            return -apart
        return self.config.penalty_weight * self.penalty(x, fake, generator=generator) - apart

    def distance(self, real: Float[Tensor, "m ..."], fake: Float[Tensor, "n ..."]) -> Float[Tensor, ""]:
        r"""The critic's estimate of $W_1$, at most that where its slope is at most 1."""
        return self(real).mean() - self(fake).mean()

    def penalty(self, real: Tensor, fake: Tensor, *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """The gradient penalty between two batches."""
        return gradient_penalty(self, real, fake, generator=generator)

    @torch.no_grad()
    def clip_critic(self) -> None:
        """Every weight of the critic back to at most `largest_weight`, where that is the constraint."""
        if self.config.constraint == "clipping":
            for weight in self.critic.parameters():
                weight.clamp_(-self.config.largest_weight, self.config.largest_weight)

    def players(self, lr: float = 1e-3, critic_lr: float | None = None) -> tuple[Player, Player]:
        """The decoder and the critic, whose weights are clipped after each of its steps where that is wanted."""
        decoder, critic = super().players(lr, critic_lr)
        return decoder, replace(critic, after=self.clip_critic)
