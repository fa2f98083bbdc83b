"""The perceptron against scikit-learn's: the same points in the same order, as many sweeps, the same weights.

Both learn without a certificate and without shuffling. scikit-learn tells no number of mistakes, but weights and bias
that agree to nine digits are the sum of the same mistakes, and both are asked for as many sweeps.

What limits us: between two mistakes whole blocks are multiplied, at the speed of memory; but every mistake changes the
weights, so the next search must wait for it, and it costs a dozen numpy calls, about four to ten microseconds. In that
time scikit-learn's compiled loop gets through thirty to sixty points. So we are ahead while fewer than about one point
in a hundred is a mistake, and far behind where every fifth is one. Two other designs were measured beside this one:
blocks that adapt to the distance between mistakes, and guessing the mistakes of a block from the products of its own
points, then verifying them. Neither was quicker beyond the noise, and with few mistakes the second was half as quick.
A compiled loop would be.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.connectionism.perceptron import Perceptron

POINTS, FEATURES = 100_000, 100
CASES = {"few": (0.5, 0.0), "many": (0.0, 0.0), "noisy": (0.0, 0.05)}  # margin, share of wrong labels
MOST_SWEEPS = 4


class Labelled(NamedTuple):
    """Points, labels, and how often to go over them."""

    x: Tensor
    y: Tensor
    sweeps: int


@entry(
    "perceptron",
    title="Perceptron against scikit-learn, at equal mistakes",
    measures="one fit without a certificate: the same order, sweeps and weights",
    cases={
        "few": "100,000 x 100, float64, 4 sweeps with 127 mistakes",
        "many": "100,000 x 100, float64, 4 sweeps with 2,600 mistakes each",
        "noisy": "100,000 x 100, float64, 5 % wrong labels, 4 sweeps with 18,000 mistakes each",
    },
    targets={"scikit-learn": 1.0},
    devices="cpu",
)
def labelled_points(case: str, device: str) -> Labelled:
    """Gaussian points on both sides of a plane."""
    margin, wrong = CASES[case]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(POINTS, FEATURES, generator=generator, dtype=torch.float64)
    normal = torch.nn.functional.normalize(torch.randn(FEATURES, generator=generator, dtype=torch.float64), dim=0)
    y = torch.where(x @ normal > 0, 1.0, -1.0).double()
    x += margin * y[:, None] * normal
    y = torch.where(torch.rand(POINTS, generator=generator) < wrong, -y, y)
    # Ours ends with the first clean sweep, which scikit-learn does not look for: it is told how many there are.
    return Labelled(x, y, Perceptron(max_epochs=MOST_SWEEPS, certify=False).fit(x, y).epochs_)


@ours("lemmata")
def by_blocks(data: Labelled) -> Callable[[], Any]:
    """Our fit."""

    def fit() -> Any:
        learnt = Perceptron(max_epochs=data.sweeps, certify=False).fit(data.x, data.y)
        return learnt.weight_, learnt.bias_, learnt.epochs_

    return fit


@peer("scikit-learn", needs="scikit-learn")
def by_points(data: Labelled) -> Callable[[], Any]:
    """scikit-learn's compiled loop over the points."""
    from sklearn.linear_model import Perceptron as Peer

    x, y = data.x.numpy(), data.y.numpy()
    options: dict[str, Any] = {"shuffle": False, "tol": None, "max_iter": data.sweeps}

    def fit() -> Any:
        learnt: Any = Peer(**options).fit(x, y)
        return learnt.coef_[0], learnt.intercept_[0], learnt.n_iter_

    return fit


@limit("the score of every point once a sweep, under weights that never change")
def scores_alone(data: Labelled) -> Callable[[], Any]:
    """Every point must be read and multiplied in every sweep: one product of matrix and vector, at memory speed."""
    weight, scores = data.x[0].clone(), data.x.new_empty(len(data.x))

    def score() -> None:
        for _ in range(data.sweeps):
            torch.mv(data.x, weight, out=scores)

    return score


@agreement(within=1e-9)
def weights_in_numbers(result: Any) -> dict[str, float]:
    """Length and one shadow of the weights, bias and sweeps."""
    weight, bias, sweeps = result
    weight = torch.as_tensor(weight)
    shadow = weight @ torch.linspace(-1, 1, len(weight), dtype=weight.dtype)
    return {"length": float(weight.norm()), "shadow": float(shadow), "bias": float(bias), "sweeps": float(sweeps)}
