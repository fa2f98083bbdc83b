r"""Gradient flow, the equation of motion that gradient descent follows in steps, and the path of any optimiser."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Optimizer

from lemmata import validate
from lemmata.marks import system

__all__ = ["descent_path", "flow_path"]

Function = Callable[[Tensor], Tensor]

GRADIENTS = 2_000, 100  # for a flow and each of its numbers: flows that run away in finite time never have enough


@system("flow_path", title="Gradient flow", kind="function")
def flow_path(
    f: Function, start: Float[Tensor, "*batch n"], times: Sequence[float] | Tensor, tolerance: float = 1e-9
) -> Float[Tensor, "times *batch n"]:
    r"""Where the gradient flow is at some times, from one start or from many.

    $$ \dot\theta = -\nabla h(\theta), \qquad \tfrac{d}{dt}h(\theta_t) = -\|\nabla h(\theta_t)\|^2 $$

    scipy's LSODA solves the equation in double precision, whatever the dtype of the start; it takes implicit steps
    where the function bends by very different amounts. `tolerance` is the error of one of its steps, relative to the
    largest entry of the start or to 1. No gradient flows through the solution.

    Shapes:
        f: (..., n) to (...); start: (..., n); times: in increasing order from 0    returns: (times, ..., n)

    Claims: optim.gradient_flow
    Source: Hindmarsh 1983 (LSODA).

    >>> flow_path(lambda x: x.square().sum(-1) / 2, torch.tensor([1.0]), [0.0, 1.0])
    tensor([[1.0000],
            [0.3679]])
    """
    from scipy.integrate import solve_ivp  # slow to import, and a path of an optimiser does not need it

    start = validate.floating("start", start).detach()
    moments = torch.as_tensor(times, dtype=torch.float64).flatten()
    if not len(moments) or not bool(moments.isfinite().all()) or moments[0] < 0 or bool((moments.diff() <= 0).any()):
        raise ValueError(f"times must increase and not begin before 0, got {moments.tolist()}")
    validate.number("tolerance", tolerance, above=0.0, below=1.0)
    end = float(moments[-1])

    taken, most = itertools.count(), GRADIENTS[0] + GRADIENTS[1] * start.numel()

    def velocity(_: float, flat: Any) -> Any:
        point = torch.as_tensor(flat, dtype=torch.float64).to(start.device).reshape(start.shape)
        slope = _point_gradient(f, point)[1]
        if next(taken) == most or not bool(slope.isfinite().all()):  # the solver would halve its step for ever
            raise ValueError(f"the flow could not be followed to time {end:g}: f may fall without bound")
        return -slope.flatten().cpu().numpy()

    wide = start.double()
    if not end:
        return wide[None].to(start.dtype)
    size = max(1.0, float(wide.abs().max()))
    found = solve_ivp(
        velocity,
        (0.0, end),
        wide.flatten().cpu().numpy(),
        method="LSODA",
        t_eval=moments.numpy(),
        rtol=max(tolerance, 100 * np.finfo(float).eps),
        atol=tolerance * size,
    )
    if found.status < 0:
        raise ValueError(f"the flow could not be followed to time {end:g}: {found.message}")
    return torch.as_tensor(found.y.T).reshape(len(moments), *start.shape).to(start)


@system("descent_path", title="Path of an optimiser", kind="function")
def descent_path(
    f: Function,
    start: Float[Tensor, "*batch n"],
    steps: int,
    optimizer: Callable[[list[Tensor]], Optimizer],
    settings: Callable[[int], Mapping[str, Any]] | None = None,
) -> Float[Tensor, "points *batch n"]:
    r"""Every point that an optimiser visits on a function, the start first.

    $$ \theta_{t+1} = \theta_t - \eta\nabla h(\theta_t) $$

    for gradient descent: Euler's method for the gradient flow, with steps of time $\eta$. `optimizer` makes one of a
    list of parameters, as `lambda parameters: torch.optim.SGD(parameters, lr=0.1)` does; it is given a closure, so
    those that look several times before a step work too. The rows of `start` are one parameter and `f` is summed over
    them: methods that treat entries apart run them independently. `settings(t)` is what changes in the optimiser before
    step $t = 0, 1, \dots$, a momentum say. What leaves all bounds becomes infinite or NaN and is kept.

    Shapes:
        f: (..., n) to (...); start: (..., n)    returns: (steps + 1, ..., n)

    Claims: optim.gradient_flow, optim.smooth.one_step, optim.stepsize.two_over_beta

    >>> halving = lambda parameters: torch.optim.SGD(parameters, lr=0.5)
    >>> descent_path(lambda x: x.square().sum(-1) / 2, torch.tensor([8.0]), 3, halving)[:, 0]
    tensor([8., 4., 2., 1.])
    """
    validate.count("steps", steps, least=0)
    point = validate.floating("start", start).detach().clone().requires_grad_()
    chosen = optimizer([point])

    def closure() -> Any:
        value, point.grad = _point_gradient(f, point)
        return value

    path = [point.detach().clone()]
    for step in range(steps):
        if settings is not None:
            chosen.param_groups[0].update(settings(step))
        chosen.step(closure)
        path.append(point.detach().clone())
    return torch.stack(path)  # (steps + 1, ..., n)


def _point_gradient(f: Function, point: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the values, and the gradient at each point; parameters inside the function get none."""
    with torch.enable_grad():
        point = point.detach().requires_grad_()
        values = f(point)
        if not isinstance(values, Tensor) or values.shape != point.shape[:-1]:
            got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(f"f must map (..., n) to (...), here to shape {tuple(point.shape[:-1])}, but gave {got}")
        value = values.sum()
        (slope,) = torch.autograd.grad(value, point)
    return value.detach(), slope
