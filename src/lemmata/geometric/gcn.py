r"""Graph convolutional networks: mix the nodes by the normalised adjacency, then mix the features."""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import deprecated

from lemmata import validate
from lemmata.fast.sparse.linear_sums import linear_row_sums
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.reference import WIDER
from lemmata.fast.sparse.rows import Rows, is_looked_at
from lemmata.geometric.graph import Graph, check_graph, check_nodes
from lemmata.marks import system

__all__ = ["GCN", "GCNConvolution", "gcn_coupling", "normalized_adjacency"]


def normalized_adjacency(graph: Graph, dtype: torch.dtype | None = None, improved: bool = False) -> Graph:
    r"""The same nodes with edges to themselves, weighted as a graph convolutional network adds up neighbours.

    $$ \bar A = \tilde D^{-1/2} (A + I)\, \tilde D^{-1/2}, \qquad
       \bar a_{nm} = \frac{a_{nm} + \delta_{nm}}{\sqrt{(1 + d_n)(1 + d_m)}} $$

    It is no average: its rows all sum to one only where every component is regular. Its spectral norm is one. The
    weights have the given dtype, or the one they had. With `improved` an edge to oneself counts 2: $A + 2I$.

    Claims: graph.gcn.coupling, graph.gcn.spectral_norm
    Differs: an edge from a node to itself counts 1 whatever its weight was; PyTorch Geometric keeps its weight.

    >>> normalized_adjacency(Graph([[0, 1], [1, 2]]).undirected()).dense().round(decimals=3)
    tensor([[0.5000, 0.4080, 0.0000],
            [0.4080, 0.3330, 0.4080],
            [0.0000, 0.4080, 0.5000]])
    """
    looped = check_graph(graph).with_self_loops(2.0 if validate.flag("improved", improved) else 1.0)
    own = looped.edge_weights
    if own is None:
        dtype = torch.get_default_dtype() if dtype is None else dtype
        return looped.replace(edge_weights=_normalised_once(looped, dtype))
    weights = _normalized_edges(looped, dtype)
    return looped.replace(edge_weights=weights * own.to(weights.dtype))


@deprecated("gcn_coupling is now called normalized_adjacency")
def gcn_coupling(graph: Graph, dtype: torch.dtype | None = None, improved: bool = False) -> Graph:
    """The former name of `normalized_adjacency`."""
    return normalized_adjacency(graph, dtype, improved)


def _is_plain(layer: nn.Module) -> bool:
    """A linear layer whose call is its product: nobody has put another in its place or listens to it."""
    heard = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
    return type(layer) is nn.Linear and not heard and not nn.modules.module._has_any_global_hook()


def _normalised_once(looped: Graph, dtype: torch.dtype) -> Float[Tensor, " edges"]:
    """The weights that depend on the edges alone, kept with them."""
    return looped.once(("normalized_adjacency", dtype), lambda: _normalized_edges(looped, dtype))


def _normalized_edges(looped: Graph, dtype: torch.dtype | None) -> Float[Tensor, " edges"]:
    """One over the root of the degrees of both ends."""
    degrees = looped.degrees(dtype=dtype)
    # Looked at on the processor only: every step would wait for another device.
    looked = looped.edge_weights is not None and is_looked_at() and degrees.device.type == "cpu"
    if looked and bool((degrees <= 0).any()):
        raise ValueError("edge_weights must have sums > -1 at every node, so that 1 + degree is positive")
    scale = degrees.rsqrt()
    return scale[looped.edges[0]] * scale[looped.edges[1]]


@system(
    "gcn_convolution",
    title="GCN layer",
    kind="module",
    example="GCNConvolution(inputs=3, outputs=2)(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class GCNConvolution(nn.Module):
    r"""One layer of a graph convolutional network, without its activation.

    $$ X^+ = \bar A X W + b $$

    `graph` may be any graph, which keeps its $\bar A$ where it has no weights, or with `normalized=True` the result of
    `normalized_adjacency`, which a network computes once. The smaller of input and output goes along the edges.

    Shapes:
        x: (nodes, inputs)    returns: (nodes, outputs)

    Claims: graph.gcn, graph.limit.oversmoothing, graph.limit.oversquashing
    Source: T. Kipf and M. Welling, Semi-supervised classification with graph convolutional networks (2017).
    Differs: weights have PyTorch Geometric's names (`lin.weight`, `bias`) and load both ways. An edge from a node to
        itself counts 1 whatever its weight was (2 with `improved`), where GCNConv keeps its weight, and forgets
        `improved` on a graph without weights. In place of `normalize=False` give a graph with weights and
        `normalized=True`; in place of `cached=True` give the same graph again.

    >>> layer = GCNConvolution(inputs=3, outputs=2)
    >>> layer(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4).undirected()).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        improved: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.improved = validate.flag("improved", improved)
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        factory = {"device": device, "dtype": dtype}
        self.lin = nn.Linear(inputs, outputs, bias=False, **factory)
        self.bias = nn.Parameter(torch.empty(outputs, **factory)) if bias else None  # type: ignore[arg-type]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by Glorot, and no bias, as PyTorch Geometric does."""
        nn.init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Float[Tensor, "nodes inputs"], graph: Graph, normalized: bool = False
    ) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph, self.inputs)
        rows, transposed, weights = self._weighted_adjacency(graph, WIDER.get(x.dtype, x.dtype), normalized)
        weights = weights.to(x.dtype)
        if _is_plain(self.lin):
            return linear_row_sums(x, self.lin.weight, self.bias, rows, transposed, weights)  # (nodes, outputs)
        if self.outputs <= self.inputs:
            found = row_sums(self.lin(x), rows, transposed, weights)
        else:
            found = self.lin(row_sums(x, rows, transposed, weights))
        return found if self.bias is None else found + self.bias

    def _weighted_adjacency(self, graph: Graph, dtype: torch.dtype, normalized: bool) -> tuple[Rows, Rows, Tensor]:
        """The edges by target and by source, and their weights."""
        if not normalized and graph.edge_weights is None and not self.improved:
            graph = graph.with_self_loops()
            return graph.incoming, graph.outgoing, _normalised_once(graph, dtype)
        graph = graph if normalized else normalized_adjacency(graph, dtype, self.improved)
        if graph.edge_weights is None:
            raise ValueError("graph must have edge_weights where normalized=True: use normalized_adjacency(graph)")
        return graph.incoming, graph.outgoing, graph.edge_weights

    def extra_repr(self) -> str:
        """The sizes of the layer."""
        return f"inputs={self.inputs}, outputs={self.outputs}, bias={self.bias is not None}"


@system(
    "gcn",
    title="Graph convolutional network",
    kind="module",
    example="GCN(inputs=3, widths=[8], outputs=2)(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class GCN(nn.Module):
    r"""A graph convolutional network: layers with rectifiers between them, its last outputs are logits of the nodes.

    $$ Y = \bar A\, \big(\bar A X W_0\big)_+ W_1 \qquad \text{for two layers} $$

    Without the rectifier two layers are the linear model $\bar A^2 X W_0 W_1$. Each layer lets a node see one step
    further.

    Shapes:
        x: (nodes, inputs)    returns: (nodes, outputs)

    Claims: graph.gcn, graph.limit.depth, graph.invariance
    Source: Kipf and Welling 2017.

    >>> model = GCN(inputs=3, widths=[16], outputs=2, dropout=0.5)
    >>> model(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4).undirected()).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int],
        outputs: int,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        pairs = itertools.pairwise([inputs, *widths, outputs])
        self.layers = nn.ModuleList(GCNConvolution(a, b, device=device, dtype=dtype) for a, b in pairs)
        self.inputs, self.dropout = inputs, validate.fraction("dropout", dropout)

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph, self.inputs)
        weighted = graph.edge_weights is not None  # a graph without weights keeps its normalised adjacency
        adjacency = normalized_adjacency(graph, WIDER.get(x.dtype, x.dtype)) if weighted else graph
        for number, layer in enumerate(self.layers, 1):
            x = layer(functional.dropout(x, self.dropout, self.training), adjacency, normalized=weighted)
            x = x.relu() if number < len(self.layers) else x  # (nodes, the layer's outputs)
        return x
