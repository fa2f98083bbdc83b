"""The largest eigenvalue of the Hessian of a small convolutional network, against pyhessian and curvlinops.

Each stops by its own rule at the tolerance of a thousandth: ours and scipy's when the residual is that small, pyhessian
when two estimates in a row differ by less, which is a weaker rule. What they find must agree.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.eigenvalues import extreme_eigenpairs

POINTS = 512
TOLERANCE = 1e-3


class Problem(NamedTuple):
    """A network, and the examples on which its loss is measured."""

    model: nn.Module
    x: Tensor
    y: Tensor


def small_network(points: int, device: str) -> Problem:
    """A network of 105,866 parameters on pictures of 28 x 28 numbers, with the weights that torch begins with."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        features = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        features += [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        model = nn.Sequential(*features, nn.Flatten(), nn.Linear(1568, 64), nn.ReLU(), nn.Linear(64, 10))
    x = torch.randn(points, 1, 28, 28, generator=generator)
    return Problem(model.to(device), x.to(device), torch.randint(10, (points,), generator=generator).to(device))


@entry(
    "hessian_spectrum",
    title="Largest eigenvalue of a network's Hessian",
    measures="one eigenvalue to a tolerance of 1e-3, from the network and its data",
    cases={"cnn": "105,866 parameters, cross-entropy of 512 pictures, float32"},
    targets={"pyhessian": 1.0, "curvlinops": 1.0},
)
def network(case: str, device: str) -> Problem:
    """The same for all."""
    return small_network(POINTS, device)


@ours("lemmata")
def by_lanczos(problem: Problem) -> Callable[[], Tensor]:
    """All vectors kept orthogonal; ends when the residual is small enough."""
    model, x, y = problem

    def top() -> Tensor:
        hessian = HessianOperator(model, functional.cross_entropy, (x, y))
        start = hessian.start(generator=torch.Generator(x.device).manual_seed(1))
        return extreme_eigenpairs(hessian, start, accuracy=TOLERANCE).values

    return top


@peer("pyhessian", needs="PyHessian")
def by_pyhessian(problem: Problem) -> Callable[[], Tensor]:
    """Power iteration."""
    from pyhessian import hessian  # type: ignore[import-not-found]

    model, x, y = problem

    def top() -> Tensor:
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it leaves its graph in the parameters
            measured = hessian(model, nn.CrossEntropyLoss(), data=(x, y), cuda=x.is_cuda)
        values, _ = measured.eigenvalues(maxIter=100, tol=TOLERANCE, top_n=1)
        model.zero_grad()
        return torch.tensor(values)

    return top


@peer("curvlinops", needs="curvlinops-for-pytorch")
def by_curvlinops(problem: Problem) -> Callable[[], Tensor]:
    """Scipy's Lanczos iteration on its operator."""
    from curvlinops import HessianLinearOperator  # type: ignore[import-not-found]
    from scipy.sparse.linalg import eigsh

    model, x, y = problem
    parameters = list(model.parameters())

    def top() -> Tensor:
        words = {"check_deterministic": False}
        operator = HessianLinearOperator(model, nn.CrossEntropyLoss(), parameters, [(x, y)], **words)
        how: dict[str, Any] = {"which": "LA", "tol": TOLERANCE, "return_eigenvectors": False}
        return torch.tensor(eigsh(operator.to_scipy(), 1, **how))

    return top


@peer("torch, power iteration")
def by_power_iteration(problem: Problem) -> Callable[[], Tensor]:
    """Written out in a few lines, with pyhessian's rule for the end."""
    model, x, y = problem

    def top() -> Tensor:
        parameters = list(model.parameters())
        loss = functional.cross_entropy(model(x), y)
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters, create_graph=True)])
        generator, before = torch.Generator(x.device).manual_seed(1), torch.tensor(0.0)
        vector = torch.randn(gradient.shape, generator=generator, device=x.device)
        for _ in range(100):
            vector = vector / vector.norm()
            image = torch.autograd.grad(gradient, parameters, vector, retain_graph=True)
            image = torch.cat([part.flatten() for part in image])
            value = image @ vector
            if abs(value - before) <= TOLERANCE * abs(value):
                break
            vector, before = image, value
        return value[None]

    return top


@limit("one gradient: a single product with the Hessian takes longer")
def one_gradient(problem: Problem) -> Callable[[], object]:
    """Forwards and backwards once."""
    model, x, y = problem
    parameters = list(model.parameters())
    return lambda: torch.autograd.grad(functional.cross_entropy(model(x), y), parameters)


@agreement(within=2e-2)
def in_numbers(values: Tensor) -> dict[str, float]:
    """The largest eigenvalue."""
    return {"largest eigenvalue": float(values[0])}
