r"""Least mean squares: stochastic gradient descent for linear regression, one example after the other."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate

__all__ = ["widrow_hoff"]


def widrow_hoff(
    x: Float[Tensor, "points features"],
    y: Float[Tensor, "points *outputs"],
    order: Int[Tensor, "steps"],
    lr: float | Float[Tensor, "steps"],
    weight: Float[Tensor, "features *outputs"] | None = None,
    ridge: float = 0.0,
) -> Float[Tensor, "path features *outputs"]:
    r"""Stochastic gradient descent on the squared error, example by example in the given order (LMS).

    $$ w_{t+1} = w_t + \eta_t\,(y_{i_t} - w_t^\top x_{i_t})\,x_{i_t} - \eta_t\lambda w_t $$

    For uniform $i_t$ the step is $-\eta\nabla h$ in the mean, $h = \frac1{2s}\|Xw-y\|^2 + \frac\lambda2\|w\|^2$.

    Shapes:
        x: (points, features), y: (points,) or (points, outputs), order: (steps,) of row numbers, lr: scalar or (steps,)
        returns: all iterates, the first included: (steps + 1, features) or (steps + 1, features, outputs)

    Claims: regression.sgd
    Source: Widrow and Hoff 1960.
    Differs: each step needs the one before, so it runs on the CPU, in float64; the result has the dtype of x.

    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([3.0, 4.0])
    >>> widrow_hoff(x, y, torch.tensor([0, 1]), lr=0.25)
    tensor([[0.0000, 0.0000],
            [0.7500, 0.0000],
            [0.7500, 2.0000]])
    """
    x = validate.matrix("x", x).detach()
    y = targets(x, y)
    if validate.tensor("order", order).is_floating_point() or order.dtype is torch.bool or order.ndim != 1:
        told = f"got {order.dtype} of shape {tuple(order.shape)}"
        raise ValueError(f"order must be (steps,) of row numbers, {told}: use torch.arange(len(x)), or other numbers")
    if order.numel() and not 0 <= int(order.min()) <= int(order.max()) < len(x):
        told = f"got {int(order.min())} to {int(order.max())}"
        raise ValueError(f"order must hold row numbers from 0 to {len(x) - 1}, {told}")
    shape, rates = (x.shape[1], *y.shape[1:]), torch.as_tensor(lr, dtype=torch.double)
    if rates.shape not in ((), order.shape):
        raise ValueError(f"lr must be a number, or one for each of {len(order)} steps, got shape {tuple(rates.shape)}")
    rates = rates.expand(len(order)).tolist()
    start = x.new_zeros(shape)
    if weight is not None:
        start = validate.fits("weight", validate.tensor("weight", weight).to(x), shape, x, "x and y")
    inputs, values = x.double().cpu().numpy(), y.double().cpu().numpy()
    w = start.detach().double().cpu().numpy().copy()
    path = np.empty((len(order) + 1, *shape))
    path[0] = w
    with np.errstate(over="ignore", invalid="ignore"):  # a path that diverges is seen to do so
        for step, (i, rate) in enumerate(zip(order.tolist(), rates, strict=True), 1):
            error = values[i] - inputs[i] @ w  # scalar or (outputs,)
            w += rate * (np.multiply.outer(inputs[i], error) - ridge * w)
            path[step] = w
    return torch.from_numpy(path).to(x)


def targets(x: Tensor, y: Tensor) -> Tensor:
    """A value, or a row of them, for each row of x, on its device."""
    y = validate.floating("y", y).detach()
    if y.ndim not in (1, 2) or len(y) != len(x):
        raise ValueError(
            f"y must hold a value, or a row of them, for each of {len(x)} points, got shape {tuple(y.shape)}"
        )
    return y.to(x.device)
