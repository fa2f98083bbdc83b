r"""Which labellings of points a class of classifiers realises, all of them, and how many that can be.

Nothing is sampled: thresholds, intervals, rectangles, discs and half-spaces are gone through by what they can tell
apart, a class of one's own by its table of answers. What is counted is exact.
"""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from lemmata import validate
from lemmata.connectionism.cover import dichotomies, separable_labellings
from lemmata.generalization.risk_bounds import sauer_bound
from lemmata.marks import system

__all__ = ["growth_function", "is_shattered", "labellings", "sine_frequency", "vc_dimension"]

Classifiers = str | Callable[[Tensor], Tensor]

MAX_SUBSETS = 10**5  # a limit of time: a few seconds
MAX_ORDERS = 8  # points whose every order is gone through: 40,320
MAX_SINE = 40  # beyond it a double does not resolve the sine


@system("labellings", title="Labellings that a class realises", kind="function")
def labellings(classifiers: Classifiers, points: Shaped[Tensor, "n features"]) -> Bool[Tensor, "labellings n"]:
    r"""Every labelling of the points that some classifier of the class gives them, each once, in counting order.

    $$ \mathcal F(S) = \{(f(x_1),\dots,f(x_n)) \in \{0,1\}^n : f \in \mathcal F\} $$

    The class is "thresholds" ($x \ge t$), "intervals" (inside one, or nowhere), "rectangles" (inside one, parallel to
    the axes, in any number of dimensions), "discs" (inside a circle), "half-spaces", or a function that takes the
    points and answers with a table, one row for each classifier. Half-spaces are proved on the numbers as they are
    stored; for discs squares are rounded first.

    Shapes:
        points: (n, features), one feature for thresholds and intervals    returns: (labellings, n)

    Claims: slt.outcome_set, slt.vc_dim

    >>> labellings("intervals", torch.tensor([[0.0], [1.0], [2.0]])).int().tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    if callable(classifiers):
        table = validate.tensor("classifiers(points)", classifiers(points))
        if table.ndim != 2 or table.shape[1] != len(points):
            raise ValueError(
                f"classifiers(points) must be (classifiers, {len(points)}), got shape {tuple(table.shape)}: "
                "one row for each classifier"
            )
        return torch.unique(validate.bits("classifiers(points)", table).bool(), dim=0)
    points = validate.matrix("points", points).detach().double().cpu()
    _check_features(_known_class(classifiers), points)
    return torch.unique(CLASSES[classifiers](points), dim=0)


@system("growth_function", title="Growth function", kind="function")
def growth_function(
    classifiers: Classifiers, n: int, points: Shaped[Tensor, "domain features"] | None = None, dimensions: int = 2
) -> int:
    r"""The most labellings that the class gives any n points.

    $$ \mathcal F(n) = \max_{|S| = n} |\mathcal F(S)| \le 2^n $$

    Of the whole line, plane or (half-spaces) space of so many dimensions; with `points`, of these points alone, by
    going through all their subsets. Rectangles go through every order of the points, up to 8 of them.

    Claims: slt.outcome_set, slt.vc_dim

    >>> [growth_function("intervals", n) for n in range(6)], [growth_function("half-spaces", n) for n in range(6)]
    ([1, 2, 4, 7, 11, 16], [1, 2, 4, 8, 14, 22])
    """
    n, dimensions = validate.count("n", n, least=0), validate.count("dimensions", dimensions)
    if points is not None:
        return _largest_on(labellings(classifiers, points), n)
    if callable(classifiers):
        raise ValueError("points must be given for a class of your own: the points whose subsets are gone through")
    name = _known_class(classifiers)
    if name == "half-spaces":
        return dichotomies(n, dimensions, bias=True) if n else 1
    if name == "discs":
        # No four on a circle, no three on a line: planes in the lifted space, half of them upside down, plus lines.
        return sauer_bound(n, 3)
    if name == "rectangles":
        return _largest_of_orders(n)
    return len(labellings(name, torch.arange(n).double()[:, None])) if n else 1


def is_shattered(classifiers: Classifiers, points: Shaped[Tensor, "n features"]) -> bool:
    r"""Whether the class gives these points every labelling there is: $|\mathcal F(S)| = 2^n$.

    Shapes:
        points: (n, features)

    Claims: slt.outcome_set

    >>> triangle = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> with_centre = torch.cat([triangle, triangle.mean(0)[None]])
    >>> is_shattered("half-spaces", triangle), is_shattered("half-spaces", with_centre)
    (True, False)
    """
    return len(labellings(classifiers, points)) == 2 ** len(points)


@system("vc_dimension", title="VC dimension", kind="function")
def vc_dimension(
    classifiers: Classifiers, points: Shaped[Tensor, "domain features"] | None = None, dimensions: int = 2
) -> int:
    r"""The largest number of points of which some set is shattered.

    $$ \mathrm{VC}(\mathcal F) = \max\{n : \mathcal F(n) = 2^n\} $$

    Where no n points are shattered no n + 1 are, so the first n that fails ends the search. As `growth_function`: of
    the line, plane or space, or of `points` alone.

    Claims: slt.vc_dim

    >>> [vc_dimension(name) for name in ("thresholds", "intervals", "rectangles", "discs", "half-spaces")]
    [1, 2, 4, 3, 3]
    """
    table = labellings(classifiers, points) if points is not None else None
    n = 0
    while True:
        if table is None:
            found = growth_function(classifiers, n + 1, dimensions=dimensions)
        elif n == len(points if points is not None else ()):
            return n
        else:
            found = _largest_on(table, n + 1)
        if found < 2 ** (n + 1):
            return n
        n += 1


@system("sine_frequency", title="Shattering by sines", kind="function")
def sine_frequency(labels: Shaped[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    r"""The frequency at which the sign of a sine gives the points 1/2, 1/4, 1/8, ... these labels.

    $$ \omega = \pi\Big(1 + \sum_{i=1}^n (1 - y_i)\,2^i\Big), \qquad y_i = \mathbf 1[\sin(\omega\, 2^{-i}) > 0] $$

    One parameter shatters as many points as one likes: the VC dimension of this class is infinite, and counting
    parameters measures nothing.

    Shapes:
        labels: (..., n), 0 and 1    returns: (...), float64

    Claims: slt.vc_dim
    Source: Vapnik 1995, attributed to Denker.

    >>> omega = sine_frequency(torch.tensor([1, 0, 0, 1]))
    >>> torch.sin(omega * 2.0 ** -torch.arange(1, 5)) > 0
    tensor([ True, False, False,  True])
    """
    labels = validate.bits("labels", labels)
    if labels.shape[-1] > MAX_SINE:
        raise ValueError(f"labels must be at most {MAX_SINE}, got {labels.shape[-1]}: a double resolves no more")
    powers = 2.0 ** torch.arange(1, labels.shape[-1] + 1, dtype=torch.float64, device=labels.device)
    return math.pi * (1 + ((1 - labels.double()) * powers).sum(-1))


def _known_class(name: str) -> str:
    return validate.one_of("classifiers", name, CLASSES)


def _check_features(name: str, points: Tensor) -> None:
    wanted = {"thresholds": 1, "intervals": 1, "discs": 2}.get(name, points.shape[1])
    validate.last_axis("points", points, wanted)


def _largest_on(table: Tensor, n: int) -> int:
    """The most different rows that a table has on n of its columns."""
    columns = table.shape[1]
    if n > columns:
        raise ValueError(f"n must be at most the number of points, {columns}, got {n}")
    if math.comb(columns, n) > MAX_SUBSETS:
        raise ValueError(f"points must be fewer: {columns} of them have {math.comb(columns, n):,} subsets of {n}")
    largest = 1
    if n == 0:
        return largest
    for subset in itertools.combinations(range(columns), n):
        largest = max(largest, len(torch.unique(table[:, list(subset)], dim=0)))
        if largest == 2**n:
            break
    return largest


# --- The classes, by what each can tell apart ---


def _threshold_labellings(points: Tensor) -> Tensor:
    x = points[:, 0]
    return torch.cat([x >= x[:, None], torch.zeros(1, len(x), dtype=torch.bool)])


def _interval_labellings(points: Tensor) -> Tensor:
    x = points[:, 0]
    inside = (x >= x[:, None, None]) & (x <= x[None, :, None])  # (from, to, n); empty where from > to
    return torch.cat([inside.flatten(0, 1), torch.zeros(1, len(x), dtype=torch.bool)])


def _rectangle_labellings(points: Tensor) -> Tensor:
    """The smallest boxes around any of the points, each found once: by one more point from a smaller one."""
    found, open = {(False,) * len(points)}, [(False,) * len(points)]
    while open:
        inside = torch.tensor(open.pop())
        for i in range(len(points)):
            chosen = points[torch.cat([inside.nonzero()[:, 0], torch.tensor([i])])]
            box = ((points >= chosen.amin(0)) & (points <= chosen.amax(0))).all(1)
            key = tuple(box.tolist())
            if key not in found:
                found.add(key)
                open.append(key)
    return torch.tensor(sorted(found))


def _disc_labellings(points: Tensor) -> Tensor:
    """Half-spaces of (|x|², x, 1) whose first weight is negative, which is one more row with a label of its own."""
    # The points stay as they are: to move them would round them, and three on a line might no longer be.
    lifted = torch.cat([points.square().sum(1, keepdim=True), points, torch.ones_like(points[:, :1])], dim=1)
    squares = torch.eye(lifted.shape[1], dtype=torch.float64)[:1]
    signs = separable_labellings(torch.cat([squares, lifted]))
    return signs[signs[:, 0] < 0][:, 1:] > 0


def _half_spaces(points: Tensor) -> Tensor:
    return separable_labellings(points, bias=True) > 0


CLASSES: dict[str, Callable[[Tensor], Tensor]] = {
    "thresholds": _threshold_labellings,
    "intervals": _interval_labellings,
    "rectangles": _rectangle_labellings,
    "discs": _disc_labellings,
    "half-spaces": _half_spaces,
}


def _largest_of_orders(n: int) -> int:
    """Rectangles see nothing of points but their orders along both axes: every permutation, all subsets of each."""
    if n > MAX_ORDERS:
        raise ValueError(f"n must be at most {MAX_ORDERS} for rectangles, got {n}: every order of them is gone through")
    if n == 0:
        return 1
    heights = torch.tensor(list(itertools.permutations(range(n))))  # (orders, n): the points from left to right
    count = torch.ones(len(heights), dtype=torch.long)  # the empty set
    for size in range(1, n + 1):
        for subset in itertools.combinations(range(n), size):
            chosen = heights[:, list(subset)]
            between = [i for i in range(subset[0], subset[-1] + 1) if i not in subset]
            others = heights[:, between]
            inside = (others > chosen.amin(1, keepdim=True)) & (others < chosen.amax(1, keepdim=True))
            count += ~inside.any(1)
    return int(count.max())
