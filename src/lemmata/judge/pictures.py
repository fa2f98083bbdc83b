"""The picture that each kind of judge draws of what it measured, for claims that have none of their own.

Nothing is drawn while claims are judged: a judge hands over how to draw, `while_watched` keeps that only where a reader
waits for it (`probe_claim`), and `figure_of` draws one, of the part that decides. So no verdict costs more, and no bit
of remembered evidence depends on it.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from lemmata.figure import Band, Bars, Figure, Line, Points
from lemmata.judge.evidence import Evidence

__all__ = ["figure_of", "watched"]

FEW = 12  # numbers up to which each has a bar of its own
ROUNDING = 1e-12  # of the largest value, or of 1
MANY = 300  # points of a picture
SPREAD = 1000.0  # positive values of so many times each other stand on logarithmic axes

_watched: contextvars.ContextVar[bool] = contextvars.ContextVar("watched", default=False)


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """While this lasts, evidence keeps the means to draw itself."""
    token = _watched.set(True)
    try:
        yield
    finally:
        _watched.reset(token)


def while_watched(evidence: Evidence, draw: Callable[[], Figure | None]) -> Evidence:
    """The evidence, with the means to draw it if somebody watches."""
    if _watched.get():
        object.__setattr__(evidence, "picture", draw)
    return evidence


def figure_of(evidence: Evidence, part: Sequence[int] = ()) -> Figure | None:
    """The claim's own figure, else that of the part that decides.

    `part` leads to the part that a reader wants to watch (see `failed_part`), so that a picture stays the same while a
    slider moves. Where another one fails and that one does not, the other one is shown.

    >>> from lemmata.judge import at_most, close
    >>> with watched():
    ...     both = close([1.0, 2.0], [1.0, 2.0]), at_most([1.0, 2.0], 3.0)
    >>> figure_of(both[1]).title
    'Measured against the bound'
    """
    if evidence.figure or not evidence.parts:
        return evidence.figure or (evidence.picture() if evidence.picture else _two_numbers(evidence))
    wanted = evidence.parts[part[0]] if part and part[0] < len(evidence.parts) else None
    failed = [each for each in evidence.parts if not each.holds]
    if wanted is None or (wanted.holds and failed):
        wanted, part = (failed or evidence.parts)[0], ()
    found = figure_of(wanted, part[1:])
    if failed or not (found and _only_zeros(found)):
        return found
    return next((other for each in evidence.parts if (other := figure_of(each)) and not _only_zeros(other)), found)


def _only_zeros(figure: Figure) -> bool:
    """Whether all there is to see are bars of no height."""
    return all(isinstance(mark, Bars) and not any(mark.values) for mark in figure.marks)


def _two_numbers(evidence: Evidence) -> Figure | None:
    measured, predicted = evidence.measured, evidence.predicted
    if not all(isinstance(value, int | float) for value in (measured, predicted)):
        return None
    other = "predicted" if evidence.relation == "=" else "target" if evidence.by == "training" else "the bound"
    return Figure(
        f"Measured against {'the ' if other == 'target' else ''}{other}",
        marks=[_comparison_bars(measured, predicted, other)],
    )


def _comparison_bars(measured: float, predicted: float, other: str) -> Bars:
    return Bars(["measured", other], [measured, predicted])


# --- Two sides of an equation, and a bound ---


def two_sides(measured: Tensor, predicted: Tensor, differs: Tensor) -> Figure:
    """Entry by entry: bars while they are few, then points about the line on which both are equal."""
    left, right = _real_entries(measured), _real_entries(predicted)
    # Equal up to rounding is drawn as equal: alone on an axis, errors of 1e-16 would look like a refutation.
    left = torch.where((left - right).abs() <= ROUNDING * right.abs().max().clamp(min=1.0), right, left)
    if len(left) <= FEW:
        return _few_values_figure(left, right, "Measured against predicted", "predicted")
    differs = differs.flatten().repeat_interleave(len(left) // differs.numel())  # two for a complex number
    kept = _thinned_positions(left - right)
    left, right, differs = left[kept], right[kept], differs[kept]
    log = _is_wide_range(left, right)
    ends = [min(left.min(), right.min()).item(), max(left.max(), right.max()).item()]
    marks = [
        Points(right[~differs], left[~differs], "one value each"),
        Points(right[differs], left[differs], "differs"),
        Line(ends, ends, "equal"),
    ]
    return Figure("Measured against predicted", "predicted", "measured", marks, x_log=log, y_log=log)


def against_bound(measured: Tensor, bound: Tensor, broken: Tensor, relation: str) -> Figure:
    """Every instance with its bound: those that keep it, and those that break it."""
    left, right = _real_entries(measured), _real_entries(bound)
    if len(left) <= FEW:
        return _few_values_figure(left, right, "Measured against the bound", "the bound")
    kept = _thinned_positions(left - right if relation == "≤" else right - left)
    left, right, broken = left[kept], right[kept], broken.flatten()[kept]
    constant = bool((right == right[0]).all())
    if constant:  # one bound for all: the instances in the order of what was measured
        order = left.argsort()
        left, broken, places = left[order], broken[order], torch.arange(1.0, len(left) + 1)
    else:
        places = right
    log = _is_wide_range(left, right)
    low, high = min(left.min(), right.min()).item(), max(left.max(), right.max()).item()
    line = Line([1.0, float(len(left))], [right[0].item()] * 2, "the bound") if constant else None
    marks = [
        Points(places[~broken], left[~broken], "one instance each"),
        Points(places[broken], left[broken], "breaks the bound"),
        line or Line([low, high], [low, high], "the bound"),
    ]
    x_label = "instances, in order" if constant else "the bound"
    return Figure("Measured against the bound", x_label, "measured", marks, x_log=log and not constant, y_log=log)


def cases(true: int, count: int, predicted: int | None = None) -> Figure:
    """How many cases are as stated, and how many are not or ought to be."""
    if predicted is not None:
        return Figure("Cases counted", marks=[_comparison_bars(true, predicted, "predicted")])
    return Figure("Cases", marks=[Bars(["as stated", "otherwise"], [true, count - true])])


def _few_values_figure(left: Tensor, right: Tensor, title: str, other: str) -> Figure:
    if len(left) == 1:
        return Figure(title, marks=[_comparison_bars(left[0].item(), right[0].item(), other)])
    names = [str(k + 1) for k in range(len(left))]
    return Figure(title, "entry", marks=[Bars(names, left, "measured"), Bars(names, right, other)])


# --- Rates, laws and means ---


def slope(x: Tensor, y: Tensor, measured: float, predicted: float) -> Figure:
    """The points on logarithmic axes, and lines of both slopes through their middle."""
    middle = x.log().mean(), y.log().mean()
    ends = torch.stack([x.min(), x.max()])

    def line(steepness: float, name: str) -> Line:
        heights = (middle[1] + steepness * (ends.log() - middle[0])).exp()
        return Line(ends, heights, f"{name} slope {steepness:.4g}")

    kept = torch.linspace(0, len(x) - 1, min(len(x), MANY)).long()
    marks = [Points(x[kept], y[kept], "measured"), line(predicted, "predicted"), line(measured, "measured")]
    return Figure("How fast it grows", "x", "y", marks, x_log=True, y_log=True)


def cumulative(values: Tensor, theory: Tensor) -> Figure:
    """The fraction of samples up to each value, against the distribution function. The values are sorted."""
    kept = torch.linspace(0, len(values) - 1, min(len(values), MANY // 2)).long()
    fraction = (kept + 1).double() / len(values)
    marks = [Line(values[kept], fraction, "samples"), Line(values[kept], theory[kept], "predicted")]
    return Figure("Distribution of the samples", "value", "share up to it", marks)


def running_mean(values: Tensor, predicted: float, margin: float) -> Figure:
    """The mean after so many draws, with the interval that so many allow, against what is predicted."""
    n = len(values)
    kept = torch.logspace(1, torch.tensor(float(n)).log10().item(), MANY // 3).long().clamp(1, n).unique() - 1
    mean = values.double().cumsum(0)[kept] / (kept + 1)
    reach = margin * (n / (kept + 1).double()).sqrt()
    x = kept + 1
    marks = [
        Band(x, mean - reach, mean + reach, "what so many draws allow"),
        Line(x, mean, "mean so far"),
        Line([int(x[0]), n], [predicted, predicted], "predicted"),
    ]
    return Figure("The mean of more and more draws", "draws", "mean", marks, x_log=True)


# --- Numbers that make a picture ---


def _real_entries(side: Tensor) -> Tensor:
    side = side.detach()
    return (torch.view_as_real(side) if side.is_complex() else side).double().flatten()


def _thinned_positions(excess: Tensor) -> Tensor:
    """Which of many entries to show: evenly spread ones, and those that stand out most."""
    n = len(excess)
    if n <= MANY:
        return torch.arange(n)
    even = torch.linspace(0, n - 1, MANY * 3 // 4).long()
    return torch.cat([even, excess.nan_to_num(0.0).abs().topk(MANY // 4).indices]).unique()


def _is_wide_range(*sides: Tensor) -> bool:
    """Whether values of very different sizes ask for logarithmic axes, on which the few zeros have no place."""
    both = torch.cat([side.flatten() for side in sides])
    positive = both[both > 0]
    if not bool((both >= 0).all() and both.isfinite().all()) or len(positive) < 0.8 * len(both):
        return False
    return bool(positive.max() / SPREAD > positive.min())
