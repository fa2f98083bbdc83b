r"""The variational autoencoder: an encoder, a reparameterised sample, a decoder, and the bound that trains both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.activations import activation as known_activation
from lemmata.generative.autoencoders.decoders import (
    BernoulliOutput,
    ContinuousBernoulliOutput,
    GaussianOutput,
    OutputDistribution,
)
from lemmata.generative.autoencoders.elbo import (
    ELBO,
    importance_weighted_bound,
    reparameterize,
    standard_normal_kl,
)
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["MLPVAE", "VAE", "VAEConfig"]

COVARIANCES = ("diagonal", "full")
OUTPUTS = ("bernoulli", "continuous_bernoulli", "gaussian", "learnt_gaussian")


@system(
    "vae",
    title="Variational autoencoder",
    kind="module",
    example="VAE(MLP(6, 4, widths=(8,)), MLP(2, 6, widths=(8,)), latents=2)(torch.randn(5, 6))",
)
class VAE(nn.Module):
    r"""A variational autoencoder of any encoder and decoder; called, it gives the reconstruction at the codes' means.

    $$ \mathcal L(x) = \mathbb E_{q(z|x)}[\log p(x|z)] - D_{KL}(q(z|x)\|\mathcal N(0,I)) \le \log p(x) $$

    The encoder gives 2m numbers for m latents: the mean of $q(z|x)$ and the logarithms of its standard deviations. With
    `covariance="full"` it gives m(m+3)/2: the mean, and a triangular factor of the covariance, row by row, with
    logarithms on its diagonal. The decoder gives one number for each value of an example, of which `output` makes a
    distribution, by default a normal one of variance 1. Pixels and latents are both summed, never averaged: only then
    is it a bound. `kl_weight` counts in the loss alone; `elbo` and `log_prob` stay what they are.

    Shapes:
        x: (batch, ...)    returns: (batch, ...) as the decoder has it; `loss` a scalar, `elbo` and `log_prob` (batch,)

    Claims: vae.marginal, vae.gaussian_encoder
    Source: Kingma and Welling 2014; Rezende, Mohamed and Wierstra 2014; `kl_weight`: Higgins et al. 2017.

    >>> vae = VAE(MLP(6, 4), MLP(2, 6), latents=2)
    >>> x = torch.randn(5, 6)
    >>> vae.elbo(x, samples=10).shape, vae.sample(3).shape
    (torch.Size([5]), torch.Size([3, 6]))
    """

    output: OutputDistribution

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        latents: int,
        output: OutputDistribution | None = None,
        kl_weight: float = 1.0,
        covariance: str = "diagonal",
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = validate.module("encoder", encoder), validate.module("decoder", decoder)
        self.output = GaussianOutput() if output is None else output
        validate.module("output", self.output, OutputDistribution)
        self.latents = validate.count("latents", latents)
        self.kl_weight = validate.number("kl_weight", kl_weight, least=0)
        self.covariance = validate.one_of("covariance", covariance, COVARIANCES)

    def encode(self, x: Float[Tensor, "batch ..."]) -> tuple[Tensor, Tensor]:
        """Mean and scale of q(z|x): standard deviations (batch, latents), or a factor (batch, latents, latents)."""
        m, found = self.latents, self.encoder(x)
        numbers = 2 * m if self.covariance == "diagonal" else m * (m + 3) // 2
        if found.ndim != 2 or found.shape[1] != numbers:
            words = f"{m} latents and a {self.covariance} covariance"
            raise ValueError(f"encoder must give {numbers} numbers for {words}, got shape {tuple(found.shape)}")
        mean, rest = found[:, :m], found[:, m:]
        if self.covariance == "diagonal":
            return mean, rest.exp()
        row, column = torch.tril_indices(m, m, device=rest.device)
        factor = rest.new_zeros(len(rest), m, m).index_put(
            (torch.arange(len(rest), device=rest.device)[:, None], row, column), rest
        )
        return mean, factor.tril(-1) + factor.diagonal(dim1=1, dim2=2).exp().diag_embed()

    def decode(self, z: Float[Tensor, "batch latents"]) -> Tensor:
        """The mean of p(x|z)."""
        return self.output(self.decoder(validate.last_axis("z", z, self.latents, "latent")))

    def forward(self, x: Float[Tensor, "batch ..."]) -> Tensor:
        return self.decode(self.encode(x)[0])

    # --- The bound ---

    def sample_latents(
        self, mean: Tensor, scale: Tensor, samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples batch latents"]:
        """Draws of q(z|x), with gradients in mean and scale."""
        shape = (validate.count("samples", samples), *mean.shape)
        noise = torch.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return reparameterize(mean, scale, noise)

    def log_likelihood(
        self, x: Float[Tensor, "batch ..."], z: Float[Tensor, "samples batch latents"]
    ) -> Float[Tensor, "samples batch"]:
        """The logarithm of p(x|z) for each draw of a code, summed over all values of an example."""
        raw = self.decoder(z.flatten(0, 1)).flatten(1)  # (samples * batch, values)
        if raw.shape[1] != x[:1].numel():
            raise ValueError(f"decoder must give {x[:1].numel()} numbers for each example, got {raw.shape[1]}")
        return self.output.log_prob(x.flatten(1), raw.unflatten(0, z.shape[:2]))

    def terms(self, x: Float[Tensor, "batch ..."], samples: int = 1, generator: torch.Generator | None = None) -> ELBO:
        """Reconstruction, a mean over so many draws, and divergence, exact: one number of each for each example."""
        mean, scale = self.encode(x)
        z = self.sample_latents(mean, scale, samples, generator)
        return ELBO(self.log_likelihood(x, z).mean(0), standard_normal_kl(mean, scale))

    def loss(self, x: Float[Tensor, "batch ..."], samples: int = 1, generator: torch.Generator | None = None) -> Tensor:
        """Minus the bound with the divergence weighted, in nats, a mean over the examples."""
        terms = self.terms(x, samples, generator)
        return (self.kl_weight * terms.kl - terms.reconstruction).mean()

    def elbo(self, x: Float[Tensor, "batch ..."], samples: int = 1, generator: torch.Generator | None = None) -> Tensor:
        """The bound on log p(x) for each example, without bias by so many draws."""
        return self.terms(x, samples, generator).value

    def log_prob(
        self, x: Float[Tensor, "batch ..."], samples: int = 100, generator: torch.Generator | None = None
    ) -> Float[Tensor, " batch"]:
        """An estimate of log p(x) for each example: the importance-weighted bound of so many draws of q(z|x)."""
        mean, scale = self.encode(x)
        shape = (validate.count("samples", samples), *mean.shape)
        noise = torch.randn(shape, generator=generator, dtype=mean.dtype, device=mean.device)
        z = reparameterize(mean, scale, noise)  # (samples, batch, latents)
        own = scale if self.covariance == "diagonal" else scale.diagonal(dim1=-2, dim2=-1)
        # log p(z) - log q(z|x): the constants of both normal densities are the same
        ratio = (noise.square() - z.square()).sum(-1) / 2 + own.log().sum(-1)  # (samples, batch)
        return importance_weighted_bound(self.log_likelihood(x, z) + ratio)

    # --- Samples ---

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draws of x: a code from the standard normal, and values from its decoder's distribution."""
        return self.output.sample(self.decoder(self.sample_prior(n, generator)), generator)

    def sample_prior(self, n: int, generator: torch.Generator | None = None) -> Float[Tensor, "n latents"]:
        """Codes from the standard normal."""
        like = next(self.decoder.parameters())
        shape = (validate.count("n", n), self.latents)
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)

    def extra_repr(self) -> str:
        return f"latents={self.latents}, kl_weight={self.kl_weight:g}, covariance={self.covariance}"


# --- One that plain numbers describe ---


@dataclass(frozen=True)
class VAEConfig:
    """What can be chosen of a variational autoencoder of perceptrons; the inputs follow from the data."""

    latents: int = 8
    """Numbers of a code."""
    widths: tuple[int, ...] = (256,)
    """Units of the encoder's hidden layers; the decoder has the same from the last to the first."""
    activation: str = "relu"
    """Activation of both."""
    output: str = "bernoulli"
    """Law of a value: bernoulli (0 or 1), continuous_bernoulli (between), gaussian or learnt_gaussian."""
    kl_weight: float = 1.0
    """Weight of the divergence in the loss; 1 makes it a bound."""

    def __post_init__(self) -> None:
        validate.count("latents", self.latents)
        for width in self.widths:
            validate.count("widths", width)
        known_activation(self.activation)
        validate.one_of("output", self.output, OUTPUTS)
        validate.number("kl_weight", self.kl_weight, least=0)


@system(
    "mlp_vae",
    title="Variational autoencoder of perceptrons",
    kind="module",
    example="MLPVAE(inputs=6, latents=2, widths=(8,))(torch.randn(5, 6))",
)
class MLPVAE(VAE):
    r"""A variational autoencoder whose encoder and decoder are multilayer perceptrons of mirrored widths.

    $$ q(z|x) = \mathcal N(\mu(x), \mathrm{diag}\,\sigma(x)^2), \qquad x_j | z \sim p(\cdot | F_j(z)) $$

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: (batch, inputs)

    Claims: vae.system, vae.generation
    Source: Kingma and Welling 2014.

    >>> vae = MLPVAE(inputs=64, latents=2, widths=(16,))
    >>> vae.loss(torch.bernoulli(torch.full((5, 8, 8), 0.3))).shape
    torch.Size([])
    """

    def __init__(
        self,
        inputs: int,
        latents: int = VAEConfig.latents,
        widths: Sequence[int] = VAEConfig.widths,
        activation: str = VAEConfig.activation,
        output: str = VAEConfig.output,
        kl_weight: float = VAEConfig.kl_weight,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(VAEConfig, locals())
        made = {"activation": activation, "device": device, "dtype": dtype}
        encoder = MLP(inputs, 2 * latents, widths=config.widths, **made)
        last: Any = encoder.layers[-1]
        nn.init.zeros_(last.weight[latents:])  # q begins as wide as the prior; else exp can be huge
        decoder = MLP(latents, inputs, widths=config.widths[::-1], **made)
        super().__init__(encoder, decoder, latents, _output_by_name(output, device, dtype), kl_weight)
        self.config, self.inputs = config, inputs


def _output_by_name(name: str, device: torch.device | str | None, dtype: torch.dtype | None) -> OutputDistribution:
    if name == "bernoulli":
        return BernoulliOutput()
    if name == "continuous_bernoulli":
        return ContinuousBernoulliOutput()
    return GaussianOutput(learnt=name == "learnt_gaussian", device=device, dtype=dtype)
