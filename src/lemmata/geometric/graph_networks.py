r"""Networks of whole graphs: graph layers, a sum over the nodes, and a perceptron of it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata.geometric.graph import Graph
from lemmata.geometric.graph_batches import pool_nodes
from lemmata.geometric.node_networks import NodeClassifier
from lemmata.marks import system

__all__ = ["GraphClassifier"]


@system(
    "graph_classifier",
    title="Network of whole graphs",
    kind="module",
    example="GraphClassifier('gin', inputs=3, outputs=2, width=8)(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class GraphClassifier(nn.Module):
    r"""The class of each of several graphs, whatever the order of its nodes.

    $$ Y = \rho\Big(\sum_{m \in V} x_m^{(L)}\Big), \qquad \rho \text{ a perceptron with one hidden layer} $$

    The features $x_m^{(L)}$ come from layers of one kind (gcn, gat, gin or chebnet), each followed by a rectifier. The
    sum tells apart what a mean or a maximum would not: how many nodes of a kind there are.

    Shapes:
        x: (nodes, inputs)    graph: several side by side, or one    returns: logits (graphs, outputs)

    Source: K. Xu, W. Hu, J. Leskovec and S. Jegelka, How powerful are graph neural networks? (2019).
    Differs: the last layer alone is read out, and nothing is normalised over a batch.

    >>> from lemmata.geometric import batch_graphs
    >>> pair = batch_graphs([Graph([[0, 1]]), Graph([[0, 1], [1, 2]])]).undirected()
    >>> GraphClassifier("gin", inputs=3, outputs=2)(torch.randn(5, 3), pair).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        layer: str,
        inputs: int,
        outputs: int,
        width: int = 32,
        depth: int = 3,
        dropout: float = 0.0,
        heads: int = 8,
        degree: int = 2,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory = {"device": device, "dtype": dtype}
        self.nodes = NodeClassifier(layer, inputs, width, width, depth, dropout, heads, degree, **factory)  # type: ignore[arg-type]
        hidden, last = nn.Linear(width, width, **factory), nn.Linear(width, outputs, **factory)
        self.read_out = nn.Sequential(hidden, nn.ReLU(), nn.Dropout(dropout), last)

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "graphs outputs"]:
        return self.read_out(self.embed(x, graph))

    def embed(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "graphs width"]:
        """The sum over each graph's nodes, of which the perceptron reads the class."""
        return pool_nodes(graph, self.nodes(x, graph).relu(), "sum")
