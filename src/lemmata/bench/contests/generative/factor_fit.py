"""Factor analysis against scikit-learn's, to the same likelihood.

scikit-learn takes the step of EM until the likelihood of all points grows by less than a hundredth of a nat, and for
each decomposes all of the data again. We reduce the data to their covariance once and follow the gradient of what is
left to maximise, with L-BFGS: fewer steps, each as large as the covariance. Its exact decomposition ("lapack") is the
one that is compared; the randomised one, its default, is a peer too. What counts is the mean log-likelihood, equal to
a thousandth of a nat for each feature.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.generative.autoencoders.factor_analysis import FactorAnalysis


class Table(NamedTuple):
    """Points, and how many factors they have."""

    x: Tensor
    factors: int


SIZES = {"30": (2_000, 30, 3), "100": (10_000, 100, 10), "300": (5_000, 300, 20)}


@entry(
    "factor_fit",
    title="Factor analysis against scikit-learn",
    measures="loadings and noise of largest likelihood",
    cases={
        "30": "2,000 x 30, 3 factors, float64",
        "100": "10,000 x 100, 10 factors, float64",
        "300": "5,000 x 300, 20 factors, float64",
    },
    targets={"scikit-learn, exact": 0.5, "scikit-learn, randomised": 0.5},
    devices="cpu",
)
def common_causes(case: str, device: str) -> Table:
    """Normal factors and noise whose variance differs from feature to feature."""
    points, features, factors = SIZES[case]
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    spread = torch.linspace(-1, 1, features, dtype=torch.float64).exp()
    return Table(1 + normal(points, factors) @ normal(factors, features) + spread * normal(points, features), factors)


@ours("lemmata")
def along_the_gradient(data: Table) -> Callable[[], Any]:
    """Our fit."""

    def fit() -> Any:
        learnt = FactorAnalysis(data.x.shape[1], data.factors, dtype=torch.float64).fit(data.x)
        return learnt.history_[-1], data.x.shape[1]

    return fit


def _peer_fit(data: Table, method: Any) -> Callable[[], Any]:
    from sklearn.decomposition import FactorAnalysis as Peer

    x = data.x.numpy()

    def fit() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of steps that do not suffice
            learnt: Any = Peer(data.factors, svd_method=method, random_state=0).fit(x)
        return learnt.loglike_[-1] / len(x), x.shape[1]

    return fit


@peer("scikit-learn, exact", needs="scikit-learn")
def by_exact_steps(data: Table) -> Callable[[], Any]:
    """Steps of EM with all singular values."""
    return _peer_fit(data, "lapack")


@peer("scikit-learn, randomised", needs="scikit-learn")
def by_randomised_steps(data: Table) -> Callable[[], Any]:
    """Steps of EM with the first singular values alone, from random projections."""
    return _peer_fit(data, "randomized")


@limit("the covariance and ten of its decompositions")
def decompositions_alone(data: Table) -> Callable[[], Any]:
    """Nobody gets there in fewer steps."""

    def decompose() -> None:
        covariance = torch.cov(data.x.T, correction=0)
        for _ in range(10):
            torch.linalg.eigh(covariance)

    return decompose


@agreement(within=1e-3)
def nats_for_a_feature(result: Any) -> dict[str, float]:
    """About -2 for these features, so that a relative error is nearly an absolute one."""
    likelihood, features = result
    return {"nats for a feature": float(likelihood) / features}
