r"""Triangular factors of positive semidefinite matrices, singular ones included."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.foundations.validate import symmetric
from lemmata.marks import system

__all__ = ["psd_factor"]


@system("psd_factor", title="Triangular factor of a semidefinite matrix", kind="function")
def psd_factor(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    r"""A lower triangular matrix whose product with its transpose is the given one, also where that is singular.

    $$ A = L L^\top, \qquad L \text{ lower triangular}, \qquad \mathrm{diag}\,L \ge 0 $$

    For a positive definite matrix this is Cholesky's factor, the only one with a positive diagonal. For a singular one
    the plain algorithm divides by zero; there a factor is taken from the eigenvectors, $A = BB^\top$ with
    $B = Q\sqrt\Lambda$, and made triangular by $B^\top = QR$. It is one of many. Derivatives run through Cholesky's
    factor; at a singular matrix there are none.

    Shapes:
        matrix: (..., n, n) symmetric positive semidefinite    returns: (..., n, n)

    Claims: linalg.cholesky
    Differs: torch.linalg.cholesky raises at singular matrices.

    >>> psd_factor(torch.tensor([[4.0, 2.0], [2.0, 1.0]]))
    tensor([[2., 0.],
            [1., 0.]])
    """
    symmetric("matrix", matrix)
    found = torch.linalg.cholesky_ex(matrix)
    if not found.info.any():
        return found.L
    singular = _from_eigenvectors(matrix.detach())
    failed = found.info > 0  # mutant: where both factors exist they are the same
    return torch.where(failed[..., None, None], singular, found.L)


def _from_eigenvectors(matrix: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(matrix)
    rounding = 4 * matrix.shape[-1] * torch.finfo(matrix.dtype).eps * values.abs().amax(-1)
    if (values[..., 0] < -rounding).any():
        least = values[..., 0].min().item()
        raise ValueError(f"matrix must be positive semidefinite, but has the eigenvalue {least:.3g}")
    root = vectors * values.clamp(min=0.0).sqrt()[..., None, :]
    factor = torch.linalg.qr(root.mT).R.mT
    negative = factor.diagonal(dim1=-2, dim2=-1) < 0  # mutant: a zero has no sign
    signs = torch.where(negative, -1.0, 1.0).to(matrix)
    return factor * signs[..., None, :]
