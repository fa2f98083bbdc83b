r"""Sequences that ask for memory: two numbers to be added up, and a letter to be said again, both after a long time."""

import numpy as np

from lemmata import validate
from lemmata.data.examples import Dataset
from lemmata.data.generated import balanced, two_parts
from lemmata.data.registry import dataset

__all__ = ["adding", "echo"]


@dataset(
    "adding",
    title="The adding problem",
    task="regression",
    origin="generated",
    size="4,000 + 1,000",
    shape="100 steps of 2 numbers",
    licence="generated, none needed",
    credit="S. Hochreiter and J. Schmidhuber, Long Short-Term Memory, 1997",
    splits="train, test",
)
def adding(n: int = 4000, test: int = 1000, length: int = 100, seed: int = 0) -> Dataset:
    r"""Numbers of which two are marked; after the last, their sum is asked for.

    $$ x_t = (v_t, m_t), \quad v_t \sim U(0, 1), \quad m_t \in \{0, 1\}, \qquad y = \sum_t m_t v_t $$

    One mark stands in the first half of the sequence and one in the second, each at a place drawn uniformly. Whoever
    always says 1, the mean of y, has the mean squared error $2/12 = 0.167$; who remembers only the second number and
    adds 1/2 has half of that.

    Shapes:
        x: (sequences, length, 2) float32, y: (sequences,) float32

    Source: Hochreiter and Schmidhuber 1997, section 5.4, with lengths fixed and marks in the two halves.

    >>> adding(n=5, length=20).train
    Examples(x=(5, 20, 2), y=(5,))
    """
    validate.count("length", length, least=2)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        values, rows = generator.random((size, length)), np.arange(size)
        marks = np.zeros((size, length))
        for low, high in ((0, length // 2), (length // 2, length)):
            marks[rows, generator.integers(low, high, size)] = 1
        return {"x": np.stack([values, marks], axis=2), "y": (marks * values).sum(axis=1)}

    return two_parts("adding", sample, n=n, test=test, seed=seed)


@dataset(
    "echo",
    title="Echo of a letter",
    task="classification",
    origin="generated",
    size="4,000 + 1,000",
    shape="101 tokens of 16",
    licence="generated, none needed",
    credit="after Y. Bengio, P. Simard and P. Frasconi, Learning long-term dependencies is difficult, 1994",
    splits="train, test",
)
def echo(n: int = 4000, test: int = 1000, lag: int = 100, letters: int = 8, seed: int = 0) -> Dataset:
    r"""A letter, then `lag` other sounds that mean nothing; after the last, the letter is to be said again.

    The letters are the numbers from 0 to `letters` - 1, the sounds as many numbers above them. Every letter comes
    first equally often, so that guessing is right once in `letters` times.

    Shapes:
        x: (sequences, lag + 1) int64 from 0 to 2 letters - 1, y: (sequences,) int64, the first of each row

    >>> data = echo(n=3, lag=4, letters=2)
    >>> data.train.x.shape, bool((data.train.x[:, 0] == data.train.y).all()), data.classes
    (torch.Size([3, 5]), True, ('a', 'b'))
    """
    validate.count("lag", lag, least=1)
    validate.count("letters", letters, least=2, most=26)

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        first = balanced(generator, size, letters)
        sounds = generator.integers(letters, 2 * letters, (size, lag))
        return {"x": np.concatenate([first[:, None], sounds], axis=1), "y": first}

    return two_parts("echo", sample, n=n, test=test, seed=seed, classes=tuple("abcdefghijklmnopqrstuvwxyz"[:letters]))
