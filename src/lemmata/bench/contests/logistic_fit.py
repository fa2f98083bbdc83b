"""Logistic regression against scikit-learn's two quickest solvers, to the same accuracy.

A Newton step needs the product of the data with themselves under weights p(1 - p), a gradient only two products with a
vector, at the speed of memory, but many more of them. Both of scikit-learn's solvers take part, and the quicker one is
the peer to beat.

Ours is Newton's method on a part of the data, whose minimiser and Hessian are nearly those of all; half a dozen
gradients of all correct both. L-BFGS starts from zeros with the identity, and needs about a dozen.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.logistic_regression import LogisticRegression

POINTS, FEATURES = 100_000, 100
RIDGE = 1e-4


class Labelled(NamedTuple):
    """Examples and their classes."""

    x: Tensor
    y: Tensor


@entry(
    "logistic",
    title="Logistic regression against scikit-learn",
    measures="one fit with a bias, to weights that agree to four digits",
    cases={"two": "100,000 x 100, float64, two classes"},
    targets={"scikit-learn, newton-cholesky": 1.0, "scikit-learn, lbfgs": 1.0},
    devices="cpu",
)
def planted_classes(case: str, device: str) -> Labelled:
    """Gaussian inputs, and classes drawn with the probabilities of a planted model."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
    weight = torch.randn(FEATURES, generator=generator, dtype=torch.float64) / 5
    y = torch.rand(POINTS, generator=generator, dtype=torch.float64) < torch.sigmoid(x @ weight + 0.5)
    return Labelled(x, y.long())


@ours("lemmata")
def by_newton(data: Labelled) -> Callable[[], Any]:
    """Our fit."""

    def fit() -> Any:
        learnt = LogisticRegression(ridge=RIDGE, tolerance=1e-4).fit(data.x, data.y)
        return learnt.weight_, learnt.bias_

    return fit


@peer("scikit-learn, newton-cholesky", needs="scikit-learn")
def by_their_newton(data: Labelled) -> Callable[[], Any]:
    """scikit-learn's Newton steps, with its usual tolerance."""
    return _peer_fit(data, "newton-cholesky", 1e-4)


@peer("scikit-learn, lbfgs", needs="scikit-learn")
def by_lbfgs(data: Labelled) -> Callable[[], Any]:
    """scikit-learn's default; its usual tolerance of 1e-4 gives three digits, so it is asked for one more."""
    return _peer_fit(data, "lbfgs", 1e-5)


def _peer_fit(data: Labelled, solver: str, tolerance: float) -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression as Peer

    x, y = data.x.numpy(), data.y.numpy()
    options: dict[str, Any] = {"C": 1 / (len(x) * RIDGE), "solver": solver, "tol": tolerance}

    def fit() -> Any:
        learnt: Any = Peer(**options).fit(x, y)
        return torch.from_numpy(learnt.coef_[0]), float(learnt.intercept_[0])

    return fit


@limit("one product of the data with themselves")
def product_alone(data: Labelled) -> Callable[[], Any]:
    """A single Newton step costs as much."""
    product = data.x.new_empty(data.x.shape[1], data.x.shape[1])

    def multiply() -> None:
        torch.mm(data.x.T, data.x, out=product)

    return multiply


@agreement(within=1e-4)
def weights_in_numbers(result: Any) -> dict[str, float]:
    """Length and one shadow of the weights, and the bias."""
    weight, bias = result
    shadow = weight @ torch.linspace(-1, 1, len(weight), dtype=weight.dtype)
    return {"length": float(weight.norm()), "shadow": float(shadow), "bias": float(bias)}
