r"""The Fourier transform on a graph: signals as sums of the Laplacian's eigenvectors, from smooth to rough."""

import math

import torch
from jaxtyping import Inexact
from torch import Tensor

from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.marks import system

__all__ = ["GraphFourier"]

MOST_NODES = 20_000  # a matrix of this side in double precision takes 3 GB, and its eigenvectors as much again


@system("graph_fourier", title="Graph Fourier transform", kind="function")
class GraphFourier:
    r"""The orthogonal basis of a symmetric Laplacian's eigenvectors, in ascending order of frequency.

    $$ L = U \Lambda U^\top, \qquad \hat x = U^\top x, \qquad x = U \hat x $$

    It exists because $L$ is symmetric; that it is also positive semidefinite only makes the frequencies $\Lambda$
    non-negative. The basis is unique up to signs, and up to rotations within each eigenspace: what is computed from it
    should not depend on these (see `spectral_filter`). It costs the cube of the number of nodes.

    Shapes:
        x: (nodes, features) or (nodes,)    basis: (nodes, nodes), columns are the waves    frequencies: (nodes,)

    Claims: graph.fourier
    Source: D. Shuman et al., The emerging field of signal processing on graphs (2013).

    >>> from lemmata.geometric.graph import Graph
    >>> fourier = GraphFourier(GraphLaplacian(Graph([[0, 1], [1, 2], [2, 3], [3, 0]]).undirected()))
    >>> fourier.frequencies.round(decimals=4) + 0.0
    tensor([0., 2., 2., 4.], dtype=torch.float64)
    """

    def __init__(self, laplacian: GraphLaplacian) -> None:
        if laplacian.kind == "random_walk":
            raise ValueError("laplacian must be symmetric, got kind random_walk: use kind='symmetric'")
        if laplacian.graph.nodes > MOST_NODES:
            told = f"of {laplacian.graph.nodes} nodes is too large to be decomposed"
            raise ValueError(f"a graph {told} (at most {MOST_NODES}): use polynomial_filter, which needs products only")
        matrix = laplacian.dense(torch.empty(0, dtype=torch.float64))
        if not torch.allclose(matrix, matrix.mT, rtol=0, atol=1e-6 * float(matrix.abs().max() if len(matrix) else 0)):
            raise ValueError("the graph must be undirected: use graph.undirected()")
        values, self.basis = torch.linalg.eigh((matrix + matrix.mT) / 2)
        self.frequencies = values.clamp(min=0.0)  # rounding may take a zero below it

    def transform(self, x: Inexact[Tensor, "nodes *features"]) -> Inexact[Tensor, "nodes *features"]:
        """How much of each wave a signal holds."""
        return self._matrix_product(self.basis.mH, x)

    def inverse(self, x: Inexact[Tensor, "nodes *features"]) -> Inexact[Tensor, "nodes *features"]:
        """The signal that holds so much of each wave."""
        return self._matrix_product(self.basis, x)

    def _matrix_product(self, matrix: Tensor, x: Tensor) -> Tensor:
        if not (x.is_floating_point() or x.is_complex()):
            raise TypeError(f"x must be floating point, got {x.dtype}: use x.double()")
        if x.ndim == 0 or len(x) != len(matrix):
            raise ValueError(f"x must have a row for each of the {len(matrix)} nodes, got shape {tuple(x.shape)}")
        # Half precision is added up in single precision, with waves that are not rounded further.
        flat = x.reshape(len(x), math.prod(x.shape[1:])).to(torch.promote_types(x.dtype, torch.float32))
        return (matrix.to(flat) @ flat).to(x.dtype).reshape(x.shape)
