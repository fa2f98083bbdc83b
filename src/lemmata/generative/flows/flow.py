r"""A normalising flow: noise, and the invertible layers that make data of it."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float, Num
from torch import Generator, Tensor, nn

from lemmata import validate
from lemmata.generative.flows.affine import ActNorm
from lemmata.generative.flows.coupling import AffineCoupling  # noqa: F401 - in the example
from lemmata.generative.flows.dequantize import Dequantize, bits_per_dimension
from lemmata.marks import system

__all__ = ["Flow", "StandardNormal"]


class StandardNormal(nn.Module):
    r"""Independent standard normal noise, $\log p(z) = -\frac12\|z\|^2 - \frac D2\log 2\pi$.

    >>> StandardNormal(2).log_prob(torch.zeros(1, 2))
    tensor([-1.8379])
    """

    origin: Tensor

    def __init__(
        self, features: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.features = validate.count("features", features)
        # which says in which dtype and where noise is to be drawn
        self.register_buffer("origin", torch.zeros(features, device=device, dtype=dtype), persistent=False)

    def log_prob(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
        return -0.5 * z.square().sum(1) - 0.5 * self.features * math.log(2 * math.pi)

    def sample(self, n: int, *, generator: Generator | None = None) -> Float[Tensor, "{n} features"]:
        place = {"dtype": self.origin.dtype, "device": self.origin.device}
        return torch.randn(validate.count("n", n), self.features, generator=generator, **place)

    def extra_repr(self) -> str:
        return f"features={self.features}"


@system(
    "flow",
    title="Normalising flow",
    kind="module",
    example="Flow(StandardNormal(3), [AffineCoupling(3, widths=(8,)), ActNorm(3)])(torch.randn(5, 3))",
)
class Flow(nn.Module):
    r"""Noise $z\sim p_z$ that goes through invertible layers, $x = f_K\circ\dots\circ f_1(z)$, and its exact density.

    $$ \log p_x(x) = \log p_z(z) - \sum_k \log\Big|\det\frac{\partial f_k}{\partial z_{k-1}}\Big|,
       \qquad z = f^{-1}(x) $$

    `transforms` stand in the order in which data are made; each is a module such as a `Transform`, whose
    `forward(z)` and `inverse(x)` give their result with its log-determinant, one number per example. `base` has
    `log_prob(z)` and `sample(n, generator=)`. Calling the flow gives the log-density, `loss` is its negative mean.
    Samples and densities have gradients.

    Shapes:
        x: (batch, features)    log_prob: (batch,), in nats    sample: (n, features)

    Claims: flow.change_of_variables, flow.log_density
    Source: D. J. Rezende and S. Mohamed, Variational inference with normalizing flows (2015).
    Differs: does not pass `meta`: its layers are given, and stay where they are.

    >>> flow = Flow(StandardNormal(2), [ActNorm(2)])
    >>> flow.log_prob(torch.zeros(3, 2)).shape, flow.sample(4).shape
    (torch.Size([3]), torch.Size([4, 2]))
    """

    base: Any
    transforms: Any

    def __init__(self, base: nn.Module, transforms: Iterable[nn.Module]) -> None:
        super().__init__()
        self.base = validate.module("base", base)
        self.transforms = nn.ModuleList(validate.module("transforms", each) for each in transforms)
        sizes = [each.features for each in (base, *self.transforms) if hasattr(each, "features")]
        if len(set(sizes)) > 1:
            raise ValueError(f"base and transforms must have as many features each, got {sizes}")

    def forward(self, x: Num[Tensor, "batch features"]) -> Float[Tensor, " batch"]:
        return self.log_prob(x)

    def pulled_back(self, x: Tensor, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Data as noise, and the log-determinant of the way there: (batch, features) and (batch,)."""
        total: Any = None
        for transform in reversed(self.transforms):
            noise = {"generator": generator} if isinstance(transform, Dequantize) else {}
            x, log_det = transform.inverse(x, **noise)
            total = log_det if total is None else total + log_det
        return x, x.new_zeros(x.shape[0]) if total is None else total

    def pushed_forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Noise as data, and the log-determinant of the way there: (batch, features) and (batch,)."""
        total: Any = None
        for transform in self.transforms:
            z, log_det = transform(z)
            total = log_det if total is None else total + log_det
        return z, z.new_zeros(z.shape[0]) if total is None else total

    def encode(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features"]:
        """The noise that data came from."""
        return self.pulled_back(x)[0]

    def decode(self, z: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features"]:
        """The data that noise becomes."""
        return self.pushed_forward(z)[0]

    def log_prob(
        self, x: Num[Tensor, "batch features"], *, generator: Generator | None = None
    ) -> Float[Tensor, " batch"]:
        """The log-density of each example in nats; of discrete data a lower bound, with noise from the generator."""
        z, log_det = self.pulled_back(x, generator)
        return self.base.log_prob(z) + log_det

    def sample(self, n: int, *, generator: Generator | None = None) -> Float[Tensor, "{n} features"]:
        """Independent draws: one pass through the layers."""
        return self.decode(self.base.sample(n, generator=generator))

    def sample_and_log_prob(self, n: int, *, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Draws with their log-densities, from one pass: nothing is inverted."""
        z = self.base.sample(n, generator=generator)
        x, log_det = self.pushed_forward(z)
        return x, self.base.log_prob(z) - log_det

    def loss(self, x: Num[Tensor, "batch features"], *, generator: Generator | None = None) -> Float[Tensor, ""]:
        """The mean negative log-likelihood of a batch."""
        return -self.log_prob(x, generator=generator).mean()

    def bits_per_dimension(
        self, x: Num[Tensor, "batch features"], *, generator: Generator | None = None
    ) -> Float[Tensor, " batch"]:
        """What an example costs, in bits for each of its features."""
        return bits_per_dimension(self.log_prob(x, generator=generator), x[0].numel())

    @torch.no_grad()
    def standardize(self, x: Float[Tensor, "batch features"]) -> None:
        """Set each `ActNorm` by a batch, from the data inwards."""
        for transform in reversed(self.transforms):
            if isinstance(transform, ActNorm):
                transform.standardize(x)
            x, _ = transform.inverse(x)
