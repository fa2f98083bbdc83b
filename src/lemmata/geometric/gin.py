r"""Graph isomorphism networks: sums of neighbours, which tell multisets apart, and a network of each node."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.geometric.deep_sets import check_network
from lemmata.geometric.graph import Graph, check_nodes
from lemmata.marks import system

__all__ = ["GINConvolution"]


@system(
    "gin",
    title="Graph isomorphism layer",
    kind="module",
    example="GINConvolution(nn.Linear(3, 2))(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class GINConvolution(nn.Module):
    r"""A layer that can tell apart what Weisfeiler and Lehman's refinement can.

    $$ x_m' = h\Big((1 + \varepsilon)\, x_m + \sum_{n \to m} x_n\Big) $$

    With a network $h$ that separates sums, different multisets of neighbours get different features; means and maxima
    lose how often each comes. Parallel edges count as often as they come; edges with weights are refused, as a weighted
    sum is another layer (`MessagePassing`). `device` and `dtype`, where given, are also the network's from then on.

    Shapes:
        x: (nodes, features)    nn: (nodes, features) to (nodes, outputs)    returns: (nodes, outputs)

    Claims: graph.wl.bound, graph.invariance
    Source: K. Xu, W. Hu, J. Leskovec and S. Jegelka, How powerful are graph neural networks? (2019).
    Differs: weights have PyTorch Geometric's names (`nn....`, `eps`) and load both ways. Does not pass
        `wrong_width`: the network is given, and says it itself.

    >>> layer = GINConvolution(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)))
    >>> layer(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4).undirected()).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        network: nn.Module,
        eps: float = 0.0,
        train_eps: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.nn = check_network("network", network)
        if device is not None or dtype is not None:
            network.to(device=device, dtype=dtype)
        first = next(iter(network.parameters()), torch.empty(1, device=device, dtype=dtype))
        self.eps: Tensor
        start = torch.full((1,), float(validate.finite_number("eps", eps)), device=first.device, dtype=first.dtype)
        if validate.flag("train_eps", train_eps):
            self.eps = nn.Parameter(start)
        else:
            self.register_buffer("eps", start)

    def forward(self, x: Float[Tensor, "nodes features"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        check_nodes(x, graph)
        if graph.edge_weights is not None:
            raise ValueError("edge_weights have no meaning for GIN: use graph.replace(edge_weights=None)")
        if not x.is_floating_point():
            raise TypeError(f"x must hold floating-point numbers, got {x.dtype}: use x.float()")
        heard = row_sums(x, graph.incoming, graph.outgoing)  # (nodes, features)
        return self.nn((1 + self.eps) * x + heard)
