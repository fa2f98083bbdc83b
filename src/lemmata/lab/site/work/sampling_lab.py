r"""The sampling lab: a wave packet, its samples, the replicas of its spectrum, and a star under two filters."""

import base64
import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.vision.image_filter import filter_image
from lemmata.vision.sampling import gaussian_reconstruct, sampled_spectrum, siemens_star, sinc_reconstruct
from lemmata.vision.smoothing_kernels import box_kernel, gaussian_filter

LAB = {
    "title": "Sampling and aliases",
    "sentence": "Move the sampling rate through twice the frequency, and watch the replicas meet.",
    "year": 1949,
    "chapter": "vision",
    "claims": ("vision.sampling", "vision.sinc", "vision.gaussian_reconstruction", "vision.kernel_box"),
    "systems": ("sampled_spectrum", "sinc_reconstruct", "gaussian_reconstruct", "siemens_star"),
    "command": "lemmata check vision.sampling",
    "thumbnail": {"rate": "9"},
}

WIDTH = 0.6  # standard deviation of the packet
REACH = 3.0  # how far to either side it is sampled: five standard deviations


class State(LabState):
    """The wave, how densely it is sampled, and how it is put together again."""

    frequency: Annotated[float, Field(ge=1, le=8)] = 4.0
    rate: Annotated[float, Field(ge=3, le=24)] = 14.0
    by: Literal["sinc", "gaussian"] = "sinc"
    sigma: Annotated[float, Field(ge=0.2, le=1.5)] = 0.5
    size: Annotated[int, Field(ge=1, le=21)] = 9

    def wave(self, x: Tensor) -> Tensor:
        return torch.exp(-0.5 * (x / WIDTH) ** 2) * torch.cos(2 * math.pi * self.frequency * x)

    def transform(self, u: Tensor) -> Tensor:
        """Half a Gaussian at the frequency and half at its negative."""
        around = lambda v: torch.exp(-2 * (math.pi * WIDTH * v) ** 2)  # noqa: E731
        return WIDTH * math.sqrt(math.pi / 2) * (around(u - self.frequency) + around(u + self.frequency))

    def samples(self) -> tuple[Tensor, Tensor]:
        n = math.floor(REACH * self.rate)
        x = torch.arange(-n, n + 1, dtype=torch.float64) / self.rate
        return x, self.wave(x)

    def reconstructed(self, at: Tensor) -> Tensor:
        x, values = self.samples()
        if self.by == "sinc":
            return sinc_reconstruct(values, x, at)
        return gaussian_reconstruct(values, x, at, self.sigma / self.rate)


def show(state: State) -> dict[str, Any]:
    """How far the reconstruction is off, and what the wave is taken for."""
    at = torch.linspace(-1.5, 1.5, 181, dtype=torch.float64)
    error = float((state.reconstructed(at) - state.wave(at)).abs().max())
    alias = abs(state.frequency - state.rate * round(state.frequency / state.rate))
    return {
        "off_by": error,
        "alias": alias,
        "enough": state.rate > 2 * state.frequency,
        "python": python(state),
        "images": [packed(mark) for mark in stars(state)],
        "figures": {"signal": still(state), "replicas": replicas(state)},
    }


def still(state: State) -> Figure:
    """The packet, its samples, and what is made of them."""
    at, (x, values) = torch.linspace(-1.5, 1.5, 181, dtype=torch.float64), state.samples()
    near = x.abs() <= 1.5
    marks = [
        Line(at, state.wave(at), "signal"),
        Line(at, state.reconstructed(at), "reconstructed"),
        Points(x[near], values[near], "samples"),
    ]
    return Figure(f"{state.rate:g} samples for each unit, {state.frequency:g} waves", "x", "", marks)


def replicas(state: State) -> Figure:
    """The spectrum of the samples, that of the signal, and what the filter lets pass."""
    u = torch.linspace(-20, 20, 181, dtype=torch.float64)
    x, values = state.samples()
    spectrum = sampled_spectrum(values, x, u).real / state.rate
    half = state.rate / 2
    if state.by == "sinc":
        passed = Line([-20, -half, -half, half, half, 20], [0, 0, 1, 1, 0, 0], "passed by the sinc")
    else:
        passed = Line(u, torch.exp(-2 * (math.pi * state.sigma / state.rate * u) ** 2), "passed by the Gaussian")
    top = WIDTH * math.sqrt(math.pi / 2)
    marks = [Line(u, spectrum / top, "samples"), Line(u, state.transform(u) / top, "signal"), passed]
    return Figure(f"Replicas, {state.rate:g} apart", "frequency", "spectrum", marks)


def stars(state: State) -> list[Tensor]:
    """Spokes that come out dark for bright under a box, and only fade under a Gaussian as wide."""
    image, n = siemens_star(48, 12).double(), 2 * (state.size // 2) + 1
    sigma = math.sqrt((n * n - 1) / 12)  # the standard deviation of the box
    filtered = filter_image(image, box_kernel(n, torch.float64)), gaussian_filter(image, sigma, truncate=3.0)
    return [image, *(((pixels - 0.5) * 3 + 0.5).clamp(0, 1) for pixels in filtered)]  # what is left is faint


def python(state: State) -> str:
    """The same in Python."""
    call = "sinc_reconstruct(samples, x, at)"
    if state.by == "gaussian":
        call = f"gaussian_reconstruct(samples, x, at, {state.sigma / state.rate:.4g})"
    return (
        "import torch\nfrom lemmata.vision import gaussian_reconstruct, sinc_reconstruct\n\n"
        f"wave = lambda x: torch.exp(-0.5 * (x / {WIDTH}) ** 2) * torch.cos(2 * torch.pi * {state.frequency:g} * x)\n"
        f"x = torch.arange(-{math.floor(REACH * state.rate)}, {math.floor(REACH * state.rate) + 1}) / {state.rate:g}\n"
        "at, samples = torch.linspace(-1.5, 1.5, 181), wave(x)\n"
        f"print(({call} - wave(at)).abs().max())"
    )


def packed(pixels: Tensor) -> str:
    """Grey pixels as base64, a byte each: what the script paints."""
    return base64.b64encode(bytes((pixels.clamp(0, 1) * 255).round().byte().flatten().tolist())).decode()
