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
@lie("the transition is at half the load", critical=0.069)
@lie("the noise of the other patterns does not feed back on itself", feedback=0.0)
def retrieval_breaks_down_at_the_critical_load(draw, critical=0.138, feedback=1.0, network=HopfieldNetwork):
    """Overlap recalled by 200 units from 5 % noise, at 0.6 and 1.75 of the critical load; the mean-field equations."""
    loads = [0.02, 0.06, 0.1, 0.12, 0.13]
    solved = torch.tensor([iterated(load, feedback) for load in loads], dtype=torch.float64)
    theory = torch.tensor([retrieval_overlap(load) for load in loads], dtype=torch.float64)
    above, below = (retrieval_overlap(critical_load() * (1 + gap)) for gap in (1e-9, -1e-9))
    # The iteration stops when a step is below 1e-13 and gains a factor of 1.6 or more with each step.
    equations = all_of(close(theory, solved, within=1e-12), always([above == 0.0, below > 0.96]))
    if not equations.holds:  # recall is dear: no need to run it
        return equations
    retrieval = recalls(draw, network, 0.6 * critical, lambda overlap: overlap >= 0.97)
    if not retrieval.holds:
        return retrieval
    avalanche = recalls(draw, network, 1.75 * critical, lambda overlap: overlap <= 0.75)
    digits = close(critical_load(), critical, within=5e-4)  # the statement gives three digits
    evidence = all_of(retrieval, avalanche, equations, digits)
    return evidence.showing(overlap_figure(draw, network)) if evidence.holds else evidence


@claim("hopfield.capacity_log")
@lie("the logarithm is to base 2", base=2.0)
@lie("twice as many", factor=1.0)
@lie("half as many", factor=4.0)
@lie("as many if all patterns are to be stable at once", share=1.0)
def capacity_without_error_is_n_over_two_log_n(draw, base=math.e, factor=2.0, share=0.5):
    """The bits that one update is expected to flip, by the exact law, as n grows: in one pattern at multiples c of the
    capacity, and in all patterns at its half; and how often patterns of networks of 512 units are stable."""

    def stored(n, c):
        return round(c * n / (factor * math.log(n, base)))

    def errors(n, c):
        """Unstable bits in one pattern, times the root of ln n by which the tail of a Gaussian is smaller."""
        return n * flip_probability(n, stored(n, c)) * math.log(n) ** 0.5

    def all_errors(n, c):
        """Unstable bits in all patterns, whose number grows like n / ln n."""
        return stored(n, c * share) * errors(n, c * share) * math.log(n)

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


def recalls(draw, network, load, holds):
    """Nineteen networks in twenty, or more, recall with an overlap for which `holds` is true."""

    def happens(size):
        return torch.tensor([holds(recalled_overlap(draw, network, 200, load, 6)) for _ in range(size)])

    return probability_is(happens, 0.95, effect=0.9, side="at_least", alpha=5e-10)


def recalled_overlap(draw, network, units, load, max_sweeps, dynamics="asynchronous"):
    """Mean overlap after recall with up to 20 stored patterns, each from 5 % noise."""
    stored = draw.signs(round(load * units), units).float()
    pure = stored[:20]
    noisy = torch.where(draw.uniform(*pure.shape) < 0.05, -pure, pure)
    return float((network.from_patterns(stored).recall(noisy, dynamics, max_sweeps).states * pure).mean())


def iterated(load, feedback):
    """The three mean-field equations, each inserted into the next until nothing moves."""
    overlap, noise = 1.0, 1.0
    for _ in range(10_000):
        before, width = overlap, math.sqrt(2 * load * noise)
        response = 2 / math.sqrt(math.pi) / width * math.exp(-((overlap / width) ** 2))
        overlap, noise = math.erf(overlap / width), (1 - feedback * response) ** -2
        if abs(overlap - before) < 1e-13:
            break
    return overlap


def stable(draw, size, stored, units, first=None):
    """Which of the first stored patterns of each network keep all their bits."""
    patterns = draw.signs(size, stored, units).float()
    heard = patterns[:, :first]
    return ((1 - 1 / units) * heard + crosstalk(patterns, first)).mul(heard).gt(0).all(-1)


def overlap_figure(draw, network):
    """Synchronous recall, which is a matrix product for each sweep: larger networks at the price of a few."""
    loads = [0.05, 0.1, 0.12, 0.135, 0.15, 0.175, 0.2, 0.25]
    marks = []
    for units, networks in ((100, 6), (400, 2), (1000, 1)):
        runs = [
            [recalled_overlap(draw, network, units, load, 20, "synchronous") for load in loads] for _ in range(networks)
        ]
        marks.append(Points(loads, torch.tensor(runs).mean(dim=0), f"{units} units"))
    curve = [0.25 * k / 200 for k in range(1, 201)]
    marks.append(Line(curve, [retrieval_overlap(load) for load in curve], "mean-field theory, infinitely many"))
    marks.append(Line([critical_load()] * 2, [0.0, 1.0], f"critical load {critical_load():.3f}"))
    return Figure("Retrieval breaks down", "load s/n", "overlap after recall", marks)
