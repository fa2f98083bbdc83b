r"""Filters by frequency on a graph, and convolution as a product of spectra."""

from collections.abc import Callable

from jaxtyping import Float, Inexact
from torch import Tensor

from lemmata.geometric.graph_fourier import GraphFourier
from lemmata.marks import system

__all__ = ["spectral_convolution", "spectral_filter"]


@system("spectral_filter", title="Spectral graph filter", kind="function")
def spectral_filter(
    x: Float[Tensor, "nodes *features"], fourier: GraphFourier, response: Callable[[Tensor], Tensor]
) -> Float[Tensor, "nodes *features"]:
    r"""Each wave of a signal multiplied by the response at its frequency.

    $$ g(L)\, x = U\, g(\Lambda)\, U^\top x $$

    The response is a function of the frequency: then the result does not depend on signs or on the basis of an
    eigenspace, and the same response can be used on another graph.

    Shapes:
        x: (nodes, features) or (nodes,)    response: from (nodes,) to (nodes,)    returns: the shape of x

    Claims: graph.spectral_filter
    Source: J. Bruna, W. Zaremba, A. Szlam and Y. LeCun, Spectral networks (2014).

    >>> import torch
    >>> from lemmata.geometric import Graph, GraphLaplacian
    >>> fourier = GraphFourier(GraphLaplacian(Graph([[0, 1], [1, 2]]).undirected()))
    >>> mean = spectral_filter(torch.tensor([1.0, 5.0, 3.0]), fourier, lambda f: (f < 0.5).to(f.dtype))
    >>> mean.round(decimals=3)
    tensor([3., 3., 3.])
    """
    spectrum = fourier.transform(x)
    gain = response(fourier.frequencies).to(spectrum)
    if gain.shape != fourier.frequencies.shape:
        raise ValueError(f"response must give one number for each frequency, got shape {tuple(gain.shape)}")
    return fourier.inverse(gain.reshape(-1, *[1] * (x.ndim - 1)) * spectrum)


def spectral_convolution(
    x: Inexact[Tensor, "nodes *features"], y: Inexact[Tensor, "nodes *features"], fourier: GraphFourier
) -> Inexact[Tensor, "nodes *features"]:
    r"""Two signals convolved in one fixed basis: $x * y = U\big((U^\top x) \odot (U^\top y)\big)$.

    Commutative and bilinear. It is cubic in each eigenvector, so that another sign of one changes the result: the basis
    belongs to the definition, unlike that of a filter.

    Claims: graph.spectral_convolution
    """
    return fourier.inverse(fourier.transform(x) * fourier.transform(y))
