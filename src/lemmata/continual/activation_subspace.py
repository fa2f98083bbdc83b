"""The directions in which a layer's inputs lie: those that an update must leave alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["activation_basis", "project_away"]


@system("activation_basis", title="Basis of a layer's activations", kind="function")
def activation_basis(
    activations: Float[Tensor, "n features"],
    energy: float = 0.95,
    basis: Float[Tensor, "features old"] | None = None,
) -> Float[Tensor, "features rank"]:
    r"""Orthonormal directions that hold a part of the activations' squared length; those of `basis` are kept.

    $$ \|U^\top X\|_F^2 \ge e\,\|X\|_F^2, \qquad U^\top U = I $$

    With `energy` 1 the activations lie in the span, up to rounding: directions of singular values below the largest
    times the machine precision and the size of the matrix are taken for none.

    Shapes:
        activations: (n, features), basis: (features, old)    returns: (features, rank), rank at least old

    Claims: continual.projection_nullspace, continual.projection_assumptions
    Source: Saha, Garg and Roy, Gradient projection memory for continual learning (2021).

    >>> x = torch.tensor([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> activation_basis(x, 0.9).shape, activation_basis(x, 1.0).shape
    (torch.Size([3, 1]), torch.Size([3, 2]))
    """
    x = validate.floating("activations", activations)
    if x.ndim != 2 or not len(x):
        raise ValueError(f"activations must be (n, features) with at least one row, got {tuple(x.shape)}")
    validate.number("energy", energy, least=0, most=1)
    known = x.new_zeros(x.shape[1], 0) if basis is None else basis.to(x)
    if known.ndim != 2 or known.shape[0] != x.shape[1]:
        raise ValueError(f"basis must be ({x.shape[1]}, directions), got {tuple(known.shape)}")
    whole = x.square().sum()
    rest = project_away(x, known)
    lacking = energy * whole - (whole - rest.square().sum())
    if whole == 0 or lacking <= 0:
        return known
    _, sizes, directions = torch.linalg.svd(rest, full_matrices=False)  # directions: (rank, features)
    floor = torch.linalg.matrix_norm(x, 2) * max(x.shape) * torch.finfo(x.dtype).eps
    there = int((sizes > floor).sum())
    held = sizes[:there].square().cumsum(0)
    # At full energy all directions that are there count: rounding of the sum must not leave one out.
    rank = there if energy == 1 else min(there, int((held < lacking).sum()) + 1)
    joined = torch.cat([known, directions[:rank].T], 1)
    # Directions were orthogonal to the known ones up to rounding only. Rows in memory, as after a checkpoint: a product
    # of the same numbers in another order of memory has other last bits.
    return torch.linalg.qr(joined).Q.contiguous()


def project_away(rows: Float[Tensor, "rows features"], basis: Float[Tensor, "features rank"]) -> Tensor:
    r"""What is left of each row outside the span: $G (I - U U^\top)$.

    >>> project_away(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0], [0.0]]))
    tensor([[0., 2.]])
    """
    return rows - (rows @ basis) @ basis.T
