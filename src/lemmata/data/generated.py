"""What generated data sets share: arguments checked at the door, and random numbers that depend on the seed alone."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from lemmata.data.examples import Dataset, Examples

__all__ = []  # for the loaders of this folder; users meet only the data sets

Sampler = Callable[[np.random.Generator, int], Mapping[str, np.ndarray]]


def whole(name: str, value: int, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`.

    >>> whole("n", 0, least=1)
    Traceback (most recent call last):
    ValueError: n must be a whole number >= 1, got 0
    """
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not right or (most is not None and value > most):
        limits = f">= {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limits}, got {value!r}")
    return value


def real(name: str, value: float, least: float = -math.inf, most: float = math.inf, above: bool = False) -> float:
    """A finite number from `least` to `most`, or strictly above `least`.

    >>> real("noise", -0.3, least=0)
    Traceback (most recent call last):
    ValueError: noise must be a number >= 0, got -0.3
    """
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not least <= value <= most or (above and value == least):
        limits = f"{'>' if above else '>='} {least:g}" + (f" and <= {most:g}" if most < math.inf else "")
        raise ValueError(f"{name} must be a number {limits}, got {value!r}")
    return float(value)


def streams(seed: int) -> list[np.random.Generator]:
    """Three independent sources of random numbers: for the parameters of a data set, its train part and its test part.

    Each part has its own, so that asking for more test examples leaves the training examples as they were.
    """
    return np.random.default_rng(whole("seed", seed, least=0)).spawn(3)


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
    sizes = {"train": whole("n", n, least), "test": whole("test", test, least)}
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
