r"""Families of small tasks for meta-learning: sine waves, each to be fitted from a few points."""

import math

import numpy as np

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import two_parts
from lemmata.data.registry import dataset

__all__ = ["sinusoids"]


@dataset(
    "sinusoids",
    title="Sine waves from few points",
    task="few-shot",
    origin="generated",
    size="1,000 + 200",
    shape="a task of 10 + 10 points",
    licence="generated, none needed",
    credit="C. Finn, P. Abbeel and S. Levine, Model-Agnostic Meta-Learning, 2017",
    splits="train, test",
)
def sinusoids(
    n: int = 1000, test: int = 200, shots: int = 10, queries: int = 10, noise: float = 0.0, seed: int = 0
) -> Dataset:
    r"""Regression tasks, each a sine wave with a few points to learn from (support) and others to be judged by (query).

    $$ y = A \sin(x - \varphi), \qquad A \sim U(0.1, 5), \quad \varphi \sim U(0, \pi), \quad x \sim U(-5, 5) $$

    One example is one task; Gaussian noise of standard deviation `noise` is added to the support alone, so the query
    error of a perfect learner is 0.

    Shapes:
        x, y: (tasks, shots, 1) float32, the support; query_x, query_y: (tasks, queries, 1) float32
        amplitude, phase: (tasks,) float32

    Source: Finn, Abbeel and Levine 2017, section 5.1.

    >>> sinusoids(shots=5).test.columns.keys()
    dict_keys(['x', 'y', 'query_x', 'query_y', 'amplitude', 'phase'])
    """
    validate.count("shots", shots, least=1)
    validate.count("queries", queries, least=1)
    validate.number("noise", noise, least=0)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        amplitude, phase = generator.uniform(0.1, 5, size), generator.uniform(0, math.pi, size)
        x = generator.uniform(-5, 5, (size, shots + queries, 1))
        y = amplitude[:, None, None] * np.sin(x - phase[:, None, None])
        y[:, :shots] += noise * generator.standard_normal((size, shots, 1))
        support, query = {"x": x[:, :shots], "y": y[:, :shots]}, {"query_x": x[:, shots:], "query_y": y[:, shots:]}
        return {**support, **query, "amplitude": amplitude, "phase": phase}

    return two_parts("sinusoids", sample, n=n, test=test, seed=seed)
