r"""How much the draws of Markov chains are worth: effective sample sizes, R-hat, and the error of a mean."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["ChainDiagnostics", "diagnose_chains", "effective_sample_size"]

TAILS = (0.05, 0.95)  # quantiles whose indicators make the effective size of the tails
FEWEST_DRAWS = 4  # in each chain: two halves of two


class ChainDiagnostics(NamedTuple):
    """One value for each quantity that was drawn; `reasons` is empty where all is well, else says why there is none."""

    mean: Float[Tensor, " dimension"]
    standard_deviation: Float[Tensor, " dimension"]
    mcse: Float[Tensor, " dimension"]
    bulk: Float[Tensor, " dimension"]
    tail: Float[Tensor, " dimension"]
    r_hat: Float[Tensor, " dimension"]
    reasons: tuple[str, ...]


@system("chain_diagnostics", title="Diagnostics of Markov chains", kind="function")
def diagnose_chains(values: Float[Tensor, "chains draws *dimension"]) -> ChainDiagnostics:
    r"""Bulk and tail effective sample size, rank-normalised split $\hat R$, and the standard error of each mean.

    $$ \hat n = \frac{mn}{\hat\tau},\quad \hat\tau=-1+2\sum_k\hat P_k,\qquad
       \hat R=\sqrt{\frac{\frac{n-1}{n}W+\frac1nB}{W}},\qquad \mathrm{MCSE}=\frac{s}{\sqrt{\hat n}} $$

    Every chain is cut into two halves, so that a drift shows within one chain. `bulk` and `r_hat` look at normal scores
    of the ranks, so that heavy tails do no harm; `tail` is the smaller effective size of the indicators of the 5 % and
    95 % quantiles; `r_hat` is the larger of that of the values and of their distance from the median. Chains that have
    come together have `r_hat` below 1.01 and `bulk` above a hundred for each chain. Where all draws are one number, or
    each chain stands still, nothing can be said: the values are NaN, and `reasons` names why.

    Shapes:
        values: (chains, draws, dimension) or (chains, draws)    returns: (dimension,) each

    Source: A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P. Bürkner, Rank-normalization, folding, and
        localization: an improved R-hat (2021); C. Geyer, Practical Markov chain Monte Carlo (1992).

    >>> independent = torch.randn(4, 1000, 1, generator=torch.Generator().manual_seed(0))
    >>> found = diagnose_chains(independent)
    >>> round(found.r_hat.item(), 2), found.bulk.item() > 3000
    (1.0, True)
    >>> diagnose_chains(torch.ones(4, 1000, 1)).reasons
    ('every draw is 1',)
    """
    values = _checked_draws(values)
    found: list[list[float]] = []
    reasons = []
    for x in values.double().unbind(-1):
        reasons.append(reason := _standstill_reason(x))
        nothing = [math.nan] * 4
        found.append([x.mean().item(), x.std().item(), *(nothing if reason else _diagnose_values(x))])
    mean, spread, mcse, bulk, tail, r_hat = torch.tensor(found, dtype=torch.float64).unbind(1)
    return ChainDiagnostics(mean, spread, mcse, bulk, tail, r_hat, tuple(reasons))


def effective_sample_size(values: Float[Tensor, "chains draws"]) -> float:
    r"""How many independent draws would give a mean as exact as these: the draws over their autocorrelation time.

    Autocorrelations are those of all chains together, so that chains which disagree count little. Pairs of neighbouring
    lags are summed as long as they are positive, and made to fall (Geyer's initial monotone sequence). Chains are taken
    as they are: halve them before where they may drift. At most $mn\log_{10}(mn)$.

    >>> walk = torch.randn(1, 2000, generator=torch.Generator().manual_seed(0)).cumsum(1)
    >>> effective_sample_size(walk) < 20
    True
    """
    return _effective_size(_checked_draws(values)[..., 0].double())


def _checked_draws(values: Tensor) -> Tensor:
    values = validate.floating("values", values)
    if values.ndim == 2:
        values = values.unsqueeze(-1)
    if values.ndim != 3:
        raise ValueError(f"values must be a (chains, draws, dimension) tensor, got shape {tuple(values.shape)}")
    if values.shape[1] < FEWEST_DRAWS:
        raise ValueError(f"values must hold at least {FEWEST_DRAWS} draws of each chain, got {values.shape[1]}")
    return values


def _standstill_reason(x: Tensor) -> str:
    """Why nothing can be said about these chains, if so."""
    if bool((x == x[0, 0]).all()):
        return f"every draw is {x[0, 0].item():g}"
    return "every chain stands still where it started" if bool((x == x[:, :1]).all()) else ""


def _diagnose_values(x: Float[Tensor, "chains draws"]) -> list[float]:
    halves = _split_halves(x)
    scores = _normal_scores(halves)
    error = x.std() / math.sqrt(_effective_size(halves))
    tail = min(_effective_size(_split_halves((x <= _quantile_indicator(x, q)).double())) for q in TAILS)
    folded = _normal_scores((halves - _quantile_indicator(halves, 0.5)).abs())
    return [error.item(), _effective_size(scores), tail, max(_r_hat(scores), _r_hat(folded))]


def _effective_size(values: Float[Tensor, "chains draws"]) -> float:
    chains, draws = values.shape
    if bool((values == values[0, 0]).all()):
        return float(values.numel())  # as arviz has it: no draw differs from their mean
    covariance = _chain_autocovariance(values).mean(0)  # (draws,)
    within = covariance[0] * draws / (draws - 1)
    total = covariance[0]
    if chains > 1:
        total = total + values.mean(1).var()
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1.0
    pairs = correlation[: 2 * (max(0, (draws - 3) // 2) + 1)].view(-1, 2)  # of lags (0, 1), (2, 3), ...
    sums = pairs.sum(1)
    ends = (sums <= 0).nonzero()
    last = int(ends[0]) if len(ends) else len(sums) - 1
    falling = sums[:last].cummin(0).values if last else sums[:0]
    half = pairs[last, 0] if sums[last] >= 0 else pairs[last, 0].clamp(min=0)
    time = float(-1 + 2 * falling.sum() + half)
    return values.numel() / max(time, 1 / math.log10(values.numel()))


def _split_halves(x: Float[Tensor, "chains draws"]) -> Float[Tensor, "twice half"]:
    """Each chain as two; the draw in the middle of an odd number is left out."""
    half = x.shape[1] // 2
    return torch.cat([x[:, :half], x[:, -half:]])


def _chain_autocovariance(x: Float[Tensor, "chains draws"]) -> Float[Tensor, "chains draws"]:
    """At every lag, divided by the number of draws; the transform is twice as long, so that nothing wraps around."""
    draws = x.shape[1]
    size = 2 ** math.ceil(math.log2(2 * draws))
    spectrum = torch.fft.rfft(x - x.mean(1, keepdim=True), n=size)
    return torch.fft.irfft(spectrum.abs().square(), n=size)[:, :draws] / draws


def _normal_scores(x: Tensor) -> Tensor:
    """The quantiles of the normal distribution at the ranks, ties sharing the mean of theirs."""
    flat, order = x.flatten().sort()
    _, which, count = flat.unique_consecutive(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    rank = (last - (count.double() - 1) / 2)[which]
    scores = torch.special.ndtri((rank - 0.375) / (x.numel() + 0.25))
    return torch.empty_like(scores).scatter_(0, order, scores).view_as(x)


def _quantile_indicator(x: Tensor, q: float) -> Tensor:
    """By linear interpolation, of as many values as there are (torch.quantile takes 16 million at most)."""
    ordered = x.flatten().sort().values
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low].lerp(ordered[high], place - low)


def _r_hat(x: Float[Tensor, "chains draws"]) -> float:
    draws = x.shape[1]
    within, between = x.var(1).mean(), draws * x.mean(1).var()
    return float(((between / within + draws - 1) / draws).sqrt())
