"""The nearest of many prototypes: one product against the distances of all pairs."""

from collections.abc import Callable

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.connectionism.nearest_prototype import NearestPrototype

POINTS, INPUTS, CLASSES = 20_000, 256, 1_000


@entry(
    "nearest_prototype",
    title="The nearest of many prototypes",
    measures="the classes of all points",
    cases={"all": "20,000 points x 256 inputs, 1,000 classes"},
    targets={"torch.cdist": 1.0},
)
def points(case: str, device: str) -> tuple[NearestPrototype, Tensor]:
    """Random prototypes and random points."""
    torch.manual_seed(0)
    return NearestPrototype(INPUTS, CLASSES).to(device), torch.randn(POINTS, INPUTS).to(device)


@ours("lemmata")
def by_product(problem: tuple[NearestPrototype, Tensor]) -> Callable[[], Tensor]:
    """One matrix product."""
    classifier, x = problem
    return torch.no_grad()(lambda: classifier.predict(x))


@peer("torch.cdist")
def by_distances(problem: tuple[NearestPrototype, Tensor]) -> Callable[[], Tensor]:
    """Every distance, computed by torch."""
    classifier, x = problem
    return torch.no_grad()(lambda: torch.cdist(x, classifier.prototypes).argmin(1))


@limit("the matrix product alone")
def product(problem: tuple[NearestPrototype, Tensor]) -> Callable[[], Tensor]:
    """Whoever compares all points with all prototypes multiplies them."""
    classifier, x = problem
    return torch.no_grad()(lambda: x @ classifier.prototypes.mT)


@agreement(within=1e-3)
def classes_in_numbers(classes: Tensor) -> dict[str, float]:
    """Their sum; of 20,000 points a few lie so near to a boundary that rounding decides."""
    return {"sum": float(classes.double().sum())}
