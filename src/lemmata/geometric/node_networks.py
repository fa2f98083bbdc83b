r"""Networks of graph layers of one kind, whose outputs are logits of the nodes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.geometric.chebyshev_convolution import ChebyshevConvolution
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gcn import GCNConvolution
from lemmata.geometric.gin import GINConvolution
from lemmata.geometric.graph import Graph, check_nodes
from lemmata.marks import system

__all__ = ["NodeClassifier"]


def _gcn_layer(inputs: int, outputs: int, chosen: "_Choices", last: bool, **factory: Any) -> nn.Module:
    return GCNConvolution(inputs, outputs, **factory)


def _gat_layer(inputs: int, outputs: int, chosen: "_Choices", last: bool, **factory: Any) -> nn.Module:
    # Heads side by side share the width; those of the last layer are averaged.
    each = outputs if last else outputs // chosen.heads
    return GATConvolution(inputs, each, chosen.heads, concat=not last, **factory)


def _gin_layer(inputs: int, outputs: int, chosen: "_Choices", last: bool, **factory: Any) -> nn.Module:
    # As many hidden units in the last layer too: of two, for two classes, both were at rest for half of the seeds.
    first, second = nn.Linear(inputs, chosen.width, **factory), nn.Linear(chosen.width, outputs, **factory)
    return GINConvolution(nn.Sequential(first, nn.ReLU(), second))


def _chebyshev_layer(inputs: int, outputs: int, chosen: "_Choices", last: bool, **factory: Any) -> nn.Module:
    return ChebyshevConvolution(inputs, outputs, chosen.degree, **factory)


class _Choices(NamedTuple):
    """What layers of one kind or another need to know."""

    width: int
    heads: int
    degree: int


KINDS: dict[str, Callable[..., nn.Module]] = {
    "gcn": _gcn_layer,
    "gat": _gat_layer,
    "gin": _gin_layer,
    "chebnet": _chebyshev_layer,
}


@system(
    "node_classifier",
    title="Network of graph layers",
    kind="module",
    example="NodeClassifier('gcn', inputs=3, outputs=2, width=8)(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class NodeClassifier(nn.Module):
    r"""Layers of one kind (gcn, gat, gin or chebnet) with a rectifier between them and dropout before each.

    $$ X^{(\ell)} = \big(\mathrm{layer}_\ell(X^{(\ell-1)}, G)\big)_+, \qquad Y = \mathrm{layer}_L(X^{(L-1)}, G) $$

    `heads` are those of graph attention, which share the width; `degree` is that of ChebNet's polynomials.

    Shapes:
        x: (nodes, inputs)    returns: logits (nodes, outputs)

    Source: Kipf and Welling 2017 for the arrangement.
    Differs: weights of PyTorch Geometric's models GCN and GAT load both ways, with `layers.` for `convs.` in the names.

    >>> model = NodeClassifier("gat", inputs=3, outputs=2, width=16, heads=4)
    >>> model(torch.randn(4, 3), Graph([[0, 1], [1, 2]], nodes=4).undirected()).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        layer: str,
        inputs: int,
        outputs: int,
        width: int = 16,
        depth: int = 2,
        dropout: float = 0.0,
        heads: int = 8,
        degree: int = 2,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        validate.one_of("layer", layer, KINDS)
        validate.count("depth", depth)
        if layer == "gat" and width % validate.count("heads", heads):
            raise ValueError(f"width must be a multiple of the {heads} heads, got {width}")
        self.inputs, self.dropout = validate.count("inputs", inputs), validate.fraction("dropout", dropout)
        sizes, chosen = [inputs, *[width] * (depth - 1), outputs], _Choices(width, heads, degree)
        self.layers = nn.ModuleList(
            KINDS[layer](sizes[k], sizes[k + 1], chosen, k == depth - 1, device=device, dtype=dtype)
            for k in range(depth)
        )

    def forward(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        return self.read(self.embed(x, graph), graph)

    def embed(self, x: Float[Tensor, "nodes inputs"], graph: Graph) -> Float[Tensor, "nodes width"]:
        """The features that the last layer is given: those of the layer before it, or x where there is none."""
        check_nodes(x, graph, self.inputs)  # before dropout, which takes any tensor
        for layer in list(self.layers)[:-1]:
            x = layer(functional.dropout(x, self.dropout, self.training), graph).relu()  # (nodes, width)
        return x

    def read(self, features: Float[Tensor, "nodes width"], graph: Graph) -> Float[Tensor, "nodes outputs"]:
        """The last layer, of the features that `embed` gives."""
        return self.layers[-1](functional.dropout(features, self.dropout, self.training), graph)
