r"""Points in the plane whose classes no straight line separates: moons, rings, spirals and XOR."""

import math

import numpy as np

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import balanced, two_parts
from lemmata.data.registry import dataset

__all__ = ["moons", "rings", "spirals", "xor"]


@dataset(
    "moons",
    title="Two moons",
    task="classification",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in the plane",
    licence="generated, none needed",
    credit="after scikit-learn's make_moons",
    splits="train, test",
)
def moons(n: int = 1000, test: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    r"""Two half circles of radius 1 that reach into each other, with Gaussian noise of standard deviation `noise`.

    $$ x = (\cos t, \sin t) \text{ in class 0}, \qquad x = (1 - \cos t, \tfrac12 - \sin t) \text{ in class 1},
    \qquad t \sim U(0, \pi) $$

    Shapes:
        x: (n, 2) float32, y: (n,) int64, half of them 1

    >>> moons(noise=0.2).train
    Examples(x=(1000, 2), y=(1000,))
    """
    validate.number("noise", noise, least=0)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        y, angle = balanced(generator, size, 2), generator.uniform(0, math.pi, size)
        upper = _on_circle(angle)
        return {"x": _add_noise(generator, np.where(y[:, None] == 0, upper, [1, 0.5] - upper), noise), "y": y}

    return two_parts("moons", sample, n=n, test=test, seed=seed, classes=("upper", "lower"))


@dataset(
    "rings",
    title="Rings",
    task="classification",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in the plane",
    licence="generated, none needed",
    credit="after scikit-learn's make_circles",
    splits="train, test",
)
def rings(n: int = 1000, test: int = 1000, classes: int = 2, noise: float = 0.05, seed: int = 0) -> Dataset:
    r"""Circles around the origin, one a class, with Gaussian noise.

    $$ x = \frac{y + 1}{\text{classes}} (\cos t, \sin t), \qquad t \sim U(0, 2\pi) $$

    Shapes:
        x: (n, 2) float32, y: (n,) int64, all classes equally often

    >>> rings(classes=3, noise=0.0).train.x.norm(dim=1).max()
    tensor(1.)
    """
    validate.count("classes", classes, least=1)
    validate.number("noise", noise, least=0)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        y, angle = balanced(generator, size, classes), generator.uniform(0, 2 * math.pi, size)
        points = _on_circle(angle) * ((y[:, None] + 1) / classes)
        return {"x": _add_noise(generator, points, noise), "y": y}

    return two_parts("rings", sample, n=n, test=test, seed=seed, classes=tuple(map(str, range(classes))))


@dataset(
    "spirals",
    title="Spirals",
    task="classification",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in the plane",
    licence="generated, none needed",
    credit="K. J. Lang and M. J. Witbrock, Learning to Tell Two Spirals Apart, 1988",
    splits="train, test",
)
def spirals(
    n: int = 1000, test: int = 1000, arms: int = 2, turns: float = 1.0, noise: float = 0.02, seed: int = 0
) -> Dataset:
    r"""Arms that wind from the origin to radius 1 in so many `turns`, one class an arm, with Gaussian noise.

    $$ x = r (\cos\varphi, \sin\varphi), \qquad \varphi = 2\pi \Big(\text{turns} \cdot r + \frac{y}{\text{arms}}\Big),
    \qquad r \sim U(0, 1) $$

    Shapes:
        x: (n, 2) float32, y: (n,) int64, all arms equally often

    >>> spirals(arms=3).classes
    ('0', '1', '2')
    """
    validate.count("arms", arms, least=1)
    validate.number("turns", turns, least=0)
    validate.number("noise", noise, least=0)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        y, radius = balanced(generator, size, arms), generator.uniform(0, 1, size)
        points = _on_circle(2 * math.pi * (turns * radius + y / arms)) * radius[:, None]
        return {"x": _add_noise(generator, points, noise), "y": y}

    return two_parts("spirals", sample, n=n, test=test, seed=seed, classes=tuple(map(str, range(arms))))


@dataset(
    "xor",
    title="Exclusive or",
    task="classification",
    origin="generated",
    size="1,000 + 1,000",
    shape="a point in the plane",
    licence="generated, none needed",
    credit="M. Minsky and S. Papert, Perceptrons, 1969",
    splits="train, test",
)
def xor(n: int = 1000, test: int = 1000, noise: float = 0.3, seed: int = 0) -> Dataset:
    r"""Gaussian clouds around the corners of a square; the label is 1 where the two signs of the corner differ.

    The corners are $(\pm1, \pm1)$ and the clouds have standard deviation `noise`.

    Shapes:
        x: (n, 2) float32, y: (n,) int64, all four corners equally often

    >>> points, labels = xor(noise=0.0).train
    >>> bool((labels == (points.prod(dim=1) < 0)).all())
    True
    """
    validate.number("noise", noise, least=0)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        corner = balanced(generator, size, 4)
        bits = np.stack([corner // 2, corner % 2], axis=1)
        return {"x": _add_noise(generator, 2.0 * bits - 1, noise), "y": bits[:, 0] ^ bits[:, 1]}

    return two_parts("xor", sample, n=n, test=test, seed=seed, classes=("same signs", "different signs"))


def _on_circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _add_noise(generator: np.random.Generator, points: np.ndarray, noise: float) -> np.ndarray:
    return points + noise * generator.standard_normal(points.shape)
