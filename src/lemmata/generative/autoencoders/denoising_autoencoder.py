r"""The denoising autoencoder: it learns to undo noise, and so in which direction data become more probable."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP  # noqa: F401 - in the example
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["ImageDenoiser", "ImageDenoiserConfig", "DenoisingAutoencoder"]


@system(
    "denoising_autoencoder",
    title="Denoising autoencoder",
    kind="module",
    example="DenoisingAutoencoder(MLP(6, 6, widths=(8,)), noise_level=0.3)(torch.randn(5, 6))",
)
class DenoisingAutoencoder(nn.Module):
    r"""Any network $r$ from examples to examples, trained to give back what Gaussian noise was added to.

    $$ \min_r\; \mathbb E_{x,\;n\sim\mathcal N(0,\sigma^2 I)}\, \|r(x + n) - x\|^2, \qquad
       \nabla_x \log p_\sigma(x) \approx \frac{r(x) - x}{\sigma^2} $$

    The best $r$ is the posterior mean $\mathbb E[x \mid x + n]$, and what it adds to its input is $\sigma^2$ times the
    score of the data with that noise: `score` can be given to every sampler that asks for one.

    Shapes:
        x: (batch, ...) as the network takes them    returns: the same shape

    Claims: ae.denoising, ae.dae_score
    Source: P. Vincent et al., Extracting and composing robust features with denoising autoencoders (2008); the score:
        P. Vincent 2011, G. Alain and Y. Bengio 2014.
    Differs: a narrow middle is the network's own affair; without noise to undo, a wide one would learn to copy.

    >>> model = DenoisingAutoencoder(nn.Linear(2, 2), noise_level=0.3)
    >>> model.score(torch.randn(5, 2)).shape
    torch.Size([5, 2])
    """

    def __init__(self, network: nn.Module, noise_level: float) -> None:
        super().__init__()
        self.network = validate.module("network", network)
        self.noise_level = validate.positive("noise_level", noise_level)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        found = self.network(x)
        if found.shape != x.shape:
            raise ValueError(f"network must return the shape of its input {tuple(x.shape)}, got {tuple(found.shape)}")
        return found

    def corrupt(
        self, x: Float[Tensor, "batch ..."], generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch ..."]:
        """The examples with fresh noise."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        return x + self.noise_level * noise

    def loss(self, x: Float[Tensor, "batch ..."], *, generator: torch.Generator | None = None) -> Float[Tensor, ""]:
        """The squared distance of an example and its restoration, in the mean over the batch."""
        return (self(self.corrupt(x, generator)) - x).square().flatten(1).sum(1).mean()

    def score(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        """The gradient of the log density of noisy examples, as far as the network has learnt it."""
        return (self(x) - x) / self.noise_level**2

    def extra_repr(self) -> str:
        return f"noise_level={self.noise_level:g}"


@dataclass(frozen=True)
class ImageDenoiserConfig:
    """Configuration of a denoiser of images; the channels follow from the data."""

    noise_level: float = 0.1
    """Standard deviation of the noise."""
    width: int = 24
    """Channels of each hidden layer."""
    depth: int = 6
    """Number of convolutions, three pixels wide each."""

    def __post_init__(self) -> None:
        validate.positive("noise_level", self.noise_level)
        validate.count("width", self.width)
        validate.count("depth", self.depth, least=2)


class _NoiseRemover(nn.Module):
    """Convolutions that find the noise, which is subtracted: flat parts of an image are then right from the start."""

    def __init__(self, channels: int, width: int, depth: int, place: dict) -> None:
        super().__init__()
        self.channels = validate.count("channels", channels)
        sizes = [channels, *[width] * (depth - 1), channels]
        self.layers = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1, padding_mode="reflect", **place) for a, b in pairwise(sizes)
        )

    def forward(self, x: Tensor) -> Tensor:
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        if x.ndim != 4 or x.shape[1] != self.channels or min(x.shape[2:]) < 2:
            wanted = f"(batch, {self.channels}, height, width) with at least 2 x 2 pixels"
            raise ValueError(f"x must be {wanted}, got shape {tuple(x.shape)}")
        hidden = self.layers[0](x)  # (batch, width, height, width)
        for layer in self.layers[1:]:
            hidden = layer(hidden.relu())
        return x - hidden  # (batch, channels, height, width)


@system(
    "image_denoiser",
    title="Denoising autoencoder of images",
    kind="module",
    example="ImageDenoiser(channels=2, width=4, depth=3)(torch.randn(3, 2, 5, 6))",
)
class ImageDenoiser(DenoisingAutoencoder):
    r"""A denoising autoencoder of images of any size: convolutions that look for the noise in a small neighbourhood.

    $$ r(x) = x - W_L * \phi(W_{L-1} * \phi(\cdots \phi(W_1 * x))), \qquad \phi = \max(0, \cdot) $$

    A pixel is restored from the $(2L+1)\times(2L+1)$ pixels around it; at the border the image is mirrored.

    Shapes:
        x: (batch, channels, height, width)    returns: the same shape

    Source: K. Zhang et al., Beyond a Gaussian denoiser: residual learning of deep CNN for image denoising (2017).
    Differs: no batch normalisation, which in so few layers is not needed.

    >>> ImageDenoiser(channels=1)(torch.rand(2, 1, 32, 48)).shape
    torch.Size([2, 1, 32, 48])
    """

    def __init__(
        self,
        channels: int,
        noise_level: float = ImageDenoiserConfig.noise_level,
        width: int = ImageDenoiserConfig.width,
        depth: int = ImageDenoiserConfig.depth,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(ImageDenoiserConfig, locals())
        super().__init__(_NoiseRemover(channels, width, depth, {"device": device, "dtype": dtype}), noise_level)
        self.config = config
