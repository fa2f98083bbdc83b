"""Bilevel problems: outer variables chosen by the loss on validation data after the inner problem is solved."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["BilevelResult", "ridge_solution", "solve_bilevel"]


@dataclass(frozen=True)
class BilevelResult:
    """Where the outer variable ended, the inner solution there, and the outer losses on the way."""

    outer: Tensor
    inner: Tensor
    losses: Tensor


@system("solve_bilevel", title="Bilevel optimisation", kind="function")
def solve_bilevel(
    solve: Callable[[Tensor], Tensor],
    validation_loss: Callable[[Tensor], Tensor],
    start: Float[Tensor, "..."],
    steps: int = 200,
    lr: float = 0.1,
) -> BilevelResult:
    r"""Gradient descent (Adam) on an outer variable, through the solution of the inner problem that belongs to it.

    $$ \min_\lambda L_{val}\big(w^*(\lambda)\big), \qquad w^*(\lambda) = \arg\min_w L_{train}(w, \lambda) $$

    `solve(outer)` gives the inner solution as a differentiable function: in closed form, as `ridge_solution`, or by
    unrolled steps (`lemmata.meta.adapt`, `lemmata.meta.unroll`). Chosen by the training loss, a strength of
    regularisation or augmentation would always go to zero.

    Shapes:
        start: any    returns: outer as start, the inner solution, losses (steps + 1,)

    Claims: meta.other_targets
    Source: Franceschi et al., Bilevel programming for hyperparameter optimization and meta-learning (2018).

    >>> found = solve_bilevel(lambda a: a.sin(), lambda w: (w - 0.5).square(), torch.tensor(0.1), steps=300)
    >>> round(float(found.inner), 3)
    0.5
    """
    validate.count("steps", steps)
    outer = validate.floating("start", start).detach().clone().requires_grad_()
    optimizer = torch.optim.Adam([outer], lr=validate.positive("lr", lr))
    losses = []
    with torch.enable_grad():
        for step in range(steps):
            optimizer.zero_grad()
            loss = validation_loss(solve(outer))
            if not bool(loss.isfinite()):
                raise ValueError(f"validation_loss became {loss.item():g} at step {step + 1}: lower lr (now {lr:g})")
            losses.append(loss.detach())
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        inner = solve(outer)
        losses.append(validation_loss(inner))
    return BilevelResult(outer.detach(), inner, torch.stack(losses))


@system("ridge_solution", title="Ridge regression as an inner problem", kind="function")
def ridge_solution(
    x: Float[Tensor, "n features"], y: Float[Tensor, " n"], log_strength: Float[Tensor, ""]
) -> Float[Tensor, " features"]:
    r"""The weights of ridge regression as a differentiable function of the logarithm of its strength.

    $$ w^*(\lambda) = \Big(\tfrac1n X^\top X + e^\lambda I\Big)^{-1} \tfrac1n X^\top y $$

    It is also the expected solution with Gaussian noise of variance $e^\lambda$ on the inputs: augmentation by noise.

    Shapes:
        x: (n, features), y: (n,)    returns: (features,)

    Claims: meta.other_targets
    Source: Bishop, Training with noise is equivalent to Tikhonov regularization (1995).

    >>> ridge_solution(torch.eye(2), torch.tensor([1.0, 2.0]), torch.tensor(0.0).log())
    tensor([1., 2.])
    """
    n, features = validate.matrix("x", x).shape
    if y.shape != (n,):
        raise ValueError(f"y must hold a number for each of {n} examples, got {tuple(y.shape)}")
    gram = x.T @ x / n + log_strength.exp() * torch.eye(features, dtype=x.dtype, device=x.device)
    return torch.linalg.solve(gram, x.T @ y / n)
