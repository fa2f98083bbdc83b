r"""Polynomials of the Laplacian: filters without an eigendecomposition, and a layer of them with channels."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.geometric.graph import check_nodes
from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.marks import system

__all__ = ["PolynomialConvolution", "polynomial_filter"]


@system("polynomial_filter", title="Polynomial graph filter", kind="function")
def polynomial_filter(
    x: Float[Tensor, "nodes *features"], laplacian: GraphLaplacian, coefficients: Tensor | Sequence[float]
) -> Float[Tensor, "nodes *features"]:
    r"""A polynomial of the Laplacian applied to a signal, by as many sparse products as its degree.

    $$ \sum_{k=0}^{K} \alpha_k L^k x = U \Big(\sum_{k=0}^{K} \alpha_k \Lambda^k\Big) U^\top x $$

    Nodes further apart than $K$ do not see each other. By Horner's rule.

    Shapes:
        x: (nodes, features) or (nodes,)    coefficients: (K + 1,)    returns: the shape of x

    Claims: graph.polynomial_filter, graph.polynomial_locality

    >>> from lemmata.geometric.graph import Graph
    >>> path = Graph([[0, 1], [1, 2]]).undirected()
    >>> polynomial_filter(torch.tensor([1.0, 0.0, 0.0]), GraphLaplacian(path), [0.0, 0.0, 1.0])  # a column of L²
    tensor([ 2., -3.,  1.])
    """
    alphas = torch.as_tensor(coefficients, dtype=x.dtype, device=x.device)
    if alphas.ndim != 1 or not len(alphas):
        raise ValueError(f"coefficients must be one or more numbers, got shape {tuple(alphas.shape)}")
    found = alphas[-1] * x
    for alpha in reversed(alphas[:-1].unbind()):
        found = alpha * x + laplacian(found)
    return found


@system(
    "polynomial_convolution",
    title="Polynomial graph convolution",
    kind="module",
    example="PolynomialConvolution(inputs=3, outputs=2, degree=3)"
    "(torch.randn(5, 3), GraphLaplacian(Graph([[0, 1], [1, 2]], nodes=5)))",
)
class PolynomialConvolution(nn.Module):
    r"""A layer of polynomial filters, one for each pair of an input and an output channel.

    $$ y_i = \sum_{j} p_{ij}(L)\, x_j + b_i \mathbf 1, \qquad p_{ij}(L) = \sum_{k=0}^{K} \alpha_{ijk} L^k $$

    $i$ and $j$ are channels, each a signal on all nodes: the number of weights, $(K+1)\,C_{\mathrm{in}}
    C_{\mathrm{out}} + C_{\mathrm{out}}$, does not depend on the graph, and the layer can be used on another one.

    Shapes:
        x: (nodes, inputs)    weight: (degree + 1, inputs, outputs)    returns: (nodes, outputs)

    Claims: graph.polynomial_layer

    >>> from lemmata.geometric.graph import Graph
    >>> layer = PolynomialConvolution(inputs=3, outputs=2, degree=4)
    >>> layer(torch.randn(5, 3), GraphLaplacian(Graph([[0, 1], [1, 2]], nodes=5).undirected())).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        degree: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.degree = validate.count("degree", degree, least=0)
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(degree + 1, inputs, outputs, **factory))  # type: ignore[arg-type]
        self.bias = nn.Parameter(torch.empty(outputs, **factory)) if bias else None  # type: ignore[arg-type]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by Glorot for each power, and no bias."""
        bound = math.sqrt(6 / (self.inputs + self.outputs))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "nodes inputs"], laplacian: GraphLaplacian) -> Float[Tensor, "nodes outputs"]:
        if not isinstance(laplacian, GraphLaplacian):
            raise TypeError(
                f"laplacian must be a GraphLaplacian, got {type(laplacian).__name__}: use GraphLaplacian(graph)"
            )
        check_nodes(x, laplacian.graph, self.inputs)
        # The smaller of inputs and outputs goes along the edges, one sparse product for each power of the Laplacian.
        if self.outputs < self.inputs:
            found = x @ self.weight[-1]  # (nodes, outputs)
            for weight in reversed(self.weight[:-1].unbind()):
                found = x @ weight + laplacian(found)
        else:
            found, power = x @ self.weight[0], x
            for weight in self.weight[1:]:
                power = laplacian(power)  # (nodes, inputs)
                found = found + power @ weight
        return found if self.bias is None else found + self.bias

    def extra_repr(self) -> str:
        """The sizes of the layer."""
        return f"inputs={self.inputs}, outputs={self.outputs}, degree={self.degree}, bias={self.bias is not None}"
