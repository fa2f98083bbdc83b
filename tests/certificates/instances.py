"""Hard instances: flat and clustered spectra, all scales, nearly equal points, every dtype, one, and none.

Numbers come from Python's own generator, one by one, so that an instance is the same on every machine.
"""

import math
import random
from collections.abc import Sequence

import torch
from torch import Tensor

FLOATS = (torch.float64, torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (
    torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip
SCALES = (5e-324, 1e-322, 1e-318, 1e-312, 1e-200, 1e-170, 1e-45, 1e-30, 1e-12, 1e-3, 1.0, 1.0, 1.0, 7.0, 1e4, 1e11,
          1e30, 3e38, 1e200, 1.7e308)  # fmt: skip
GAPS = tuple(10.0**-k for k in range(1, 18))


class Source:
    """A stream of instances from a seed."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def one_of(self, options: Sequence):
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def whole(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def sign(self) -> int:
        return self.random.choice((-1, 1))

    def normal(self) -> float:
        return self.random.gauss(0.0, 1.0)

    def generator(self) -> torch.Generator:
        """For functions that draw on their own."""
        return torch.Generator().manual_seed(self.random.getrandbits(48))

    # ------------------------------------------------------------ numbers

    def floating(self) -> torch.dtype:
        return self.one_of(FLOATS)

    def scale(self, dtype: torch.dtype = torch.float64) -> float:
        """A size that numbers of this dtype may have, subnormal and nearly infinite ones included."""
        limits = torch.finfo(dtype)
        return self.one_of([size for size in SCALES if limits.smallest_normal * limits.eps <= size <= limits.max])

    def stored(self, rows: Sequence, dtype: torch.dtype, scale: float = 1.0) -> Tensor:
        """Rows of numbers up to about 1, scaled: what would be infinite is as large as possible."""
        largest = max((abs(value) for row in rows for value in row), default=0.0)
        if scale * largest > torch.finfo(dtype).max / 2:
            scale = scale / (2 * largest)
        exact = torch.tensor([list(map(float, row)) for row in rows], dtype=torch.float64)
        limit = float(torch.finfo(dtype).max)
        return (exact * scale).clamp(-limit, limit).to(dtype)

    def integers(self, rows: int, columns: int, dtype: torch.dtype) -> Tensor:
        """Integers of any width, the least and the largest among them."""
        if dtype is torch.bool:
            return torch.tensor([[self.chance(0.5) for _ in range(columns)] for _ in range(rows)])
        ends = torch.iinfo(dtype)
        near = [ends.min, ends.min + 1, ends.max, ends.max - 1, 0, 1, 2, 3]
        if self.chance(0.5):
            near = [0, 1, 2, 3, 4] + ([] if ends.min == 0 else [-1, -2, -3])
        values = [[self.one_of(near) for _ in range(columns)] for _ in range(rows)]
        if rows > 1 and self.chance(0.5):
            values[-1] = list(values[0])
        return torch.tensor(values, dtype=dtype).reshape(rows, columns)

    # ------------------------------------------------------------ matrices

    def spectrum(self, size: int) -> list[float]:
        """Eigenvalues that are hard to tell apart, from each other or from zero."""
        kind = self.one_of(("flat", "clustered", "graded", "deficient", "edge", "edge", "any", "integer"))
        if kind == "flat":
            return [1.0] * (size - 1) + [1 + self.sign() * self.one_of(GAPS)]
        if kind == "clustered":
            return [1 + 1e-9 * self.normal() for _ in range(size)]
        if kind == "graded":
            ratio = self.one_of((1e-2, 1e-5, 1e-9, 2.0**-30))
            return [self.sign() ** self.whole(0, 1) * ratio**i for i in range(size)]
        if kind == "deficient":
            return [float(self.whole(0, 2)) for _ in range(size)]
        if kind == "edge":
            return [1.0] * (size - 1) + [self.sign() * self.one_of((0.0, *GAPS, 4e-4))]
        if kind == "integer":
            return [float(self.whole(-4, 4)) for _ in range(size)]
        return [self.normal() for _ in range(size)]

    def symmetric(self, size: int, dtype: torch.dtype, scale: float | None = None) -> Tensor:
        """A matrix with about such a spectrum, in a basis of its own, symmetric bit for bit."""
        size_of = self.scale(dtype) if scale is None else scale
        if size and self.chance(0.2):  # exactly singular: the Gram matrix of more whole vectors than they have entries
            factor = [[self.whole(-2, 2) for _ in range(size)] for _ in range(self.whole(1, max(1, size - 1)))]
            rows = [[float(sum(row[i] * row[j] for row in factor)) for j in range(size)] for i in range(size)]
        else:
            rows = rotated(self.spectrum(size), self.axis(size))
        return self.stored(rows, dtype, size_of) if size else torch.zeros(0, 0, dtype=dtype)

    def axis(self, size: int) -> list[float]:
        """The vector of a reflection; zero leaves a diagonal matrix as it is."""
        kind = self.one_of(("none", "ones", "any"))
        if kind == "none":
            return [0.0] * size
        # A reflection along a vector of ones is exact for four entries, and nearly so for others.
        return [1.0 if kind == "ones" else self.normal() for _ in range(size)]

    def slightly_asymmetric(self, matrix: Tensor) -> Tensor:
        """Its upper triangle changed by one bit, or by as much as passes for rounding."""
        if len(matrix) < 2:
            return matrix
        size, eps = len(matrix), torch.finfo(matrix.dtype).eps
        by = self.one_of((eps / 2, eps, 0.99 * 4 * size * eps)) * float(matrix.abs().max())
        changed = matrix.clone()
        for i in range(size):
            for j in range(i + 1, size):
                changed[i, j] += self.one_of((by, -by, 0.0))
        return changed

    def matrix(self, dtype: torch.dtype, most: int = 4, scale: float | None = None) -> Tensor:
        """Of any shape: a row, a column, a single number, of rank one, flat, graded, or with zeros."""
        rows, columns = self.whole(1, most), self.whole(1, most)
        size_of = self.scale(dtype) if scale is None else scale
        kind = self.one_of(("any", "rank one", "flat", "sparse", "square", "mixed"))
        if kind == "square":
            return self.symmetric(rows, dtype, size_of)
        left, right = ([self.normal() for _ in range(n)] for n in (rows, columns))
        if kind == "rank one":
            values = [[a * b for b in right] for a in left]
        elif kind == "flat":
            gap = 1 + self.sign() * self.one_of(GAPS)
            values = [[(gap if i == 0 else 1.0) * (i == j) for j in range(columns)] for i in range(rows)]
        elif kind == "sparse":
            values = [[float(self.whole(-1, 1)) for _ in right] for _ in left]
        elif kind == "mixed":
            values = [[self.normal() * self.one_of((1.0, 1e-9, 1e-200)) for _ in right] for _ in left]
        else:
            values = [[self.normal() for _ in right] for _ in left]
        return self.stored(values, dtype, size_of)

    def orthogonal(self, size: int, dtype: torch.dtype) -> Tensor:
        """A product of reflections, orthogonal but for rounding: all its singular values are about 1."""
        rows = [[float(i == j) for j in range(size)] for i in range(size)]
        for _ in range(2):
            rows = reflected(rows, [self.normal() for _ in range(size)])
        return torch.tensor(rows, dtype=torch.float64).to(dtype)

    # ------------------------------------------------------------ points

    def points(self, points: int, features: int) -> Tensor:
        """Points that are nearly equal, on a grid (with ties), far out, tiny, or integers of some width."""
        kind = self.one_of(("near", "one", "grid", "grid", "any", "scaled", "whole"))
        if kind == "whole":
            return self.integers(points, features, self.one_of((*INTEGERS, torch.bool)))
        dtype = self.one_of((torch.float64, torch.float64, torch.float32))
        most = 16 if dtype is torch.float64 else 7
        if kind == "near":
            base = 10.0 ** self.whole(3, most)
            values = [[base + self.whole(-2, 2) for _ in range(features)] for _ in range(points)]
        elif kind == "one":
            gap = 10.0 ** -self.whole(3, most)
            values = [[1.0 + gap * self.whole(-2, 2) for _ in range(features)] for _ in range(points)]
        elif kind == "grid":
            dtype = self.floating()
            values = [[float(self.whole(-1, 2)) for _ in range(features)] for _ in range(points)]
        else:
            values = [[self.normal() for _ in range(features)] for _ in range(points)]
        return self.stored(values, dtype, self.scale(dtype) if kind == "scaled" else 1.0)

    def labels(self, points: int) -> Tensor:
        return torch.tensor([self.sign() for _ in range(points)])


def reflected(rows: list[list[float]], axis: Sequence[float]) -> list[list[float]]:
    """The rows after a reflection along an axis."""
    length = math.fsum(a * a for a in axis)
    if length == 0:
        return rows
    columns = [2 * math.fsum(a * row[j] for a, row in zip(axis, rows, strict=True)) / length for j in range(len(axis))]
    return [[value - a * c for value, c in zip(row, columns, strict=True)] for a, row in zip(axis, rows, strict=True)]


def rotated(values: Sequence[float], axis: Sequence[float]) -> list[list[float]]:
    """A symmetric matrix with about these eigenvalues: a diagonal one, reflected from both sides."""
    rows = [[value * (i == j) for j in range(len(values))] for i, value in enumerate(values)]
    once = reflected(rows, axis)
    twice = reflected([list(column) for column in zip(*once, strict=True)], axis)
    return [[twice[max(i, j)][min(i, j)] for j in range(len(values))] for i in range(len(values))]
