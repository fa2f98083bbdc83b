r"""The affine coupling layer: one half of the features sets scale and shift of the other half."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP, MLPConfig
from lemmata.generative.flows.transform import Transform
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["AffineCoupling", "CouplingConfig", "bounded_log_scale"]


@dataclass(frozen=True)
class CouplingConfig:
    """What can be chosen of the networks that set scales and shifts."""

    widths: tuple[int, ...] = (64, 64)
    """Units of each hidden layer of a layer's network."""
    activation: str = "silu"
    """Activation of that network; with smooth ones densities are smooth, and learnt in fewer steps."""
    max_log_scale: float = 2.0
    """Bound of |s|, up to which a layer may stretch and shrink alike; inf for none."""

    def __post_init__(self) -> None:
        MLPConfig(widths=self.widths, activation=self.activation)
        if self.max_log_scale != math.inf:
            validate.positive("max_log_scale", self.max_log_scale)


def bounded_log_scale(raw: Tensor, largest: float) -> Tensor:
    r"""A logarithm of a scale within $\pm m$, the same upwards and downwards: $s = m\tanh r$.

    Bounded, so that no step of a training makes a layer too steep to be inverted; symmetric, so that it can stretch as
    well as shrink. Only the bound itself is out of reach.

    >>> bounded_log_scale(torch.tensor([-9.0, 0.0, 9.0]), 3.0).round(decimals=4)
    tensor([-3.,  0.,  3.])
    """
    return raw if largest == math.inf else largest * torch.tanh(raw)


@system(
    "affine_coupling",
    title="Affine coupling layer",
    kind="module",
    example="AffineCoupling(5, widths=(8,))(torch.randn(4, 5))",
)
class AffineCoupling(Transform):
    r"""The first half of the features passes as it is, and sets scale and shift of the second.

    $$ x_{1:d} = z_{1:d}, \qquad x_{d+1:D} = z_{d+1:D}\odot e^{s(z_{1:d})} + t(z_{1:d}) $$

    Whatever $s$ and $t$ are, the way back is known: the half that they look at has not changed. With `flipped` the
    second half passes; a flow needs layers of both kinds in turn. $d$ is half of the features, the smaller one if they
    are odd in number. One network makes both, by default an MLP whose last layer begins at zero, so that the layer
    begins as the identity; any other `conditioner` takes the half that passes and gives $(r, t)$ side by side, where
    $s = m\tanh r$ for m = `max_log_scale`.

    Shapes:
        z: (batch, features)    returns: x (batch, features), log_det (batch,)

    Claims: flow.coupling, flow.coupling_logdet, flow.system
    Source: L. Dinh, J. Sohl-Dickstein and S. Bengio, Density estimation using Real NVP (2017).
    Differs: the bound of s is fixed, where the paper learns a factor of the tanh.

    >>> layer = AffineCoupling(5)
    >>> x, log_det = layer(torch.randn(4, 5))
    >>> x.shape, log_det.shape
    (torch.Size([4, 5]), torch.Size([4]))
    """

    def __init__(
        self,
        features: int,
        flipped: bool = False,
        conditioner: nn.Module | None = None,
        widths: Sequence[int] = CouplingConfig.widths,
        activation: str = CouplingConfig.activation,
        max_log_scale: float = CouplingConfig.max_log_scale,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(CouplingConfig, locals())
        self.features = validate.count("features", features, least=2)  # one feature has no other that it could look at
        self.flipped = validate.flag("flipped", flipped)
        self.first = features // 2
        kept, moved = self.first, features - self.first
        if flipped:
            kept, moved = moved, kept
        if conditioner is None:
            choices = {"widths": self.config.widths, "activation": activation, "device": device, "dtype": dtype}
            conditioner = MLP(kept, 2 * moved, **choices)
            nn.init.zeros_(conditioner.layers[-1].weight)  # type: ignore[arg-type]
        self.conditioner = validate.module("conditioner", conditioner)

    def halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The features that pass, and those that are moved."""
        first, second = x[:, : self.first], x[:, self.first :]
        return (second, first) if self.flipped else (first, second)

    def joined(self, kept: Tensor, moved: Tensor) -> Tensor:
        """Both halves where they belong."""
        return torch.cat((moved, kept) if self.flipped else (kept, moved), 1)

    def scale_and_shift(self, kept: Tensor) -> tuple[Tensor, Tensor]:
        """The logarithm of the scale, and the shift, of each feature that is moved."""
        raw, shift = self.conditioner(kept).chunk(2, 1)  # (batch, moved) each
        return bounded_log_scale(raw, self.config.max_log_scale), shift

    def forward(self, z: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        kept, moved = self.halves(self.checked("z", z))
        log_scale, shift = self.scale_and_shift(kept)
        return self.joined(kept, torch.addcmul(shift, moved, log_scale.exp())), log_scale.sum(1)

    def inverse(self, x: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        kept, moved = self.halves(self.checked("x", x))
        log_scale, shift = self.scale_and_shift(kept)
        shrunk = -log_scale
        return self.joined(kept, (moved - shift) * shrunk.exp()), shrunk.sum(1)

    def extra_repr(self) -> str:
        return f"features={self.features}, flipped={self.flipped}, max_log_scale={self.config.max_log_scale:g}"
