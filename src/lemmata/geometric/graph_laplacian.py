r"""Laplacians of graphs: how far the value of a node is from those of its neighbours."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.rows import has_values, is_looked_at
from lemmata.geometric.graph import Graph, check_graph
from lemmata.marks import system

__all__ = ["GraphLaplacian"]

KINDS = ("combinatorial", "symmetric", "random_walk")


@system("graph_laplacian", title="Graph Laplacian", kind="function")
class GraphLaplacian:
    r"""The Laplacian of a graph, known by its products: no matrix is written down unless asked for.

    $$ L = D - A, \qquad (Lx)_n = \sum_m a_{mn}(x_n - x_m), \qquad
       L_{\mathrm{sym}} = D^{-1/2} L D^{-1/2}, \qquad L_{\mathrm{rw}} = D^{-1} L, \qquad d_n = \sum_m a_{mn} $$

    Edges from a node to itself change nothing in $D - A$ and are left out of all three. A node without edges has a row
    of zeros in each, so that the multiplicity of the eigenvalue 0 counts the components. Weights are not negative;
    degrees are added up in double precision. Of a directed graph $D$ counts the edges that lead to a node, but in
    $L_{\mathrm{sym}}$ those that leave it, and a node that none leaves hears nothing.

    Shapes:
        x: (nodes, features) or (nodes,)    returns: the same

    Claims: graph.laplacian, graph.laplacian.normalised
    Differs: PyTorch Geometric's normalised ones have a 1 on the diagonal for nodes without edges, ours, as networkx's,
        a 0; networkx counts edges to oneself in the degrees of its normalised one. Of directed graphs both count edges
        that leave: `dense()` is the transpose of their symmetric one, and of the flipped graph their two others.

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
        self.graph = check_graph(graph).without_self_loops()
        weights = self.graph.edge_weights
        if weights is not None and is_looked_at() and has_values(weights) and not bool((weights >= 0).all()):
            raise ValueError("edge_weights must be >= 0, or frequencies could be negative")
        exact = self.graph if weights is None else self.graph.replace(edge_weights=weights.double())
        # Of a directed graph the symmetric one takes the edges that leave, as PyTorch Geometric does.
        self.degrees = exact.degrees(leaving=kind == "symmetric").double()  # (nodes,)
        self._rows = (self.graph.incoming, self.graph.outgoing)  # here, since a compiled layer cannot keep them
        power = {"combinatorial": 0.0, "symmetric": -0.5, "random_walk": -1.0}[kind]
        safe = torch.where(self.degrees > 0, self.degrees, 1.0)
        self._scale = torch.where(self.degrees > 0, safe**power, 0.0) if power else None

    def __call__(self, x: Float[Tensor, "nodes *features"]) -> Float[Tensor, "nodes *features"]:
        heard = self.neighbours(x)
        diagonal = self.degrees if self.kind == "combinatorial" else self.degrees > 0
        return diagonal.to(x.dtype).reshape(-1, *[1] * (x.ndim - 1)) * x - heard

    def neighbours(self, x: Float[Tensor, "nodes *features"]) -> Float[Tensor, "nodes *features"]:
        r"""What comes along the edges: $A^\top x$, $D^{-1/2} A^\top D^{-1/2} x$ or $D^{-1} A^\top x$.

        >>> path = Graph([[0, 1], [1, 2]]).undirected()
        >>> GraphLaplacian(path, "random_walk").neighbours(torch.tensor([0.0, 1.0, 4.0]))  # means of neighbours
        tensor([1., 2., 1.])
        """
        if not validate.tensor("x", x).is_floating_point():
            raise TypeError(f"x must be floating point, got {x.dtype}: use x.double()")
        if x.ndim == 0 or len(x) != self.graph.nodes:
            raise ValueError(f"x must have a row for each of the {self.graph.nodes} nodes, got shape {tuple(x.shape)}")
        flat = x.reshape(len(x), math.prod(x.shape[1:]))  # (nodes, features)
        scale = None if self._scale is None else self._scale.to(x.dtype)[:, None]
        before = flat * scale if self.kind == "symmetric" and scale is not None else flat
        weights = None if self.graph.edge_weights is None else self.graph.edge_weights.to(x.dtype)
        heard = row_sums(before, *self._rows, weights)
        return (heard if scale is None else heard * scale).reshape(x.shape)

    def dense(self, like: Tensor | None = None) -> Float[Tensor, "nodes nodes"]:
        """The whole matrix, in the dtype of `like`, else in that of the weights."""
        weights = self.graph.edge_weights
        dtype = like.dtype if like is not None else torch.get_default_dtype() if weights is None else weights.dtype
        return self(torch.eye(self.graph.nodes, dtype=dtype, device=self.graph.device))

    def largest_eigenvalue_bound(self) -> float:
        """What no eigenvalue exceeds: 2 for the normalised ones, twice the largest degree else (Gershgorin).

        Degrees of weighted graphs are rounded, and what rounding may have taken from their sums is added.
        """
        if self.kind != "combinatorial":
            return 2.0
        if not self.graph.nodes:
            return 0.0
        terms = 0 if self.graph.edge_weights is None else int(self._rows[0].lengths().max())
        return 2 * float(self.degrees.max()) * (1 + 2 * terms * torch.finfo(torch.float64).eps)
