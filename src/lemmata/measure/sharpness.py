r"""How sharp a minimum is: the steepest curvature, and how much the loss rises near by."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.curvature_products import Batch, HessianOperator
from lemmata.measure.eigenvalues import extreme_eigenpairs
from lemmata.measure.random_parts import without_draws

__all__ = ["LossRise", "Sharpness", "hessian_sharpness", "worst_loss_rise"]


class Sharpness(NamedTuple):
    """The largest eigenvalue of the Hessian, its residual, and the largest step at which gradient descent is stable."""

    eigenvalue: float
    residual: float
    largest_step: float


class LossRise(NamedTuple):
    """The loss at the parameters, the highest that was found within the radius, and where, by name."""

    loss: float
    rise: float
    moved: dict[str, Tensor]


@system("sharpness", title="Sharpness of a minimum", kind="function")
def hessian_sharpness(
    model: nn.Module,
    loss: Callable[[Tensor, Any], Tensor],
    batches: Batch | Iterable[Batch],
    accuracy: int | float = 1e-3,
    generator: torch.Generator | None = None,
) -> Sharpness:
    r"""The largest eigenvalue of the Hessian, and the step of gradient descent beyond which it is unstable.

    $$ \eta_{\max} = \frac{2}{\lambda_{\max}(\nabla^2 L)} $$

    Where no direction curves upwards, no step is too large for this reason. The residual is as measured in
    `extreme_eigenpairs`, without what rounding does to the products.

    Source: J. Cohen et al., Gradient descent on neural networks typically occurs at the edge of stability (2021).

    >>> model, x = nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> found = hessian_sharpness(model, nn.functional.mse_loss, (x, torch.zeros(2, 1)))
    >>> round(found.eigenvalue, 4), round(found.largest_step, 4)
    (9.0, 0.2222)
    """
    found = extreme_eigenpairs(HessianOperator(model, loss, batches), accuracy=accuracy, generator=generator)
    top = found.values.item()
    return Sharpness(top, found.residuals.item(), 2 / top if top > 0 else math.inf)


@system("loss_rise", title="Rise of the loss within a radius", kind="function")
def worst_loss_rise(
    model: nn.Module,
    loss: Callable[[Tensor, Any], Tensor],
    batch: Batch,
    radius: int | float = 0.05,
    steps: int = 5,
) -> LossRise:
    r"""How much higher the loss is at the worst point within a radius, as far as gradients lead there.

    $$ \max_{\|\epsilon\| \le \rho} L(\theta + \epsilon) - L(\theta), \qquad
       \epsilon \leftarrow \rho\, \frac{\nabla L(\theta + \epsilon)}{\|\nabla L(\theta + \epsilon)\|} $$

    One step is that of sharpness-aware minimisation; further ones repeat it from there. The highest point on the way
    counts, so that the answer is a lower bound of the maximum, and never below zero.

    Claims: optim.sam
    Source: P. Foret, A. Kleiner, H. Mobahi and B. Neyshabur, Sharpness-aware minimization (2021).

    >>> model, x = nn.Linear(1, 1, bias=False), torch.ones(1, 1)
    >>> found = worst_loss_rise(model, nn.functional.mse_loss, (x, model(x).detach() - 1), radius=0.5)
    >>> round(found.loss, 4), round(found.rise, 4)  # from 1 to 1.5 squared
    (1.0, 1.25)
    """
    validate.positive("radius", radius)
    validate.count("steps", steps)
    inputs, targets = batch
    here = {name: p.detach() for name, p in without_draws(model).named_parameters() if p.requires_grad}
    if not here:
        raise ValueError("model must have parameters that require gradients, got none")

    def value(point: dict[str, Tensor]) -> Tensor:
        # Batch normalisation counts in its buffers: in copies, so that measuring leaves the model as it was.
        values = point | {name: buffer.clone() for name, buffer in model.named_buffers()}
        return loss(functional_call(model, values, inputs if isinstance(inputs, tuple) else (inputs,)), targets)

    point, highest, worst, first = here, -math.inf, here, math.nan
    for step in range(steps + 1):
        leaves = {name: p.clone().requires_grad_() for name, p in point.items()}
        with torch.enable_grad():
            reached = value(leaves)
        if step == 0:
            first = reached.item()
        if reached.item() > highest:
            highest, worst = reached.item(), point
        gradients = torch.autograd.grad(reached, list(leaves.values()), materialize_grads=True)
        length = torch.stack([g.double().square().sum() for g in gradients]).sum().sqrt().item()
        if length == 0:
            break
        pairs = zip(here.items(), gradients, strict=True)
        point = {name: p + (radius / length) * gradient for (name, p), gradient in pairs}
    return LossRise(first, highest - first, worst)
