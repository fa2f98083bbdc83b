r"""The linear variational autoencoder, whose bound, gap and optimum are known: probabilistic PCA."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.probability.structured_gaussians import LowRankGaussian
from lemmata.generative.autoencoders.decoders import GaussianOutput
from lemmata.generative.autoencoders.elbo import ELBO, linear_gaussian_elbo
from lemmata.generative.autoencoders.vae import COVARIANCES, VAE
from lemmata.marks import system

__all__ = ["LinearVAE"]


@system(
    "linear_vae",
    title="Linear variational autoencoder",
    kind="module",
    example="LinearVAE(inputs=5, latents=2)(torch.randn(4, 5))",
)
class LinearVAE(VAE):
    r"""A variational autoencoder of affine maps with one spread for all examples: all it says is known in closed form.

    $$ q(z|x) = \mathcal N(Ax + a, LL^\top), \qquad p(x|z) = \mathcal N(Wz + b, s^2I) $$

    At its optimum it is probabilistic PCA with noise `kl_weight` times $s^2$. With a diagonal spread the columns of W
    become orthogonal, along the principal axes; a full one leaves them any rotation.

    Shapes:
        x: (batch, inputs)    returns: (batch, inputs)

    Claims: vae.system, vae.gaussian_encoder, vae.factors
    Source: Lucas, Tucker, Grosse and Norouzi 2019.

    >>> vae = LinearVAE(inputs=5, latents=2, variance=0.1)
    >>> x = torch.randn(4, 5)
    >>> bool((vae.exact_terms(x).value <= vae.exact_log_prob(x)).all())
    True
    """

    def __init__(
        self,
        inputs: int,
        latents: int,
        variance: float = 1.0,
        kl_weight: float = 1.0,
        covariance: str = "diagonal",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        validate.one_of("covariance", covariance, COVARIANCES)
        numbers = latents if covariance == "diagonal" else latents * (latents + 1) // 2
        encoder = _SharedSpread(inputs, latents, numbers, device, dtype)
        decoder = MLP(latents, inputs, widths=(), device=device, dtype=dtype)
        super().__init__(encoder, decoder, latents, GaussianOutput(variance), kl_weight, covariance)
        self.inputs, self.variance = inputs, variance

    @property
    def weight(self) -> Float[Tensor, "inputs latents"]:
        """The decoder's matrix."""
        return self.decoder.layers[0].weight  # type: ignore[union-attr, return-value, index]

    @property
    def bias(self) -> Float[Tensor, " inputs"]:
        """The decoder's bias."""
        return self.decoder.layers[0].bias  # type: ignore[union-attr, return-value, index]

    def exact_terms(self, x: Float[Tensor, "batch inputs"]) -> ELBO:
        """Both terms of the bound without a sample."""
        return linear_gaussian_elbo(x, *self.encode(x), self.weight, self.bias, self.variance)

    def exact_loss(self, x: Float[Tensor, "batch inputs"]) -> Tensor:
        """What `loss` is in expectation."""
        terms = self.exact_terms(x)
        return (self.kl_weight * terms.kl - terms.reconstruction).mean()

    def exact_log_prob(self, x: Float[Tensor, "batch inputs"]) -> Float[Tensor, " batch"]:
        r"""The evidence itself: $\log\mathcal N(x; b, WW^\top + s^2I)$."""
        noise = torch.full_like(self.bias, self.variance)
        return LowRankGaussian(self.bias, self.weight, noise).log_density(x)


class _SharedSpread(nn.Module):
    """An affine map to the means, and beside them the same numbers of the spread for every example."""

    def __init__(
        self,
        inputs: int,
        latents: int,
        numbers: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.mean = MLP(inputs, latents, widths=(), device=device, dtype=dtype)
        self.spread = nn.Parameter(torch.zeros(numbers, device=device, dtype=dtype))

    def forward(self, x: Float[Tensor, "batch ..."]) -> Tensor:
        mean = self.mean(x)
        return torch.cat([mean, self.spread.expand(mean.shape[0], -1)], 1)
