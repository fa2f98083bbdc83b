"""A regularised restoration of two megapixels, against scikit-image's; the limit is a transform there and back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.vision.gradient_kernels import laplacian_kernel
from lemmata.vision.motion_blur import motion_blur_kernel
from lemmata.vision.restoration import Restoration, transfer_function

SIZE = (1024, 2048)
BALANCE = 0.1


class Problem(NamedTuple):
    """A blurred image and its kernel."""

    image: Tensor
    kernel: Tensor


@entry(
    "wiener",
    title="Wiener filter",
    measures="one restoration of a periodic image, float32",
    cases={"photo": "2 megapixels, motion of 9 pixels"},
    targets={"scikit-image": 0.67},
)
def problem(case: str, device: str) -> Problem:
    """A random image and a way at an angle."""
    del case
    image = torch.rand(SIZE, generator=torch.Generator().manual_seed(0))
    return Problem(image.to(device), motion_blur_kernel(9, 30).to(device))


@ours("lemmata")
def by_spectra(problem: Problem) -> Callable[[], Tensor]:
    """The transfer function from the few taps of the kernel, and two real transforms."""
    restoration = Restoration(problem.kernel, border="circular")
    weight = transfer_function(laplacian_kernel().to(problem.image.device), SIZE).abs().square() * BALANCE

    def restore() -> Tensor:
        with torch.no_grad():
            return restoration(problem.image, weight)

    return restore


@peer("scikit-image", needs="scikit-image")
def by_scikit_image(problem: Problem) -> Callable[[], Any]:
    """Kernel and regulariser are transformed in every call."""
    from skimage.restoration import wiener

    image, kernel = problem.image.cpu().numpy(), problem.kernel.cpu().numpy()
    return lambda: wiener(image, kernel, BALANCE, clip=False)


@limit("a real transform and its inverse")
def transforms(problem: Problem) -> Callable[[], Tensor]:
    """Whatever stands between them."""
    return lambda: torch.fft.irfft2(torch.fft.rfft2(problem.image), s=SIZE)


@agreement(within=1e-3)
def in_numbers(y: Any) -> dict[str, float]:
    """How large the result is, and its product with an image that no shift leaves alone."""
    y = torch.as_tensor(np.asarray(y.cpu() if isinstance(y, Tensor) else y)).double().flatten()
    wave = torch.cos(torch.arange(len(y), dtype=torch.float64) ** 2 % 997)
    return {"length": float(y.norm()), "with a wave": float(y.norm() + y @ wave)}
