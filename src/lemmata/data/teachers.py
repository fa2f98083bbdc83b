r"""Data labelled by a random network whose weights are given: what a student could learn perfectly."""

import math

import numpy as np
import torch

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import streams, two_parts
from lemmata.data.registry import dataset

__all__ = ["teacher"]


@dataset(
    "teacher",
    title="Labels of a teacher network",
    task="regression",
    origin="generated",
    size="1,000 + 1,000",
    shape="10 numbers",
    licence="generated, none needed",
    credit="E. Gardner and B. Derrida, Three Unfinished Works on the Optimal Storage Capacity of Networks, 1989",
    splits="train, test",
)
def teacher(
    n: int = 1000,
    test: int = 1000,
    features: int = 10,
    hidden: int = 16,
    outputs: int = 1,
    noise: float = 0.0,
    classes: bool = False,
    seed: int = 0,
) -> Dataset:
    r"""Gaussian inputs, labelled by a random network with one hidden layer of rectified units.

    $$ f(x) = B\,[A x + a]_+ + b, \qquad x \sim \mathcal N(0, I), \qquad y = f(x) + \varepsilon $$

    The weights are Gaussian with variance 2 / features in $A$ and 1 / hidden in $B$, so that outputs are of order 1;
    the biases have standard deviation 0.1 and $\varepsilon$ has `noise`. With `classes=True` the label is which of the
    noisy outputs, at least two, is the largest.

    Shapes:
        x: (n, features) float32; y: (n, outputs) float32, or (n,) int64 with classes
        extra, all float64: `hidden_weight` $A$ (hidden, features), `hidden_bias` $a$, `weight` $B$ (outputs, hidden),
        `bias` $b$

    >>> data = teacher(features=3, hidden=5)
    >>> data.train, data.extra["hidden_weight"].shape
    (Examples(x=(1000, 3), y=(1000, 1)), torch.Size([5, 3]))
    """
    for name, value in {"features": features, "hidden": hidden}.items():
        validate.count(name, value, least=1)
    validate.count("outputs", outputs, least=2 if classes else 1)
    validate.number("noise", noise, least=0)
    draw = streams(seed)[0]
    true = {
        "hidden_weight": draw.standard_normal((hidden, features)) * math.sqrt(2 / features),
        "hidden_bias": 0.1 * draw.standard_normal(hidden),
        "weight": draw.standard_normal((outputs, hidden)) * math.sqrt(1 / hidden),
        "bias": 0.1 * draw.standard_normal(outputs),
    }

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        # rounded first, so that the given weights give the given labels to the last bit of float32
        x = generator.standard_normal((size, features)).astype(np.float32).astype(np.float64)
        layer = np.maximum(x @ true["hidden_weight"].T + true["hidden_bias"], 0)
        y = layer @ true["weight"].T + true["bias"] + noise * generator.standard_normal((size, outputs))
        return {"x": x, "y": y.argmax(axis=1) if classes else y}

    names = tuple(map(str, range(outputs))) if classes else ()
    extra = {name: torch.from_numpy(value) for name, value in true.items()}
    return two_parts("teacher", sample, n=n, test=test, seed=seed, classes=names, extra=extra)
