r"""Triangular factors of positive semidefinite matrices, singular ones included."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.marks import system
from lemmata.validate import symmetric

__all__ = ["psd_factor"]


@system("psd_factor", title="Triangular factor of a semidefinite matrix", kind="function")
def psd_factor(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    r"""A lower triangular matrix whose product with its transpose is the given one, also where that is singular.

    $$ A = L L^\top, \qquad L \text{ lower triangular}, \qquad \mathrm{diag}\,L \ge 0 $$

    For a positive definite matrix this is Cholesky's factor, the only one with a positive diagonal. For a singular one
    the plain algorithm divides by zero, or by what rounding leaves of it; there a factor is taken from the
    eigenvectors, $A = BB^\top$ with $B = Q\sqrt\Lambda$, and made triangular by $B^\top = QR$. It is one of many.
    Eigenvalues that rounding cannot tell from zero count as zero: the root of a last bit has half of the digits.
    Derivatives run through Cholesky's factor; at a singular matrix there are none.

    Shapes:
        matrix: (..., n, n) symmetric positive semidefinite    returns: (..., n, n)

    Claims: linalg.cholesky
    Differs: torch.linalg.cholesky raises at singular matrices.

    >>> psd_factor(torch.tensor([[4.0, 2.0], [2.0, 1.0]])).round(decimals=5)
    tensor([[2., 0.],
            [1., 0.]])
    """
    symmetric("matrix", matrix)
    found = torch.linalg.cholesky_ex(matrix)
    entries, rounding = matrix.detach().diagonal(dim1=-2, dim2=-1), matrix.shape[-1] * torch.finfo(matrix.dtype).eps
    pivots = found.L.detach().diagonal(dim1=-2, dim2=-1) ** 2
    # Whether it breaks down at a pivot of this size is up to the last bit.
    failed = (found.info > 0) | (pivots <= rounding * entries).any(-1)
    if not failed.any():
        return found.L
    return torch.where(failed[..., None, None], _from_eigenvectors(matrix.detach()), found.L)


def _from_eigenvectors(matrix: Tensor) -> Tensor:
    """With ones on the diagonal first, so that small rows keep their digits beside large ones."""
    sizes = matrix.diagonal(dim1=-2, dim2=-1).clamp(min=0.0).sqrt()
    sizes = torch.where(sizes > 0, sizes, 1.0)
    # No entry of a semidefinite matrix is then above 1; larger ones must not overflow before they are refused.
    scaled = (matrix / sizes[..., :, None] / sizes[..., None, :]).clamp(-2.0, 2.0)
    values, vectors = torch.linalg.eigh(scaled)
    rounding = 4 * matrix.shape[-1] * torch.finfo(matrix.dtype).eps * values.abs().amax(-1)
    if (values[..., 0] < -rounding).any():
        least = torch.linalg.eigvalsh(matrix)[..., 0].min().item()
        raise ValueError(f"matrix must be positive semidefinite, but has the eigenvalue {least:.3g}")
    root = vectors * torch.where(values > rounding[..., None], values, 0.0).sqrt()[..., None, :]
    factor = torch.linalg.qr(root.mT).R.mT
    negative = factor.diagonal(dim1=-2, dim2=-1) < 0
    signs = torch.where(negative, -1.0, 1.0).to(matrix)
    return (sizes[..., :, None] * factor * signs[..., None, :]).tril()  # without the minus zeros above the diagonal
