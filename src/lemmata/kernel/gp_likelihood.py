r"""The marginal likelihood of a Gaussian process: its value, its gradient from one factorisation, and its maximum."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch
from jaxtyping import Float
from scipy import optimize
from torch import Tensor, nn

from lemmata.kernel.gp_solver import factored
from lemmata.marks import system

__all__ = ["gaussian_log_likelihood"]

REACH = 10.0  # a restart begins within a factor e^(REACH / 4) of where the first run did
BOUND = math.log(1e10)  # parameters stay between one over this and this


@system("gaussian_log_likelihood", title="Marginal likelihood of a Gaussian process", kind="function")
def gaussian_log_likelihood(
    gram: Float[Tensor, "points points"],
    noise: Float[Tensor, ""] | float,
    residual: Float[Tensor, "points *outputs"],
) -> Float[Tensor, ""]:
    r"""The logarithm of the density of what is left of the targets without their mean, summed over outputs.

    $$ \log p(r) = -\tfrac12 r^\top A^{-1}r - \tfrac12\log\det A - \tfrac n2\log 2\pi, \quad A = K + \sigma^2 I, \qquad
       \frac{\partial\log p}{\partial K} = \tfrac12(\alpha\alpha^\top - A^{-1}),\quad \alpha = A^{-1}r $$

    One Cholesky factorisation gives the value, and an inverse from it the whole gradient, however many parameters the
    kernel has.

    Shapes:
        gram: (points, points), residual: (points,) or (points, outputs)    returns: a scalar, float64

    Source: Rasmussen and Williams 2006, equations 5.8 and 5.9.  Differs: in float64 throughout, first derivatives only.

    >>> gaussian_log_likelihood(torch.zeros(1, 1), 1.0, torch.zeros(1)).item() == -0.5 * math.log(2 * math.pi)
    True
    """
    level = torch.as_tensor(noise, dtype=torch.float64, device=gram.device)
    return _LogLikelihood.apply(gram.double(), level, residual.double().reshape(len(residual), -1))


class _LogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gram: Tensor, noise: Tensor, residual: Tensor) -> Tensor:
        factor = factored(gram, float(noise)).cholesky
        weight = torch.cholesky_solve(residual, factor)
        ctx.save_for_backward(factor, weight)
        points, outputs = residual.shape
        volume = factor.diagonal().log().sum() + points / 2 * math.log(2 * math.pi)
        return -0.5 * (residual * weight).sum() - outputs * volume

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        factor, weight = ctx.saved_tensors
        inverse = torch.cholesky_inverse(factor)
        # -A^-1 for each output and the products of the weights, in the place of the inverse
        of_gram = inverse.mul_(-0.5 * weight.shape[1]).addmm_(weight, weight.mT, alpha=0.5).mul_(gradients[0])
        return of_gram, of_gram.diagonal().sum(), -gradients[0] * weight


class Climbed(NamedTuple):
    """Where the likelihood is largest: how large, how many evaluations it took, and whether the search came to rest."""

    log_likelihood: float
    evaluations: int
    converged: bool


def maximised(
    log_likelihood: Callable[[], Tensor],
    parameters: list[nn.Parameter],
    points: int,
    max_steps: int,
    restarts: int,
    seed: int,
) -> Climbed:
    """Move the parameters, logarithms of positive numbers, to the largest likelihood by L-BFGS from several starts."""
    sizes = [parameter.numel() for parameter in parameters]
    evaluations = 0

    def place(values: numpy.ndarray) -> None:
        with torch.no_grad():
            for parameter, part in zip(parameters, torch.from_numpy(values.copy()).split(sizes), strict=True):
                parameter.copy_(part.reshape(parameter.shape))

    def loss(values: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        nonlocal evaluations
        evaluations += 1
        place(values)
        found = -log_likelihood() / points
        slopes = torch.autograd.grad(found, parameters, allow_unused=True, materialize_grads=True)
        return float(found.detach()), torch.cat([slope.detach().reshape(-1).cpu() for slope in slopes]).double().numpy()

    start = torch.cat([parameter.detach().double().cpu().reshape(-1) for parameter in parameters])
    drawn = torch.Generator().manual_seed(seed)
    best: Any = None
    for attempt in range(restarts + 1):
        away = (torch.rand(len(start), generator=drawn, dtype=torch.float64) - 0.5) * REACH / 2 * (attempt > 0)
        found = optimize.minimize(
            loss, (start + away).numpy(), jac=True, method="L-BFGS-B", bounds=[(-BOUND, BOUND)] * len(start),
            options={"maxiter": max_steps, "gtol": 1e-6, "ftol": 1e-10},
        )  # fmt: skip
        if best is None or found.fun < best.fun:
            best = found
    place(best.x)
    return Climbed(-points * float(best.fun), evaluations, bool(best.success))
