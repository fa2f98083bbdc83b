"""Cross-talk: what stored patterns add to each other's fields, how it is spread, and how often it flips a bit."""

import math

import torch
from scipy import integrate, stats

from lemmata.connectionism.hopfield import HopfieldNetwork
from lemmata.connectionism.hopfield_theory import (
    crosstalk,
    crosstalk_variance,
    error_probability,
    flip_probability,
)
from lemmata.judge import (
    Figure,
    Line,
    Points,
    all_of,
    always,
    claim,
    close,
    exactly,
    law_is,
    lie,
    mean_is,
    slope_is,
)


@claim("hopfield.crosstalk")
@lie("the sum includes j = i although no unit hears itself", diagonal=1.0)
@lie("the pattern's own signal is 1", own=0.0)
@lie("cross-talk below 1 is necessary", exists=False)
def field_is_signal_plus_crosstalk(draw, diagonal=0.0, own=1.0, exists=True, network=HopfieldNetwork):
    """The triple sum of the definition against the field; then 100 networks: who is quiet, who is stable."""
    n = 64  # a power of two: every quotient below is exact
    patterns = draw.signs(5, n)
    others, pairs = 1 - torch.eye(5).double(), 1 - (1 - diagonal) * torch.eye(n).double()
    summed = torch.einsum("tr,ij,ri,rj,tj->ti", others, pairs, patterns, patterns, patterns) / n
    batch = draw.signs(100, 10, n)
    noise = crosstalk(batch)
    stable = torch.stack([network.from_patterns(each).is_stable(each) for each in batch])
    left = batch * noise + (1 - own / n)
    kept = ((left > 0) | (left == 0) & (batch > 0)).all(-1)  # a tie goes to +1
    quiet = (noise.abs() < 1 - 1 / n).all(-1)
    return all_of(
        exactly(network.from_patterns(patterns).field(patterns), (1 - own / n) * patterns + summed),
        exactly(crosstalk(patterns), summed),
        exactly(stable, kept),
        always(stable[quiet]),
        exactly(bool((stable & (noise.abs() > 1).any(-1)).any()), exists),
        # With the diagonal kept the signal is 1 and the cross-talk gains (s - 1) / n.
        exactly(patterns @ patterns.T @ patterns / n, patterns + crosstalk(patterns) + (5 - 1) / n * patterns),
    )


@claim("hopfield.crosstalk_distribution")
@lie("mean 0 for the sum that includes j = i", diagonal=1.0)
@lie("a pattern is noise to itself", own=0)
@lie("the standard deviation is s/n", power=2.0)
def crosstalk_is_a_centred_gaussian(draw, diagonal=0.0, own=1, power=1.0, noise=crosstalk):
    """All networks of three small sizes, and random ones of 32 units, against the law of so many fair coins; the gap of
    that law to the Gaussian as n grows, for a quarter as many patterns."""

    def along(patterns):
        """The cross-talk of the first bit, towards (+) or against (-) its value."""
        same_unit = (patterns.shape[1] - 1) / patterns.shape[2]
        return (patterns * noise(patterns))[:, 0, 0] + diagonal * same_unit

    def coins(n, s):
        return (s - own) * (n - 1)

    small, sizes, every = [(4, 3), (8, 2), (4, 4)], [64, 256, 1024, 4096], all_patterns(3, 4)
    everywhere = [along(all_patterns(s, n)) for n, s in small]
    counted = [sums_of_signs(coins(n, s), n, 2 ** (s * n)) for n, s in small]
    kept = every * (every @ every.mT @ every / 4 - every)
    return all_of(
        law_is(lambda size: along(draw.signs(size, 8, 32)), law_of_coins(coins(32, 8), 32), effect=0.02, chunk=4096),
        close(torch.cat([z.sort().values for z in everywhere]), torch.cat(counted)),
        exactly([float(z.square().mean()) for z in everywhere], [crosstalk_variance(n, s) for n, s in small]),
        exactly(float(kept.mean()), (3 - 1) / 4, detail="the mean with the diagonal kept"),
        slope_is(sizes, [gap_to_gaussian(coins(n, n // 4), n, 0.25 ** (power / 2)) for n in sizes], -1.0, within=0.05),
        slope_is(sizes, [1 - crosstalk_variance(n, n // 4) / 0.25 for n in sizes], -1.0, within=0.05),
    )


def normaliser(load):
    """What makes the area under a Gaussian of this variance 1."""
    return math.sqrt(1 / (2 * math.pi * load))


def missing(load):
    """No normaliser."""
    return 1.0


@claim("hopfield.error_probability")
@lie("the Gaussian has lost its normaliser", printed="003/1", factor=missing)
@lie("both tails count", tails=2)
@lie("the variance is twice the load", width=2.0)
def bits_flip_with_the_tail_of_a_gaussian(draw, factor=normaliser, tails=1, width=1.0):
    """The tail integral against the erf form; flips of random networks against their exact law, and its limit."""
    loads = [0.05, 0.1, 0.2, 0.5, 1.0]
    formula = [error_probability(load) for load in loads]

    def frequency(stored):
        chance = flip_probability(32, stored)
        return mean_is(
            flipped_bits, lambda size: draw.signs(size, stored, 32), tails * chance, effect=0.1 * chance, alpha=5e-10,
            chunk=4096,
        )  # fmt: skip

    counted = [float(flipped_bits(all_patterns(s, 4)).mean()) for s in (1, 2, 3)]
    sizes = [10**k for k in range(2, 7)]
    gaps = [abs(flip_probability(n, n // 10) / error_probability(width * 0.1) - 1) for n in sizes]
    return all_of(
        close([factor(load) * tail(load) for load in loads], formula, scale=formula, ulps=1e4),
        close(counted, [flip_probability(4, s) for s in (1, 2, 3)]),
        frequency(8),
        frequency(16),
        slope_is(sizes, gaps, -1.0, within=0.2),
    ).showing(error_figure(lambda load: tails * factor(width * load) * tail(width * load)))


def error_figure(claimed, n=256):
    """The probability that is claimed at each load, and that of a network of so many units."""
    loads = [0.06 + 0.02 * k for k in range(48)]
    marks = [
        Line(loads, [claimed(load) for load in loads], "Gaussian tail"),
        Points(loads[::4], [flip_probability(n, round(load * n)) for load in loads[::4]], f"exactly, for {n} units"),
    ]
    return Figure("A stored bit is unstable", "load s/n", "probability", marks, y_log=True)


# --- What the claims draw ---


def tail(load):
    """The integral from 1 to infinity of exp(-z^2 / 2 load), to twelve digits."""
    return integrate.quad(lambda z: math.exp(-z * z / (2 * load)), 1, math.inf, epsabs=0, epsrel=1e-12)[0]


def flipped_bits(patterns):
    """The fraction of stored bits that one update destroys in each network; exact if units are a power of two."""
    field = (1 - 1 / patterns.shape[-1]) * patterns + crosstalk(patterns)
    return ((field >= 0) != (patterns > 0)).double().mean((1, 2))


def sums_of_signs(coins, units, cases):
    """The sums of so many signs, divided by the units: each as often as it occurs among the cases, in order."""
    heads = torch.arange(coins + 1)
    often = torch.tensor([cases * math.comb(coins, k) // 2**coins for k in range(coins + 1)])
    return ((2 * heads - coins).double() / units).repeat_interleave(often)


def law_of_coins(coins, units):
    """The distribution function of a sum of so many signs, divided by the units."""
    return lambda z: torch.from_numpy(stats.binom.cdf((((units * z).floor() + coins) / 2).floor().numpy(), coins, 0.5))


def gap_to_gaussian(coins, units, deviation):
    """The largest distance of the two distribution functions, just before and just after each jump."""
    heads = torch.arange(int(coins / 2 - 5 * coins**0.5), int(coins / 2 + 5 * coins**0.5)).double()
    law = torch.from_numpy(stats.binom.cdf(heads.numpy(), coins, 0.5))
    gaussian = torch.special.ndtr((2 * heads - coins) / units / deviation)
    return float(torch.cat([(law - gaussian).abs(), (law[:-1] - gaussian[1:]).abs()]).max())


def all_patterns(stored, units):
    """Every way to store so many patterns."""
    bits = torch.arange(2 ** (stored * units))[:, None] >> torch.arange(stored * units) & 1
    return (1 - 2 * bits.double()).view(-1, stored, units)
