r"""The restoration lab: a photograph blurred by a motion, restored with a balance, with or without the conjugate."""

import base64
import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.data.registry import load
from lemmata.figure import Figure, Image, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.measure.image_quality import psnr
from lemmata.vision.image_noise import add_gaussian_noise
from lemmata.vision.motion_blur import motion_blur_kernel
from lemmata.vision.restoration import Restoration, transfer_function

LAB = {
    "title": "Undoing a blur",
    "sentence": "Blur a photograph by a motion, add noise, and find the balance that restores it best.",
    "year": 1949,
    "chapter": "vision",
    "claims": ("vision.wiener", "vision.inverse_filter", "vision.noise_amplification", "vision.motion_blur_spectrum"),
    "systems": ("restoration", "motion_blur_kernel"),
    "command": "lemmata train restoration",
    "thumbnail": {"way": "15", "angle": "30"},
}

SIDE = 64
POWERS = [k / 2 for k in range(-12, 1)]  # of ten: the balances of the curve


class State(LabState):
    """The blur, the noise, and how it is undone."""

    photo: Literal["camera", "coffee", "cat"] = "camera"
    way: Annotated[int, Field(ge=1, le=25)] = 9
    angle: Annotated[int, Field(ge=0, le=175)] = 30
    begins: Literal["middle", "start"] = "middle"
    noise: Annotated[float, Field(ge=0, le=0.05)] = 0.01
    power: Annotated[float, Field(ge=-6, le=0)] = -2.0
    conjugate: Literal["yes", "no"] = "yes"

    def kernel(self) -> tuple[Tensor, tuple[int, int]]:
        """The way, and the tap that counts as its origin: the middle, or the end at which the motion begins."""
        kernel = motion_blur_kernel(self.way, self.angle)
        rows, columns = kernel.shape
        middle = rows // 2, columns // 2
        return kernel, (rows - 1, 0 if self.angle <= 90 else columns - 1) if self.begins == "start" else middle


@functools.cache
def photograph(name: str) -> Tensor:
    image = load("photos").parts[name].x[0].mean(0)
    top, left = {"camera": (30, 70), "coffee": (20, 20), "cat": (40, 40)}[name]
    return image[top : top + SIDE, left : left + SIDE]


def degraded(state: State) -> tuple[Tensor, Restoration]:
    """The blurred and noisy image, which is taken for one period, and what undoes it."""
    kernel, centre = state.kernel()
    image = photograph(state.photo)
    blurred = Restoration(kernel, centre=centre, border="circular").blur(image)
    noisy = add_gaussian_noise(blurred, state.noise, torch.Generator().manual_seed(0))
    if state.conjugate == "no":  # the spectrum of the mirrored kernel is the conjugate: its own conjugate is none
        kernel = kernel.flip(0, 1)
        centre = kernel.shape[0] - 1 - centre[0], kernel.shape[1] - 1 - centre[1]
    return noisy, Restoration(kernel, centre=centre, border="circular")


def restored(noisy: Tensor, restoration: Restoration, power: float) -> Tensor:
    with torch.no_grad():
        return restoration(noisy, 10**power).clamp(0, 1)


def show(state: State) -> dict[str, Any]:
    """The quality before and after, for this balance and for all others."""
    image, (noisy, restoration) = photograph(state.photo), degraded(state)
    scores = [float(psnr(restored(noisy, restoration, power), image, 1.0)) for power in POWERS]
    found = restored(noisy, restoration, state.power)
    before, after = (float(psnr(x.clamp(0, 1), image, 1.0).clamp(max=99)) for x in (noisy, found))
    return {
        "before": before,
        "after": after,
        "best": POWERS[scores.index(max(scores))],
        "highest": min(max(scores), 99.0),
        "python": python(state),
        "images": [packed(pixels) for pixels in (image, noisy, found, spectrum(state))],
        "figures": {"curve": curve(state, scores, before, after)},
    }


def still(state: State) -> Figure:
    """The photograph, what the camera gives, and what is made of it."""
    image, (noisy, restoration) = photograph(state.photo), degraded(state)
    found = restored(noisy, restoration, state.power)
    marks = [
        Image((pixels[::2, ::2].clamp(0, 1) * 32).round().div(32), name)
        for pixels, name in ((image, "photograph"), (noisy, "blurred"), (found, "restored"))
    ]
    return Figure("Before and after", marks=marks)


def curve(state: State, scores: list[float], before: float, after: float) -> Figure:
    """The quality for every balance."""
    marks = [
        Line([10**p for p in POWERS], scores, "restored"),
        Line([10 ** POWERS[0], 10 ** POWERS[-1]], [before, before], "blurred"),
        Points([10**state.power], [after], "here"),
    ]
    return Figure("Quality by balance", "balance ε", "PSNR in decibels", marks, x_log=True)


def spectrum(state: State) -> Tensor:
    """What the blur leaves of each frequency; dark stripes are lost."""
    kernel, centre = state.kernel()
    half = transfer_function(kernel, (SIDE, SIDE), centre).abs()  # (64, 33), v from 0 on
    whole = torch.fft.fftshift(torch.cat([half, half[:, 1:-1].flip(0, 1).roll(1, 0)], 1))
    return 1 + whole.clamp(min=1e-3).log10() / 3  # a thousandth and less is black


def python(state: State) -> str:
    """The same in Python."""
    _, centre = state.kernel()
    made = f"Restoration(kernel, centre={centre}, border='circular')"
    lines = [
        "import torch",
        "from lemmata.data import load",
        "from lemmata.measure import psnr",
        "from lemmata.vision import Restoration, add_gaussian_noise, motion_blur_kernel",
        "",
        f"image = load('photos').parts['{state.photo}'].x[0].mean(0)[:{SIDE}, :{SIDE}]",
        f"kernel = motion_blur_kernel({state.way}, angle={state.angle})",
        f"restoration = {made}",
        f"blurred = add_gaussian_noise(restoration.blur(image), {state.noise:g})",
        f"restored = restoration(blurred, {10**state.power:.3g})",
        "print(psnr(blurred, image, 1.0), psnr(restored, image, 1.0))",
    ]
    return "\n".join(lines)


def packed(pixels: Tensor) -> str:
    """Grey pixels as base64, a byte each: what the script paints."""
    return base64.b64encode(bytes((pixels.clamp(0, 1) * 255).round().byte().flatten().tolist())).decode()
