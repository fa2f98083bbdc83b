"""The trace of the Hessian of a small convolutional network by fifty random vectors, against pyhessian and curvlinops.

All draw their own vectors, so that what they find agrees as far as fifty of them can tell.
"""

import math
import warnings
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from lemmata.bench.contests.hessian_spectrum import Problem, small_network
from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.measure.curvature_products import HessianOperator
from lemmata.measure.trace import hutch_plus_plus, hutchinson_trace

POINTS = 512
PROBES = 50


@entry(
    "hessian_trace",
    title="Trace of a network's Hessian",
    measures="one estimate from 50 products with the Hessian, from the network and its data",
    cases={"cnn": "105,866 parameters, cross-entropy of 512 pictures, float32"},
    targets={"pyhessian": 0.5, "curvlinops": 0.5},
)
def network(case: str, device: str) -> Problem:
    """The same for all."""
    return small_network(POINTS, device)


@ours("lemmata")
def by_signs(problem: Problem) -> Callable[[], float]:
    """Hutchinson's estimate."""
    model, x, y = problem

    def trace() -> float:
        hessian = HessianOperator(model, functional.cross_entropy, (x, y))
        return hutchinson_trace(hessian, PROBES, generator=torch.Generator(x.device).manual_seed(1)).value

    return trace


@ours("lemmata, Hutch++")
def by_hutch_plus_plus(problem: Problem) -> Callable[[], float]:
    """A third of the products for each of subspace, trace on it, and rest."""
    model, x, y = problem

    def trace() -> float:
        hessian = HessianOperator(model, functional.cross_entropy, (x, y))
        return hutch_plus_plus(hessian, PROBES, generator=torch.Generator(x.device).manual_seed(1)).value

    return trace


@peer("pyhessian", needs="PyHessian")
def by_pyhessian(problem: Problem) -> Callable[[], float]:
    """Hutchinson's estimate; no difference is below minus infinity, so that it does not end earlier."""
    from pyhessian import hessian  # type: ignore[import-not-found]

    model, x, y = problem

    def trace() -> float:
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it leaves its graph in the parameters
            measured = hessian(model, nn.CrossEntropyLoss(), data=(x, y), cuda=x.is_cuda)
        found = measured.trace(maxIter=PROBES, tol=-math.inf)
        model.zero_grad()
        return sum(found) / len(found)

    return trace


@peer("curvlinops", needs="curvlinops-for-pytorch")
def by_curvlinops(problem: Problem) -> Callable[[], float]:
    """Hutchinson's estimate."""
    from curvlinops import HessianLinearOperator  # type: ignore[import-not-found]
    from curvlinops import hutchinson_trace as estimate  # type: ignore[import-not-found]

    model, x, y = problem
    parameters = list(model.parameters())

    def trace() -> float:
        torch.manual_seed(1)
        words = {"check_deterministic": False}
        operator = HessianLinearOperator(model, nn.CrossEntropyLoss(), parameters, [(x, y)], **words)
        return float(estimate(operator, PROBES))

    return trace


@peer("torch, one graph")
def by_one_graph(problem: Problem) -> Callable[[], float]:
    """Written out in a few lines: the gradient's graph is kept and gone through fifty times."""
    model, x, y = problem

    def trace() -> float:
        parameters, total = list(model.parameters()), 0.0
        gradient = torch.autograd.grad(functional.cross_entropy(model(x), y), parameters, create_graph=True)
        torch.manual_seed(1)
        for _ in range(PROBES):
            signs = [torch.randint_like(p, 2) * 2 - 1 for p in parameters]
            images = torch.autograd.grad(gradient, parameters, signs, retain_graph=True)
            total += float(sum((s * image).sum() for s, image in zip(signs, images, strict=True)))
        return total / PROBES

    return trace


@limit("one gradient: probes may share everything else")
def one_gradient(problem: Problem) -> Callable[[], object]:
    """Forwards and backwards."""
    model, x, y = problem
    parameters = list(model.parameters())
    return lambda: torch.autograd.grad(functional.cross_entropy(model(x), y), parameters)


@agreement(within=0.6)
def in_numbers(trace: float) -> dict[str, float]:
    """Six times what the estimates differ by: some 10 %."""
    return {"trace": trace}
