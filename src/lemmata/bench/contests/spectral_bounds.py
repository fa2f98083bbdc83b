"""The spectral norm between two proved bounds, against torch's by all singular values."""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.probable_norm import probable_spectral_norm
from lemmata.measure.spectral import certified_spectral_norm

SIZE = 4096


@entry(
    "spectral_norm",
    title="Spectral norm with a certificate",
    measures="one norm: ours with a proved lower and upper bound, torch's to full precision",
    cases={"gaussian": "4,096 x 4,096, float32, independent normal entries"},
    targets={"torch.linalg.matrix_norm": 0.2},
)
def random_matrix(case: str, device: str) -> Tensor:
    """No gap at the top of the spectrum: the hard case for any iteration."""
    return torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(0)).to(device)


@ours("lemmata")
def with_bounds(matrix: Tensor) -> Callable[[], Tensor]:
    """Lanczos for the lower bound, a Cholesky factorisation for the upper one, in double precision."""

    def norm() -> Tensor:
        bounds = certified_spectral_norm(matrix)
        return (bounds.lower + bounds.upper) / 2

    return norm


@ours("lemmata, within 1 % but for a chance of 1e-9")
def with_probable_bound(matrix: Tensor) -> Callable[[], Tensor]:
    """Lanczos from a random start: only products with vectors."""
    return lambda: probable_spectral_norm(matrix, tolerance=1e-2, failure=1e-9).lower


@peer("torch.linalg.matrix_norm")
def by_singular_values(matrix: Tensor) -> Callable[[], Tensor]:
    """All singular values, of which one is used."""
    return lambda: torch.linalg.matrix_norm(matrix, 2)


@limit("the product of the matrix with its own transpose and one Cholesky factorisation, in double precision")
def gram_and_factor(matrix: Tensor) -> Callable[[], Tensor]:
    """What the upper bound is proved about, and what proves it."""
    wide = matrix.double()
    definite = wide.mT @ wide
    definite.diagonal().add_(len(definite))
    return lambda: (wide.mT @ wide, torch.linalg.cholesky_ex(definite).L)[1]


@agreement(within=1e-4)
def in_numbers(norm: Tensor) -> dict[str, float]:
    """The norm, to the digits that single precision has."""
    return {"norm": float(norm)}
