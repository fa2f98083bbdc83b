r"""Permutations as index vectors, as matrices of zeros and ones, and as two lines."""

import torch
from jaxtyping import Bool, Int, Num, Shaped
from torch import Tensor

from lemmata.marks import system

__all__ = [
    "permutation_matrix",
    "permutation_of_matrix",
    "is_permutation_matrix",
    "is_doubly_stochastic",
    "invert_permutation",
    "relabel_graph",
    "two_line_notation",
]


@system("permutation_matrix", title="Permutation matrix", kind="function")
def permutation_matrix(
    permutation: Int[Tensor, "*batch n"], dtype: torch.dtype | None = None
) -> Shaped[Tensor, "*batch n n"]:
    r"""The matrix that puts row $\pi(i)$ of what it multiplies into row $i$.

    $$ P_{ij} = \mathbb 1\{j = \pi(i)\}, \qquad (PX)_i = X_{\pi(i)}, \qquad P^{-1} = P^\top $$

    So $PX$ is `X[pi]`, $XP^\top$ is `X[:, pi]`, and $PAP^\top$ relabels the graph with adjacency matrix $A$.

    Shapes:
        permutation: (..., n), each row a rearrangement of 0, ..., n - 1    returns: (..., n, n), of the default dtype

    Claims: linalg.permutation_matrix

    >>> permutation_matrix(torch.tensor([2, 0, 1])) @ torch.tensor([10.0, 20.0, 30.0])
    tensor([30., 10., 20.])
    """
    _permutation(permutation)
    columns = torch.arange(permutation.shape[-1], device=permutation.device)
    return (permutation[..., None] == columns).to(dtype or torch.get_default_dtype())


def is_permutation_matrix(matrix: Num[Tensor, "*batch n n"]) -> Bool[Tensor, "*batch"]:
    r"""Whether all entries are 0 or 1 and every row and every column sums to 1.

    $$ p_{ij} \in \{0, 1\}, \qquad \sum_i p_{ij} = \sum_j p_{ij} = 1 $$

    Shapes:
        matrix: (..., n, n)    returns: (...)

    Claims: linalg.permutation_matrix

    >>> is_permutation_matrix(torch.stack([torch.eye(2), torch.full((2, 2), 0.5)]))
    tensor([ True, False])
    """
    _square(matrix)
    bits = ((matrix == 0) | (matrix == 1)).flatten(-2).all(-1)
    return bits & (matrix.sum(-1) == 1).all(-1) & (matrix.sum(-2) == 1).all(-1)


def is_doubly_stochastic(matrix: Num[Tensor, "*batch n n"]) -> Bool[Tensor, "*batch"]:
    r"""Whether no entry is negative and every row and every column sums to 1, up to rounding.

    $$ p_{ij} \ge 0, \qquad \sum_i p_{ij} = \sum_j p_{ij} = 1 $$

    Permutation matrices are those among them whose entries are 0 or 1; the others are mixtures of these
    (Birkhoff and von Neumann), and their transpose is not their inverse.

    Shapes:
        matrix: (..., n, n)    returns: (...)

    Claims: linalg.permutation_matrix

    >>> is_doubly_stochastic(torch.stack([torch.eye(2), torch.full((2, 2), 0.5), -torch.eye(2)]))
    tensor([ True,  True, False])
    """
    _square(matrix)
    rounding = matrix.shape[-1] * torch.finfo(matrix.dtype).eps if matrix.is_floating_point() else 0
    sums = torch.cat([matrix.sum(-1), matrix.sum(-2)], dim=-1)
    return (matrix >= 0).flatten(-2).all(-1) & ((sums - 1).abs() <= rounding).all(-1)


def permutation_of_matrix(matrix: Num[Tensor, "*batch n n"]) -> Int[Tensor, "*batch n"]:
    r"""The permutation of a permutation matrix: $\pi(i)$ is the column of the one in row $i$.

    $$ \pi(i) = \arg\max_j P_{ij} $$

    Shapes:
        matrix: (..., n, n)    returns: (..., n)

    >>> permutation_of_matrix(torch.tensor([[0, 1], [1, 0]]))
    tensor([1, 0])
    """
    if not is_permutation_matrix(matrix).all():
        raise ValueError("matrix must be a permutation matrix: entries 0 or 1, one 1 in each row and in each column")
    return matrix.argmax(-1)


def invert_permutation(permutation: Int[Tensor, "*batch n"]) -> Int[Tensor, "*batch n"]:
    r"""The permutation that undoes another; its matrix is the transpose.

    $$ \pi^{-1}(\pi(i)) = i $$

    Shapes:
        permutation: (..., n)    returns: (..., n)

    >>> invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    _permutation(permutation)
    return permutation.argsort(-1)


def relabel_graph(
    adjacency: Shaped[Tensor, "*batch n n"], permutation: Int[Tensor, "n"]
) -> Shaped[Tensor, "*batch n n"]:
    r"""The same graph with its nodes in another order: node $i$ of the result is node $\pi(i)$ of the given one.

    $$ P A P^\top, \qquad (P A P^\top)_{ij} = A_{\pi(i)\,\pi(j)} $$

    Shapes:
        adjacency: (..., n, n), permutation: (n,)    returns: (..., n, n)

    Claims: linalg.permutation_matrix

    >>> relabel_graph(torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), torch.tensor([2, 1, 0]))
    tensor([[0, 0, 0],
            [1, 0, 0],
            [0, 1, 0]])
    """
    _square(adjacency, "adjacency")
    _permutation(permutation)
    if permutation.shape != adjacency.shape[-1:]:
        wanted = f"must hold one index for each of the {adjacency.shape[-1]} nodes"
        raise ValueError(f"permutation {wanted}, got shape {tuple(permutation.shape)}")
    return adjacency[..., permutation, :][..., permutation]


def two_line_notation(permutation: Int[Tensor, "n"]) -> str:
    r"""Cauchy's notation: the numbers from 1 to n above the numbers they are mapped to.

    $$ \begin{pmatrix} 1 & \cdots & n \\ \pi(1) & \cdots & \pi(n) \end{pmatrix} $$

    Shapes:
        permutation: (n,), counted from 0 as everywhere else; printed counted from 1

    >>> print(two_line_notation(torch.tensor([2, 0, 1])))
    1 2 3
    3 1 2
    """
    _permutation(permutation)
    if permutation.ndim != 1:
        raise ValueError(f"permutation must be one permutation (n,), got shape {tuple(permutation.shape)}")
    width = len(str(len(permutation)))
    lines = range(1, len(permutation) + 1), (permutation + 1).tolist()
    return "\n".join(" ".join(f"{number:>{width}}" for number in line) for line in lines)


def _permutation(value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"permutation must be a tensor, got {type(value).__name__}: use torch.as_tensor(permutation)")
    if value.dtype is torch.bool or value.is_floating_point() or value.is_complex():
        raise TypeError(f"permutation must hold integers, got {value.dtype}: use permutation.long()")
    if value.ndim == 0 or not value.numel():
        raise ValueError(f"permutation must be a (..., n) tensor that is not empty, got shape {tuple(value.shape)}")
    size = value.shape[-1]
    if not (value.sort(-1).values == torch.arange(size, device=value.device)).all():
        raise ValueError(
            f"permutation must hold each of 0, ..., {size - 1} once, got {value.reshape(-1, size)[0].tolist()}"
        )


def _square(value: Tensor, name: str = "matrix") -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(value).__name__}: use torch.as_tensor({name})")
    if value.ndim < 2 or value.shape[-1] != value.shape[-2] or not value.numel():
        raise ValueError(f"{name} must be a (..., n, n) tensor, got shape {tuple(value.shape)}")
