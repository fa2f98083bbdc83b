r"""Least squares as a small problem: the normal equations block by block, and the triangle of the data."""

import torch
from torch import Tensor

from lemmata.certified.rounding import power_of_two

__all__ = []  # for regressions

BLOCK = 1024  # rows that are centred and multiplied while they are in the cache


def column_means(values: Tensor) -> Tensor:
    """In float64; a product with ones is quicker than torch's mean along the first axis."""
    total = values.new_zeros(values.shape[1], dtype=torch.double)
    for block in values.split(BLOCK):
        total += torch.ones(len(block), dtype=torch.double, device=block.device) @ block.double()
    return total / len(values)


def within_range(values: Tensor) -> tuple[Tensor, float]:
    """Values whose squares can be added up in float64, and the power of two by which they were divided for that."""
    # Squares of shorter floats are far within the range of a double; of doubles, the norm bounds the largest.
    if values.dtype is not torch.double or 2.0**-400 < float(torch.linalg.vector_norm(values)) < 2.0**400:
        return values, 1.0
    unit = float(power_of_two(values))
    return (values.double() / unit, unit) if not 2.0**-400 < unit < 2.0**400 else (values, 1.0)


def normal_equations(x: Tensor, y: Tensor, bias: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""$X_c^\top X_c$, $X_c^\top y_c$ and the means, block by block: no centred copy is made, and x is read once.

    The data are shifted by the means $m$ of a few rows, and the product is corrected by what these lack of the true
    means: $X_c^\top X_c = (X-m)^\top(X-m) - s\,dd^\top$ with $d = \bar x - m$. Whichever the $n$ rows are, $d_j^2$ is
    at most $s/n$ times the variance of column j, so that few digits are lost.
    """
    (points, features), outputs = x.shape, y.shape[1]
    y_mean = column_means(y) * bias
    few = x[:: max(1, points // BLOCK)].double()
    shift = few.mean(0) * bias
    # Shorter floats have 24 digits; up to 64 spreads from the origin a double keeps 41 without a shift.
    near = x.dtype is not torch.double and bool((shift.abs() <= 64 * few.std(0, correction=0)).all())
    shift = shift * (not near)
    gram, moments = shift.new_zeros(features, features), shift.new_zeros(outputs + 1, features)
    room, aims = shift.new_empty(min(BLOCK, points), features), shift.new_ones(min(BLOCK, points), outputs + 1)
    for some_x, some_y in zip(x.split(BLOCK), y.split(BLOCK), strict=True):
        rows, aim = room[: len(some_x)], aims[: len(some_x)]  # (block, features), (block, outputs + 1)
        rows = rows.copy_(some_x) if near else torch.sub(some_x.double(), shift, out=rows)
        torch.sub(some_y.double(), y_mean, out=aim[:, :outputs])  # a column of ones remains, for the sums of x
        add_gram(gram, rows)
        moments.addmm_(aim.mT, rows)
    mirror(gram)
    off = moments[-1] / points * bias
    gram.addr_(off, off, alpha=-points)
    return gram, moments[:-1].mT.contiguous(), shift + off, y_mean


def add_gram(gram: Tensor, rows: Tensor) -> None:
    r"""Add $X^\top X$ but for a quarter, the mirror image of another, which `mirror` fills in at the end."""
    half = rows.shape[1] // 2
    first, second = rows[:, :half], rows[:, half:]
    gram[:half, :half].addmm_(first.mT, first)
    gram[half:, :half].addmm_(second.mT, first)
    gram[half:, half:].addmm_(second.mT, second)


def mirror(gram: Tensor) -> None:
    """Fill in what `add_gram` left out."""
    half = len(gram) // 2
    gram[:half, half:] = gram[half:, :half].mT


def reduced_rows(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    r"""As few rows as possible with the same $X^\top X$ and $X^\top y$: the triangle of $[X\ y] = QR$."""
    features = x.shape[1]
    if len(x) < features:
        return x, y
    triangle = torch.linalg.qr(torch.cat([x, y], 1), mode="r").R[:features]
    return triangle[:, :features], triangle[:, features:]


def solved_triangle(triangle: Tensor, aim: Tensor, ridge: float) -> Tensor:
    """Solve for a triangle; a ridge is so many more rows, brought into the triangle by another QR."""
    if ridge:
        rows = ridge**0.5 * torch.eye(len(triangle), dtype=triangle.dtype, device=triangle.device)
        triangle, aim = reduced_rows(torch.cat([triangle, rows]), torch.cat([aim, torch.zeros_like(aim)]))
    return torch.linalg.solve_triangular(triangle, aim, upper=True)
