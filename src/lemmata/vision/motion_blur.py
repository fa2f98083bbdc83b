r"""Motion blur: the kernel of a straight uniform motion, its spectrum, and its length read back from an image."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.image_arguments import image_of

__all__ = ["motion_blur_kernel", "motion_blur_length", "motion_blur_spectrum"]


@system("motion_blur_kernel", title="Motion-blur kernel", kind="function")
def motion_blur_kernel(
    length: int | float, angle: int | float = 0.0, dtype: torch.dtype | None = None
) -> Float[Tensor, "rows columns"]:
    r"""The fraction of the time that a point on its way spends in each pixel.

    $$ h(x, y) = \frac1{2l}\big[\theta(x + l) - \theta(x - l)\big]\,\delta(y), \qquad 2l = \text{length} $$

    at angle 0; `angle` is in degrees, counter-clockwise. Pixels are squares, each weighted by the length of the way
    inside it. The way is centred on the middle pixel, so nothing is shifted; of length 2 the outer ones get a quarter.

    Shapes:
        returns: (rows, columns), both odd

    Claims: vision.motion_blur, vision.motion_blur_spectrum

    >>> motion_blur_kernel(3), motion_blur_kernel(2, angle=90)[:, 0]
    (tensor([[0.3333, 0.3333, 0.3333]]), tensor([0.2500, 0.5000, 0.2500]))
    """
    validate.positive("length", length)
    right, up = _motion_direction(angle)
    reach = [
        math.ceil(abs(part) * length / 2 - 0.5 - 1e-12) for part in (up, right)
    ]  # rows and columns beside the middle
    # Where the way crosses from pixel to pixel, in pixels from its middle.
    crossings = [
        (k + 0.5) / part
        for part, n in ((up, reach[0]), (right, reach[1]))
        if part
        for k in range(-n - 1, n + 1)
        if abs(k + 0.5) < abs(part) * length / 2
    ]
    places = torch.tensor(sorted([-length / 2, *crossings, length / 2]), dtype=torch.float64)
    middles, weights = (places[1:] + places[:-1]) / 2, places.diff() / length
    rows = (-up * middles).round().long() + reach[0]  # rows count downwards
    columns = (right * middles).round().long() + reach[1]
    kernel = torch.zeros(2 * reach[0] + 1, 2 * reach[1] + 1, dtype=torch.float64)
    kernel.index_put_((rows, columns), weights, accumulate=True)
    return kernel.to(dtype or torch.get_default_dtype())


@system("motion_blur_spectrum", title="Spectrum of motion blur", kind="function")
def motion_blur_spectrum(
    length: int | float,
    u: Float[Tensor, "*shape"],
    v: Float[Tensor, "*shape"] | int | float = 0.0,
    angle: int | float = 0.0,
) -> Float[Tensor, "*shape"]:
    r"""$\mathcal F[h](u, v) = \mathrm{sinc}(2l\,(u\cos\alpha + v\sin\alpha))$: zero at the multiples of $\frac1{2l}$.

    Shapes:
        u, v: cycles for each pixel to the right and upwards, one shape    returns: the same

    Claims: vision.motion_blur_spectrum

    >>> motion_blur_spectrum(4.0, torch.tensor([0.0, 0.125, 0.375]))
    tensor([ 1.0000,  0.6366, -0.2122])
    """
    validate.positive("length", length)
    right, up = _motion_direction(angle)
    return torch.sinc(length * (validate.floating("u", u) * right + v * up))


@system("motion_blur_length", title="Length of a motion blur", kind="function")
def motion_blur_length(
    image: Float[Tensor, "height width"], angle: int | float = 0.0, max_length: int | None = None
) -> tuple[int, float]:
    r"""The length of a blur of known direction, from the stripes that it leaves in the spectrum.

    The logarithm of the spectrum has a dark stripe at every multiple of $\frac1{2l}$; its own transform (the cepstrum)
    a valley at the distance $2l$. The image fades to its mean at the border, so that the border has no spectrum.

    Shapes:
        image: (height, width)    returns: length in pixels, and how many times deeper the valley is than the next

    Claims: vision.motion_blur_spectrum
    Source: M. Cannon, Blind deconvolution of spatially invariant image blurs with phase (1976).
    Differs: integer lengths from 3 on; noise that hides the stripes hides the length, and the depth says so.
    """
    if image_of("image", image).ndim != 2:
        raise ValueError(f"image must be (height, width), got shape {tuple(image.shape)}: use image.mean(0)")
    height, width = image.shape
    max_length = min(height, width) // 3 if max_length is None else validate.count("max_length", max_length, least=5)
    if max_length > min(height, width) // 2 or max_length < 5:
        raise ValueError(
            f"max_length must be from 5 to half of the smaller side, got {max_length} for {height} x {width} pixels"
        )
    windows = [torch.hann_window(n, periodic=False, dtype=image.dtype, device=image.device) for n in (height, width)]
    faded = (image - image.mean()) * windows[0][:, None] * windows[1]
    power = torch.fft.rfft2(faded).abs().square()
    cepstrum = torch.fft.irfft2(torch.log(power + 1e-9 * power.mean()), s=(height, width))
    right, up = _motion_direction(angle)
    lags = torch.arange(2, max_length + 1, dtype=image.dtype, device=image.device)
    rows, columns = (-up * lags).round().long() % height, (right * lags).round().long() % width
    depth = -cepstrum[rows, columns]
    # Spectra of photographs fall smoothly, which moves small distances alike: a valley is judged beside its neighbours.
    valley = depth[1:-1] - (depth[:-2] + depth[2:]) / 2
    best, second = valley.topk(2).values.tolist()
    return int(lags[1:-1][valley.argmax()]), best / max(second, 1e-30)


def _motion_direction(angle: int | float) -> tuple[float, float]:
    """To the right and upwards; quarter turns are exact."""
    validate.finite_number("angle", angle)
    quarter, rest = divmod(angle % 360, 90)
    cos, sin = (1.0, 0.0) if rest == 0 else (math.cos(math.radians(rest)), math.sin(math.radians(rest)))
    return [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)][int(quarter)]
