r"""Maximum mean discrepancy: how far the means of two samples lie apart in the feature space of a kernel."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.sample_distances import distances, sample_pair

__all__ = ["PermutationTest", "kid", "median_bandwidth", "mmd", "permutation_test"]

Kernel = Callable[[Tensor, Tensor], Tensor]  # (points, features), (others, features) -> (points, others)
KERNELS = ("gaussian", "polynomial", "linear", "energy")


class PermutationTest(NamedTuple):
    """What was measured, what chance alone exceeds with probability `level`, and how often chance gives as much."""

    value: float
    threshold: float
    p_value: float


@system("mmd", title="Squared maximum mean discrepancy", kind="function")
def mmd(
    x: Float[Tensor, "points features"],
    y: Float[Tensor, "others features"],
    kernel: str | Kernel = "gaussian",
    *,
    bandwidth: float | None = None,
    unbiased: bool = True,
) -> Float[Tensor, ""]:
    r"""The squared distance of the mean features of two samples; features are those of the kernel.

    $$ \mathrm{MMD}^2(p, q) = \|\mathbb E_p k(x,\cdot) - \mathbb E_q k(y,\cdot)\|^2_{\mathcal H}
       = \mathbb E\,k(x,x') - 2\,\mathbb E\,k(x,y) + \mathbb E\,k(y,y') $$

    Unbiased, without the pairs of a point with itself, it may be negative; otherwise it is the distance of the samples
    themselves, never negative and too large in the mean. The kernel is "gaussian", $\exp(-\|x-y\|^2/2h^2)$ with the
    median distance for $h$ unless `bandwidth` says otherwise; "polynomial", $(x^\top y/d + 1)^3$; "linear", which
    sees means alone; "energy", $-\|x-y\|$, whose value is the energy distance; or a function of your own.

    Shapes:
        x: (points, features), y: (others, features)    returns: ()

    Claims: divergence.mmd
    Source: A. Gretton et al., A kernel two-sample test (2012).  Differs: returns the square, without a root.

    >>> x, y = torch.tensor([[-1.0], [1.0]]), torch.tensor([[0.0], [0.0]])
    >>> mmd(x, y, "linear", unbiased=False), mmd(x, y, bandwidth=1.0, unbiased=False).round(decimals=4)
    (tensor(0.), tensor(0.3546))
    """
    x, y = sample_pair(x, y, least=2 if unbiased else 1)
    gram = _kernel_function(kernel, bandwidth, x, y)
    within = []
    for z in (x, y):
        pairs = gram(z, z)
        itself = pairs.diagonal().sum() if unbiased else 0.0
        within.append((pairs.sum() - itself) / (len(z) * (len(z) - unbiased)))
    return within[0] - 2 * gram(x, y).mean() + within[1]


def kid(x: Float[Tensor, "points features"], y: Float[Tensor, "others features"]) -> Float[Tensor, ""]:
    r"""Kernel inception distance: the unbiased estimate with the polynomial kernel, of features that you give.

    Its mean does not depend on how many samples there are, which that of the Fréchet distance does. It is comparable
    only between samples described by the same features (pixels, or a network's).

    Shapes:
        x: (points, features), y: (others, features)    returns: ()

    Source: M. Bińkowski, D. Sutherland, M. Arbel and A. Gretton, Demystifying MMD GANs (2018).

    >>> kid(torch.eye(2), torch.eye(2))
    tensor(-2.3750)
    """
    return mmd(x, y, "polynomial")


def median_bandwidth(x: Float[Tensor, "points features"], y: Float[Tensor, "others features"]) -> float:
    """The median distance of two points that are not equal, of both samples together; 1 where all are equal.

    >>> median_bandwidth(torch.tensor([[0.0], [1.0]]), torch.tensor([[5.0], [5.0]]))
    4.0
    """
    together = torch.cat(sample_pair(x, y)).detach()
    every = max(1, len(together) // 1000)  # a thousand points say it well enough
    apart = torch.pdist(together[::every])
    apart = apart[apart > 0]
    return float(apart.median()) if len(apart) else 1.0


@system("permutation_test", title="Permutation test of two samples", kind="function")
def permutation_test(
    x: Float[Tensor, "points features"],
    y: Float[Tensor, "others features"],
    kernel: str | Kernel = "energy",
    *,
    bandwidth: float | None = None,
    level: float = 0.05,
    permutations: int = 500,
    generator: torch.Generator | None = None,
) -> PermutationTest:
    r"""Are two samples of one distribution? The unbiased discrepancy beside what random divisions of all points give.

    Under one distribution every division into samples of these sizes is as likely as the one found, so the
    `p_value` is below `level` with at most that probability, whatever the distribution and the sample size.

    Shapes:
        x: (points, features), y: (others, features)

    >>> draws = torch.randn(80, 2, generator=torch.Generator().manual_seed(0))
    >>> permutation_test(draws[:40], 2 + draws[40:], generator=torch.Generator().manual_seed(1)).p_value < 0.01
    True
    """
    x, y = sample_pair(x, y, least=2)
    validate.number("level", level, above=0, below=1)
    validate.count("permutations", permutations)
    together, n, m = torch.cat([x, y]).detach(), len(x), len(y)
    pairs = _kernel_function(kernel, bandwidth, x, y)(together, together).double()  # (n + m, n + m)
    mine = pairs.new_zeros(permutations + 1, n + m)
    mine[0, :n] = 1.0
    drawn = torch.rand(permutations, n + m, generator=generator, dtype=torch.float64, device=x.device)
    mine[1:].scatter_(1, drawn.argsort(1)[:, :n], 1.0)
    sums = []  # over pairs within x, across, within y, for each division
    itself = pairs.diagonal()
    for left, right in ((mine, mine), (mine, 1 - mine), (1 - mine, 1 - mine)):
        sums.append(((left @ pairs) * right).sum(1) - (left * right) @ itself)
    found = sums[0] / (n * (n - 1)) - 2 * sums[1] / (n * m) + sums[2] / (m * (m - 1))
    # Sums in another order differ in the last bits, and a division that is the same must count as one.
    rounding = 1e-12 * pairs.abs().sum() / (n * m)
    p_value = float((found >= found[0] - rounding).double().mean())
    return PermutationTest(float(found[0]), float(found.quantile(1 - level)), p_value)


def _kernel_function(kernel: str | Kernel, bandwidth: float | None, x: Tensor, y: Tensor) -> Kernel:
    if callable(kernel):
        return kernel
    validate.one_of("kernel", kernel, KERNELS)
    if kernel != "gaussian":
        return {"polynomial": _polynomial_kernel, "linear": _linear_kernel, "energy": _energy_kernel}[kernel]
    h = median_bandwidth(x, y) if bandwidth is None else validate.positive("bandwidth", bandwidth)
    return lambda left, right: torch.exp(-distances(left, right).square() / (2 * h**2))


def _polynomial_kernel(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y.mT / x.shape[1] + 1) ** 3


def _linear_kernel(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.mT


def _energy_kernel(x: Tensor, y: Tensor) -> Tensor:
    return -distances(x, y)
