r"""Weight decay: the penalty, the step that shrinks, what it leaves of a minimum, and the ball it stands for."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lemmata import validate
from lemmata.marks import system
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.layer_norm import LayerNorm

__all__ = [
    "ConstrainedMinimum",
    "constrained_minimum",
    "decay_groups",
    "decay_weights",
    "decayed_minimum",
    "l2_penalty",
    "shrinkage",
]


@system("l2_penalty", title="L2 regulariser", kind="function")
def l2_penalty(
    weights: nn.Module | Iterable[Tensor], weight_decay: int | float | Sequence[int | float]
) -> Float[Tensor, ""]:
    r"""Half the squared length of the weights, to be added to a loss.

    $$ \Omega = \sum_l \frac{\mu_l}2 \|W^l\|_F^2, \qquad \nabla_{W^l}\Omega = \mu_l W^l $$

    Of a module the weights are the matrices (all parameters with two axes or more); biases and all of a normalisation
    are left alone, as in `decay_groups`.

    Shapes:
        weights: a module, or tensors of any shapes; weight_decay: one number, or one for each of them
        returns: scalar

    Claims: reg.weight_decay.l2, reg.weight_decay.update
    Source: A. Hoerl and R. Kennard, Ridge regression (1970); A. Krogh and J. Hertz, A simple weight decay can improve
        generalization (1992).

    >>> l2_penalty([torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0]])], [0.1, 2.0])
    tensor(2.2500)
    """
    found = _weight_matrices(weights) if isinstance(weights, nn.Module) else _weight_tensors(weights)
    if not found:
        raise ValueError("weights must hold at least one tensor")
    each = [weight_decay] * len(found) if isinstance(weight_decay, int | float) else list(weight_decay)
    if len(each) != len(found):
        raise ValueError(f"weight_decay must have one number for each of {len(found)} tensors, got {len(each)}")
    for decay in each:
        validate.number("weight_decay", decay, least=0)
    return torch.stack([decay / 2 * w.square().sum() for decay, w in zip(each, found, strict=True)]).sum()


@system("decay_weights", title="Gradient descent with weight decay", kind="function")
@torch.no_grad()
def decay_weights(weights: nn.Module | Iterable[Tensor], lr: int | float, weight_decay: int | float) -> None:
    r"""Shrink weights in place, once for each step of whatever optimiser: decoupled weight decay.

    $$ \theta_{t+1} = (1 - \eta\mu)\,\theta_t - \eta\nabla\ell(\theta_t) $$

    Call it after `backward` and before `optimizer.step()`. With plain gradient descent this is a step on
    $\ell + \frac\mu2\|\theta\|^2$; with Adam and other rescaled gradients it is not, and is what AdamW does.

    Shapes:
        weights: a module, of which the matrices are meant as in `l2_penalty` less frozen ones, or tensors of any shapes

    Claims: reg.weight_decay.update
    Source: S. Hanson and L. Pratt, Comparing biases for minimal network construction (1988); I. Loshchilov and
        F. Hutter, Decoupled weight decay regularization (2019).

    >>> w = torch.tensor([1.0, -2.0])
    >>> decay_weights([w], lr=0.5, weight_decay=0.2)
    >>> w
    tensor([ 0.9000, -1.8000])
    """
    kept = 1 - validate.number("lr", lr, least=0) * validate.number("weight_decay", weight_decay, least=0)
    if kept < 0:
        raise ValueError(f"lr * weight_decay must be at most 1, got {1 - kept:g}: weights would change their sign")
    module = isinstance(weights, nn.Module)
    for values in [w for w in _weight_matrices(weights) if w.requires_grad] if module else _weight_tensors(weights):
        values.mul_(kept)


def decay_groups(model: nn.Module, weight_decay: int | float) -> list[dict[str, Any]]:
    r"""Groups of parameters for any optimiser of torch: matrices decay, biases and scales of normalisations do not.

    >>> optimizer = torch.optim.AdamW(decay_groups(nn.Linear(3, 2), weight_decay=0.01), lr=1e-3)
    >>> [(len(group["params"]), group["weight_decay"]) for group in optimizer.param_groups]
    [(1, 0.01), (1, 0.0)]
    """
    validate.number("weight_decay", weight_decay, least=0)
    validate.module("model", model)
    learnt = [values for values in model.parameters() if values.requires_grad]
    matrices = {id(values) for values in _weight_matrices(model)}
    groups = [
        {"params": [values for values in learnt if id(values) in matrices], "weight_decay": float(weight_decay)},
        {"params": [values for values in learnt if id(values) not in matrices], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


# --- What it leaves of a minimum ---


@system("shrinkage", title="Spectral shrinkage of weight decay", kind="function")
def shrinkage(eigenvalues: Float[Tensor, "*modes"], weight_decay: int | float) -> Float[Tensor, "*modes"]:
    r"""The factor by which weight decay shortens each eigendirection of a quadratic loss.

    $$ \frac{\lambda_i}{\lambda_i + \mu} $$

    Steep directions, $\lambda_i \gg \mu$, are kept; flat ones, $\lambda_i \ll \mu$, are lost. Without decay all are
    kept but those in which the loss is constant: the limit $\mu \to 0$.

    Shapes:
        eigenvalues: (...) of the Hessian, none negative    returns: (...), from 0 to 1

    Claims: reg.weight_decay.spectral, reg.weight_decay.optimal, reg.early_stopping.equivalence

    >>> shrinkage(torch.tensor([9.0, 1.0, 0.0]), weight_decay=1.0)
    tensor([0.9000, 0.5000, 0.0000])
    """
    validate.number("weight_decay", weight_decay, least=0)
    if bool((validate.floating("eigenvalues", eigenvalues) < 0).any()):
        raise ValueError(f"eigenvalues must not be negative, got {eigenvalues.min().item():.4g}: this is no minimum")
    # Divided by the eigenvalue, nothing overflows; 0 / 0 is the limit of no decay.
    kept = eigenvalues > 0
    return torch.where(kept, 1 / (1 + weight_decay / torch.where(kept, eigenvalues, 1.0)), 0.0)


@system("decayed_minimum", title="Minimum under weight decay", kind="function")
def decayed_minimum(
    hessian: Float[Tensor, "n n"], minimum: Float[Tensor, "n"], weight_decay: int | float
) -> Float[Tensor, "n"]:
    r"""Where the minimum of a quadratic loss goes when the L2 penalty is added.

    $$ \theta^*_\mu = (H + \mu I)^{-1} H \theta^*
       = Q^\top \mathrm{diag}\Big(\frac{\lambda_i}{\lambda_i+\mu}\Big) Q\theta^* $$

    For other losses, with the Hessian at the minimum, this is right up to $O(\mu^2)$. Of several minima the one meant
    for $\mu = 0$ is the shortest.

    Shapes:
        hessian: (n, n), symmetric and positive semi-definite; minimum: (n,)    returns: (n,)

    Claims: reg.weight_decay.spectral, reg.weight_decay.views

    >>> decayed_minimum(torch.diag(torch.tensor([9.0, 1.0])), torch.tensor([1.0, 1.0]), weight_decay=1.0)
    tensor([0.9000, 0.5000])
    """
    values, vectors, along = _hessian_modes(hessian, minimum)
    return vectors @ (shrinkage(values, weight_decay).to(along) * along)


class ConstrainedMinimum(NamedTuple):
    """The lowest point of a ball, and the multiplier of its constraint, which is the weight decay that leads there."""

    theta: Tensor
    weight_decay: float


@system("constrained_minimum", title="Minimum in a ball", kind="function")
def constrained_minimum(
    hessian: Float[Tensor, "n n"], minimum: Float[Tensor, "n"], radius: int | float
) -> ConstrainedMinimum:
    r"""The minimum of a quadratic loss among weights of bounded length, and the weight decay with the same minimum.

    $$ \min_\theta \tfrac12 (\theta-\theta^*)^\top H (\theta-\theta^*) \text{ subject to } \|\theta\| \le r,
       \qquad \|\theta^*_\mu\| = r $$

    The multiplier $\mu$ of the constraint is the weight decay, 0 where the shortest minimum is inside the ball. The
    shorter the radius, the larger the decay. It is found by Newton's method on $1/\|\theta_\mu\| - 1/r$, which is
    concave and increasing in $\mu$, so that the steps from 0 come from one side.

    Shapes:
        hessian: (n, n), symmetric and positive semi-definite; minimum: (n,)    returns: theta (n,), weight_decay

    Claims: reg.weight_decay.views
    Source: J. Moré and D. Sorensen, Computing a trust region step (1983).

    >>> constrained_minimum(torch.eye(2), torch.tensor([3.0, 4.0]), radius=1.0)
    ConstrainedMinimum(theta=tensor([0.6000, 0.8000]), weight_decay=4.0)
    """
    validate.positive("radius", radius)
    values, vectors, along = _hessian_modes(hessian, minimum)
    values, along = values.double(), along.double()
    decay = 0.0
    for _ in range(NEWTON_STEPS):
        short = shrinkage(values, decay) * along  # (n,)
        unit = short / short.abs().max().clamp(min=TINY)  # squares of short weights would be 0
        length = float(short.abs().max()) * float(unit.norm())
        if length <= radius * (1 + 4 * torch.finfo(torch.double).eps):
            break
        # d log|theta| / d mu = -mean of 1 / (lambda_i + mu), by theta_i^2; flat directions have theta_i = 0
        slope = float(((unit / unit.norm()).square() / (values + decay).clamp(min=TINY)).sum())
        decay += (length / radius - 1) / slope
        if not math.isfinite(decay):
            raise ValueError(f"radius must be larger, got {radius}: its weight decay is too large for a number")
    theta = shrinkage(values, decay) * along
    return ConstrainedMinimum((vectors.double() @ theta).to(minimum.dtype), decay)


NEWTON_STEPS = 100  # it takes about ten; more only where the ball is smaller than the minimum by many powers of ten
TINY = torch.finfo(torch.double).tiny


def _hessian_modes(hessian: Tensor, minimum: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues without negative ones, eigenvectors in columns, and the minimum in their basis."""
    validate.symmetric("hessian", hessian)
    validate.vector("minimum", minimum, hessian.shape[-1])
    values, vectors = torch.linalg.eigh(hessian)
    rounding = 4 * len(values) * torch.finfo(values.dtype).eps * float(values.abs().max())
    if float(values[0]) < -rounding:
        told = f"its least eigenvalue is {values[0].item():.4g}: there is no minimum"
        raise ValueError(f"hessian must be positive semi-definite, {told}")
    values = torch.where(values > rounding, values, 0.0)
    return values, vectors, vectors.mT @ minimum.to(vectors)


def _weight_tensors(weights: Iterable[Tensor]) -> list[Tensor]:
    found = [weights] if isinstance(weights, Tensor | str) or not isinstance(weights, Iterable) else list(weights)
    for each in found:
        if not isinstance(each, Tensor) or each is weights:
            got = type(each).__name__
            raise TypeError(f"weights must be a module or a list of tensors such as model.parameters(), got {got}")
    return found


def _weight_matrices(model: nn.Module) -> list[Tensor]:
    norms = [part for part in model.modules() if isinstance(part, NORMALISATIONS)]
    scales = {id(values) for part in norms for values in part.parameters(recurse=False)}
    return [values for values in model.parameters() if values.ndim >= 2 and id(values) not in scales]


# Over several axes these have scales with as many, which are no matrices.
NORMALISATIONS = (BatchNorm, LayerNorm, nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase)
