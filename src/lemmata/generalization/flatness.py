r"""Flatness: how much noise in the parameters raises the loss, as a trace, and in a form that no rescaling changes."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.curvature_products import Batch, HessianOperator
from lemmata.measure.trace import hutchinson_trace

__all__ = ["NoiseRise", "noise_rise"]


class NoiseRise(NamedTuple):
    """The rise of the loss to second order in the noise, and the standard error of its estimate."""

    rise: float
    standard_error: float


@system("noise_rise", title="Rise of the loss under noise in the parameters", kind="function")
def noise_rise(
    model: nn.Module,
    loss: Callable[[Tensor, Any], Tensor],
    batches: Batch | Iterable[Batch],
    noise: float = 0.1,
    relative: bool = True,
    probes: int = 50,
    generator: torch.Generator | None = None,
) -> NoiseRise:
    r"""By how much normal noise in all parameters raises the loss at a minimum, on average.

    $$ \mathbb E\,L(\theta + \sigma\xi) - L(\theta) \approx \frac{\sigma^2}2\mathrm{tr}\,H, \qquad
       \mathbb E\,L(\theta + \sigma\,\theta\odot\xi) - L(\theta) \approx \frac{\sigma^2}2\sum_i\theta_i^2H_{ii} $$

    The first with `relative=False`; exact for quadratic losses. Multiplying the weights into a ReLU unit by a positive
    number, and dividing those out of it by the same, keeps the function: it changes the first sum at will, and the
    second, where each weight has noise in proportion to itself, not at all.

    Claims: flat.minima
    Source: Dinh et al. 2017 (what rescaling does); Tsuzuku et al. 2020 (noise in proportion).

    >>> model, x = nn.Linear(2, 1, bias=False), torch.eye(2)
    >>> model.weight.data = torch.tensor([[3.0, 1.0]])
    >>> noise_rise(model, nn.functional.mse_loss, (x, model(x).detach())).rise  # 0.1^2 (9 + 1) / 2
    0.05...
    """
    validate.positive("noise", noise)
    hessian = HessianOperator(model, loss, batches)
    operator: Callable[[Tensor], Tensor] = hessian
    # A vector of the size of all parameters, whose order is that of the operator.
    flat = torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])
    if validate.flag("relative", relative):
        operator = lambda vectors: flat * hessian(flat * vectors)  # noqa: E731
    trace = hutchinson_trace(operator, probes, like=torch.zeros_like(flat), generator=generator)
    return NoiseRise(noise**2 / 2 * trace.value, noise**2 / 2 * trace.standard_error)
