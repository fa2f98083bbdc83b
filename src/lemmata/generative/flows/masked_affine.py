r"""The masked affine layer: each feature is scaled and shifted by what those before it say."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.foundations.activations import ACTIVATION_TABLE
from lemmata.generative.autoregressive.masked_network import autoregressive_masks
from lemmata.generative.flows.affine import ActNorm
from lemmata.generative.flows.coupling import CouplingConfig, bounded_log_scale
from lemmata.generative.flows.flow import Flow, StandardNormal
from lemmata.generative.flows.transform import Transform
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["MaskedAffine", "MaskedAutoregressiveFlow", "MaskedAutoregressiveFlowConfig"]


@system(
    "masked_affine",
    title="Masked affine layer",
    kind="module",
    example="MaskedAffine(3, widths=(8,))(torch.randn(4, 3))",
)
class MaskedAffine(Transform):
    r"""Feature by feature, each scaled and shifted by a network of the features before it.

    $$ x_i = \mu_i(x_{<i}) + e^{\alpha_i(x_{<i})} z_i, \qquad \log|\det| = \sum_i \alpha_i $$

    Masks on a perceptron make all $\mu_i$ and $\alpha_i$ in one pass, so a density costs one pass (`inverse`), while
    drawing takes one for each feature (`forward`). With `flipped` the last feature is the first in the order. The
    network's last layer begins at zero, so that the layer begins as the identity, and
    $\alpha = m\tanh r$ for m = `max_log_scale`.

    Shapes:
        z: (batch, features)    returns: x (batch, features), log_det (batch,)

    Claims: flow.ar_triangular
    Source: G. Papamakarios, T. Pavlakou and I. Murray, Masked autoregressive flow for density estimation (2017).
    Differs: $\alpha$ is bounded.

    >>> layer = MaskedAffine(4)
    >>> x, log_det = layer(torch.randn(5, 4))
    >>> x.shape, log_det.shape
    (torch.Size([5, 4]), torch.Size([5]))
    """

    layers: Any

    def __init__(
        self,
        features: int,
        flipped: bool = False,
        widths: Sequence[int] = CouplingConfig.widths,
        activation: str = CouplingConfig.activation,
        max_log_scale: float = CouplingConfig.max_log_scale,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(CouplingConfig, locals())
        self.features = validate.count("features", features)
        self.flipped = validate.flag("flipped", flipped)
        sizes = [features, *self.config.widths, 2 * features]
        self.layers = nn.ModuleList(nn.Linear(a, b, device=device, dtype=dtype) for a, b in pairwise(sizes))
        order = torch.arange(features)
        *inner, last = autoregressive_masks(order.flip(0) if flipped else order, self.config.widths)
        for number, mask in enumerate((*inner, torch.cat([last, last]))):  # outputs are α, then µ
            self.register_buffer(f"mask{number}", mask.to(device=device, dtype=dtype), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the hidden layers anew, and set the last one to zero."""
        gain = ACTIVATION_TABLE[self.config.activation].gain
        for number, layer in enumerate(self.layers):
            fan_in = self.get_buffer(f"mask{number}").sum(1, keepdim=True).clamp(min=1)
            nn.init.zeros_(layer.bias)
            with torch.no_grad():
                drawn = torch.randn_like(layer.weight) * gain / fan_in.sqrt()
                layer.weight.copy_(drawn if number < len(self.layers) - 1 else torch.zeros_like(drawn))

    def scale_and_shift(self, x: Tensor) -> tuple[Tensor, Tensor]:
        r"""$\alpha_i(x_{<i})$ and $\mu_i(x_{<i})$ of all features at once: (batch, features) each."""
        activate, hidden = ACTIVATION_TABLE[self.config.activation].value, x
        for number, layer in enumerate(self.layers):
            hidden = activate(hidden) if number else hidden  # (batch, width)
            hidden = functional.linear(hidden, layer.weight * self.get_buffer(f"mask{number}"), layer.bias)
        raw, shift = hidden.chunk(2, 1)
        return bounded_log_scale(raw, self.config.max_log_scale), shift

    def forward(self, z: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        x = self.checked("z", z)
        log_scale, shift = self.scale_and_shift(torch.zeros_like(x))
        for _ in range(self.features - 1):  # after pass k the first k features are right, and stay so
            log_scale, shift = self.scale_and_shift(torch.addcmul(shift, z, log_scale.exp()))
        return torch.addcmul(shift, z, log_scale.exp()), log_scale.sum(1)

    def inverse(self, x: Float[Tensor, "batch features"]) -> tuple[Tensor, Tensor]:
        log_scale, shift = self.scale_and_shift(self.checked("x", x))
        return (x - shift) * (-log_scale).exp(), -log_scale.sum(1)

    def extra_repr(self) -> str:
        return f"features={self.features}, flipped={self.flipped}, max_log_scale={self.config.max_log_scale:g}"


@dataclass(frozen=True)
class MaskedAutoregressiveFlowConfig(CouplingConfig):
    """What can be chosen of a masked autoregressive flow."""

    layers: int = 4
    """Masked layers; each second one has the features in the opposite order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("layers", self.layers)


@system(
    "masked_autoregressive_flow",
    title="Masked autoregressive flow",
    kind="module",
    example="MaskedAutoregressiveFlow(3, widths=(8,), layers=2)(torch.randn(5, 3))",
)
class MaskedAutoregressiveFlow(Flow):
    r"""Masked affine layers in alternating orders of the features: densities in one pass, samples one by one.

    $$ p(x) = \prod_i \mathcal N\big(x_i;\ \mu_i(x_{<i}), e^{2\alpha_i(x_{<i})}\big) \text{ for one layer} $$

    Where `RealNVP` moves half of the features given the other, here each is moved given all before it, which fits more
    with as many layers and samples as many times slower as there are features. The last layer is an `ActNorm`.

    Shapes:
        x: (batch, features)    log_prob: (batch,)    sample: (n, features)

    Source: G. Papamakarios, T. Pavlakou and I. Murray 2017.
    Differs: no batch normalisation.

    >>> flow = MaskedAutoregressiveFlow(features=3)
    >>> flow.log_prob(torch.randn(5, 3)).shape, flow.sample(5).shape
    (torch.Size([5]), torch.Size([5, 3]))
    """

    def __init__(
        self,
        features: int,
        widths: Sequence[int] = MaskedAutoregressiveFlowConfig.widths,
        activation: str = MaskedAutoregressiveFlowConfig.activation,
        max_log_scale: float = MaskedAutoregressiveFlowConfig.max_log_scale,
        layers: int = MaskedAutoregressiveFlowConfig.layers,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(MaskedAutoregressiveFlowConfig, locals())
        place = {"device": device, "dtype": dtype}
        choices = {"widths": config.widths, "activation": activation, "max_log_scale": max_log_scale, **place}
        found = [MaskedAffine(features, flipped=bool(k % 2), **choices) for k in range(config.layers)]
        super().__init__(StandardNormal(features, **place), [*found, ActNorm(features, **place)])
        self.config, self.features = config, features
