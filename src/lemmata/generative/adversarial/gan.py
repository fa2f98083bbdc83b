r"""The generative adversarial network: a decoder learns to deceive a critic that learns not to be deceived."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.generative.adversarial.adversarial_pair import AdversarialConfig, AdversarialPair
from lemmata.generative.adversarial.gan_losses import discriminator_loss, minimax_loss, non_saturating_loss
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["GAN", "GANConfig"]

LOSSES = {"non_saturating": non_saturating_loss, "minimax": minimax_loss}


@dataclass(frozen=True)
class GANConfig(AdversarialConfig):
    """What can be chosen of an adversarial network."""

    decoder_loss: str = "non_saturating"
    """What the decoder lowers: non_saturating, or minimax."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("decoder_loss", self.decoder_loss, LOSSES)


@system("gan", title="Generative adversarial network", kind="module",
        example="GAN((3,), latent=4, widths=(8,))(torch.randn(5, 3))")  # fmt: skip
class GAN(AdversarialPair):
    r"""A decoder that makes examples of noise, against a critic that gives the logit of an example being real.

    $$ \min_G \max_a\; \mathbb E_{x\sim p} \ln \sigma(a(x)) + \mathbb E_{z} \ln(1 - \sigma(a(G(z)))) $$

    Each of the two has a loss of its own, so it is not `fit(model, x)` but `fit(model, x, learner=TwoPlayer(model,
    *model.players()))` that trains it. Networks of your own take the place of those made here: `decoder` maps (batch,
    latent) to (batch, *shape), `critic` (batch, *shape) to one logit an example.

    Shapes:
        x: (batch, *shape)    returns: logits (batch,)

    Claims: gan.system, gan.mode_collapse, gan.non_saturating
    Source: I. Goodfellow et al., Generative adversarial nets (2014).
    Differs: does not pass `used_parameters`, for what the critic says of x does not depend on the decoder.

    >>> model = GAN((2,), latent=3, widths=(16,))
    >>> model.sample(5, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([5, 2])
    >>> model.loss(torch.randn(8, 2)).shape
    torch.Size([])
    """

    def __init__(
        self,
        shape: Sequence[int],
        latent: int = GANConfig.latent,
        network: str = GANConfig.network,
        widths: Sequence[int] = GANConfig.widths,
        channels: int = GANConfig.channels,
        decoder_loss: str = GANConfig.decoder_loss,
        decoder: nn.Module | None = None,
        critic: nn.Module | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.config = config_of(GANConfig, locals())
        super().__init__(shape, self.config, decoder, critic, device, dtype)

    def check_critic(self) -> None:
        """Probabilities in the place of logits would pass through a second sigmoid: no logit would exceed 1."""
        *_, last = [part for part in self.critic.modules() if not list(part.children())]
        if isinstance(last, nn.Sigmoid | nn.LogSigmoid):
            raise ValueError(f"critic must give logits, but ends in {type(last).__name__}: leave it out")

    def loss(self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What the decoder lowers, on as many examples of its own as x has."""
        return LOSSES[self.config.decoder_loss](self(self.made(len(x), generator)))

    def critic_loss(
        self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None
    ) -> Float[Tensor, ""]:
        """What the critic lowers, on x and on as many examples of the decoder."""
        return discriminator_loss(self(x), self(self.sample(len(x), generator=generator)))
