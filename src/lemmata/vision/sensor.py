r"""A sensor: photons become electrons, electrons become digital numbers, and the noise tells the gain."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["Sensor"]


@system("sensor", title="CCD sensor", kind="module", example="Sensor()(1000 + torch.rand(3, 4))")
class Sensor(nn.Module):
    r"""Photosites that count photo-electrons up to a full well, one amplifier, and a converter to integers.

    $$ N \sim \mathrm{Poisson}(\lambda), \qquad
       D = \Big\lfloor K\big(\min(N, w) + \sigma_r Z\big) + b \Big\rceil_{0}^{2^{\text{bits}} - 1} $$

    with the exposure $\lambda = \eta\Phi t$ in electrons, the full well $w$, the gain $K$ in digital numbers for each
    electron, the read noise $\sigma_r$ in electrons and the offset $b$. Below saturation mean and variance lie on a
    line, $\operatorname{Var}D = K(\mathbb E D - b) + K^2\sigma_r^2 + \tfrac1{12}$, whose slope is the gain.

    Shapes:
        exposure: any shape, electrons >= 0    returns: digital numbers of the same shape

    Claims: vision.ccd
    Source: J. Janesick, Photon Transfer (2007); EMVA standard 1288.
    Differs: one gain and one read noise for all photosites, no dark current; Poisson counts carry no gradient. A sensor
        does not pass `call`: no two frames have the same noise, in evaluation mode either.

    >>> mean, variance = Sensor(gain=0.4, read_noise=5.0).photon_transfer(torch.tensor([1000.0]))
    >>> round(mean.item(), 3), round(variance.item(), 3)
    (464.0, 164.083)
    """

    def __init__(
        self,
        full_well: int | float = 9_000.0,
        gain: int | float = 0.4,
        read_noise: int | float = 5.0,
        bits: int = 12,
        offset: int | float = 64.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.full_well = float(validate.positive("full_well", full_well))
        self.bits = validate.count("bits", bits, most=24)
        self.offset = float(validate.number("offset", offset, least=0, below=2**bits))
        validate.positive("gain", gain)
        validate.number("read_noise", read_noise, least=0)
        self.gain = nn.Parameter(torch.tensor(float(gain), device=device, dtype=dtype))
        self.read_noise = nn.Parameter(torch.tensor(float(read_noise), device=device, dtype=dtype))

    @property
    def largest(self) -> int:
        """The largest digital number."""
        return 2**self.bits - 1

    def electrons(
        self, exposure: Float[Tensor, "*shape"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "*shape"]:
        """What the photosites hold: as many electrons as photons met them, or a full well."""
        return torch.poisson(_checked_exposure(exposure), generator=generator).clamp(max=self.full_well)

    def read(
        self, electrons: Float[Tensor, "*shape"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "*shape"]:
        """The digital numbers that the amplifier and the converter make of charge."""
        noise = torch.randn(electrons.shape, generator=generator, dtype=electrons.dtype, device=electrons.device)
        volts = self.gain * (electrons + self.read_noise * noise) + self.offset
        return volts.round().clamp(0, self.largest)

    def forward(
        self, exposure: Float[Tensor, "*shape"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "*shape"]:
        """One frame."""
        return self.read(self.electrons(exposure, generator), generator)

    def clipped_moments(self, exposure: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
        r"""Mean and variance of $\min(N, w)$, the electrons in a photosite, in closed form also near saturation.

        By the room that is left, $\mathbb E(w-N)_+ = wF(w-1) - \lambda F(w-2)$ with the distribution function $F$ of
        Poisson, and its square alike.
        """
        exposure, w = _checked_exposure(exposure), int(self.full_well)
        below = [torch.special.gammaincc(exposure.new_tensor(max(w - k, 0) * 1.0), exposure) for k in (0, 1, 2)]
        f1, f2, f3 = (value if w >= k else torch.zeros_like(exposure) for k, value in enumerate(below, start=1))
        room = w * f1 - exposure * f2
        square = w * w * f1 - (2 * w - 1) * exposure * f2 + exposure**2 * f3
        return w - room, (square - room**2).clamp(min=0)

    def photon_transfer(self, exposure: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor]:
        """Mean and variance of the digital numbers of flat fields, as long as the converter does not clip them."""
        mean, variance = self.clipped_moments(exposure)
        return self.gain * mean + self.offset, self.gain**2 * (variance + self.read_noise**2) + 1 / 12

    def variance_at(self, mean: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The variance of digital numbers with this mean: the line of the photon transfer curve below saturation."""
        signal = (mean - self.offset).clamp(min=0)
        return self.gain * signal + (self.gain * self.read_noise) ** 2 + 1 / 12


def _checked_exposure(exposure: Tensor) -> Tensor:
    validate.floating("exposure", exposure)
    if bool((exposure < 0).any()):
        raise ValueError(f"exposure must be >= 0 electrons, got {float(exposure.min()):g}: clamp it")
    return exposure
