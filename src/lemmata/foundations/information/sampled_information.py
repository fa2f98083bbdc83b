r"""Information from samples: empirical distributions of labels, and divergences by averaging log-ratios."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.foundations.information.discrete import entropy
from lemmata.marks import system

__all__ = ["SampledDivergence", "empirical_joint", "empirical_distribution", "sampled_entropy", "sampled_kl"]


@system("empirical_distribution", title="Empirical distribution of labels", kind="estimator")
def empirical_distribution(
    labels: Int[Tensor, "*batch samples"], classes: int, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "*batch classes"]:
    r"""The fraction of each class among samples: what the functions of discrete distributions take.

    $$ \hat p(c) = \frac1n\,\big|\{i : x_i = c\}\big| $$

    Shapes:
        labels: (..., samples) of whole numbers from 0    returns: (..., classes)

    Claims: information.entropy

    >>> empirical_distribution(torch.tensor([0, 2, 2, 1]), classes=3)
    tensor([0.2500, 0.2500, 0.5000], dtype=torch.float64)
    """
    _labels("labels", labels, validate.count("classes", classes))
    counts = torch.zeros(*labels.shape[:-1], classes, dtype=torch.int64, device=labels.device)
    counts.scatter_add_(-1, labels.long(), torch.ones_like(labels, dtype=torch.int64))
    return counts.to(dtype) / labels.shape[-1]


@system("empirical_joint", title="Empirical joint distribution of two labels", kind="estimator")
def empirical_joint(
    x: Int[Tensor, "*batch samples"],
    y: Int[Tensor, "*batch samples"],
    classes: tuple[int, int],
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "*batch x y"]:
    r"""The fraction of each pair of classes among paired samples: what `mutual_information` takes.

    Shapes:
        x, y: (..., samples) of whole numbers from 0    returns: (..., classes of x, classes of y)

    Claims: information.mutual_information

    >>> empirical_joint(torch.tensor([0, 1, 1, 1]), torch.tensor([2, 0, 0, 1]), classes=(2, 3))
    tensor([[0.0000, 0.0000, 0.2500],
            [0.5000, 0.2500, 0.0000]], dtype=torch.float64)
    """
    rows, columns = classes
    _labels("x", x, validate.count("classes[0]", rows))
    _labels("y", y, validate.count("classes[1]", columns))
    if x.shape != y.shape:
        raise ValueError(f"x and y must be paired, got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    return empirical_distribution(x * columns + y, rows * columns, dtype).unflatten(-1, (rows, columns))


@system("sampled_entropy", title="Entropy of sampled labels", kind="estimator")
def sampled_entropy(
    labels: Int[Tensor, "*batch samples"], classes: int, corrected: bool = True
) -> Float[Tensor, "*batch"]:
    r"""The entropy of the distribution that labels were drawn from, in nats.

    $$ \hat H = H(\hat p) + \frac{|\{c : \hat p(c) > 0\}| - 1}{2n} $$

    The entropy of the empirical distribution is too low on average by about $(k-1)/2n$ for $k$ classes; the second term
    (Miller and Madow) adds that back, unless `corrected` is False.

    Shapes:
        labels: (..., samples) of whole numbers from 0    returns: (...)

    Claims: information.entropy

    >>> sampled_entropy(torch.tensor([0, 0, 1, 1]), classes=2, corrected=False)
    tensor(0.6931, dtype=torch.float64)
    """
    law = empirical_distribution(labels, classes)
    lost = ((law > 0).sum(-1) - 1) / (2 * labels.shape[-1])
    return entropy(law) + lost if validate.flag("corrected", corrected) else entropy(law)


@dataclass(frozen=True)
class SampledDivergence:
    """A divergence estimated from samples, with its standard error (NaN where the estimate is infinite)."""

    value: Tensor
    standard_error: Tensor


@system("sampled_kl", title="Divergence from samples", kind="estimator")
def sampled_kl(log_p: Float[Tensor, "samples *batch"], log_q: Float[Tensor, "samples *batch"]) -> SampledDivergence:
    r"""The Kullback-Leibler divergence of distributions with known densities, from samples of the first one.

    $$ \hat D = \frac1n\sum_i \big(\log p(x_i) - \log q(x_i)\big), \qquad x_i \sim p $$

    The expectation is under $p$: with samples of any other one this estimates something else. One sample that $q$
    cannot give ($\log q = -\infty$) makes the divergence infinite.

    Shapes:
        log_p, log_q: (samples, ...), log-densities at samples of $p$    returns: value and standard error (...)

    Claims: information.kl

    >>> found = sampled_kl(torch.tensor([0.0, -1.0]), torch.tensor([-1.0, -1.0]))
    >>> found.value, found.standard_error
    (tensor(0.5000), tensor(0.5000))
    """
    validate.floating("log_p", log_p)
    if log_p.ndim == 0 or log_p.shape != log_q.shape:
        raise ValueError(f"log_p and log_q must be (samples, ...), got {tuple(log_p.shape)} and {tuple(log_q.shape)}")
    if len(log_p) < 2:
        raise ValueError("log_p must hold two samples or more: one has no standard error")
    if bool((torch.isnan(log_q) | (log_q == math.inf)).any()):
        raise ValueError("log_q must hold log-densities, finite or -inf, found NaN or inf")
    ratios = log_p - log_q
    return SampledDivergence(ratios.mean(0), ratios.std(0) / math.sqrt(len(ratios)))


def _labels(name: str, labels: Tensor, classes: int) -> None:
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype is torch.bool:
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"{name} must be a tensor of whole numbers, got {kind}: use {name}.long()")
    if labels.ndim == 0 or labels.numel() == 0:
        raise ValueError(f"{name} must hold at least one sample, got shape {tuple(labels.shape)}")
    if bool((labels < 0).any() or (labels >= classes).any()):
        found = f"{int(labels.min())} to {int(labels.max())}"
        raise ValueError(f"{name} must lie from 0 to {classes - 1}, got {found}: raise the number of classes")
