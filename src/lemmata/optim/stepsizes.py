r"""How long a step may be: the loss along its gradient, the limit 2/L of stability, the best constant step."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor

from lemmata.marks import system

__all__ = ["StepModel", "best_constant_step", "stability_limit", "step_model"]

DENSE = 64  # parameters up to which the whole Hessian is cheaper than an iteration


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
    value, gradient, product = _derivatives(loss, parameters)
    return StepModel(float(value), float(gradient @ gradient), float(gradient @ product(gradient)))


@system("stability_limit", title="Limit of stable steps", kind="function")
def stability_limit(loss: Callable[[], Tensor], parameters: Iterable[Tensor]) -> float:
    r"""The step above which gradient descent leaves the minimum of the local quadratic model.

    $$ \epsilon < \frac2\beta, \qquad \beta = \lambda_{\max}(H) $$

    By Lanczos's iteration on Hessian-vector products (ARPACK), or the whole Hessian of few parameters. Infinite where
    nothing bends upwards. On a quadratic it is the limit from every start; on other losses that of the place where it
    is measured.

    Shapes:
        loss: a closure that returns one number; parameters: any tensors it depends on

    Claims: optim.stepsize.two_over_beta
    Source: Cohen et al. 2021 call the values of a network around this limit the edge of stability.

    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> stability_limit(lambda: (w * w * torch.tensor([1.0, 4.0])).sum() / 2, [w])
    0.5
    """
    largest = _extreme_eigenvalues(loss, parameters, "LA")[-1]
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
    values = _extreme_eigenvalues(loss, parameters, "BE")
    least, largest = values[0], values[-1]
    if not largest > 0 or least < -1e-6 * largest:  # the rounding of a zero eigenvalue in single precision
        raise ValueError(
            f"the loss must be convex where it is measured, got a Hessian from {least:.3g} to {largest:.3g}"
        )
    return 2 / (largest + max(least, 0.0))


def _extreme_eigenvalues(loss: Callable[[], Tensor], parameters: Iterable[Tensor], which: str) -> list[float]:
    """Some eigenvalues of the Hessian in ascending order, the largest last; with "BE" the least first."""
    _, gradient, product = _derivatives(loss, parameters)
    size = gradient.numel()
    if size <= DENSE:
        hessian = torch.stack([product(row) for row in torch.eye(size).to(gradient)]).double()
        return torch.linalg.eigvalsh((hessian + hessian.mT) / 2).tolist()
    # A start that no structure of the parameters can miss, the same in every run.
    start = torch.randn(size, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    operator = LinearOperator(
        (size, size), matvec=lambda v: product(torch.as_tensor(v).to(gradient)).double().cpu().numpy(), dtype=float
    )
    try:
        found = eigsh(operator, k=2 if which == "BE" else 1, which=which, v0=start, tol=1e-6, return_eigenvectors=False)
    except ArpackNoConvergence as error:
        raise ValueError(f"the eigenvalues of the Hessian did not converge: {error}") from None
    return sorted(map(float, found))


def _derivatives(
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
        gradient = _flat(torch.autograd.grad(value, chosen, create_graph=True, materialize_grads=True))
    if not bool(gradient.isfinite().all()):
        raise ValueError("the gradient must be finite, found NaN or infinity: take the loss elsewhere")

    def product(vector: Tensor) -> Tensor:
        if not gradient.requires_grad:  # a linear loss has a gradient that depends on nothing
            return torch.zeros_like(vector)
        parts = torch.autograd.grad(gradient, chosen, vector, retain_graph=True, materialize_grads=True)
        return _flat(parts)

    return value.detach(), gradient.detach(), product


def _flat(parts: Iterable[Tensor]) -> Tensor:
    return torch.cat([part.reshape(-1) for part in parts])
