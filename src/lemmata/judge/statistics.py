r"""Statistical evidence: means, probabilities and laws, with sample sizes derived and error rates declared.

Every judge here takes `effect`, the smallest error by which a lie is wrong, and derives from it how many samples find
such an error with probability above 0.999, while a true claim is rejected with probability at most $\alpha = 10^{-9}$.
"""

import contextvars
import functools
import math
from collections.abc import Callable

import torch
from scipy import special
from torch import Tensor

from lemmata.judge import pictures
from lemmata.judge.evidence import ALPHA, BETA, Evidence
from lemmata.judge.numeric import rounding_unit
from lemmata.judge.pictures import while_watched

__all__ = ["law_is", "mean_is", "probability_is"]

# How many samples a check of each cost class may take. Counts, not seconds: the same on every machine.
SAMPLE_LIMIT = {"instant": 300_000, "quick": 3_000_000, "long": 30_000_000}
cost_class: contextvars.ContextVar[str] = contextvars.ContextVar("cost_class", default="long")

# How often a sample whose spread turns out larger than foreseen is drawn anew, larger.
ROUNDS = 5

SIDES = {"both": "=", "at_least": "≥", "at_most": "≤"}


def mean_is(
    statistic: Callable[[Tensor], Tensor],
    sample: Callable[[int], Tensor],
    predicted: float | Tensor,
    *,
    effect: float,
    side: str = "both",
    bounds: tuple[float, float] | None = None,
    alpha: float = ALPHA,
    pilot: int = 1000,
    chunk: int = 65_536,
) -> Evidence:
    r"""The mean of `statistic` over independent draws is as predicted, or with `side="at_least"` or "at_most" a bound.

    Student's interval from the spread of at least `pilot` draws, widened where the statistic is skewed; with `bounds`
    on the statistic the empirical Bernstein interval, which holds for every law and sample size.
    """
    given, predicted = predicted, float(predicted.detach() if isinstance(predicted, Tensor) else predicted)
    _check_test_arguments(effect, alpha, side)
    if bounds and not bounds[0] < bounds[1]:
        raise ValueError(f"bounds must be (low, high) with low < high, got {bounds}")
    width = bounds[1] - bounds[0] if bounds else 0.0
    values = _take_sample(statistic, sample, pilot, chunk, bounds)
    eps = rounding_unit("mean_is", statistic=values, predicted=given)
    for _ in range(ROUNDS):
        mean, spread, skew = _sample_moments(values, side)
        reach = functools.partial(_detectable_error, skew=skew, width=width, alpha=alpha, side=side)
        if math.isnan(mean) or reach(len(values), spread) <= effect:
            break
        # The spread found so far is itself uncertain; a tenth more of it keeps the power promised.
        n = _sample_size(lambda n, reach=reach, spread=1.1 * spread: reach(n, spread), effect)
        if n > SAMPLE_LIMIT[cost_class.get()]:
            return _too_many(n, predicted, mean, alpha)
        values = _take_sample(statistic, sample, max(n, pilot), chunk, bounds)
    else:
        why = f"the spread grows with the sample: {len(values):,} draws cannot resolve {effect:g}"
        return Evidence("statistical", mean, predicted, float("nan"), alpha, weak=why)
    # A constant statistic has no spread: what is left is the rounding of the dtype it was computed in.
    margin = _half_width(len(values), spread, skew, width, alpha, side) + 64 * eps * abs(mean)
    detail = f"{len(values):,} samples"
    evidence = Evidence("statistical", mean, predicted, margin, alpha, detail, relation=SIDES[side])
    return while_watched(evidence, lambda: pictures.running_mean(values, predicted, margin))


def probability_is(
    happens: Callable[[int], Tensor],
    predicted: float,
    *,
    effect: float,
    side: str = "both",
    alpha: float = ALPHA,
    chunk: int = 65_536,
) -> Evidence:
    """The probability of an event is as predicted, or with `side="at_least"` or "at_most" a bound: exact binomial test.

    >>> generator = torch.Generator().manual_seed(0)
    >>> coin = probability_is(lambda n: torch.rand(n, generator=generator) < 0.5, 0.5, effect=0.1)
    >>> coin.holds, coin.detail
    (True, '2,112 trials, exact binomial')
    """
    predicted = float(predicted)
    _check_test_arguments(effect, alpha, side)
    if not 0 <= predicted <= 1:
        return Evidence("exact", "a probability", predicted, detail="a probability lies between 0 and 1")
    n = _sample_size(lambda n: _binomial_miss(n, predicted, effect, alpha, side), BETA)
    if n > SAMPLE_LIMIT[cost_class.get()]:
        return _too_many(n, predicted, float("nan"), alpha)
    events = _take_sample(_event_values, happens, n, chunk)
    count = int(events.sum())
    low, high = _accepted_counts(n, predicted, alpha, side)
    # The binomial law is skewed: the margin shown is that of the side on which the count fell.
    below = side == "at_least" or (side == "both" and count < n * predicted)
    margin = max(predicted - low / n if below else high / n - predicted, 0.0)
    detail = f"{n:,} trials, exact binomial"
    evidence = Evidence("statistical", count / n, predicted, margin, alpha, detail, relation=SIDES[side])
    return while_watched(evidence, lambda: pictures.running_mean(events, predicted, margin))


def law_is(
    sample: Callable[[int], Tensor],
    cdf: Callable[[Tensor], Tensor],
    *,
    effect: float,
    alpha: float = ALPHA,
    chunk: int = 65_536,
) -> Evidence:
    """The draws follow the law with this distribution function, by the Dvoretzky-Kiefer-Wolfowitz inequality.

    `effect` is the Kolmogorov distance of the nearest lie. Measured is the largest gap between the two functions.
    Laws with atoms are welcome: `cdf` is then the step function itself, P(X <= x) at every real x, jumps included.
    """
    _check_test_arguments(effect, alpha, "both")
    n = _sample_size(lambda n: _dkw_radius(n, alpha) + _dkw_radius(n, BETA), effect)
    if n > SAMPLE_LIMIT[cost_class.get()]:
        return _too_many(n, 0.0, float("nan"), alpha)
    values = _take_sample(lambda draws: draws, sample, n, chunk).double().sort().values
    if bool(values.isnan().any()):  # a cdf made of comparisons would give them a place
        return Evidence("statistical", math.nan, 0.0, math.nan, alpha, "NaN among the draws")
    # Both functions are compared at each value and just before it: between values the empirical one is constant, so
    # that the largest gap is one of these, also where either of them jumps.
    after = torch.searchsorted(values, values, right=True).double() / n
    before = torch.searchsorted(values, values).double() / n
    theory, limit = cdf(values), cdf(values.nextafter(torch.tensor(-math.inf, dtype=values.dtype)))
    if theory.shape != values.shape:
        raise ValueError(f"cdf gave shape {tuple(theory.shape)} for {n} values: return one for each")
    rounding_unit("law_is", values=values, cdf=theory)
    gap = torch.maximum((after - theory).abs(), (before - limit).abs()).max()
    margin = _dkw_radius(n, alpha)
    detail = f"{n:,} samples, largest gap of the laws"
    evidence = Evidence("statistical", float(gap), 0.0, margin, alpha, detail)
    return while_watched(evidence, lambda: pictures.cumulative(values, theory))


# --- The arithmetic of error rates ---


def _check_test_arguments(effect: float, alpha: float, side: str) -> None:
    if not effect > 0:
        raise ValueError(f"effect must be > 0, got {effect}: state by how much the nearest lie is wrong")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    if side not in SIDES:
        raise ValueError(f"side must be one of {', '.join(SIDES)}, got {side!r}")


def _event_values(events: Tensor) -> Tensor:
    if events.dtype != torch.bool:
        raise TypeError(f"happens must return booleans, one for each trial, got {events.dtype}: compare first")
    return events


def _take_sample(
    statistic: Callable[[Tensor], Tensor],
    sample: Callable[[int], Tensor],
    n: int,
    chunk: int,
    bounds: tuple[float, float] | None = None,
) -> Tensor:
    parts = []
    for start in range(0, n, chunk):
        count = min(chunk, n - start)
        values = statistic(sample(count))
        if values.shape != (count,):
            raise ValueError(f"asked for {count} draws, got values of shape {tuple(values.shape)}: return one for each")
        if bounds and bool(((values < bounds[0]) | (values > bounds[1])).any()):
            raise ValueError(f"the statistic leaves its bounds {bounds}: got {values.min():.4g} to {values.max():.4g}")
        parts.append(values.detach())
    return torch.cat(parts)


def _tail_quantile(probability: float) -> float:
    return float(-special.ndtri(probability))


def _sample_moments(values: Tensor, side: str) -> tuple[float, float, float]:
    """Mean, standard deviation, and the skewness towards the tail that could raise a false alarm."""
    values = values.double()
    mean, spread = values.mean(), values.std()
    skew = float(((values - mean) / spread).pow(3).mean()) if spread > 0 else 0.0
    return float(mean), float(spread), {"both": abs(skew), "at_least": max(skew, 0.0), "at_most": max(-skew, 0.0)}[side]


def _detectable_error(n: int, spread: float, skew: float, width: float, alpha: float, side: str) -> float:
    """The smallest error of the mean that n draws find with the power promised."""
    return _half_width(n, spread, skew, width, alpha, side) + _tail_quantile(BETA) * spread / math.sqrt(n)


def _half_width(n: int, spread: float, skew: float, width: float, alpha: float, side: str) -> float:
    share = alpha / 2 if side == "both" else alpha
    if width:  # empirical Bernstein (Maurer and Pontil 2009, theorem 4)
        log = math.log(2 / share)
        return spread * math.sqrt(2 * log / n) + 7 * width * log / (3 * max(n - 1, 1))
    return _student_quantile(n, share, skew) * spread / math.sqrt(n)


def _student_quantile(n: int, share: float, skew: float) -> float:
    r"""The quantile of Student's law, moved out for skewed statistics.

    Far out, at the $z \approx 6$ of $\alpha = 10^{-9}$, one tail of Student's ratio is heavier by the factor
    $\exp(|\mathrm{skew}|\, z^3 / 3\sqrt n)$ (moderate deviations of self-normalised sums; Wang 2005): for
    exponential draws and n = 1,000 more than a hundred.
    """
    z = float(-special.stdtrit(max(n - 1, 1), share))
    for _ in range(40 if skew else 0):
        further = float(-special.stdtrit(max(n - 1, 1), share * math.exp(-skew * z**3 / (3 * math.sqrt(n)))))
        if further > math.sqrt(n):
            return math.inf  # too few draws to say anything about this tail
        if further - z < 1e-3:
            break
        z = further
    return z


def _dkw_radius(n: int, alpha: float) -> float:
    return math.sqrt(math.log(2 / alpha) / (2 * n))


def _accepted_counts(n: int, p: float, alpha: float, side: str) -> tuple[int, int]:
    """The counts that a true probability p gives except with probability alpha."""
    share = alpha / 2 if side == "both" else alpha
    low = _binomial_quantile(n, p, share) if side != "at_most" else 0
    high = n - _binomial_quantile(n, 1 - p, share) if side != "at_least" else n
    return low, high


def _binomial_quantile(n: int, p: float, share: float) -> int:
    """The least count k with P(K <= k) >= share, for K binomial."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if special.bdtr(middle, n, p) >= share else (middle, high)
    return high


def _binomial_miss(n: int, p: float, effect: float, alpha: float, side: str) -> float:
    """The chance that a probability wrong by `effect` is accepted."""
    low, high = _accepted_counts(n, p, alpha, side)
    misses = [0.0]
    if side != "at_most" and p - effect >= 0:
        misses.append(float(special.bdtrc(low - 1, n, p - effect)) if low else 1.0)
    if side != "at_least" and p + effect <= 1:
        misses.append(float(special.bdtr(high, n, p + effect)))
    if len(misses) == 1:
        raise ValueError(f"no probability is wrong by effect = {effect} from {p} on that side: lower it")
    return max(misses)


def _sample_size(error: Callable[[int], float], target: float) -> int:
    """The least n, up to one part in 64, whose error is at most the target."""
    n = 16
    while error(n) > target and n < 2**40:
        n *= 2
    low = n // 2
    while n - low > max(1, low // 64):
        middle = (low + n) // 2
        low, n = (middle, n) if error(middle) > target else (low, middle)
    return n


def _too_many(n: int, predicted: float, measured: float, alpha: float) -> Evidence:
    limit = SAMPLE_LIMIT[cost_class.get()]
    kind = cost_class.get()
    why = f"needs {n:,} samples, of class {kind} it may take {limit:,}: draw instances with a larger effect"
    return Evidence("statistical", measured, predicted, float("nan"), alpha, weak=why)
