r"""Autoencoders whose codes are drawn to a prior: by a discriminator, by a Wasserstein critic, or by kernel means."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.generative.adversarial.gan_losses import discriminator_loss
from lemmata.generative.adversarial.slope_penalty import gradient_penalty
from lemmata.generative.adversarial.two_player import Player
from lemmata.generative.autoencoders.deep_autoencoder import DeepAutoencoder, DeepAutoencoderConfig
from lemmata.marks import system
from lemmata.measure.maximum_mean_discrepancy import mmd
from lemmata.signatures import config_of

__all__ = [
    "AdversarialAutoencoder", "AdversarialAutoencoderConfig", "LatentPenalty", "LatentPenaltyConfig", "MMDAutoencoder",
    "WassersteinAutoencoder", "WassersteinAutoencoderConfig",
]  # fmt: skip

CONSTRAINTS = ("penalty", "clipping")


@dataclass(frozen=True)
class LatentPenaltyConfig(DeepAutoencoderConfig):
    """What can be chosen of an autoencoder with a prior on its codes."""

    penalty_weight: float = 1.0
    """Weight of the distance of codes and prior beside the squared error; 0 leaves a plain autoencoder."""
    pixels: bool = False
    """Whether outputs are pixels from 0 to 1: the decoder then ends in a logistic function."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.number("penalty_weight", self.penalty_weight, least=0)
        validate.flag("pixels", self.pixels)


class LatentPenalty(DeepAutoencoder, ABC):
    r"""An autoencoder with a penalty on the distance of its codes' distribution from a standard normal prior.

    $$ \min_{\phi,\psi}\; \mathbb E\,\|x - \psi(\phi(x))\|^2 + \lambda\,D(\phi_\# p_X, q_z), \qquad
       q_z = \mathcal N(0, I) $$

    Codes need no noise: it is all of them together that follow the prior. Where they do, decoded draws of the prior are
    examples like the data.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: as x

    """

    config: LatentPenaltyConfig

    @abstractmethod
    def penalty(self, codes: Float[Tensor, "n code"], prior: Float[Tensor, "m code"]) -> Float[Tensor, ""]:
        """The distance of two samples of codes, or what a critic takes it for."""

    def decode(self, z: Float[Tensor, "batch code"]) -> Float[Tensor, "batch inputs"]:
        """The examples that codes stand for, as vectors."""
        return self.decoder(z).sigmoid() if self.config.pixels else self.decoder(z)

    def objective(self, x: Float[Tensor, "n ..."], prior: Float[Tensor, "m code"]) -> Float[Tensor, ""]:
        """The squared error of examples and the weighted distance of their codes from draws of the prior."""
        codes = self.encode(x)  # (n, code)
        error = (self.decode(codes) - x.flatten(1)).square().sum(1).mean()
        return error + self.config.penalty_weight * self.penalty(codes, prior)

    def prior(self, n: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "n code"]:
        """So many draws of the prior."""
        home = next(self.decoder.parameters())
        return torch.randn(n, self.config.code, generator=generator, device=home.device, dtype=home.dtype)

    def loss(self, x: Float[Tensor, "n ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What encoder and decoder lower: the objective, with as many draws of the prior as there are examples."""
        return self.objective(x, self.prior(len(x), generator=generator))

    @torch.no_grad()
    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "n inputs"]:
        """So many new examples, as vectors: decoded draws of the prior."""
        return self.decode(self.prior(validate.count("n", n), generator=generator))


@system("mmd_autoencoder", title="MMD autoencoder", kind="module",
        example="MMDAutoencoder(inputs=6, code=2, widths=(8,))(torch.randn(5, 6))")  # fmt: skip
class MMDAutoencoder(LatentPenalty):
    r"""Codes are drawn to the prior by kernel means, without a second player: `fit(model, x)` trains it.

    $$ \mathbb E\,\|x - \psi(\phi(x))\|^2 + \lambda\,\mathrm{MMD}^2(\phi_\# p_X, q_z),
       \qquad k(z, z') = \frac{2m}{2m + \|z-z'\|^2} $$

    The estimate is unbiased; the kernel, with $m$ numbers in a code, has tails that reach codes far away, where a
    Gaussian kernel's gradient vanishes.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: as x
        sample: (n, inputs)

    Claims: ae.latent_prior
    Source: I. Tolstikhin, O. Bousquet, S. Gelly and B. Schölkopf, Wasserstein auto-encoders (2018), WAE-MMD.

    >>> model = MMDAutoencoder(inputs=64, code=8)
    >>> model.loss(torch.rand(5, 8, 8)).shape, model.sample(3).shape
    (torch.Size([]), torch.Size([3, 64]))
    """

    def __init__(
        self,
        inputs: int,
        code: int = LatentPenaltyConfig.code,
        widths: Sequence[int] = LatentPenaltyConfig.widths,
        activation: str = LatentPenaltyConfig.activation,
        penalty_weight: float = LatentPenaltyConfig.penalty_weight,
        pixels: bool = LatentPenaltyConfig.pixels,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(LatentPenaltyConfig, locals())
        super().__init__(inputs, code, widths, activation, device, dtype)
        self.config = config

    def penalty(self, codes: Float[Tensor, "n code"], prior: Float[Tensor, "m code"]) -> Float[Tensor, ""]:
        """The unbiased MMD²; a lone code is far from none, and has no other to be compared with."""
        width = 2.0 * self.config.code

        def inverse_quadratic(x: Tensor, y: Tensor) -> Tensor:
            squared = x.square().sum(1)[:, None] - 2 * x @ y.mT + y.square().sum(1)
            return width / (width + squared.clamp(min=0))

        return mmd(codes, prior, inverse_quadratic, unbiased=min(len(codes), len(prior)) > 1)


# --- With a critic ---


@dataclass(frozen=True)
class AdversarialAutoencoderConfig(LatentPenaltyConfig):
    """What can be chosen of an autoencoder whose codes a critic compares with the prior."""

    critic_widths: tuple[int, ...] = (128, 128)
    """Units of each hidden layer of the critic."""


class CriticPenalty(LatentPenalty):
    """The penalty is what a critic makes of codes and draws of the prior; it raises what the encoder lowers."""

    config: AdversarialAutoencoderConfig

    def __init__(
        self,
        inputs: int,
        config: AdversarialAutoencoderConfig,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__(inputs, config.code, config.widths, config.activation, device, dtype)
        self.config = config
        more = {"activation": "leaky_relu", "device": device, "dtype": dtype}
        self.critic = MLP(config.code, 1, widths=config.critic_widths, **more)

    def critic_loss(self, x: Float[Tensor, "n ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """What the critic lowers, on the codes of x and as many draws of the prior."""
        with torch.no_grad():
            codes = self.encode(x)
        return self.critic_objective(codes, self.prior(len(x), generator=generator), generator)

    def critic_objective(self, codes: Tensor, prior: Tensor, generator: torch.Generator | None) -> Tensor:
        """Minus the penalty."""
        return -self.penalty(codes, prior)

    def after_critic(self) -> None:
        """After each step of the critic."""

    def players(self, lr: float = 1e-3, critic_lr: float | None = None) -> tuple[Player, Player]:
        """Encoder and decoder, and the critic, for `TwoPlayer(model, *model.players())`."""
        own = [*self.encoder.parameters(), *self.decoder.parameters()]
        first = Player(own, lambda model, batch: model.loss(batch.x), lr)
        critic = list(self.critic.parameters())
        return first, Player(
            critic, lambda model, batch: model.critic_loss(batch.x), critic_lr or lr, after=self.after_critic
        )


@system("aae", title="Adversarial autoencoder", kind="module",
        example="AdversarialAutoencoder(inputs=6, code=2, widths=(8,))(torch.randn(5, 6))")  # fmt: skip
class AdversarialAutoencoder(CriticPenalty):
    r"""A discriminator of codes tells them from draws of the prior; the encoder learns to leave it nothing to tell.

    $$ \min_{\phi,\psi}\max_\eta\; \mathbb E\,\|x-\psi(\phi(x))\|^2
       + \lambda\big(\mathbb E_{z\sim q_z}[\ln\eta(z)] + \mathbb E_x[\ln(1-\eta(\phi(x)))]\big) $$

    With the best $\eta$ the bracket is $2D_{JS} - 2\ln 2$. `critic` gives the logit of $\eta$. It is trained by
    `fit(model, x, learner=TwoPlayer(model, *model.players()))`.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: as x
        critic: (batch, code) to (batch, 1)    sample: (n, inputs)

    Claims: aae.objective, aae.jsd_derivation, aae.system, ae.latent_prior
    Source: A. Makhzani, J. Shlens, N. Jaitly, I. Goodfellow and B. Frey, Adversarial autoencoders (2015).
    Differs: does not pass `used_parameters`, for a reconstruction does not depend on the critic.

    >>> model = AdversarialAutoencoder(inputs=64, code=8)
    >>> model(torch.rand(5, 8, 8)).shape, model.sample(3).shape, model.critic_loss(torch.rand(5, 8, 8)).shape
    (torch.Size([5, 8, 8]), torch.Size([3, 64]), torch.Size([]))
    """

    def __init__(
        self,
        inputs: int,
        code: int = AdversarialAutoencoderConfig.code,
        widths: Sequence[int] = AdversarialAutoencoderConfig.widths,
        activation: str = AdversarialAutoencoderConfig.activation,
        penalty_weight: float = AdversarialAutoencoderConfig.penalty_weight,
        pixels: bool = AdversarialAutoencoderConfig.pixels,
        critic_widths: Sequence[int] = AdversarialAutoencoderConfig.critic_widths,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, config_of(AdversarialAutoencoderConfig, locals()), device, dtype)

    def penalty(self, codes: Float[Tensor, "n code"], prior: Float[Tensor, "m code"]) -> Float[Tensor, ""]:
        """The mean log-probability of right answers, of both kinds together: -2 ln 2 for a critic that guesses."""
        return -2 * discriminator_loss(self.critic(prior), self.critic(codes))


@dataclass(frozen=True)
class WassersteinAutoencoderConfig(AdversarialAutoencoderConfig):
    """What can be chosen of an autoencoder with a critic of bounded slope."""

    constraint: str = "penalty"
    """What bounds the critic's slope: penalty (of its gradient), or clipping of its weights."""
    slope_weight: float = 10.0
    """Weight of the gradient penalty."""
    largest_weight: float = 0.05
    """Largest size of a weight where they are clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.one_of("constraint", self.constraint, CONSTRAINTS)
        validate.positive("slope_weight", self.slope_weight)
        validate.positive("largest_weight", self.largest_weight)


@system("waae", title="Wasserstein adversarial autoencoder", kind="module",
        example="WassersteinAutoencoder(inputs=6, code=2, widths=(8,))(torch.randn(5, 6))")  # fmt: skip
class WassersteinAutoencoder(CriticPenalty):
    r"""A critic of bounded slope measures how far codes must be moved to follow the prior; the encoder moves them.

    $$ \min_{\phi,\psi}\max_{\|\eta\|_L\le1}\; \mathbb E\,\|x-\psi(\phi(x))\|^2
       + \lambda\big(\mathbb E_x[\eta(\phi(x))] - \mathbb E_{z\sim q_z}[\eta(z)]\big) $$

    With the best $\eta$ the bracket is $W_1$. The slope is held near 1 by a gradient penalty, or below some number by
    clipping each weight. It is trained by `fit(model, x, learner=TwoPlayer(model, *model.players(), critic_steps=5))`.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: as x
        critic: (batch, code) to (batch, 1)    sample: (n, inputs)

    Claims: wasserstein.waae, ae.latent_prior
    Source: M. Arjovsky, S. Chintala and L. Bottou 2017, on codes; I. Tolstikhin et al. 2018.
    Differs: does not pass `used_parameters`, for a reconstruction does not depend on the critic.

    >>> model = WassersteinAutoencoder(inputs=64, code=8, constraint="clipping")
    >>> model.critic_loss(torch.rand(5, 8, 8)).shape
    torch.Size([])
    """

    config: WassersteinAutoencoderConfig

    def __init__(
        self,
        inputs: int,
        code: int = WassersteinAutoencoderConfig.code,
        widths: Sequence[int] = WassersteinAutoencoderConfig.widths,
        activation: str = WassersteinAutoencoderConfig.activation,
        penalty_weight: float = WassersteinAutoencoderConfig.penalty_weight,
        pixels: bool = WassersteinAutoencoderConfig.pixels,
        critic_widths: Sequence[int] = WassersteinAutoencoderConfig.critic_widths,
        constraint: str = WassersteinAutoencoderConfig.constraint,
        slope_weight: float = WassersteinAutoencoderConfig.slope_weight,
        largest_weight: float = WassersteinAutoencoderConfig.largest_weight,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(inputs, config_of(WassersteinAutoencoderConfig, locals()), device, dtype)
        self.after_critic()

    def penalty(self, codes: Float[Tensor, "n code"], prior: Float[Tensor, "m code"]) -> Float[Tensor, ""]:
        r"""The critic's estimate of $W_1$, at most that where its slope is at most 1."""
        return self.critic(codes).mean() - self.critic(prior).mean()

    def critic_objective(self, codes: Tensor, prior: Tensor, generator: torch.Generator | None) -> Tensor:
        """Minus the distance, and the penalty on slopes other than 1."""
        if self.config.constraint == "clipping":
            return -self.penalty(codes, prior)
        slopes = gradient_penalty(self.critic, prior, codes, generator=generator)
        return self.config.slope_weight * slopes - self.penalty(codes, prior)

    @torch.no_grad()
    def after_critic(self) -> None:
        """Every weight of the critic back to at most `largest_weight`, where that is the constraint."""
        if self.config.constraint == "clipping":
            for weight in self.critic.parameters():
                weight.clamp_(-self.config.largest_weight, self.config.largest_weight)
