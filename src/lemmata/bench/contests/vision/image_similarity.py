"""Structural similarity of two images, against scikit-image's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.image_quality import ssim


class Problem(NamedTuple):
    """Two images."""

    image: Tensor
    reference: Tensor


@entry(
    "image_similarity",
    title="Structural similarity (SSIM)",
    measures="one comparison with Wang's settings, float32",
    cases={"photo": "512 x 768 pixels"},
    targets={"scikit-image": 1.0, "kornia": 1.0},
)
def problem(case: str, device: str) -> Problem:
    """A random image and a noisy copy."""
    del case
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(512, 768, generator=generator)
    noisy = (image + 0.1 * torch.randn(512, 768, generator=generator)).clamp(0, 1)
    return Problem(noisy.to(device), image.to(device))


@ours("lemmata")
def by_lemmata(problem: Problem) -> Callable[[], Tensor]:
    """All moments in one pass for each axis."""
    return lambda: ssim(*problem, data_range=1.0)


@peer("scikit-image", needs="scikit-image")
def by_scikit_image(problem: Problem) -> Callable[[], Any]:
    """Five filters of scipy, one after another."""
    from skimage.metrics import structural_similarity

    image, reference = (part.cpu().numpy() for part in problem)
    words = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
    return lambda: structural_similarity(image, reference, **words)


@peer("kornia", needs="kornia")
def by_kornia(problem: Problem) -> Callable[[], Any]:
    """Torch's convolutions."""
    import kornia

    image, reference = (part[None, None] for part in problem)
    return lambda: kornia.metrics.ssim(image, reference, 11, 1.0, padding="valid").mean()


@limit("both images read once")
def reading(problem: Problem) -> Callable[[], Tensor]:
    """No way around that."""
    return lambda: problem.image.sum() + problem.reference.sum()


@agreement(within=1e-4)
def in_numbers(similarity: Any) -> dict[str, float]:
    return {"similarity": float(similarity)}
