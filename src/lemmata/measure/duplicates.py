r"""Examples that occur more than once: exact ones by their bytes, near ones by a law of distances without a scale."""

import hashlib
import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate

__all__ = ["NearTwins", "agreement_of_rest", "equal_groups", "near_twins"]

LEAST_RATIO = 2.0  # of second to first distance, below which nobody would speak of a twin
BLOCK = 256  # rows whose distances are held at once


class NearTwins(NamedTuple):
    """Which points have a near twin, how much nearer than the next it must be, and the dimension that says so."""

    twin: Bool[Tensor, " points"]
    ratio: float
    dimension: float


def equal_groups(*columns: Tensor) -> Int[Tensor, " examples"]:
    r"""A number for each example, the same for those that are equal in all columns, bit by bit; -0 is 0.

    Shapes:
        columns: (examples, ...) each    returns: (examples,), numbered as they first occur

    >>> equal_groups(torch.tensor([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]]))
    tensor([0, 1, 0])
    """
    if len({len(column) for column in columns}) != 1:
        raise ValueError(f"columns must have one row an example, got {[len(column) for column in columns]} rows")
    # As bytes: numpy knows no bfloat16.
    rows = [_row_bytes(column) for column in columns]
    seen: dict[bytes, int] = {}
    groups = []
    for parts in zip(*rows, strict=True):
        digest = hashlib.blake2b(digest_size=16)  # two of 10^9 different rows meet with probability 10^-21
        for part in parts:
            digest.update(part)
        groups.append(seen.setdefault(digest.digest(), len(seen)))
    return torch.tensor(groups, dtype=torch.long)


def _row_bytes(column: Tensor) -> list[memoryview]:
    column = column.detach().cpu()
    if column.is_floating_point():
        column = column + 0.0  # turns -0 into 0
    flat = column.reshape(len(column), -1).contiguous()
    array = flat.view(torch.uint8).numpy() if flat.dtype != torch.bool else flat.numpy()
    return [memoryview(row) for row in array]


def agreement_of_rest(first: Tensor, second: Tensor, draws: int = 3) -> float:
    r"""Of pairs (one of each) that agree in a drawn half of their features, the fraction that agree in the rest too.

    Where inputs are few and discrete, pairs that agree in one half by chance mostly differ in the other; copies agree
    in both. So near 1, equal rows are copies; and further below it, chance. The least of a few draws; 1 where no pair
    agrees in half, 0 where there are no halves.

    Shapes:
        first: (examples, features)    second: (others, features)

    >>> bits = torch.cartesian_prod(*[torch.arange(2)] * 6)
    >>> agreement_of_rest(bits, bits)
    0.125
    >>> noise = torch.randn(64, 6)
    >>> agreement_of_rest(noise, noise[:8])
    1.0
    """
    features = first.shape[1]
    if features < 2:
        return 0.0
    random, least = torch.Generator().manual_seed(0), 1.0
    both = torch.cat([first, second]).cpu()
    whole = _pair_count(equal_groups(both), len(first))
    for _ in range(draws):
        half = torch.randperm(features, generator=random)[: features // 2]
        half_pairs = _pair_count(equal_groups(both[:, half]), len(first))
        least = min(least, whole / half_pairs if half_pairs else 1.0)
    return least


def _pair_count(groups: Tensor, number: int) -> int:
    """How many pairs of one of the first `number` and one of the rest stand in one group."""
    size = int(groups.max()) + 1
    left, right = (torch.bincount(part, minlength=size) for part in (groups[:number], groups[number:]))
    return int((left * right).sum())


def near_twins(
    points: Float[Tensor, "points features"],
    others: Float[Tensor, "others features"],
    expected: float = 1e-3,
    own: Int[Tensor, " points"] | None = None,
    dimension: float | None = None,
) -> NearTwins:
    r"""Points that lie much nearer to one of the others than to the second nearest.

    $$ P\Big(\frac{r_2}{r_1} > t\Big) = t^{-D} $$

    holds for points spread evenly over $D$ dimensions, whatever their density, so that it has no scale. $D$ is taken
    from the median of the ratios, which a few twins do not move, or is given; and $t$ is such that `expected` points
    exceed it by chance. `own` says which of the others each point itself is, and is left out. Others must be different
    from each other and from the points.

    Source: E. Facco, M. d'Errico, A. Rodriguez and A. Laio, Estimating the intrinsic dimension of datasets by a minimal
    neighborhood information (2017), from where the law is. Differs: it is used for what breaks it.

    >>> x = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    >>> found = near_twins(x[:100] + 1e-3, torch.cat([x[:5], x[100:]]))
    >>> found.twin.nonzero()[:, 0]
    tensor([0, 1, 2, 3, 4])
    """
    validate.matrix("points", points)
    validate.matrix("others", others)
    if len(others) < 3:
        raise ValueError(f"others must hold at least 3 points, got {len(others)}")
    first, second = _two_nearest(points, others, own)
    ratio = second / first.clamp(min=torch.finfo(first.dtype).tiny)
    if dimension is None:
        middle = ratio.median().item()
        # On a lattice most points are as near to the second as to the first: nothing follows from such ratios.
        dimension = math.log(2) / math.log(middle) if middle > 1.001 else math.inf
    limit = max((len(points) / expected) ** (1 / dimension), LEAST_RATIO)
    twin = ratio > limit if math.isfinite(dimension) else torch.zeros_like(ratio, dtype=torch.bool)
    return NearTwins(twin, limit, dimension)


def _two_nearest(points: Tensor, others: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
    """The two smallest distances of each point: candidates from products, their distances from differences."""
    centre = others.mean(0)
    points, others = (points - centre).float(), (others - centre).float()
    squares = others.square().sum(1)
    found = []
    for rows in torch.arange(len(points)).split(BLOCK):
        gap = squares - 2 * points[rows] @ others.mT  # |x - y|^2 - |x|^2, (rows, others)
        if own is not None:
            gap[torch.arange(len(rows)), own[rows]] = torch.inf
        nearest = gap.topk(min(4, len(others) - (own is not None)), largest=False).indices
        exact = (points[rows, None] - others[nearest]).double().norm(dim=2)
        found.append(exact.sort(1).values[:, :2])
    first, second = torch.cat(found).unbind(1)
    return first, second
