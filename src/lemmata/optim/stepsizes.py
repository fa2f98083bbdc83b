r"""How long a step may be: the loss along its gradient, the limit 2/L of stability, the best constant step."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lemmata.marks import system
from lemmata.measure.lanczos import largest_ritz_pair

__all__ = ["StepModel", "best_constant_step", "stability_limit", "step_model"]

STEPS, ACCURACY = 200, 1e-7  # of Lanczos's iteration: the most, and the residual relative to the eigenvalue


@dataclass(frozen=True)
class StepModel:
    r"""The loss along its gradient to second order, $h(w) - \epsilon\,g^\top g + \tfrac12\epsilon^2 g^\top Hg$."""

    loss: float
    slope: float  # g.g
    bend: float  # g.H g

    def change(self, lr: float) -> float:
        """By how much a step of this length changes the loss."""
        return -lr * self.slope + lr**2 / 2 * self.bend

    @property
    def largest(self) -> float:
        """The longest step that does not increase the loss; infinite where the loss does not bend upwards."""
        return 2 * self.best

    @property
    def best(self) -> float:
        """The step of exact line search."""
        return self.slope / self.bend if self.bend > 0 else math.inf


@system("step_model", title="Loss along the gradient", kind="function")
def step_model(loss: Callable[[], Tensor], parameters: Iterable[Tensor]) -> StepModel:
    r"""What one step of gradient descent does to a loss, as a function of its length.

    $$ h(w - \epsilon g) = h(w) - \epsilon\,g^\top g + \tfrac12\epsilon^2 g^\top Hg + O(\epsilon^3), \qquad
       \epsilon_{\max} = \frac{2\,g^\top g}{g^\top Hg} $$

    One gradient and one Hessian-vector product. Exact on quadratics; elsewhere to third order in the step.

    Shapes:
        loss: a closure that returns one number; parameters: any tensors it depends on

    Claims: optim.stepsize.taylor_step, optim.stepsize.exact_ratio

    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> model = step_model(lambda: (w * w * torch.tensor([1.0, 3.0])).sum() / 2, [w])
    >>> model.slope, model.bend, round(model.largest, 4)
    (10.0, 28.0, 0.7143)
    """
    value, gradient, product = _loss_derivatives(loss, parameters)
    return StepModel(float(value), float(gradient @ gradient), float(gradient @ product(gradient)))


@system("stability_limit", title="Limit of stable steps", kind="function")
def stability_limit(loss: Callable[[], Tensor], parameters: Iterable[Tensor]) -> float:
    r"""The step above which gradient descent leaves the minimum of the local quadratic model.

    $$ \epsilon < \frac2\beta, \qquad \beta = \lambda_{\max}(H) $$

    By Lanczos's iteration on Hessian-vector products. Infinite where nothing bends upwards. On a quadratic it is the
    limit from every start; on other losses that of the place where it is measured.

    Shapes:
        loss: a closure that returns one number; parameters: any tensors it depends on

    Claims: optim.stepsize.two_over_beta
    Source: Cohen et al. 2021 call the values of a network around this limit the edge of stability.

    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> stability_limit(lambda: (w * w * torch.tensor([1.0, 4.0])).sum() / 2, [w])
    0.5
    """
    _, gradient, product = _loss_derivatives(loss, parameters)
    largest = _largest_eigenvalue(gradient, product)
    return 2 / largest if largest > 0 else math.inf


@system("best_constant_step", title="Best constant step", kind="function")
def best_constant_step(loss: Callable[[], Tensor], parameters: Iterable[Tensor]) -> float:
    r"""The constant step with which gradient descent on a convex quadratic contracts fastest in the worst case.

    $$ \eta = \frac{2}{\lambda_{\max}(H) + \lambda_{\min}(H)}, \qquad
       \|\theta_t - \theta^*\| \le \left(\frac{\kappa - 1}{\kappa + 1}\right)^t \|\theta_0 - \theta^*\| $$

    Shapes:
        loss: a closure that returns one number; parameters: any tensors it depends on

    Claims: optim.gd.stepsize_optimality

    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> best_constant_step(lambda: (w * w * torch.tensor([1.0, 4.0])).sum() / 2, [w])
    0.4
    """
    _, gradient, product = _loss_derivatives(loss, parameters)
    largest, least = _largest_eigenvalue(gradient, product), -_largest_eigenvalue(gradient, product, sign=-1)
    if not largest > 0 or least < -1e-6 * largest:  # the rounding of a zero eigenvalue in single precision
        raise ValueError(
            f"the loss must be convex where it is measured, got a Hessian from {least:.3g} to {largest:.3g}"
        )
    return 2 / (largest + max(least, 0.0))


def _largest_eigenvalue(gradient: Tensor, product: Callable[[Tensor], Tensor], sign: int = 1) -> float:
    """The largest eigenvalue of the Hessian, or with -1 of its negative, by Lanczos's iteration."""
    dtype = torch.promote_types(gradient.dtype, torch.float32)
    generator = torch.Generator().manual_seed(0)  # a start that no structure of the parameters misses, always the same
    start = torch.randn(gradient.numel(), generator=generator, dtype=dtype).to(gradient.device)

    def operator(vector: Tensor) -> Tensor:
        return sign * product(vector.to(gradient.dtype)).to(dtype)

    return float(largest_ritz_pair(operator, start, STEPS, accuracy=ACCURACY, generator=generator).value)


def _loss_derivatives(
    loss: Callable[[], Tensor], parameters: Iterable[Tensor]
) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """The loss, its gradient as one vector, and the product of the Hessian with a vector."""
    chosen = [parameter for parameter in parameters if parameter.requires_grad]
    if not chosen:
        raise ValueError("parameters must hold a tensor that requires a gradient: use w.requires_grad_()")
    with torch.enable_grad():
        value = loss()
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"loss must return one number, got {got}")
        gradient = _flat_vector(torch.autograd.grad(value, chosen, create_graph=True, materialize_grads=True))
    if not bool(gradient.isfinite().all()):
        raise ValueError("the gradient must be finite, found NaN or infinity: take the loss elsewhere")

    def product(vector: Tensor) -> Tensor:
        if not gradient.requires_grad:  # a linear loss has a gradient that depends on nothing
            return torch.zeros_like(vector)
        parts = torch.autograd.grad(gradient, chosen, vector, retain_graph=True, materialize_grads=True)
        return _flat_vector(parts)

    return value.detach(), gradient.detach(), product


def _flat_vector(parts: Iterable[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])
