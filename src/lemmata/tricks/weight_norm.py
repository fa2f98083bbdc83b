r"""Weight normalisation: the length of a weight vector and its direction as parameters of their own."""

from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from lemmata.marks import system
from lemmata.tricks.normalization import Standardized, standardize

__all__ = ["WeightNormGradients", "weight_norm_gradients", "weight_normalized", "weight_of"]

Layer = TypeVar("Layer", bound=nn.Module)


class WeightNormGradients(NamedTuple):
    """With respect to the lengths, and to the vectors that give the directions."""

    length: Tensor
    direction: Tensor


@system("weight_norm", title="Weight normalisation of a layer", kind="function")
def weight_normalized(layer: Layer, x: Float[Tensor, "batch ..."] | None = None) -> Layer:
    r"""Learn the lengths and the directions of a layer's weight vectors, in place of the vectors themselves.

    $$ f[v, \gamma](x) = \phi(w^\top x), \qquad w = \frac\gamma{\|v\|_2}v, \qquad \|w\| = |\gamma| $$

    Every output of the layer has one weight vector $w$, one length $\gamma$ and one $v$; what the layer computes does
    not change. Given a batch `x`, lengths and biases are chosen so that the outputs have mean zero and variance one on
    it, which is how training should start. The layer itself is changed, by torch's own parametrisation: its
    `state_dict` has the names that torch gives, and `torch.nn.utils.parametrize.remove_parametrizations` undoes it.

    Shapes:
        layer.weight: (outputs, ...)    lengths: (outputs, 1, ...)    directions: (outputs, ...)

    Claims: norm.weight, norm.weight.gradient
    Source: T. Salimans and D. Kingma, Weight normalization (2016), with its initialisation from data.

    >>> layer = weight_normalized(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        raise TypeError(f"layer must have weights (outputs, ...), such as a Linear, got {type(layer).__name__}")
    if parametrize.is_parametrized(layer, "weight"):
        raise ValueError("the weight of the layer is parametrised already: normalise it before anything else")
    if isinstance(layer, nn.modules.conv._ConvTransposeNd):
        raise TypeError("the outputs of a transposed convolution are not its first axis: use one that is not")
    found = None if x is None else _output_statistics(layer, x)
    parametrizations.weight_norm(layer, "weight", dim=0)
    if found is not None:
        with torch.no_grad():
            length, bias = layer.get_parameter("parametrizations.weight.original0"), layer.get_parameter("bias")
            length.div_(found.deviation.view_as(length))
            bias.sub_(found.mean.flatten()).div_(found.deviation.flatten())
    return layer


@torch.no_grad()
def _output_statistics(layer: nn.Module, x: Tensor) -> Standardized:
    """Mean and deviation of each output."""
    if not isinstance(getattr(layer, "bias", None), Tensor):
        raise ValueError("a layer without biases cannot have outputs of mean zero: use bias=True, or leave x out")
    y = layer(x)  # (batch, outputs, ...) of a convolution, (..., outputs) of a linear layer
    at = y.ndim - 1 if isinstance(layer, nn.Linear) else 1
    found = standardize(y, [axis for axis in range(y.ndim) if axis != at])
    if not bool((found.deviation > 0).all()):
        raise ValueError("x gives an output that never changes: use a larger batch")
    return found


def weight_of(length: Float[Tensor, "outputs ..."], direction: Float[Tensor, "outputs ..."]) -> Float[Tensor, "..."]:
    r"""The weights $w = \gamma v / \|v\|$ of every output, written out.

    >>> weight_of(torch.tensor([[10.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([[6., 8.]])
    """
    return length / _direction_norms(direction) * direction


@system("weight_norm_gradients", title="Gradients of weight normalisation", kind="function")
def weight_norm_gradients(
    upstream: Float[Tensor, "outputs ..."],
    length: Float[Tensor, "outputs ..."],
    direction: Float[Tensor, "outputs ..."],
) -> WeightNormGradients:
    r"""The gradients of lengths and directions, from the gradient of the weights.

    $$ \frac{\partial\ell}{\partial\gamma} = \nabla_w\ell^\top\frac v{\|v\|}, \qquad
       \nabla_v\ell = \frac\gamma{\|v\|}\Big(I - \frac{ww^\top}{\|w\|^2}\Big)\nabla_w\ell $$

    Shapes:
        upstream, direction: (outputs, ...), length: (outputs, 1, ...)    returns: those of length and direction

    Claims: norm.weight.gradient
    Source: T. Salimans and D. Kingma, Weight normalization (2016).

    >>> weight_norm_gradients(torch.tensor([[1.0, 0.0]]), torch.tensor([[10.0]]), torch.tensor([[3.0, 4.0]]))
    WeightNormGradients(length=tensor([[0.6000]]), direction=tensor([[ 1.2800, -0.9600]]))
    """
    if upstream.shape != direction.shape:
        raise ValueError(f"upstream must have the shape {tuple(direction.shape)}, got {tuple(upstream.shape)}")
    unit = direction / _direction_norms(direction)  # (outputs, ...)
    axes = tuple(range(1, direction.ndim))
    along = (upstream * unit).sum(axes, keepdim=True)  # (outputs, 1, ...)
    return WeightNormGradients(along.view_as(length), length / _direction_norms(direction) * (upstream - along * unit))


def _direction_norms(direction: Tensor) -> Tensor:
    return torch.linalg.vector_norm(direction, dim=tuple(range(1, direction.ndim)), keepdim=True)  # (outputs, 1, ...)
