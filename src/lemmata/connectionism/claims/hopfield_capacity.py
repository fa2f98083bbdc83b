"""How much a Hopfield network holds: with few errors up to a critical load, without error far less."""

import math

import torch

from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.hopfield_theory import (
    critical_load,
    crosstalk,
    error_free_capacity,
    flip_probability,
    retrieval_overlap,
)
from lemmata.judge import Figure, Line, Points, all_of, always, claim, close, lie, probability_is, slope_is


@claim("hopfield.phase_transition")
@lie("the transition is at one half", critical=0.5)
def retrieval_breaks_down_at_the_critical_load(draw, critical=0.138, network=HopfieldNetwork):
    """Overlap recalled by 200 units from 5 % noise, at 0.6 and 1.75 of the critical load; where mean-field theory has a
    retrieval state."""
    above, below = (retrieval_overlap(critical_load() * (1 + gap)) for gap in (1e-9, -1e-9))
    low, high = [], []  # the overlaps met
    return all_of(
        close(critical_load(), critical, within=5e-4),  # the statement gives three digits
        always([above == 0.0, below > 0.96]),
        recalls(draw, network, 0.6 * critical, lambda overlap: overlap >= 0.97, low),
        recalls(draw, network, 1.75 * critical, lambda overlap: overlap <= 0.75, high),
    ).showing(overlap_figure(critical, low[:20], high[:20]))


@claim("hopfield.capacity_log")
@lie("the logarithm is to base 2", base=2.0)
@lie("twice as many", factor=1.0)
@lie("as many if all patterns are to be stable at once", fraction=1.0)
def capacity_without_error_is_n_over_two_log_n(draw, base=math.e, factor=2.0, fraction=0.5):
    """The bits that one update is expected to flip, by the exact law, as n grows: in one pattern at multiples c of the
    capacity, and in all patterns at its half; and how often patterns of networks of 512 units are stable."""

    def stored(n, c):
        return round(c * n / (factor * math.log(n, base)))

    def errors(n, c):
        """Unstable bits in one pattern, times the root of ln n by which the tail of a Gaussian is smaller."""
        return n * flip_probability(n, stored(n, c)) * math.log(n) ** 0.5

    def all_errors(n, c):
        """Unstable bits in all patterns, whose number grows like n / ln n."""
        return stored(n, c * fraction) * errors(n, c * fraction) * math.log(n)

    sizes, n = [10**k for k in range(4, 10)], 512  # a power of two: fields are exact in float32
    slopes = [slope_is(sizes, [errors(n, c) for n in sizes], 1 - 1 / c, within=0.01) for c in (1.0, 1.25, 2.0)]
    slopes += [slope_is(sizes, [all_errors(n, c) for n in sizes], 2 - 2 / c, within=0.02) for c in (1.0, 2.0)]

    def kept(c):
        return lambda size: stable(draw, size, stored(n, c), n, first=1)[:, 0]

    union_bound = 1 - n * flip_probability(n, stored(n, 1.0))
    return all_of(
        *slopes,
        close([error_free_capacity(n) for n in sizes], [n / (factor * math.log(n, base)) for n in sizes]),
        probability_is(kept(1.0), union_bound, effect=0.2, side="at_least", alpha=5e-10, chunk=32),
        probability_is(kept(2.0), 0.1, effect=0.2, side="at_most", alpha=5e-10, chunk=32),
    )


# --- What the claims draw, solve and show ---


def recalls(draw, network, load, holds, met):
    """Nineteen networks in twenty, or more, recall with an overlap for which `holds` is true."""

    def happens(size):
        met.extend(recalled_overlap(draw, network, 200, load) for _ in range(size))
        return torch.tensor([holds(overlap) for overlap in met[-size:]])

    return probability_is(happens, 0.95, effect=0.9, side="at_least", alpha=5e-10)


def recalled_overlap(draw, network, units, load):
    """Mean overlap after recall with up to 20 stored patterns, each from 5 % noise."""
    stored = draw.signs(round(load * units), units).float()
    pure = stored[:20]
    noisy = torch.where(draw.uniform(*pure.shape) < 0.05, -pure, pure)
    return float((network.from_patterns(stored).recall(noisy, max_sweeps=6).states * pure).mean())


def stable(draw, size, stored, units, first=None):
    """Which of the first stored patterns of each network keep all their bits."""
    patterns = draw.signs(size, stored, units).float()
    heard = patterns[:, :first]
    return ((1 - 1 / units) * heard + crosstalk(patterns, first)).mul(heard).gt(0).all(-1)


def overlap_figure(critical, low, high):
    """What networks recalled below and above the load that is said to be critical, and what theory says."""
    curve = [0.9 * k / 300 for k in range(1, 301)]
    met = [*zip([0.6 * critical] * len(low), low, strict=True), *zip([1.75 * critical] * len(high), high, strict=True)]
    marks = [
        Points([load for load, _ in met], [overlap for _, overlap in met], "200 units"),
        Line(curve, [retrieval_overlap(load) for load in curve], "mean-field theory, infinitely many"),
        Line([critical] * 2, [0.0, 1.0], "critical load"),
    ]
    return Figure("Retrieval breaks down", "load s/n", "overlap after recall", marks)
