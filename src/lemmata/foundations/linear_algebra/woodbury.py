r"""A diagonal plus a product of low rank: solved, inverted and measured at the price of its rank."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.validate import broadcast, fits, matrices

__all__ = ["DiagonalPlusLowRank"]


@system("woodbury", title="Woodbury: a diagonal plus low rank", kind="function")
class DiagonalPlusLowRank:
    r"""The matrix $D + UV$ with a diagonal $D$, never formed: a solve costs $O(nk^2)$ instead of $O(n^3)$.

    $$ (D + UV)^{-1} = D^{-1} - D^{-1} U\,(I + V D^{-1} U)^{-1}\,V D^{-1}, \qquad
       \det(D + UV) = \det D \cdot \det(I + V D^{-1} U) $$

    With $D = I$ this is Woodbury's identity as printed. A symmetric low-rank term is `left=F, right=F.mT`. A solve is
    repeated once on what it left over, which keeps its residual at rounding where the diagonal is small beside $UV$.
    Derivatives run through everything.

    Shapes:
        diagonal: (..., n), left: (..., n, k), right: (..., k, n)

    Claims: linalg.woodbury

    >>> matrix = DiagonalPlusLowRank(torch.tensor([1.0, 1.0]), torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0, 2.0]]))
    >>> matrix.dense()
    tensor([[2., 2.],
            [0., 1.]])
    >>> matrix.solve(torch.tensor([4.0, 1.0]))
    tensor([1., 1.])
    """

    def __init__(
        self,
        diagonal: Float[Tensor, "*#batch n"],
        left: Float[Tensor, "*#batch n k"],
        right: Float[Tensor, "*#batch k n"],
    ) -> None:
        self.left = matrices("left", left, "n, k")
        n, k = left.shape[-2:]
        self.right = fits("right", right, (k, n), like=left, whose="left", batched=True)
        self.diagonal = fits("diagonal", diagonal, (n,), like=left, whose="left", batched=True)
        batches = {"diagonal": diagonal.shape[:-1], "left": left.shape[:-2], "right": right.shape[:-2]}
        broadcast(**{name: tuple(batch) for name, batch in batches.items()})
        if (diagonal == 0).any():
            raise ValueError("diagonal must hold no zero: its inverse is what makes the solve cheap")

    @property
    def capacitance(self) -> Float[Tensor, "*batch k k"]:
        r"""The small matrix $I + V D^{-1} U$ that is solved in place of the large one."""
        identity = torch.eye(self.left.shape[-1], dtype=self.left.dtype, device=self.left.device)
        return identity + self.right @ (self.left / self.diagonal[..., None])

    def __matmul__(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The product with a vector (n,) or with columns (..., n, columns)."""
        columns = self._checked_columns("x", x)
        product = self.diagonal[..., None] * columns + self.left @ (self.right @ columns)
        return product[..., 0] if x.ndim == 1 else product

    def solve(self, b: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The vector or the columns that this matrix maps to `b`, a vector (n,) or columns (..., n, columns)."""
        columns = self._checked_columns("b", b)
        capacitance = self.capacitance
        found = self._solve_columns(capacitance, columns)
        found = found + self._solve_columns(capacitance, columns - self @ found)
        return found[..., 0] if b.ndim == 1 else found

    def inverse(self) -> Float[Tensor, "*batch n n"]:
        """The inverse, formed."""
        return self.solve(torch.eye(self.left.shape[-2], dtype=self.left.dtype, device=self.left.device))

    def slogdet(self) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
        """The sign of the determinant and the logarithm of its absolute value, as torch.linalg.slogdet gives them."""
        sign, logarithm = torch.linalg.slogdet(self.capacitance)
        return sign * self.diagonal.sign().prod(-1), logarithm + self.diagonal.abs().log().sum(-1)

    def dense(self) -> Float[Tensor, "*batch n n"]:
        """The matrix itself, formed."""
        return torch.diag_embed(self.diagonal) + self.left @ self.right

    def __repr__(self) -> str:
        n, k = self.left.shape[-2:]
        return f"DiagonalPlusLowRank(n={n}, rank={k})"

    def _solve_columns(self, capacitance: Tensor, columns: Tensor) -> Tensor:
        scaled = columns / self.diagonal[..., None]
        small = torch.linalg.solve_ex(capacitance, self.right @ scaled)
        if small.info.any():
            raise ValueError("diagonal + left @ right must be invertible, but it is singular")
        return scaled - (self.left @ small.result) / self.diagonal[..., None]

    def _checked_columns(self, name: str, value: Tensor) -> Tensor:
        validate.floating(name, value)
        columns = value[:, None] if value.ndim == 1 else value
        if columns.ndim < 2 or columns.shape[-2] != self.left.shape[-2]:
            n = self.left.shape[-2]
            raise ValueError(f"{name} must be a ({n},) or (..., {n}, columns) tensor, got shape {tuple(value.shape)}")
        if value.dtype != self.left.dtype:
            raise TypeError(f"{name} must have the dtype of left, got {value.dtype}: use {name}.to({self.left.dtype})")
        broadcast(**{name: tuple(columns.shape[:-2]), "left": tuple(self.left.shape[:-2])})
        return columns
