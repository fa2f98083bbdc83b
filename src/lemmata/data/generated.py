"""What generated data sets share: random numbers that depend on the seed alone, and two parts drawn from them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from lemmata import validate
from lemmata.data.examples import Dataset, Examples

__all__ = []  # for the loaders of this folder; users meet only the data sets

Sampler = Callable[[np.random.Generator, int], Mapping[str, np.ndarray]]


def streams(seed: int) -> list[np.random.Generator]:
    """Three independent sources of random numbers: for the parameters of a data set, its train part and its test part.

    Each part has its own, so that asking for more test examples leaves the training examples as they were.
    """
    return np.random.default_rng(validate.count("seed", seed, least=0)).spawn(3)


def two_parts(
    name: str,
    sampler: Sampler,
    *,
    n: int,
    test: int,
    seed: int,
    classes: tuple[str, ...] = (),
    extra: Mapping[str, Any] | None = None,
    least: int = 1,
) -> Dataset:
    """A data set whose parts are drawn by `sampler(generator, size)`, which returns the columns as arrays."""
    sizes = {"train": validate.count("n", n, least), "test": validate.count("test", test, least)}
    sources = dict(zip(sizes, streams(seed)[1:], strict=True))
    parts = {part: Examples(**tensors(sampler(sources[part], size))) for part, size in sizes.items()}
    return Dataset(name, parts, classes, extra or {})


def tensors(columns: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Real numbers as float32, whole ones as int64."""
    kinds = {name: np.float32 if column.dtype.kind == "f" else np.int64 for name, column in columns.items()}
    return {name: torch.from_numpy(column.astype(kinds[name])) for name, column in columns.items()}


def balanced(generator: np.random.Generator, n: int, classes: int) -> np.ndarray:
    """Labels in random order, each class as often as the others (or once more, where n is no multiple)."""
    return generator.permutation(np.arange(n) % classes)
