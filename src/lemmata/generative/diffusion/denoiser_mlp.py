r"""A multilayer perceptron that is given the time beside its point: the denoiser of few features."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP, MLPConfig
from lemmata.marks import system
from lemmata.signatures import config_of
from lemmata.transformers.positions import sinusoidal_encoding

__all__ = ["DenoiserMLP", "DenoiserMLPConfig", "encoded_time"]

TURNS = 100.0  # radians of the quickest frequency from time 0 to 1: a step of a chain of 100 turns it by one


def encoded_time(time: Float[Tensor, " batch"], like: Tensor, width: int) -> Float[Tensor, "batch width"]:
    """Sines and cosines of the time of each example of `like`, in its numbers.

    >>> encoded_time(torch.tensor([0.0, 1.0]), torch.zeros(2, 3), width=4).shape
    torch.Size([2, 4])
    """
    if validate.tensor("time", time).ndim != 1 or time.shape[0] != like.shape[0]:
        raise ValueError(f"time must hold one for each of {like.shape[0]} examples, got shape {tuple(time.shape)}")
    if not time.is_floating_point():
        raise TypeError(f"time must be a floating-point fraction of the whole, from 0 to 1, got {time.dtype}")
    return sinusoidal_encoding(TURNS * time.double(), width, dtype=like.dtype)


@dataclass(frozen=True)
class DenoiserMLPConfig:
    """Configuration of a denoiser of points; their features follow from the data."""

    widths: tuple[int, ...] = (128, 128, 128)
    """Units of each hidden layer."""
    activation: str = "silu"
    """Activation, as an MLP's; smooth ones make a smooth score."""
    time_width: int = 32
    """Sines and cosines that say the time."""

    def __post_init__(self) -> None:
        MLPConfig(self.widths, self.activation)
        if validate.count("time_width", self.time_width, least=2) % 2:
            raise ValueError(
                f"time_width must be even, for a sine and a cosine of each frequency, got {self.time_width}"
            )


@system(
    "denoiser_mlp",
    title="Denoiser of points",
    kind="module",
    example="DenoiserMLP(features=3, widths=(8,))(torch.randn(5, 3), torch.rand(5))",
)
class DenoiserMLP(nn.Module):
    r"""What is said of a noisy point at a time: noise, clean point or velocity, as it is trained.

    $$ f(x, t) = \mathrm{MLP}\big(x, \sin(\omega_1 t), \cos(\omega_1 t), \sin(\omega_2 t), \dots\big) $$

    The time runs from 0, where nothing is noise, to 1, so that a chain of any number of steps and a continuous process
    ask the same network.

    Shapes:
        x: (batch, features), time: (batch,)    returns: (batch, features)

    Source: Ho, Jain and Abbeel, Denoising diffusion probabilistic models (2020), for the time; Vaswani et al. 2017.

    >>> DenoiserMLP(features=2)(torch.randn(7, 2), torch.rand(7)).shape
    torch.Size([7, 2])
    """

    def __init__(
        self,
        features: int,
        widths: Sequence[int] = DenoiserMLPConfig.widths,
        activation: str = DenoiserMLPConfig.activation,
        time_width: int = DenoiserMLPConfig.time_width,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(DenoiserMLPConfig, locals())
        self.features = validate.count("features", features)
        inputs = features + self.config.time_width
        self.network = MLP(inputs, features, self.config.widths, activation, device=device, dtype=dtype)

    def forward(
        self, x: Float[Tensor, "batch features"], time: Float[Tensor, " batch"]
    ) -> Float[Tensor, "batch features"]:
        if validate.inputs("x", x, self.features).ndim != 2:
            raise ValueError(f"x must be (batch, {self.features}), got shape {tuple(x.shape)}")
        encoded = encoded_time(time, x, self.config.time_width)  # (batch, time_width)
        return self.network(torch.cat([x, encoded], dim=1))  # (batch, features)
