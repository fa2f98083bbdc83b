r"""What stands beyond the border of an image, by one name for each way."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from lemmata import validate

__all__ = ["pad_image"]

# Ours, and what scipy.ndimage and OpenCV call the same.
BORDERS = {
    "symmetric": ("reflect", "BORDER_REFLECT"),
    "reflect": ("mirror", "BORDER_REFLECT_101"),
    "replicate": ("nearest", "BORDER_REPLICATE"),
    "circular": ("wrap", "BORDER_WRAP"),
    "zeros": ("constant", "BORDER_CONSTANT"),
}
DIRECT = {"reflect": "reflect", "replicate": "replicate", "circular": "circular"}  # torch has kernels for these


def pad_image(
    image: Float[Tensor, "*batch height width"], amounts: tuple[int, int, int, int], border: str = "symmetric"
) -> Float[Tensor, "*batch larger_height larger_width"]:
    r"""Extend an image at its top, bottom, left and right.

    | border | beyond `a b c d` | scipy.ndimage | OpenCV |
    |---|---|---|---|
    | symmetric | `b a \| a b c d \| d c` | reflect | BORDER_REFLECT |
    | reflect | `c b \| a b c d \| c b` | mirror | BORDER_REFLECT_101 |
    | replicate | `a a \| a b c d \| d d` | nearest | BORDER_REPLICATE |
    | circular | `c d \| a b c d \| a b` | wrap | BORDER_WRAP |
    | zeros | `0 0 \| a b c d \| 0 0` | constant | BORDER_CONSTANT |

    Shapes:
        image: (..., height, width)    returns: (..., top + height + bottom, left + width + right)

    >>> pad_image(torch.tensor([[1.0, 2.0, 3.0]]), (0, 0, 2, 1))
    tensor([[2., 1., 1., 2., 3., 3.]])
    """
    validate.one_of("border", border, BORDERS)
    top, bottom, left, right = amounts
    if border == "zeros":
        return functional.pad(image, (left, right, top, bottom))
    height, width = image.shape[-2:]
    most = {"reflect": -1, "symmetric": 0, "circular": 0}.get(border)
    if most is not None and (max(top, bottom) > height + most or max(left, right) > width + most):
        sizes = f"{max(amounts)} pixels around {height} x {width}"
        raise ValueError(f"border {border!r} has not so many pixels to repeat, {sizes}: use border='replicate'")
    if border in DIRECT:
        flat = image.reshape(-1, 1, height, width)
        padded = functional.pad(flat, (left, right, top, bottom), mode=DIRECT[border])
        return padded.reshape(*image.shape[:-2], *padded.shape[-2:])
    for axis, (before, after) in ((-2, (top, bottom)), (-1, (left, right))):
        if before or after:
            parts = (image.narrow(axis, 0, before).flip(axis), image, _last_rows(image, axis, after).flip(axis))
            image = torch.cat(parts, axis)
    return image


def _last_rows(image: Tensor, axis: int, count: int) -> Tensor:
    return image.narrow(axis, image.shape[axis] - count, count)
