r"""Gradients of a loss pulled back through one layer: from its output to its input and its weights."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.jacobians import gradient_of
from lemmata.marks import system

__all__ = ["elementwise_pullback", "linear_pullback", "slope_of", "softmax_jacobian", "softmax_pullback"]


@system("linear_pullback", title="Gradients of a linear layer", kind="function")
def linear_pullback(
    weight: Float[Tensor, "outputs inputs"],
    x: Float[Tensor, "*batch inputs"],
    upstream: Float[Tensor, "*batch outputs"],
) -> tuple[Float[Tensor, "outputs inputs"], Float[Tensor, "*batch inputs"]]:
    r"""The gradients of a loss with respect to the weight and the input of $z = Wx$, from that with respect to z.

    $$ \frac{\partial L}{\partial W} = \sum_{\text{batch}} \frac{\partial L}{\partial z}\,x^\top, \qquad
       \frac{\partial L}{\partial x} = W^\top \frac{\partial L}{\partial z} $$

    Shapes:
        weight: (outputs, inputs), x: (..., inputs), upstream: (..., outputs)
        returns: (outputs, inputs), summed over the batch, and (..., inputs)

    Claims: matcalc.linear_layer_weight

    >>> linear_pullback(torch.eye(2), torch.tensor([3.0, 4.0]), torch.tensor([1.0, 10.0]))
    (tensor([[ 3.,  4.],
            [30., 40.]]), tensor([ 1., 10.]))
    """
    validate.matrix("weight", weight, "outputs, inputs")
    validate.floating("x", x)
    validate.floating("upstream", upstream)
    outputs, inputs = weight.shape
    if x.shape[-1:] != (inputs,):
        raise ValueError(f"x must be a (..., {inputs}) tensor, got shape {tuple(x.shape)}")
    if upstream.shape != (*x.shape[:-1], outputs):
        wanted = (*x.shape[:-1], outputs)
        raise ValueError(f"upstream must have the shape {wanted} of the layer's output, got {tuple(upstream.shape)}")
    return torch.einsum("...o,...i->oi", upstream, x), upstream @ weight


def slope_of(function: Callable[[Tensor], Tensor], x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""The derivative of a function of one number, at every entry of a tensor.

    $$ f'(x_i) $$

    Shapes:
        function: element-wise, x: any shape    returns: the shape of x

    Claims: matcalc.elementwise

    >>> slope_of(torch.square, torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    return gradient_of(lambda point: function(point).sum(), x)


@system("elementwise_pullback", title="Gradient through an element-wise function", kind="function")
def elementwise_pullback(
    upstream: Float[Tensor, "*shape"], x: Float[Tensor, "*shape"], slope: Float[Tensor, "*shape"] | Callable
) -> Float[Tensor, "*shape"]:
    r"""The gradient of a loss with respect to x, from that with respect to $z = f(x)$ taken entry by entry.

    $$ \frac{\partial L}{\partial x} = \frac{\partial L}{\partial z} \odot f'(x) $$

    Shapes:
        upstream, x: one shape; slope: $f'(x)$ in that shape, or $f'$ as a function    returns: the same shape

    Claims: matcalc.elementwise

    >>> elementwise_pullback(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 2.0]), lambda x: 2 * x)  # z = x^2
    tensor([0., 4.])
    """
    validate.floating("x", x)
    validate.floating("upstream", upstream)
    at = slope if isinstance(slope, Tensor) else slope(x)
    if not upstream.shape == x.shape == at.shape:
        shapes = ", ".join(str(tuple(t.shape)) for t in (upstream, x, at))
        raise ValueError(f"upstream, x and slope must have one shape, got {shapes}")
    return upstream * at


@system("softmax_jacobian", title="Jacobian of the softmax", kind="function")
def softmax_jacobian(x: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch classes classes"]:
    r"""The derivative of the softmax with respect to its logits: symmetric, semidefinite, with rows that sum to 0.

    $$ \frac{\partial z}{\partial x} = \mathrm{diag}(z) - zz^\top, \qquad
       \frac{\partial z_i}{\partial x_j} = z_i(\delta_{ij} - z_j) $$

    Shapes:
        x: (..., classes)    returns: (..., classes, classes)

    Claims: matcalc.softmax_jacobian

    >>> softmax_jacobian(torch.zeros(2))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    z = torch.softmax(_logits(x), dim=-1)
    return torch.diag_embed(z) - z[..., :, None] * z[..., None, :]


def softmax_pullback(
    upstream: Float[Tensor, "*batch classes"], x: Float[Tensor, "*batch classes"]
) -> Float[Tensor, "*batch classes"]:
    r"""The gradient with respect to the logits, in time linear in the number of classes.

    $$ \frac{\partial L}{\partial x} = z \odot (g - \langle g, z\rangle), \qquad g = \frac{\partial L}{\partial z} $$

    Shapes:
        upstream, x: (..., classes)    returns: (..., classes)

    Claims: matcalc.softmax_jacobian

    >>> softmax_pullback(torch.tensor([1.0, 0.0]), torch.zeros(2))
    tensor([ 0.2500, -0.2500])
    """
    z = torch.softmax(_logits(x), dim=-1)
    if validate.floating("upstream", upstream).shape != x.shape:
        raise ValueError(f"upstream must have the shape {tuple(x.shape)} of x, got {tuple(upstream.shape)}")
    return z * (upstream - (upstream * z).sum(-1, keepdim=True))


def _logits(x: Tensor) -> Tensor:
    if validate.floating("x", x).ndim == 0:
        raise ValueError("x must be a (..., classes) tensor, got one number")
    return x
