r"""Laplacians of graphs: how far the value of a node is from those of its neighbours."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.geometric.graph import Graph
from lemmata.marks import system

__all__ = ["GraphLaplacian"]

KINDS = ("combinatorial", "symmetric", "random_walk")


@system("graph_laplacian", title="Graph Laplacian", kind="function")
class GraphLaplacian:
    r"""The Laplacian of a graph, known by its products: no matrix is written down unless asked for.

    $$ L = D - A, \qquad (Lx)_n = \sum_m a_{mn}(x_n - x_m), \qquad
       L_{\mathrm{sym}} = D^{-1/2} L D^{-1/2}, \qquad L_{\mathrm{rw}} = D^{-1} L, \qquad d_n = \sum_m a_{mn} $$

    Edges from a node to itself change nothing in $D - A$ and are left out. A node without edges has a row of zeros in
    all three, so that the multiplicity of the eigenvalue 0 counts the components.

    Shapes:
        x: (nodes, features) or (nodes,)    returns: the same

    Claims: graph.laplacian, graph.laplacian.normalised
    Differs: PyTorch Geometric's normalised ones have a 1 on the diagonal for nodes without edges, ours, as networkx's,
        a 0.

    >>> path = Graph([[0, 1], [1, 2]]).undirected()
    >>> GraphLaplacian(path)(torch.tensor([0.0, 1.0, 4.0]))
    tensor([-1., -2.,  3.])
    >>> GraphLaplacian(path).dense()
    tensor([[ 1., -1.,  0.],
            [-1.,  2., -1.],
            [ 0., -1.,  1.]])
    """

    def __init__(self, graph: Graph, kind: str = "combinatorial") -> None:
        self.kind = validate.one_of("kind", kind, KINDS)
        self.graph = graph.without_self_loops()
        self.degrees = self.graph.degrees()  # (nodes,)
        if bool((self.degrees < 0).any()):
            raise ValueError("edge_weights must have sums >= 0 at every node, got a negative degree")

    def __call__(self, x: Float[Tensor, "nodes *features"]) -> Float[Tensor, "nodes *features"]:
        if len(x) != self.graph.nodes:
            raise ValueError(f"x must have a row for each of the {self.graph.nodes} nodes, got shape {tuple(x.shape)}")
        flat = x.reshape(len(x), -1)  # (nodes, features)
        degrees = self.degrees.to(x.dtype)[:, None]
        scale = degrees.clamp(min=1e-300 if x.dtype.itemsize == 8 else 1e-38).reciprocal() * (degrees > 0)
        before = flat * scale.sqrt() if self.kind == "symmetric" else flat
        weights = None if self.graph.edge_weights is None else self.graph.edge_weights.to(x.dtype)
        found = degrees * before - row_sums(before, self.graph.incoming, self.graph.outgoing, weights)
        after = {"combinatorial": 1.0, "symmetric": scale.sqrt(), "random_walk": scale}[self.kind]
        return (after * found).reshape(x.shape)

    def dense(self, like: Tensor | None = None) -> Float[Tensor, "nodes nodes"]:
        """The whole matrix, in the dtype of `like`, else in that of the weights."""
        dtype = self.degrees.dtype if like is None else like.dtype
        return self(torch.eye(self.graph.nodes, dtype=dtype, device=self.graph.device))

    def largest_eigenvalue_bound(self) -> float:
        """What no eigenvalue exceeds: 2 for the normalised ones, twice the largest degree else (Gershgorin)."""
        if self.kind != "combinatorial":
            return 2.0
        return 2 * float(self.degrees.max()) if self.graph.nodes else 0.0
