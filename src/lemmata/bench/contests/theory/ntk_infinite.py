"""The tangent kernel of an infinitely wide network between 2,000 points; the limit is the product of their inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.kernel.infinite_width import infinite_ntk

POINTS, FEATURES, DEPTH = 2000, 784, 3


@entry(
    "ntk_infinite",
    title="Tangent kernel of infinite width",
    measures="the kernel of a network of relu with two hidden layers, float32",
    cases={"relu": "2,000 points of 784 numbers"},
    targets={"numpy": 0.5},
)
def problem(case: str, device: str) -> Tensor:
    """Points drawn at random."""
    del case
    return torch.randn(POINTS, FEATURES, generator=torch.Generator().manual_seed(0)).to(device)


@ours("lemmata")
def in_one_pass(x: Tensor) -> Callable[[], Tensor]:
    """All layers of a block that the cache holds, and one half of the matrix."""
    return lambda: infinite_ntk(x, depth=DEPTH)


@peer("numpy")
def by_arc_cosines(x: Tensor) -> Callable[[], Any]:
    """The closed form as it stands in papers, layer by layer."""
    points = x.cpu().numpy()

    def kernel() -> Any:
        covariance = 2 / FEATURES * points @ points.T
        tangent = covariance
        for _ in range(DEPTH - 1):
            size = np.sqrt(np.diag(covariance))
            root = np.outer(size, size)
            cosine = np.clip(covariance / root, -1, 1)
            angle = np.arccos(cosine)
            slope = 1 - angle / np.float32(np.pi)
            covariance = root * (np.sin(angle) / np.float32(np.pi) + slope * cosine)
            tangent = covariance + slope * tangent
        return tangent

    return kernel


@limit("the products of the inputs")
def inner_products(x: Tensor) -> Callable[[], Tensor]:
    """Which any kernel of products needs."""
    return lambda: x @ x.mT


@agreement(within=1e-3)
def in_numbers(kernel: Any) -> dict[str, float]:
    """Its length, and the length of one row."""
    found = torch.as_tensor(np.asarray(kernel.cpu() if isinstance(kernel, Tensor) else kernel)).double()
    return {"length": float(found.norm()), "a row": float(found[7].norm())}
