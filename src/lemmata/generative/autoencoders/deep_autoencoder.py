r"""The deep autoencoder: two perceptrons through whose narrow middle the data must pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.activations import activation as known_activation
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["DeepAutoencoder", "DeepAutoencoderConfig"]


@dataclass(frozen=True)
class DeepAutoencoderConfig:
    """Configuration of a deep autoencoder; the inputs follow from the data."""

    code: int = 8
    """Numbers that an example is encoded in."""
    widths: tuple[int, ...] = (128, 64)
    """Units of each hidden layer of the encoder; the decoder has them in reverse."""
    activation: str = "silu"
    """Activation of the hidden layers; with identity the autoencoder is linear."""

    def __post_init__(self) -> None:
        validate.count("code", self.code)
        if not isinstance(self.widths, tuple):
            raise TypeError(f"widths must be a tuple of integers such as (128, 64), got {self.widths!r}")
        for width in self.widths:
            validate.count("widths", width)
        known_activation(self.activation)  # says which are known, if it is not among them


@system(
    "deep_autoencoder",
    title="Deep autoencoder",
    kind="module",
    example="DeepAutoencoder(inputs=6, code=2, widths=(8,))(torch.randn(5, 6))",
)
class DeepAutoencoder(nn.Module):
    r"""An encoder $\phi$ into few numbers and a decoder $\psi$ back, both perceptrons, trained to lose little.

    $$ \min_{\phi,\psi}\; \mathbb E\,\|x - \psi(\phi(x))\|^2, \qquad \phi: \mathbb R^n \to \mathbb R^m,
       \quad \psi: \mathbb R^m \to \mathbb R^n, \quad m < n $$

    On the curved surface that the data lie on, $\psi\circ\phi$ is close to the identity; everywhere else it leads back
    to that surface, for it has no more than $m$ dimensions. The outputs of encoder and decoder are plain numbers.

    Shapes:
        x: (batch, ...) with `inputs` values for each example    returns: as x
        encode: (batch, ...) to (batch, code)    decode: (batch, code) to (batch, inputs)

    Claims: ae.deep
    Source: G. Hinton and R. Salakhutdinov, Reducing the dimensionality of data with neural networks (2006).
    Differs: all layers are trained at once, without pretraining; weights of encoder and decoder are not tied.

    >>> model = DeepAutoencoder(inputs=64, code=8)
    >>> model.encode(torch.rand(5, 8, 8)).shape, model(torch.rand(5, 8, 8)).shape
    (torch.Size([5, 8]), torch.Size([5, 8, 8]))
    """

    def __init__(
        self,
        inputs: int,
        code: int = DeepAutoencoderConfig.code,
        widths: Sequence[int] = DeepAutoencoderConfig.widths,
        activation: str = DeepAutoencoderConfig.activation,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(DeepAutoencoderConfig, locals())
        self.inputs, chosen = validate.count("inputs", inputs), self.config.widths
        more = {"activation": activation, "device": device, "dtype": dtype}
        self.encoder = MLP(inputs, code, widths=chosen, **more)
        self.decoder = MLP(code, inputs, widths=chosen[::-1], **more)

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        return self.decode(self.encode(x)).view(x.shape)

    def encode(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch code"]:
        """The codes of examples."""
        return self.encoder(x)

    def decode(self, z: Float[Tensor, "batch code"]) -> Float[Tensor, "batch inputs"]:
        """The examples that codes stand for, as vectors."""
        return self.decoder(z)

    def loss(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, ""]:
        """The squared distance of an example and its reconstruction, in the mean over the batch."""
        return (self(x) - x).square().flatten(1).sum(1).mean()
