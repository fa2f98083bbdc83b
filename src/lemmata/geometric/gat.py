r"""Graph attention: every node decides how much each of its neighbours counts."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.reference import gathered_attention
from lemmata.geometric.graph import Graph, check_nodes
from lemmata.marks import system

__all__ = ["GATConvolution"]


@system(
    "gat",
    title="Graph attention layer",
    kind="module",
    example="GATConvolution(inputs=3, outputs=4, heads=2)(torch.randn(5, 3), Graph([[0, 1], [2, 1], [3, 1], [4, 1]]))",
)
class GATConvolution(nn.Module):
    r"""Attention over the neighbours of each node, with several heads.

    $$ e_{nm} = \mathrm{leaky}\big(u^\top W x_m + v^\top W x_n + w^\top E x_{nm}\big), \qquad
       q_{nm} = \frac{\exp e_{nm}}{\sum_{k \to m} \exp e_{km}}, \qquad x_m' = \sum_{n \to m} q_{nm} W x_n + b $$

    The softmax of node m runs over the sources of the edges that lead to it, itself among them unless
    `self_loops=False`; so the shares of each node sum to one, and to nothing where no edge leads. `edge_inputs` is the
    number of features of an edge, zero where only nodes count; the edge of a node to itself has the mean of those that
    lead to it. Weights of edges are not read: give them as features. With `concat` heads stand side by side, else
    their mean is taken. No tensor has a row of features for every edge.

    Shapes:
        x: (nodes, inputs)    graph.edge_features: (edges, edge_inputs)
        returns: (nodes, heads * outputs), or (nodes, outputs) without `concat`

    Claims: graph.gat, graph.invariance
    Source: P. Veličković et al., Graph attention networks (2018).
    Differs: weights have PyTorch Geometric's names (`lin.weight`, `att_src`, `att_dst`, `lin_edge.weight`, `att_edge`,
        `bias`) and load both ways. Not offered: `residual` (add a linear layer of x), `dropout` of the shares (drop x
        and the outputs instead), another `fill_value` than the mean, and sources apart from targets.

    >>> layer = GATConvolution(inputs=3, outputs=4, heads=2)
    >>> layer(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5).undirected()).shape
    torch.Size([5, 8])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        heads: int = 1,
        concat: bool = True,
        slope: float = 0.2,
        self_loops: bool = True,
        edge_inputs: int = 0,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.heads, self.concat = validate.count("heads", heads), validate.flag("concat", concat)
        self.slope = float(validate.number("slope", slope, least=0.0))
        self.self_loops = validate.flag("self_loops", self_loops)
        self.edge_inputs = validate.count("edge_inputs", edge_inputs, least=0)
        factory = {"device": device, "dtype": dtype}
        self.lin = nn.Linear(inputs, heads * outputs, bias=False, **factory)
        self.att_src = nn.Parameter(torch.empty(1, heads, outputs, **factory))  # type: ignore[arg-type]
        self.att_dst = nn.Parameter(torch.empty(1, heads, outputs, **factory))  # type: ignore[arg-type]
        self.lin_edge = nn.Linear(edge_inputs, heads * outputs, bias=False, **factory) if edge_inputs else None
        self.att_edge = nn.Parameter(torch.empty(1, heads, outputs, **factory)) if edge_inputs else None  # type: ignore[arg-type]
        width = heads * outputs if concat else outputs
        self.bias = nn.Parameter(torch.empty(width, **factory)) if bias else None  # type: ignore[arg-type]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by Glorot, and no bias, as PyTorch Geometric does."""
        for name, values in self.named_parameters():
            if name == "bias":
                nn.init.zeros_(values)
            else:
                nn.init.xavier_uniform_(values[0] if values.ndim == 3 else values)  # attention is (1, heads, outputs)

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph, self.inputs)
        graph = self._with_loops(graph)
        values, to, source, more = self._edge_scores(x, graph)
        found = row_attention(to, source, values, graph.incoming, graph.outgoing, more, self.slope)
        return self._add_bias(found)

    def with_weights(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> tuple[Tensor, Graph, Tensor]:
        """The outputs, the graph with the edges that were attended to, and the share of each, (edges, heads)."""
        check_nodes(x, graph, self.inputs)
        graph = self._with_loops(graph)
        values, to, source, more = self._edge_scores(x, graph)
        found, shares = gathered_attention(to, source, more, values, self.slope, graph.incoming)
        return self._add_bias(found), graph, shares

    def _edge_scores(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        values = self.lin(x).view(len(x), self.heads, self.outputs)  # (nodes, heads, outputs)
        # u^T W and v^T W are small matrices: the scores come from x, and nothing else is as large as the values.
        weight = self.lin.weight.view(self.heads, self.outputs, self.inputs)
        folded = (torch.cat([self.att_dst, self.att_src])[..., None] * weight).sum(2)  # (2, heads, inputs)
        to, source = functional.linear(x, folded.flatten(0, 1)).chunk(2, 1)  # each (nodes, heads)
        if self.lin_edge is None or self.att_edge is None:
            return values, to, source, None
        features = graph.edge_features
        if features is None or features.shape[1:] != (self.edge_inputs,):
            seen = None if features is None else tuple(features.shape)
            raise ValueError(f"edge_features must be (edges, {self.edge_inputs}), got {seen}")
        # The projection and its vector are one small matrix: no row of outputs for every edge.
        joined = (self.lin_edge.weight.view(self.heads, self.outputs, -1) * self.att_edge[0, :, :, None]).sum(1)
        return values, to, source, features @ joined.mT  # (edges, heads)

    def _with_loops(self, graph: Graph) -> Graph:
        if not self.self_loops:
            return graph
        features = graph.edge_features
        if features is None:
            return (
                graph.with_self_loops()
                if graph.edge_weights is None
                else graph.replace(edge_weights=None).with_self_loops()
            )
        kept = graph.without_self_loops()
        assert kept.edge_features is not None
        total = features.new_zeros(graph.nodes, *features.shape[1:]).index_add(0, kept.edges[1], kept.edge_features)
        count = kept.degrees(weighted=False, dtype=features.dtype).clamp(min=1)
        mean = total / count.reshape(-1, *[1] * (features.ndim - 1))  # (nodes, edge_inputs)
        looped = kept.replace(edge_features=None, edge_weights=None).with_self_loops()
        return looped.replace(edge_features=torch.cat([kept.edge_features, mean]))

    def _add_bias(self, found: Float[Tensor, "nodes heads outputs"]) -> Tensor:
        found = found.flatten(1) if self.concat else found.mean(1)
        return found if self.bias is None else found + self.bias

    def extra_repr(self) -> str:
        """The sizes of the layer."""
        return f"inputs={self.inputs}, outputs={self.outputs}, heads={self.heads}, concat={self.concat}"
