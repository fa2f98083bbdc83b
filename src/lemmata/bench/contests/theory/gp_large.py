"""The likelihood of a Gaussian process of many points, and its gradient, on a GPU: float64, nothing approximated.

One factorisation is n³/3 multiplications, and its inverse 2n³/3 more. torch's own normal distribution, pulled back by
autograd, solves against the factor instead. Elsewhere than on a GPU the size is small, which only serves to try the
entry.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.stationary_kernels import RBFKernel

SIZES = {"cuda": 32768, "cpu": 300}
FEATURES, NOISE = 6, 0.1
NAMES = ("log_length_scale", "log_variance", "log_noise")


class Surface(NamedTuple):
    """Points, their values, and whether the gradient is wanted."""

    x: Tensor
    y: Tensor
    gradient: bool


@entry(
    "gp_large",
    title="Likelihood of a Gaussian process of many points",
    measures="the log-likelihood, and in one case its gradient by length scales, variance and noise",
    cases={
        "likelihood": "32,768 x 6, float64, on a GPU; 300 elsewhere",
        "gradient": "32,768 x 6, float64, on a GPU; 300 elsewhere; with gradient",
    },
    targets={"torch, autograd": 1.0},
)
def smooth_surface(case: str, device: str) -> Surface:
    """A smooth function of three features of six, with noise."""
    generator = torch.Generator().manual_seed(0)
    points = SIZES.get(torch.device(device).type, SIZES["cpu"])
    x = torch.rand(points, FEATURES, generator=generator, dtype=torch.float64) * 2
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] - 1.0
    y = y + NOISE**0.5 * torch.randn(points, generator=generator, dtype=torch.float64)
    return Surface(x.to(device), y.to(device), case == "gradient")


def _repeated_call(likelihood: Callable[[], Tensor], parameters: list[Any], gradient: bool) -> Callable[[], Any]:
    def compute() -> Any:
        with torch.set_grad_enabled(gradient):
            value = likelihood()
        slopes = torch.autograd.grad(value, parameters) if gradient else ()
        return [float(value.detach()), *(float(slope.norm()) for slope in slopes)]

    return compute


@ours("lemmata")
def by_one_factor(data: Surface) -> Callable[[], Any]:
    """One factorisation, and for the gradient one inverse."""
    process = GaussianProcess(RBFKernel(torch.ones(FEATURES)), noise=NOISE)
    process.log_likelihood(data.x[:1], data.y[:1])  # which takes the parameters to where the data are
    named = {**dict(process.kernel.named_parameters()), "log_noise": process.log_noise}
    return _repeated_call(
        lambda: process.log_likelihood(data.x, data.y), [named[name] for name in NAMES], data.gradient
    )


@peer("torch, autograd")
def by_a_normal_distribution(data: Surface) -> Callable[[], Any]:
    """torch.distributions, with the logarithms of the same parameters, as one writes it."""
    logs = [torch.zeros(FEATURES), torch.zeros(()), torch.tensor(NOISE).log()]
    scale, variance, noise = (each.double().to(data.x.device).requires_grad_() for each in logs)
    mean, identity = torch.zeros_like(data.y), torch.eye(len(data.y), dtype=torch.float64, device=data.x.device)

    def likelihood() -> Tensor:
        points = data.x / scale.exp()
        squares = points.square().sum(1)
        squared = (squares[:, None] + squares - 2 * points @ points.mT).clamp(min=0.0)
        covariance = (variance - squared / 2).exp() + noise.exp() * identity
        return torch.distributions.MultivariateNormal(mean, covariance, validate_args=False).log_prob(data.y)

    return _repeated_call(likelihood, [scale, variance, noise], data.gradient)


@limit("one factorisation, and for the gradient one inverse")
def by_the_factor(data: Surface) -> Callable[[], Any]:
    """No exact likelihood can do without."""
    with torch.no_grad():
        matrix = RBFKernel()(data.x) + NOISE * torch.eye(len(data.x), dtype=torch.float64, device=data.x.device)

    def factorise() -> None:
        factor = torch.linalg.cholesky(matrix)
        if data.gradient:
            torch.cholesky_inverse(factor)

    return factorise


@agreement(within=1e-6)
def in_numbers(result: list[float]) -> dict[str, float]:
    """The likelihood, and the lengths of its gradients."""
    return dict(zip(("likelihood", *NAMES), result, strict=False))
