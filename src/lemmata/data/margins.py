r"""Linearly separable points with a margin that is known exactly."""

import numpy as np
import torch
from scipy import special

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import balanced, streams, two_parts
from lemmata.data.registry import dataset

__all__ = ["separable"]


@dataset(
    "separable",
    title="Separable with a given margin",
    task="classification",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in 2 dimensions",
    licence="generated, none needed",
    credit="A. B. J. Novikoff, On Convergence Proofs for Perceptrons, 1962",
    splits="train, test",
)
def separable(
    n: int = 1000, test: int = 1000, margin: float = 0.1, radius: float = 1.0, features: int = 2, seed: int = 0
) -> Dataset:
    r"""Points of a ball, uniform outside a slab through its middle: class 1 on one side, class 0 on the other.

    $$ (2y_i - 1)\, w^\top x_i \ge \gamma, \qquad \|x_i\| \le R, \qquad \|w\| = 1 $$

    The points $\gamma w$ and $-\gamma w$ and one of length $R$ are in each part. So the margin of `w` is exactly
    $\gamma$ and no line does better, with or without a bias: Novikoff's bound is $(R/\gamma)^2$. All to the rounding of
    float32.

    Shapes:
        x: (n, features) float32, y: (n,) int64, half of them 1; n and test are at least 3
        extra, float64: `weight` (features,), the true $w$; `margin` and `radius`, numbers

    >>> data = separable(margin=0.25)
    >>> x, y = data.train
    >>> ((2 * y - 1) * (x.double() @ data.extra["weight"])).min().round(decimals=6)
    tensor(0.2500, dtype=torch.float64)
    """
    validate.count("features", features, least=1)
    validate.positive("radius", radius)
    validate.number("margin", margin, above=0, most=radius)
    direction = streams(seed)[0].standard_normal(features)
    w = direction / np.linalg.norm(direction)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        points = _beyond_the_slab(generator, size, margin / radius, w)
        points[:2] = margin / radius * w
        points[2] /= np.linalg.norm(points[2])  # outwards, so it stays beyond the slab
        y = np.concatenate([[0, 1], balanced(generator, size - 2, 2)])
        order = generator.permutation(size)
        return {"x": (radius * (2 * y[:, None] - 1) * points)[order], "y": y[order]}

    extra = {"weight": torch.from_numpy(w), "margin": float(margin), "radius": float(radius)}
    names = ("below", "above")
    return two_parts("separable", sample, n=n, test=test, seed=seed, classes=names, extra=extra, least=3)


def _beyond_the_slab(generator: np.random.Generator, size: int, margin: float, w: np.ndarray) -> np.ndarray:
    r"""Uniform in the unit ball where $w^\top x \ge$ margin, without rejecting any draw.

    The square of $w^\top x$ has the law Beta(1/2, (d+1)/2), here cut off below; what is orthogonal to $w$ is uniform
    in a ball of one dimension less.
    """
    beyond = special.betaincc(0.5, (len(w) + 1) / 2, margin**2)
    square = special.betainccinv(0.5, (len(w) + 1) / 2, beyond * generator.uniform(size=size))
    along = np.sqrt(square).clip(margin, 1)[:, None]
    if len(w) == 1:
        return along * w
    aside = generator.standard_normal((size, len(w)))
    aside -= (aside @ w)[:, None] * w
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    return along * w + aside * np.sqrt(1 - along**2) * generator.uniform(size=(size, 1)) ** (1 / (len(w) - 1))
