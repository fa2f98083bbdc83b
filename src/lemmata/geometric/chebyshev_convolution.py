r"""ChebNet's layer: polynomials of the Laplacian in Chebyshev's basis, on a spectrum brought to [-1, 1]."""

import functools
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.geometric.graph import Graph, check_nodes
from lemmata.geometric.graph_laplacian import GraphLaplacian
from lemmata.marks import system

__all__ = ["ChebyshevConvolution", "chebyshev_terms"]


def chebyshev_terms(
    x: Float[Tensor, "nodes features"], degree: int, operator: Callable[[Tensor], Tensor]
) -> list[Float[Tensor, "nodes features"]]:
    r"""The terms $T_0(\hat L)x, \dots, T_K(\hat L)x$ by $T_{k+1} = 2\hat L\, T_k - T_{k-1}$: K products.

    They stay bounded where the spectrum of the operator lies in [-1, 1], as $|T_k| \le 1$ there; $T_{10}(2)$ is
    262,087.

    >>> [float(term) for term in chebyshev_terms(torch.ones(1, 1), 3, lambda x: 0.5 * x)]  # cos(k arccos 0.5)
    [1.0, 0.5, -0.5, -1.0]
    """
    validate.count("degree", degree, least=0)
    terms = [x]
    while len(terms) <= degree:
        applied = operator(terms[-1])
        terms.append(applied if len(terms) == 1 else 2 * applied - terms[-2])
    return terms


def _chebyshev_sum(signals: list[Tensor], operator: Callable[[Tensor], Tensor]) -> Tensor:
    r"""The sum of $T_k(\hat L) z_k$ over signals $z_k$ by Clenshaw's rule: as many products as the degree."""
    if len(signals) == 1:
        return signals[0]
    later, latest = signals[-1], torch.zeros_like(signals[-1])
    for signal in reversed(signals[1:-1]):
        later, latest = signal + 2 * operator(later) - latest, later
    return signals[0] + operator(later) - latest


def _rescaled_laplacian(laplacian: GraphLaplacian, stretch: float, x: Tensor) -> Tensor:
    """The multiple of the Laplacian less the identity; the Laplacian is the identity less what neighbours send."""
    return (stretch - 1) * x - stretch * laplacian.neighbours(x)


@system(
    "chebnet",
    title="ChebNet layer",
    kind="module",
    example="ChebyshevConvolution(inputs=3, outputs=2, degree=3)(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5))",
)
class ChebyshevConvolution(nn.Module):
    r"""A graph convolution by Chebyshev polynomials of the rescaled Laplacian.

    $$ Y = \sum_{k=0}^{K} T_k(\hat L)\, X W_k + b, \qquad \hat L = \tfrac{2}{\lambda_{\max}} L - I, \qquad
       T_{k+1}(y) = 2 y T_k(y) - T_{k-1}(y) $$

    $L = I - D^{-1/2} A D^{-1/2}$ has eigenvalues of at most 2; a smaller `eigenvalue_bound` that is known to hold uses
    all of [-1, 1]. Degree K takes K sparse products, and nodes further apart than K do not see each other. A
    `GraphLaplacian(graph, "symmetric")` in factory of the graph is not computed anew by each layer and at each step.

    Shapes:
        x: (nodes, inputs)    returns: (nodes, outputs)

    Claims: graph.chebnet
    Source: M. Defferrard, X. Bresson and P. Vandergheynst, Convolutional neural networks on graphs with fast localized
        spectral filtering (2016).
    Differs: PyTorch Geometric's ChebConv counts terms, `K = degree + 1`; its weights load here and back, as the names
        are the same (`lins.0.weight`, `bias`). A node without edges has a 1 on the diagonal of $L$, as there, and of a
        directed graph $D$ counts the edges that leave a node.

    >>> layer = ChebyshevConvolution(inputs=3, outputs=2, degree=4)
    >>> layer(torch.randn(5, 3), Graph([[0, 1], [1, 2]], nodes=5).undirected()).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        degree: int,
        bias: bool = True,
        eigenvalue_bound: float = 2.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs = validate.count("inputs", inputs), validate.count("outputs", outputs)
        self.degree = validate.count("degree", degree, least=0)
        self.eigenvalue_bound = validate.positive("eigenvalue_bound", eigenvalue_bound)
        factory = {"device": device, "dtype": dtype}
        self.lins = nn.ModuleList(nn.Linear(inputs, outputs, bias=False, **factory) for _ in range(degree + 1))
        self.bias = nn.Parameter(torch.empty(outputs, **factory)) if bias else None  # type: ignore[arg-type]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform by Glorot for each term, and no bias, as PyTorch Geometric does."""
        for layer in self.lins:
            nn.init.xavier_uniform_(layer.weight)  # type: ignore[arg-type]
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, x: Float[Tensor, "nodes inputs"], graph: Graph | GraphLaplacian
    ) -> Float[Tensor, "nodes outputs"]:
        laplacian = graph if isinstance(graph, GraphLaplacian) else GraphLaplacian(graph, "symmetric")
        if laplacian.kind != "symmetric":
            raise ValueError(
                f"the Laplacian must be of kind symmetric, got {laplacian.kind}: its spectrum is not [0, 2]"
            )
        check_nodes(x, laplacian.graph, self.inputs)
        rescaled = functools.partial(_rescaled_laplacian, laplacian, 2 / self.eigenvalue_bound)
        # The smaller of inputs and outputs goes along the edges.
        if self.outputs < self.inputs:
            found = _chebyshev_sum([layer(x) for layer in self.lins], rescaled)  # (nodes, outputs)
        else:
            terms = chebyshev_terms(x, self.degree, rescaled)  # each (nodes, inputs)
            found = sum(layer(term) for layer, term in zip(self.lins, terms, strict=True))
        return found if self.bias is None else found + self.bias  # type: ignore[return-value]

    def extra_repr(self) -> str:
        """The sizes of the layer."""
        return f"inputs={self.inputs}, outputs={self.outputs}, degree={self.degree}, bias={self.bias is not None}"
