r"""The linear threshold unit, its decision boundary, and the margin of points and data sets with respect to it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system

__all__ = ["LinearThresholdUnit", "augment", "dataset_margin", "geometric_margin"]


@system(
    "linear_threshold",
    title="Linear threshold unit",
    kind="module",
    example="LinearThresholdUnit(torch.tensor([3.0, 4.0, -2.0]), bias=-1.0)(torch.randn(4, 3))",
)
class LinearThresholdUnit(nn.Module):
    r"""A unit that answers on which side of a hyperplane a point lies.

    $$ f[w,b](x) = \mathrm{sgn}(w^\top x + b), \qquad \mathrm{sgn}(0) = 0 $$

    A point on the boundary gets the answer 0, which is no label: "correct" then means exactly "positive margin".
    Weight and bias are buffers: the derivative of a step is zero, so the unit is not trained by gradients.

    Shapes:
        x: (..., features)    returns: (...)

    Claims: perceptron.unit, perceptron.decision_boundary, perceptron.margin_sign

    >>> unit = LinearThresholdUnit(torch.tensor([3.0, 4.0]), bias=-10.0)
    >>> unit(torch.tensor([[0.0, 0.0], [2.0, 1.0], [3.0, 4.0]]))
    tensor([-1.,  0.,  1.])
    >>> unit.normal, unit.offset
    (tensor([0.6000, 0.8000]), tensor(2.))
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Float[Tensor, "features"], bias: int | float | Tensor = 0.0) -> None:
        super().__init__()
        weight = validate.vector("weight", weight)
        self.register_buffer("weight", weight.detach().clone())
        self.register_buffer("bias", _scalar_like("bias", bias, like=weight).detach().clone())

    def activation(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        r"""The value $w^\top x + b$ whose sign is the answer."""
        _checked_points("x", x, weight=self.weight)
        return x @ self.weight + self.bias  # (..., features) -> (...)

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch"]:
        return torch.sign(self.activation(x))

    @property
    def normal(self) -> Float[Tensor, "features"]:
        r"""The unit normal $w/\|w\|$ of the decision boundary, pointing to the side of $+1$."""
        return self.weight / _weight_norm(self.weight)

    @property
    def offset(self) -> Float[Tensor, ""]:
        r"""The signed distance $-b/\|w\|$ from the origin to the boundary, along the normal."""
        return -self.bias / _weight_norm(self.weight)

    def project(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        r"""The nearest point of the boundary: $x - (w^\top x + b)\,w/\|w\|^2$."""
        distance = self.activation(x) / _weight_norm(self.weight)  # (...)
        return x - distance[..., None] * self.normal  # (..., features)

    def extra_repr(self) -> str:
        return f"features={len(self.weight)}"


def geometric_margin(
    weight: Float[Tensor, "features"],
    bias: int | float | Tensor,
    x: Float[Tensor, "points features"],
    y: Tensor,
) -> Float[Tensor, "points"]:
    r"""The signed distance of each labelled point to the boundary, positive iff the point is on its label's side.

    $$ \gamma[w,b](x, y) = \frac{y\,(w^\top x + b)}{\|w\|} $$

    Computed in the dtype of the points: the sign of a distance is sure where it exceeds $(n + 2)$ roundings of
    $(\sum_j |w_j x_j| + |b|)/\|w\|$. `VersionSpace.contains` decides without rounding.

    Shapes:
        weight: (features,), bias: scalar, x: (points, features), y: (points,) of -1 and +1    returns: (points,)

    Claims: perceptron.margin_point, perceptron.margin_sign

    >>> geometric_margin(torch.tensor([3.0, 4.0]), 0.0, torch.tensor([[3.0, 4.0], [3.0, 4.0]]), torch.tensor([1, -1]))
    tensor([ 5., -5.])
    """
    validate.matrix("x", x)
    _checked_points("x", x, weight=validate.vector("weight", weight))
    y = validate.labels("y", y, like=x)
    activation = x @ weight + _scalar_like("bias", bias, like=weight)  # (points, features) -> (points,)
    return y * activation / _weight_norm(weight)


def dataset_margin(
    weight: Float[Tensor, "features"],
    bias: int | float | Tensor,
    x: Float[Tensor, "points features"],
    y: Tensor,
) -> Float[Tensor, ""]:
    r"""The margin of the worst point: positive iff $(w, b)$ separates the data, but for rounding.

    $$ \gamma[w,b](S) = \min_{(x, y) \in S} \gamma[w,b](x, y) $$

    Shapes:
        as for `geometric_margin`    returns: a scalar

    Claims: perceptron.margin_dataset

    >>> dataset_margin(torch.tensor([1.0]), -1.0, torch.tensor([[3.0], [0.5]]), torch.tensor([1, -1]))
    tensor(0.5000)
    """
    return geometric_margin(weight, bias, x, y).min()


def augment(x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch inputs"]:
    r"""Append the constant input 1, so that the bias becomes one more weight.

    $$ \tilde x = (x, 1), \quad \tilde w = (w, b) \quad\Rightarrow\quad \tilde w^\top \tilde x = w^\top x + b $$

    Shapes:
        x: (..., features)    returns: (..., features + 1)

    Claims: perceptron.homogeneous

    >>> augment(torch.tensor([[2.0, 3.0]]))
    tensor([[2., 3., 1.]])
    """
    if validate.floating("x", x).ndim == 0:
        raise ValueError("x must have features on its last axis, got shape ()")
    return torch.nn.functional.pad(x, (0, 1), value=1.0)  # (..., features + 1)


def _checked_points(name: str, x: Tensor, weight: Tensor) -> None:
    """Points with as many features as weights and in their dtype; not looked at, so that NaN passes."""
    validate.last_axis(name, x, len(weight))
    if x.dtype != weight.dtype:
        raise TypeError(f"{name} must have the dtype of weight, got {x.dtype}: use {name}.to({weight.dtype})")


def _scalar_like(name: str, value: int | float | Tensor, like: Tensor) -> Tensor:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"{name} must be one number, got shape {tuple(value.shape)}")
    if isinstance(value, Tensor):
        validate.finite_number(name, value.item())
        return value.reshape(()).to(like)  # keeps its gradient
    return like.new_tensor(validate.finite_number(name, value))


def _weight_norm(weight: Tensor) -> Tensor:
    largest = weight.detach().abs().max()
    if largest == 0:
        raise ValueError("weight must not be zero: a unit with weight 0 has no decision boundary and no margin")
    return largest * torch.linalg.vector_norm(weight / largest)  # squares of tiny or huge weights leave the range
