r"""What a decoder's outputs say of an example: Gaussian, Bernoulli or continuous Bernoulli values."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["BernoulliOutput", "ContinuousBernoulliOutput", "GaussianOutput", "OutputDistribution"]


class OutputDistribution(nn.Module, ABC):
    r"""The law $p(x|z)$ of independent values, given the numbers of a decoder for each of them.

    $$ \log p(x|z) = \sum_j \log p(x_j | F(z)_j) $$

    Shapes:
        x: (..., features), raw: (..., features), whose leading axes broadcast    returns: log_prob (...)

    """

    @abstractmethod
    def log_prob(self, x: Tensor, raw: Tensor) -> Tensor:
        """The logarithm of the likelihood, summed over the last axis."""

    @abstractmethod
    def forward(self, raw: Tensor) -> Tensor:
        """The mean of each value: what is shown of a decoder."""

    @abstractmethod
    def sample(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw of each value."""


@system("gaussian_output", title="Gaussian output", kind="module", example="GaussianOutput(0.5)(torch.randn(4, 3))")
class GaussianOutput(OutputDistribution):
    r"""Values with normal noise of one variance, which is given or learnt with the network.

    $$ -\log p(x|z) = \frac1{2s^2}\|x - F(z)\|^2 + \frac n2\log(2\pi s^2) $$

    The summed squared error alone, beside the divergence of a VAE, is $s^2 = \frac12$.

    Shapes:
        raw: (..., features), the means themselves    returns: (..., features)

    Claims: vae.recon_mse
    Source: Rybkin, Daniilidis and Levine 2021, for a learnt variance.

    >>> output = GaussianOutput(0.25)
    >>> output.log_prob(torch.tensor([1.0, 0.0]), torch.zeros(2))
    tensor(-2.4516)
    """

    def __init__(
        self,
        variance: float = 1.0,
        learnt: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.initial, self.learnt = validate.positive("variance", variance), validate.flag("learnt", learnt)
        if learnt:
            start = torch.full((), math.log(variance), device=device, dtype=dtype)
            self.log_variance: Tensor | float = nn.Parameter(start)
        else:
            self.log_variance = math.log(variance)

    @property
    def variance(self) -> Tensor | float:
        """What the noise of each value has, with a gradient where it is learnt."""
        return self.log_variance.exp() if isinstance(self.log_variance, Tensor) else float(self.initial)

    def log_prob(self, x: Tensor, raw: Tensor) -> Tensor:
        nats = (x - raw).square() / self.variance + (math.log(2 * math.pi) + self.log_variance)
        return -nats.sum(-1) / 2

    def forward(self, raw: Tensor) -> Tensor:
        return _checked_raw(raw)

    def sample(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        noise = torch.randn(raw.shape, generator=generator, dtype=raw.dtype, device=raw.device)
        return raw + self.variance**0.5 * noise

    def extra_repr(self) -> str:
        return f"variance={self.initial:g}, learnt={self.learnt}"


@system("bernoulli_output", title="Bernoulli output", kind="module", example="BernoulliOutput()(torch.randn(4, 3))")
class BernoulliOutput(OutputDistribution):
    r"""Values that are 0 or 1; the decoder gives logits. Grey values are refused: of them this is no likelihood.

    $$ \log p(x|z) = x\,\eta - \log(1 + e^\eta) $$

    Shapes:
        raw: (..., features), logits    returns: probabilities (..., features)

    >>> output = BernoulliOutput()
    >>> output.log_prob(torch.tensor([1.0, 0.0]), torch.zeros(2)).exp()
    tensor(0.2500)
    >>> output.log_prob(torch.tensor([0.3, 0.0]), torch.zeros(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: x must hold only 0 and 1 for a Bernoulli output: binarise it, (x > 0.5).to(x), or use ...
    """

    def log_prob(self, x: Tensor, raw: Tensor) -> Tensor:
        if validate.visible(x) and not torch.equal(x.square(), x):  # only 0 and 1 are their own squares
            cure = "binarise it, (x > 0.5).to(x), or use ContinuousBernoulliOutput"
            raise ValueError(f"x must hold only 0 and 1 for a Bernoulli output: {cure}")
        bits, raw = torch.broadcast_tensors(x, raw)
        return -nn.functional.binary_cross_entropy_with_logits(raw, bits, reduction="none").sum(-1)

    def forward(self, raw: Tensor) -> Tensor:
        return _checked_raw(raw).sigmoid()

    def sample(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        drawn = torch.rand(raw.shape, generator=generator, dtype=raw.dtype, device=raw.device)
        return (drawn < raw.sigmoid()).to(raw)


@system(
    "continuous_bernoulli_output",
    title="Continuous Bernoulli output",
    kind="module",
    example="ContinuousBernoulliOutput()(torch.randn(4, 3))",
)
class ContinuousBernoulliOutput(OutputDistribution):
    r"""Values in [0, 1], grey ones too, with a density that leans to one end; the decoder gives logits.

    $$ p(x|z) = \frac{\eta}{e^\eta - 1}\,e^{\eta x}, \qquad
       \log p(x|z) = \eta\,(x - \tfrac12) - \log\frac{\sinh(\eta/2)}{\eta/2} $$

    Near $\eta = 0$, where the parameter of a Bernoulli is ½ and the quotient is 0/0, it is computed by its series.

    Shapes:
        raw: (..., features), logits    returns: means (..., features)

    Source: Loaiza-Ganem and Cunningham 2019.

    >>> output = ContinuousBernoulliOutput()
    >>> output.log_prob(torch.tensor([0.2, 0.7]), torch.zeros(2)), output(torch.tensor([0.0, 8.0]))
    (tensor(0.), tensor([0.5000, 0.8753]))
    """

    def log_prob(self, x: Tensor, raw: Tensor) -> Tensor:
        if validate.visible(x) and not bool(((x >= 0) & (x <= 1)).all()):
            raise ValueError(f"x must lie in [0, 1] for a continuous Bernoulli output, got {_range_words(x)}")
        return (raw * (x - 0.5) - _log_quotient(raw)).sum(-1)

    def forward(self, raw: Tensor) -> Tensor:
        rate = _checked_raw(raw)
        near, size = rate.abs() < SERIES, rate.abs()
        safe = torch.where(near, 1.0, size)
        far = rate.sign() * (-1 / torch.expm1(-safe) - 0.5 - 1 / safe)  # ½ coth(η/2) - 1/η
        square = torch.where(near, rate, 0.0).square()  # of large ones the powers would overflow
        close = rate * (1 / 12 - square * (1 / 720 - square * (1 / 30240 - square / 1209600)))
        return 0.5 + torch.where(near, close, far)

    def sample(self, raw: Tensor, generator: torch.Generator | None = None) -> Tensor:
        drawn = torch.rand(raw.shape, generator=generator, dtype=raw.dtype, device=raw.device)
        size = raw.abs().clamp(min=torch.finfo(raw.dtype).eps)
        falling = -torch.log1p(drawn * torch.expm1(-size)) / size  # the inverse distribution function for -|η|
        return torch.where(raw > 0, 1 - falling, falling).clamp(0, 1)


SERIES = 0.25  # below it the next term of the series, η¹⁰ / 4.8e8, is less than the rounding of float64


def _log_quotient(rate: Tensor) -> Tensor:
    """log(sinh(η/2) / (η/2)), which is even."""
    size = rate.abs()
    near = size < SERIES
    safe = torch.where(near, 1.0, size)
    far = safe / 2 + (-torch.expm1(-safe) / safe).log()
    square = torch.where(near, size, 0.0).square()  # of large ones the powers would overflow
    close = square * (1 / 24 - square * (1 / 2880 - square * (1 / 181440 - square / 9676800)))
    return torch.where(near, close, far)


def _checked_raw(raw: Tensor) -> Tensor:
    if not validate.tensor("raw", raw).is_floating_point():
        raise TypeError(f"raw must hold floating-point numbers, got {raw.dtype}: use raw.float()")
    return raw


def _range_words(x: Tensor) -> str:
    return "NaN" if bool(x.isnan().any()) else f"{float(x.min()):g} to {float(x.max()):g}"
