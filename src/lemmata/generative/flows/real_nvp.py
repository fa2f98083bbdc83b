r"""RealNVP: affine coupling layers that divide the features in turn one way and the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lemmata import validate
from lemmata.generative.flows.affine import ActNorm
from lemmata.generative.flows.coupling import AffineCoupling, CouplingConfig
from lemmata.generative.flows.flow import Flow, StandardNormal
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["RealNVP", "RealNVPConfig"]


@dataclass(frozen=True)
class RealNVPConfig(CouplingConfig):
    """What can be chosen of a RealNVP flow."""

    couplings: int = 8
    """Coupling layers; each second one is flipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.count("couplings", self.couplings, least=2)  # one alone leaves half of the features as they are


@system(
    "real_nvp",
    title="RealNVP normalising flow",
    kind="module",
    example="RealNVP(3, widths=(8,), couplings=2)(torch.randn(5, 3))",
)
class RealNVP(Flow):
    r"""Coupling layers with alternating masks, trained by exact maximum likelihood; a sample is one pass.

    $$ x = \mu + e^{a}\odot(f_K\circ\dots\circ f_1)(z), \qquad z\sim\mathcal N(0, I) $$

    A coupling leaves half of the features as they are, so each half is moved by every other layer: without turns
    the first half of the samples would be noise for ever. The last layer is an `ActNorm`, which `standardize(x)` sets
    by the data before a training. It begins as the identity.

    Shapes:
        x: (batch, features), at least 2    log_prob: (batch,)    sample: (n, features)

    Claims: flow.system
    Source: L. Dinh, J. Sohl-Dickstein and S. Bengio, Density estimation using Real NVP (2017).
    Differs: for vectors; halves instead of checkerboards, no batch normalisation.

    >>> flow = RealNVP(features=2, couplings=4)
    >>> flow.loss(torch.randn(100, 2)).shape, flow.sample(5).shape
    (torch.Size([]), torch.Size([5, 2]))
    """

    def __init__(
        self,
        features: int,
        widths: Sequence[int] = RealNVPConfig.widths,
        activation: str = RealNVPConfig.activation,
        max_log_scale: float = RealNVPConfig.max_log_scale,
        couplings: int = RealNVPConfig.couplings,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config_of(RealNVPConfig, locals())
        place = {"device": device, "dtype": dtype}
        choices = {"widths": config.widths, "activation": activation, "max_log_scale": max_log_scale, **place}
        layers = [AffineCoupling(features, flipped=bool(k % 2), **choices) for k in range(config.couplings)]
        super().__init__(StandardNormal(features, **place), [*layers, ActNorm(features, **place)])
        self.config, self.features = config, features
