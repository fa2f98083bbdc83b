r"""Graph convolutional networks: mix the nodes by a fixed, normalised coupling, then mix the features."""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.reference import WIDER
from lemmata.geometric.graph import Graph
from lemmata.marks import system

__all__ = ["GCN", "GCNConvolution", "gcn_coupling"]


def gcn_coupling(graph: Graph, dtype: torch.dtype | None = None) -> Graph:
    r"""The same nodes with edges to themselves, weighted by the coupling of a graph convolutional network.

    $$ \bar A = \tilde D^{-1/2} (A + I)\, \tilde D^{-1/2}, \qquad
       \bar a_{nm} = \frac{a_{nm} + \delta_{nm}}{\sqrt{(1 + d_n)(1 + d_m)}} $$

    It is no average: its rows all sum to one only where every component is regular. Its spectral norm is one. The
    weights have the given dtype, or the one they had.

    Claims: graph.gcn.coupling, graph.gcn.spectral_norm
    Differs: an edge from a node to itself counts 1 whatever its weight was; PyTorch Geometric keeps its weight.

    >>> gcn_coupling(Graph([[0, 1], [1, 2]]).undirected()).dense().round(decimals=3)
    tensor([[0.5000, 0.4080, 0.0000],
            [0.4080, 0.3330, 0.4080],
            [0.0000, 0.4080, 0.5000]])
    """
    looped = graph.with_self_loops()
    own = looped.edge_weights
    if own is None:
        dtype = torch.get_default_dtype() if dtype is None else dtype
        return looped.replace(edge_weights=looped.once(("gcn_coupling", dtype), lambda: _normalised(looped, dtype)))
    weights = _normalised(looped, dtype)
    return looped.replace(edge_weights=weights * own.to(weights.dtype))


def _normalised(looped: Graph, dtype: torch.dtype | None) -> Float[Tensor, " edges"]:
    """One over the root of the degrees of both ends."""
    degrees = looped.degrees(dtype=dtype)
    if bool((degrees <= 0).any()):
        raise ValueError("edge_weights must have sums > -1 at every node, so that 1 + degree is positive")
    scale = degrees.rsqrt()
    return scale[looped.edges[0]] * scale[looped.edges[1]]


@system("gcn_convolution", title="GCN layer", kind="module")
class GCNConvolution(nn.Module):
    r"""One layer of a graph convolutional network, without its activation.

    $$ X^+ = \bar A X W + b $$

    `graph` may be any graph, which is coupled anew at each call, or the result of `gcn_coupling` with `coupled=True`,
    which a network keeps. The smaller of input and output goes along the edges.

    Shapes:
        x: (nodes, inputs)    returns: (nodes, outputs)

    Claims: graph.gcn, graph.limit.oversmoothing, graph.limit.oversquashing
    Source: T. Kipf and M. Welling, Semi-supervised classification with graph convolutional networks (2017).
    Differs: weights have PyTorch Geometric's names (`lin.weight`, `bias`) and load both ways.

    >>> layer = GCNConvolution(inputs=3, outputs=2)
    >>> layer(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4).undirected()).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        place = {"device": device, "dtype": dtype}
        self.lin = nn.Linear(inputs, outputs, bias=False, **place)
        self.bias = nn.Parameter(torch.empty(outputs, **place)) if bias else None  # type: ignore[arg-type]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by Glorot, and no bias, as PyTorch Geometric does."""
        nn.init.xavier_uniform_(self.lin.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Float[Tensor, "nodes inputs"], graph: Graph, coupled: bool = False
    ) -> Float[Tensor, "nodes outputs"]:
        if x.ndim != 2 or len(x) != graph.nodes or x.shape[1] != self.inputs:
            raise ValueError(f"x must be ({graph.nodes}, {self.inputs}), got shape {tuple(x.shape)}")
        coupling = graph if coupled else gcn_coupling(graph, WIDER.get(x.dtype, x.dtype))
        weights = coupling.edge_weights
        if weights is None:
            raise ValueError("graph must have edge_weights where coupled=True: use gcn_coupling(graph)")
        mix = (coupling.incoming, coupling.outgoing, weights.to(x.dtype))
        if self.outputs <= self.inputs:
            found = row_sums(self.lin(x), *mix)  # (nodes, outputs)
        else:
            found = self.lin(row_sums(x, *mix))
        return found if self.bias is None else found + self.bias

    def extra_repr(self) -> str:
        """What is told of the layer."""
        return f"inputs={self.inputs}, outputs={self.outputs}, bias={self.bias is not None}"


@system("gcn", title="Graph convolutional network", kind="module")
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
        self.dropout = validate.fraction("dropout", dropout)

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        coupling = gcn_coupling(graph, WIDER.get(x.dtype, x.dtype))
        for number, layer in enumerate(self.layers, 1):
            x = layer(functional.dropout(x, self.dropout, self.training), coupling, coupled=True)
            x = x.relu() if number < len(self.layers) else x  # (nodes, the layer's outputs)
        return x
