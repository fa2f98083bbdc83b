r"""How noisy the gradients of batches are, and the batch size at which noise and signal are equally large."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lemmata.marks import system
from lemmata.measure.curvature_products import Batch

__all__ = ["GradientNoise", "gradient_noise_scale"]


class GradientNoise(NamedTuple):
    r"""Unbiased estimates of $|G|^2$ and of $\mathrm{tr}\,\Sigma$, of single examples, and their quotient.

    The quotient is not unbiased, and infinite where the estimate of $|G|^2$ is not above zero: then the batches are too
    few to tell the gradient from nothing.
    """

    scale: float
    gradient_square: float
    variance: float


@system("gradient_noise", title="Gradient noise scale", kind="function")
def gradient_noise_scale(
    model: nn.Module, loss: Callable[[Tensor, Any], Tensor], batches: Iterable[Batch]
) -> GradientNoise:
    r"""The batch size at which the noise of a gradient is as large as the gradient, from batches of one size.

    $$ B_{\mathrm{simple}} = \frac{\mathrm{tr}\,\Sigma}{|G|^2}, \qquad
       \mathbb E\, |g_B|^2 = |G|^2 + \frac{\mathrm{tr}\,\Sigma}{B} $$

    The second equation at two batch sizes, that of a batch and that of all of them together, gives both unknowns
    without bias. Far below this size larger batches pay in full, far above it not at all. `loss` is the mean over a
    batch.

    Claims: optim.sgd.variance
    Source: S. McCandlish, J. Kaplan and D. Amodei, An empirical model of large-batch training (2018), appendix A.

    >>> model, x = nn.Linear(1, 1, bias=False), torch.ones(1, 1)
    >>> found = gradient_noise_scale(model, lambda f, y: (f * y).mean(), [(x, 3 * x), (x, 5 * x)])
    >>> found.variance, found.gradient_square  # gradients 3 and 5: variance 2, square 16 - 2 / 2
    (2.0, 15.0)
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("model must have parameters that require gradients, got none")
    total, squares, sizes = [torch.zeros_like(p, dtype=torch.float64) for p in parameters], 0.0, []
    for inputs, targets in batches:
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        buffers = {name: value.clone() for name, value in model.named_buffers()}  # measuring leaves the model as it was
        with torch.enable_grad():
            reached = loss(functional_call(model, buffers, arguments), targets)
            gradient = torch.autograd.grad(reached, parameters, materialize_grads=True)
        sizes.append(len(arguments[0]))
        squares += sum(g.double().square().sum().item() for g in gradient)
        for sum_, part in zip(total, gradient, strict=True):
            sum_ += part
    if len(sizes) < 2 or len(set(sizes)) > 1:
        raise ValueError(f"batches must be at least two of one size, got sizes {sizes[:5]}: drop the last one")
    number, size = len(sizes), sizes[0]
    small = squares / number
    large = sum((sum_ / number).square().sum().item() for sum_ in total)
    # Batches of size B and all together, of size nB: |g|^2 is |G|^2 + tr / B and |G|^2 + tr / (nB) in the mean.
    variance = (small - large) / (1 - 1 / number) * size
    square = (number * large - small) / (number - 1)
    return GradientNoise(variance / square if square > 0 else math.inf, square, variance)
