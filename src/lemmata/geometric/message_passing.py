r"""Message passing: every node hears its neighbours, joins what they say in a way that knows no order, and updates."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.neighbour_extreme import row_extremes
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.reference import WIDER
from lemmata.geometric.deep_sets import check_network
from lemmata.geometric.graph import Graph, check_nodes
from lemmata.marks import system

__all__ = ["MessagePassing", "aggregate_neighbours"]

REDUCTIONS = ("sum", "mean", "max", "min", "softmax")
Network = Callable[[Tensor], Tensor]


def aggregate_neighbours(
    x: Float[Tensor, "nodes features"], graph: Graph, reduce: str = "sum"
) -> Float[Tensor, "nodes features"]:
    r"""The sum, mean, maximum, minimum or softmax-weighted sum of the features of each node's sources.

    A node without neighbours gets zero. Sums and means weigh each message with its edge, means divide by the sum of the
    weights; parallel edges count as often as they come: neighbours form a multiset. Nothing with a row of features for
    every edge is kept.

    >>> path = Graph([[0, 1], [2, 1]])
    >>> aggregate_neighbours(torch.tensor([[1.0], [2.0], [4.0]]), path, "mean")
    tensor([[0.0000],
            [2.5000],
            [0.0000]])
    """
    validate.one_of("reduce", reduce, REDUCTIONS)
    check_nodes(x, graph)
    weights = None if graph.edge_weights is None else graph.edge_weights.to(x.dtype)
    if reduce in ("sum", "mean"):
        total = row_sums(x, graph.incoming, graph.outgoing, weights)
        if reduce == "sum":
            return total
        count = graph.degrees(dtype=WIDER.get(x.dtype, x.dtype))[:, None].to(x.dtype)
        return torch.where(count == 0, 0.0, total / torch.where(count == 0, 1.0, count))
    if weights is not None:
        raise ValueError(f"edge_weights have no meaning for reduce={reduce!r}: use graph.replace(edge_weights=None)")
    if reduce == "softmax":  # of each feature by itself: between the mean and the maximum
        # Attention with a head for every feature, whose scores are the values themselves. Scores are taken relative to
        # the highest that each target hears: one shift for all would lose those who hear small values alone.
        level = torch.zeros_like(x)
        return row_attention(level, x, x[..., None], graph.incoming, graph.outgoing, slope=1.0)[..., 0]
    return row_extremes(x, graph.incoming, graph.outgoing, largest=reduce == "max")


@system(
    "message_passing",
    title="Message passing",
    kind="module",
    example="MessagePassing(nn.Linear(3, 4), nn.Linear(3 + 4, 5))(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class MessagePassing(nn.Module):
    r"""One round of message passing with any message, any update, and an aggregate that knows no order.

    $$ x_m' = \phi\Big(x_m, \bigoplus_{n \to m} \psi(x_n)\Big) $$

    `message` $\psi$ is a network of single nodes, so that it is computed once for each node and not for each edge;
    `update` $\phi$ takes the node's own features and what was heard, side by side. Equivariant for any of them:
    relabelled nodes have relabelled results.

    Shapes:
        x: (nodes, features)    message: (nodes, features) to (nodes, messages)
        update: (nodes, features + messages) to (nodes, outputs)    returns: (nodes, outputs)

    Claims: graph.message_passing, graph.invariance, graph.wl.bound
    Source: J. Gilmer et al., Neural message passing for quantum chemistry (2017).
    Differs: does not pass `wrong_width`: the networks are given, and say it themselves.

    >>> layer = MessagePassing(nn.Linear(3, 4), nn.Linear(3 + 4, 5), reduce="max")
    >>> layer(torch.randn(6, 3), Graph([[0, 1], [1, 2]], nodes=6).undirected()).shape
    torch.Size([6, 5])
    """

    def __init__(self, message: Network, update: Network, reduce: str = "sum") -> None:
        super().__init__()
        self.message, self.update = check_network("message", message), check_network("update", update)
        self.reduce = validate.one_of("reduce", reduce, REDUCTIONS)

    def forward(self, x: Float[Tensor, "nodes features"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph)
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        heard = aggregate_neighbours(self.message(x), graph, self.reduce)  # (nodes, messages)
        return self.update(torch.cat([x, heard], 1))
