r"""The balls in which perturbations may lie: their norms, the nearest point, the steepest direction."""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["perturbation_norms", "project_ball", "steepest_direction"]

NORMS = (1, 2, math.inf)


def norm_of(value: int | float | str) -> int | float:
    """1, 2 or infinity, as a number or as the word "inf"."""
    found = math.inf if value == "inf" else value
    if isinstance(found, bool) or found not in NORMS:
        raise ValueError(f"norm must be 1, 2 or inf, got {value!r}")
    return found


def per_example(values: Shaped[Tensor, "batch"], like: Shaped[Tensor, "batch ..."]) -> Shaped[Tensor, "batch ..."]:
    """One number an example, with axes of length one for all others of `like`."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


@system("perturbation_norms", title="Norms of perturbations", kind="function")
def perturbation_norms(
    perturbation: Float[Tensor, "batch ..."], norm: int | float = math.inf
) -> Float[Tensor, "batch"]:
    r"""$\|\delta\|_p$ of each example, in float64: an attack's claim to lie in a ball is not decided by rounding.

    With `norm=0` the pixels that change are counted, whatever their number of channels.

    Shapes:
        perturbation: (batch, ...)    returns: (batch,)

    Claims: attack.adversarial_example, attack.linear_dual_norm

    >>> import torch
    >>> perturbation_norms(torch.tensor([[3.0, -4.0]]), norm=2)
    tensor([5.], dtype=torch.float64)
    """
    flat = perturbation.detach().flatten(1).double()  # (batch, values)
    if norm == 0:
        changed = perturbation.detach() != 0
        pixels = changed.any(dim=1) if perturbation.ndim == 4 else changed
        return pixels.flatten(1).sum(1).double()
    return torch.linalg.vector_norm(flat, ord=norm, dim=1)


@system("project_ball", title="Projection onto a norm ball", kind="function")
def project_ball(
    perturbation: Float[Tensor, "batch ..."], eps: int | float, norm: int | float = math.inf
) -> Float[Tensor, "batch ..."]:
    r"""The nearest point of the ball $\|u\|_p\le\epsilon$ to each perturbation, in Euclidean distance.

    $$ \mathcal P_\infty(z)_i = \mathrm{clip}(z_i, -\epsilon, \epsilon), \qquad
       \mathcal P_2(z) = \min\{1, \epsilon/\|z\|_2\}\,z, \qquad
       \mathcal P_1(z)_i = \mathrm{sign}(z_i)\max\{|z_i| - \theta, 0\} $$

    with the $\theta\ge0$ at which the last has norm $\epsilon$, found by sorting; what lies inside stays as it is.

    Shapes:
        perturbation: (batch, ...)    returns: the same

    Claims: attack.pgd_projection_l2, attack.pgd_projection_linf
    Source: Duchi et al. 2008 for the 1-norm.

    >>> import torch
    >>> project_ball(torch.tensor([[2.0, 0.5]]), eps=1.0)
    tensor([[1.0000, 0.5000]])
    >>> project_ball(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), eps=1.0, norm=2)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    validate.number("eps", eps, least=0)
    if norm_of(norm) == math.inf:
        return perturbation.clamp(-eps, eps)
    flat = perturbation.flatten(1)  # (batch, values)
    if norm == 2:
        length = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
        shrunk = flat * (eps / length.clamp(min=max(eps, torch.finfo(flat.dtype).tiny)))
        return torch.where(length <= eps, flat, shrunk).view_as(perturbation)
    return _soft_threshold(flat, eps).view_as(perturbation)


def _soft_threshold(flat: Float[Tensor, "batch values"], eps: int | float) -> Float[Tensor, "batch values"]:
    """Onto the ball of the 1-norm: the largest number of values that stay above a common threshold fixes it."""
    magnitude = flat.abs()
    ordered = magnitude.sort(dim=1, descending=True).values
    ranks = torch.arange(1, flat.shape[1] + 1, device=flat.device, dtype=flat.dtype)
    thresholds = (ordered.cumsum(1) - eps) / ranks  # (batch, values)
    kept = (ordered > thresholds).sum(1, keepdim=True).clamp(min=1)
    threshold = thresholds.gather(1, kept - 1).clamp(min=0)
    inside = magnitude.sum(1, keepdim=True) <= eps
    return torch.where(inside, flat, flat.sign() * (magnitude - threshold).clamp(min=0))


@system("steepest_direction", title="Direction of steepest ascent in a norm", kind="function")
def steepest_direction(
    gradient: Float[Tensor, "batch ..."], norm: int | float = math.inf
) -> Float[Tensor, "batch ..."]:
    r"""The $d$ with $\|d\|_p\le1$ that maximises $g^\top d$, for any $p\ge1$; the maximum is the dual norm $\|g\|_q$.

    $$ d_\infty = \mathrm{sign}(g), \qquad d_2 = g/\|g\|_2, \qquad d_1 = \mathrm{sign}(g_k)\,e_k,\ k =
       \arg\max_i|g_i|, \qquad d_p \propto \mathrm{sign}(g)\,|g|^{q-1},\ \tfrac1p+\tfrac1q=1 $$

    Shapes:
        gradient: (batch, ...)    returns: the same; zero where the gradient is zero

    Claims: attack.fgsm_optimal, attack.linear_dual_norm, attack.pgd

    >>> import torch
    >>> steepest_direction(torch.tensor([[3.0, -4.0]]), norm=2)
    tensor([[ 0.6000, -0.8000]])
    """
    if norm != math.inf:
        validate.number("norm", norm, least=1)
    if norm == math.inf:
        return gradient.sign()
    flat = gradient.flatten(1)  # (batch, values)
    largest, place = flat.abs().max(1, keepdim=True)
    if norm == 1:
        return torch.zeros_like(flat).scatter_(1, place, flat.gather(1, place).sign()).view_as(gradient)
    flat = flat / torch.where(largest > 0, largest, 1)  # squares of tiny gradients would underflow
    if norm != 2:
        flat = flat.sign() * flat.abs() ** (1 / (norm - 1))
    length = torch.linalg.vector_norm(flat, ord=norm, dim=1, keepdim=True)
    return (flat / torch.where(length > 0, length, 1)).view_as(gradient)


def random_perturbation(
    like: Float[Tensor, "batch ..."], eps: int | float, norm: int | float, generator: torch.Generator
) -> Float[Tensor, "batch ..."]:
    r"""Uniform in the ball $\|\delta\|_p\le\epsilon$: draws of the law $e^{-|t|^p}$ over their norm with one more.

    Drawn where the generator lives, so that the same seed gives the same start on every device.

    Source: Barthe et al. 2005 for $p<\infty$.
    """
    empty = torch.empty(len(like), math.prod(like.shape[1:]), dtype=like.dtype, device=generator.device)
    if norm == math.inf:
        drawn = empty.uniform_(-1, 1, generator=generator)
    else:
        beyond = empty[:, :1].clone().exponential_(generator=generator)
        if norm == 2:
            drawn = empty.normal_(std=0.5**0.5, generator=generator)
        else:
            signs = torch.rand(empty.shape, generator=generator, device=empty.device).lt(0.5)
            drawn = empty.exponential_(generator=generator)
            drawn = torch.where(signs, drawn, -drawn)
        drawn = drawn / (drawn.abs().pow(norm).sum(1, keepdim=True) + beyond) ** (1 / norm)
    return (eps * drawn).to(like.device).view_as(like)
