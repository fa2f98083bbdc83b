r"""Entropy and divergences of discrete distributions, in nats, with the right limits where probabilities vanish.

Every function takes distributions along the last axis, any batch before it, and measures in natural logarithms:
divide by log 2 for bits. A term with probability 0 counts 0, its gradient too; where absolute continuity fails
(q = 0 < p) the value is infinite.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["cross_entropy", "entropy", "jensen_shannon", "kl_divergence", "mutual_information", "total_variation"]


@system("shannon_entropy", title="Shannon entropy", kind="function")
def entropy(p: Float[Tensor, "*batch outcomes"]) -> Float[Tensor, "*batch"]:
    r"""The expected information content: from 0 for a certain outcome to $\log n$ for n equally likely ones.

    $$ H(p) = \mathbb E_p[-\log p(X)] = -\sum_x p(x)\log p(x) $$

    Shapes:
        p: (..., outcomes)    returns: (...)

    Claims: information.entropy, information.ce_decomposition, information.jsd

    >>> entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    return cross_entropy(p, p)


@system("discrete_cross_entropy", title="Cross-entropy", kind="function")
def cross_entropy(p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]) -> Float[Tensor, "..."]:
    r"""The expected information content under $p$ of a code made for $q$.

    $$ H(p, q) = \mathbb E_p[-\log q(X)] = -\sum_x p(x)\log q(x) $$

    Shapes:
        p, q: (..., outcomes), batches broadcast    returns: (...)

    Claims: information.cross_entropy, information.ce_decomposition, information.ce_minimizer

    >>> cross_entropy(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]))
    tensor([1.0397,    inf])
    """
    p, q = _probability_pair(p, q)
    return (p * (0.0 - _masked_log(q, where=p > 0))).sum(-1)


@system("kl_divergence", title="Kullback-Leibler divergence", kind="function")
def kl_divergence(p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]) -> Float[Tensor, "..."]:
    r"""The information lost when $q$ stands for $p$: 0 iff they are equal, infinite iff $p$ can do what $q$ cannot.

    $$ D_{KL}(p\|q) = \mathbb E_p\Big[\log\frac{p(X)}{q(X)}\Big] $$

    Shapes:
        p, q: (..., outcomes), batches broadcast    returns: (...)

    Claims: information.kl, information.kl_nonnegative, information.kl_asymmetric, information.ce_decomposition

    >>> kl_divergence(torch.tensor([0.9, 0.1]), torch.tensor([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]))
    tensor([0.3681, 0.0000,    inf])
    """
    p, q = _probability_pair(p, q)
    return (p * (_masked_log(p, where=p > 0) - _masked_log(q, where=p > 0))).sum(-1)


@system("jensen_shannon", title="Jensen-Shannon divergence", kind="function")
def jensen_shannon(p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]) -> Float[Tensor, "..."]:
    r"""The mean divergence from the even mixture: symmetric, and at most $\log 2$, whatever the supports.

    $$ D_{JS}(p\|q) = \tfrac12 D_{KL}(p\|m) + \tfrac12 D_{KL}(q\|m), \qquad m = \tfrac12(p+q) $$

    Its square root is a metric.

    Shapes:
        p, q: (..., outcomes), batches broadcast    returns: (...)

    Claims: information.jsd, information.jsd_bounds
    Differs: scipy.spatial.distance.jensenshannon returns the square root.

    >>> jensen_shannon(torch.tensor([1.0, 0.0]), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([0.6931, 0.0000])
    """
    p, q = _probability_pair(p, q)
    mixture = (p + q) / 2
    return (kl_divergence(p, mixture) + kl_divergence(q, mixture)) / 2


@system("total_variation", title="Total variation distance", kind="function")
def total_variation(p: Float[Tensor, "*#batch outcomes"], q: Float[Tensor, "*#batch outcomes"]) -> Float[Tensor, "..."]:
    r"""The largest difference that two distributions make in the probability of an event.

    $$ TV(p, q) = \max_A |p(A) - q(A)| = \tfrac12\sum_x|p(x) - q(x)| $$

    Shapes:
        p, q: (..., outcomes), batches broadcast    returns: (...)

    Claims: information.kl_nonnegative

    >>> total_variation(torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5]))
    tensor(0.4000)
    """
    p, q = _probability_pair(p, q)
    return (p - q).abs().sum(-1) / 2


@system("mutual_information", title="Mutual information", kind="function")
def mutual_information(joint: Float[Tensor, "*batch x y"]) -> Float[Tensor, "*batch"]:
    r"""How much one variable tells about the other, from their joint table: 0 iff they are independent.

    $$ I(X;Y) = D_{KL}(p_{XY} \,\|\, p_X p_Y) = H(X) - H(X \mid Y) $$

    Shapes:
        joint: (..., values of x, values of y)    returns: (...)

    Claims: information.mutual_information, probability.uncorrelated

    >>> mutual_information(torch.tensor([[[0.5, 0.0], [0.0, 0.5]], [[0.25, 0.25], [0.25, 0.25]]]))
    tensor([0.6931, 0.0000])
    """
    joint = _checked_masses("joint", joint, (-2, -1))
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    return kl_divergence(joint.flatten(-2), product.flatten(-2))


def _probability_pair(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    p, q = _checked_masses("p", p), _checked_masses("q", q)
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p and q must be over the same outcomes, got {p.shape[-1]} and {q.shape[-1]}")
    return p, q


def _checked_masses(name: str, value: Tensor, axes: tuple[int, ...] = (-1,)) -> Tensor:
    """A finite tensor of probabilities that sum to 1 over some of its axes.

    A distribution normalised in its own dtype is so up to a few rounding units: half of the digits leave room for many.
    """
    validate.floating(name, value)
    noun = "axis" if len(axes) == 1 else "axes"
    if value.ndim < len(axes):
        raise ValueError(f"{name} must have at least {len(axes)} {noun}, got shape {tuple(value.shape)}")
    if bool((value < 0).any()):
        raise ValueError(f"{name} must hold probabilities, got {float(value.min()):g}")
    total = value.detach().double().sum(axes)
    wrong = total[(total - 1).abs() > torch.finfo(value.dtype).eps ** 0.5]
    if wrong.numel():
        over = axes[0] if len(axes) == 1 else axes
        remedy = f"use {name} / {name}.sum({over}, keepdim=True)"
        raise ValueError(f"{name} must sum to 1 over its {noun} {over}, got {float(wrong[0]):.9g}: {remedy}")
    return value


def _masked_log(distribution: Tensor, where: Tensor) -> Tensor:
    """The logarithm of the entries that count; 0, with the gradient 0, elsewhere."""
    return torch.where(where, distribution, 1.0).log()  # elsewhere multiplied by a probability of 0
