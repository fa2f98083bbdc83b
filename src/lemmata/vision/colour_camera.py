r"""Two ways to see colour: three sensors behind a prism, or one sensor behind a mosaic of filters."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.vision.borders import pad_image
from lemmata.vision.image_arguments import image_of

__all__ = ["bayer_mosaic", "demosaic", "prism_camera"]

PATTERNS = ("rggb", "bggr", "grbg", "gbrg")
CHANNELS = "rgb"


@system("prism_camera", title="Prism camera", kind="function")
def prism_camera(
    image: Float[Tensor, "*batch 3 height width"], shifts: Sequence[tuple[int | float, int | float]] = ((0.0, 0.0),) * 3
) -> Float[Tensor, "*batch 3 height width"]:
    r"""Each colour on a sensor of its own, moved by so many rows and columns: exact if none is moved.

    Fractions of pixels are interpolated linearly; beyond the border the last value is repeated.

    Shapes:
        image: (..., 3, height, width), shifts: (rows, columns) for red, green and blue    returns: as image

    Claims: vision.colour_camera

    >>> prism_camera(torch.arange(4.0).expand(3, 1, 4), [(0, 1), (0, 0), (0, -0.5)])[:, 0]
    tensor([[0.0000, 0.0000, 1.0000, 2.0000],
            [0.0000, 1.0000, 2.0000, 3.0000],
            [0.5000, 1.5000, 2.5000, 3.0000]])
    """
    image_of("image", image, channels=3)
    if len(shifts) != 3 or any(len(shift) != 2 for shift in shifts):
        raise ValueError(f"shifts must be (rows, columns) for each of 3 channels, got {shifts!r}")
    for shift in shifts:
        for amount in shift:
            validate.finite_number("shifts", amount)
    moved = [
        _shift_image(_shift_image(image[..., k, :, :], down, -2), right, -1) for k, (down, right) in enumerate(shifts)
    ]
    return torch.stack(moved, -3)


def _shift_image(x: Tensor, amount: int | float, axis: int) -> Tensor:
    whole = math.floor(amount)
    places = torch.arange(x.shape[axis], device=x.device) - whole
    near, far = (x.index_select(axis, (places - k).clamp(0, x.shape[axis] - 1)) for k in (0, 1))
    return near if amount == whole else torch.lerp(near, far, amount - whole)


@system("bayer_mosaic", title="Bayer mosaic", kind="function")
def bayer_mosaic(
    image: Float[Tensor, "*batch 3 height width"], pattern: str = "rggb"
) -> Float[Tensor, "*batch height width"]:
    r"""One colour for each pixel: of every two by two, two are green and one each is red and blue.

    `pattern` names the colours of the upper left two by two, row by row.

    Shapes:
        image: (..., 3, height, width)    returns: (..., height, width)

    Claims: vision.colour_camera
    Source: B. Bayer, Color imaging array (1976).

    >>> bayer_mosaic(torch.tensor([1.0, 2.0, 3.0])[:, None, None].expand(3, 2, 4))
    tensor([[1., 2., 1., 2.],
            [2., 3., 2., 3.]])
    """
    image_of("image", image, channels=3)
    mosaic = torch.empty_like(image[..., 0, :, :])
    for place, colour in enumerate(validate.one_of("pattern", pattern, PATTERNS)):
        i, j = divmod(place, 2)
        mosaic[..., i::2, j::2] = image[..., CHANNELS.index(colour), i::2, j::2]
    return mosaic


@system("demosaic", title="Bilinear demosaicing", kind="function")
def demosaic(
    mosaic: Float[Tensor, "*batch height width"], pattern: str = "rggb"
) -> Float[Tensor, "*batch 3 height width"]:
    r"""The missing colours of each pixel, as the mean of the nearest pixels that have them.

    Exact for images that are affine in row and column, away from the border; there the mosaic is mirrored, which keeps
    the order of its colours.

    Shapes:
        mosaic: (..., height, width), at least 2 x 2    returns: (..., 3, height, width)

    Claims: vision.colour_camera
    Source: bilinear, as OpenCV's COLOR_Bayer conversions without their rounding to integers.

    >>> demosaic(torch.tensor([[1.0, 2.0, 1.0], [2.0, 3.0, 2.0], [1.0, 2.0, 1.0]]))[:, 1, 1]
    tensor([1., 2., 3.])
    """
    height, width = image_of("mosaic", mosaic).shape[-2:]
    if min(height, width) < 2:
        raise ValueError(f"mosaic must have at least 2 x 2 pixels, got {height} x {width}")
    validate.one_of("pattern", pattern, PATTERNS)
    padded = pad_image(mosaic, (1, 1, 1, 1), "reflect")
    colours = mosaic.new_empty(*mosaic.shape[:-2], 3, height, width)
    for i in (0, 1):
        for j in (0, 1):
            here, beside, below = (pattern[2 * a + b] for a, b in ((i, j), (i, 1 - j), (1 - i, j)))

            def seen(rows: int, columns: int, i: int = i, j: int = j) -> Tensor:
                """The neighbours of this kind of pixel, so many rows and columns away."""
                return padded[..., 1 + i + rows : 1 + height + rows : 2, 1 + j + columns : 1 + width + columns : 2]

            level, upright = seen(0, -1) + seen(0, 1), seen(-1, 0) + seen(1, 0)
            values = {here: mosaic[..., i::2, j::2]}
            if here == "g":
                values |= {beside: level / 2, below: upright / 2}
            else:
                values["g"] = (level + upright) / 4
                diagonal = seen(-1, -1) + seen(-1, 1) + seen(1, -1) + seen(1, 1)
                values["b" if here == "r" else "r"] = diagonal / 4
            for colour, value in values.items():
                colours[..., CHANNELS.index(colour), i::2, j::2] = value
    return colours
