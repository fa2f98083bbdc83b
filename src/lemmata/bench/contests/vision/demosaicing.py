"""Bilinear demosaicing of two megapixels, against OpenCV, which computes with 16-bit integers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.vision.colour_camera import demosaic

SIZE = (1024, 2048)


class Problem(NamedTuple):
    """A mosaic of integers, as numbers."""

    mosaic: Tensor


@entry(
    "demosaicing",
    title="Bilinear demosaicing",
    measures="three colours of every pixel of one mosaic, float32",
    cases={"photo": "2 megapixels"},
    targets={"scipy.ndimage": 1.0},
)
def problem(case: str, device: str) -> Problem:
    """Random integers of 16 bits."""
    del case
    return Problem(torch.randint(0, 65536, SIZE, generator=torch.Generator().manual_seed(0)).float().to(device))


@ours("lemmata")
def by_phases(problem: Problem) -> Callable[[], Tensor]:
    """The four kinds of pixels, one after another."""
    return lambda: demosaic(problem.mosaic)


@peer("OpenCV", needs="opencv-python-headless")
def by_opencv(problem: Problem) -> Callable[[], Any]:
    """In 16-bit integers, which is what it has."""
    import cv2

    mosaic = problem.mosaic.cpu().numpy().astype(np.uint16)
    return lambda: cv2.cvtColor(mosaic, cv2.COLOR_BayerBG2RGB).transpose(2, 0, 1)


@peer("scipy.ndimage", needs="scipy")
def by_scipy(problem: Problem) -> Callable[[], Any]:
    """A correlation of each colour's pixels, zeros between them: the few lines that everybody writes."""
    from scipy import ndimage

    mosaic = problem.mosaic.cpu().numpy()
    masks = np.zeros((3, *SIZE), np.float32)
    masks[0, ::2, ::2] = masks[2, 1::2, 1::2] = masks[1, ::2, 1::2] = masks[1, 1::2, ::2] = 1
    cross = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]], np.float32) / 4
    square = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32) / 4
    kernels = (square, cross, square)
    return lambda: np.stack(
        [ndimage.correlate(mosaic * m, k, mode="mirror") for m, k in zip(masks, kernels, strict=True)]
    )


@limit("the mosaic read and three colours written once")
def copying(problem: Problem) -> Callable[[], Tensor]:
    """No way around that."""
    result = problem.mosaic.new_empty(3, *SIZE)
    return lambda: result.copy_(problem.mosaic.expand(3, *SIZE))


@agreement(within=1e-4)
def in_numbers(colours: Any) -> dict[str, float]:
    """Means of the colours, away from the border, weighed by an image that no shift leaves alone."""
    y = torch.as_tensor(np.asarray(colours.cpu() if isinstance(colours, Tensor) else colours).astype(np.float64))
    y = y[:, 4:-4, 4:-4]
    wave = torch.cos(torch.arange(y[0].numel(), dtype=torch.float64) ** 2 % 997).reshape(y[0].shape) + 2
    return {name: float((part * wave).mean()) for name, part in zip(("red", "green", "blue"), y, strict=True)}
