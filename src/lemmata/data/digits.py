"""Handwritten digits, 8 by 8 pixels: the smallest real images of the course."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["digits"]


def digits() -> tuple[Float[Tensor, "images 8 8"], Int[Tensor, " images"]]:
    r"""The 1,797 grey images of handwritten digits, ink high, in $[0, 1]$, and their labels 0 to 9.

    Shapes:
        returns: images (1797, 8, 8) float32, labels (1797,) int64

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998 (CC BY 4.0).

    >>> images, labels = digits()
    >>> images.shape, int(labels[0])
    (torch.Size([1797, 8, 8]), 0)
    """
    with np.load(Path(__file__).parent / "embedded" / "digits.npz", allow_pickle=False) as stored:
        images = torch.from_numpy(stored["x"]).float() / 16  # the scanner counted 0 to 16 dark dots a pixel
        return images, torch.from_numpy(stored["y"]).long()
