r"""Parity: is the number of ones odd? Every single bit matters."""

import numpy as np
import torch

from lemmata import validate
from lemmata.data.examples import Dataset, Examples
from lemmata.data.generated import streams, tensors, two_parts
from lemmata.data.registry import dataset

__all__ = ["parity"]

LONGEST_TABLE = 20  # a table of 2**20 rows takes 80 MB; longer strings are drawn, not listed


@dataset(
    "parity",
    title="Parity of bits",
    task="classification",
    origin="generated",
    size="204 + 52",
    shape="8 bits",
    licence="generated, none needed",
    credit="M. Minsky and S. Papert, Perceptrons, 1969",
    splits="train, test",
)
def parity(bits: int = 8, n: int | None = None, test: int | None = None, seed: int = 0) -> Dataset:
    r"""Strings of bits with the parity of their sum.

    $$ y = \Big(\sum_i x_i\Big) \bmod 2 $$

    Without `n`, all $2^\text{bits}$ strings: four fifths at random, rounded down, to learn from and the rest for the
    test; `everything` is then the whole table. With `n`, so many strings drawn at random, and `test` (by default as
    many) for the test.

    Shapes:
        x: (strings, bits) float32 of 0 and 1, y: (strings,) int64

    >>> parity(bits=2).everything.x.unique(dim=0)
    tensor([[0., 0.],
            [0., 1.],
            [1., 0.],
            [1., 1.]])
    """
    if n is None and test is None:
        return _parity_table(validate.count("bits", bits, least=1, most=LONGEST_TABLE), seed)
    validate.count("bits", bits, least=1)
    if n is None:
        raise ValueError(f"n must be given with test, got test={test} alone: without both, all strings are listed")

    def sample(generator: np.random.Generator, size: int) -> dict[str, np.ndarray]:
        return _label_strings(generator.integers(0, 2, (size, bits)))

    return two_parts("parity", sample, n=n, test=n if test is None else test, seed=seed, classes=("even", "odd"))


def _parity_table(bits: int, seed: int) -> Dataset:
    numbers = streams(seed)[0].permutation(2**bits)
    whole_table = Examples(**tensors(_label_strings(numbers[:, None] >> np.arange(bits) & 1)))
    cut = 4 * 2**bits // 5
    order = torch.arange(2**bits)
    return Dataset("parity", {"train": whole_table[order[:cut]], "test": whole_table[order[cut:]]}, ("even", "odd"))


def _label_strings(strings: np.ndarray) -> dict[str, np.ndarray]:
    return {"x": strings.astype(np.float32), "y": strings.sum(axis=1) % 2}
