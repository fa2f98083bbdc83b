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


@limit("one product of the matrix with a vector")
def read_once(matrix: Tensor) -> Callable[[], Tensor]:
    """Every entry counts; a bound that is proved takes products of matrices, one that is probable does not."""
    vector = torch.ones_like(matrix[0])
    return lambda: matrix @ vector


@agreement(within=1e-3)
def in_numbers(norm: Tensor) -> dict[str, float]:
    """The norm; the probable one promises a hundredth and finds about a ten-thousandth."""
    return {"norm": float(norm)}
