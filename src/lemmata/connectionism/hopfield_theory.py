r"""What theory says about a Hopfield network that stores random patterns: cross-talk, errors, capacity.

Throughout, $n$ units store $s$ patterns of independent random signs by Hebb's rule; $\alpha = s/n$ is the load.
"""

import math
from functools import cache

from jaxtyping import Float
from scipy import optimize, special
from torch import Tensor

from lemmata.validate import count, positive, signs

__all__ = [
    "crosstalk",
    "crosstalk_variance",
    "flip_probability",
    "error_probability",
    "error_free_capacity",
    "retrieval_overlap",
    "critical_load",
]


def crosstalk(
    patterns: Float[Tensor, "*batch patterns units"], first: int | None = None
) -> Float[Tensor, "*batch first units"]:
    r"""What the other patterns add to the field of each stored pattern, without forming the couplings.

    $$ C_{t,i} = \frac1n \sum_{r \ne t} \sum_{j \ne i} x_{r,i} x_{r,j} x_{t,j}, \qquad
       n C = X X^\top X - (s + n - 1) X $$

    The Gram matrix of the patterns is all it needs, so a whole batch of networks costs $s^2 n$ each, not $s n^2$;
    `first` asks for the cross-talk of the first so many patterns only.

    Shapes:
        patterns: (..., patterns, units) of -1 and +1, in floating point    returns: (..., first or patterns, units)

    Claims: hopfield.crosstalk, hopfield.crosstalk_distribution, hopfield.capacity_log

    >>> import torch
    >>> crosstalk(torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, -1.0]]))
    tensor([[ 0.2500,  0.2500,  0.2500, -0.7500],
            [ 0.2500,  0.2500,  0.2500,  0.7500]])
    """
    if signs("patterns", patterns).ndim < 2:
        raise ValueError(f"patterns must be a (..., patterns, units) tensor, got shape {tuple(patterns.shape)}")
    if not patterns.is_floating_point():
        raise TypeError(f"patterns must be floating point, got {patterns.dtype}: use patterns.double()")
    stored, units = patterns.shape[-2:]
    heard = patterns if first is None else patterns[..., : count("first", first, most=stored), :]
    gram = heard @ patterns.mT  # (..., first, patterns)
    return (gram @ patterns - (stored + units - 1) * heard) / units  # (..., first, units)


def crosstalk_variance(units: int, patterns: int) -> float:
    r"""Variance of $x_{t,i} C_{t,i}$, a sum of $(s-1)(n-1)$ independent signs over $n$; its mean is 0.

    $$ \mathrm{Var} = \frac{(s-1)(n-1)}{n^2} \to \frac sn $$

    Claims: hopfield.crosstalk_distribution

    >>> crosstalk_variance(units=400, patterns=40)
    0.09725625
    """
    return (count("patterns", patterns) - 1) * (count("units", units) - 1) / units**2


def flip_probability(units: int, patterns: int) -> float:
    r"""Probability that the first update of one unit destroys a bit of a stored pattern, at this size and no limit.

    $$ P\big(x_{t,i} C_{t,i} < -(1 - \tfrac1n)\big) + \tfrac12 P\big(x_{t,i} C_{t,i} = -(1 - \tfrac1n)\big) $$

    $n\,x_{t,i}C_{t,i} = 2B - N$ with $B$ binomial of $N = (s-1)(n-1)$ fair coins; a tie harms only the bits -1,
    since $\mathrm{sgn}(0) = +1$. The binomial distribution is scipy's incomplete beta function: about twelve digits.

    Claims: hopfield.error_probability, hopfield.capacity_log

    >>> round(flip_probability(units=400, patterns=40), 6)
    0.00069
    """
    coins = (count("patterns", patterns) - 1) * (count("units", units, least=2) - 1)
    edge = (coins - (units - 1)) / 2
    return (_coins_at_most(math.floor(edge), coins) + _coins_at_most(math.ceil(edge) - 1, coins)) / 2


def _coins_at_most(heads: int, coins: int) -> float:
    """Binomial distribution function of fair coins; scipy's own `bdtr` fails beyond 2**31 of them."""
    return float(special.betainc(coins - heads, heads + 1, 0.5)) if heads >= 0 else 0.0


def error_probability(load: float) -> float:
    r"""The flip probability of a large network, from the load alone.

    $$ P = \sqrt{\frac{n}{2\pi s}} \int_1^\infty e^{-n z^2 / 2s}\,dz
         = \tfrac12\Big(1 - \mathrm{erf}\sqrt{n/2s}\Big) $$

    Claims: hopfield.error_probability

    >>> round(error_probability(0.1), 6)
    0.000783
    """
    return math.erfc(math.sqrt(1 / (2 * positive("load", load)))) / 2


def error_free_capacity(units: int) -> float:
    r"""How many random patterns can be stored so that a given one is a fixed point with probability tending to 1.

    $$ s = \frac{n}{2 \ln n} $$

    Half as many if all patterns are to be fixed points at once.

    Claims: hopfield.capacity_log

    >>> round(error_free_capacity(1000), 1)
    72.4
    """
    return count("units", units, least=2) / (2 * math.log(units))


def retrieval_overlap(load: float) -> float:
    r"""Overlap $m$ of the fixed point near a stored pattern with that pattern, for $n \to \infty$ at this load.

    $$ m = \mathrm{erf}\,\frac{m}{\sqrt{2\alpha r}}, \qquad r = (1 - C)^{-2}, \qquad
       C = \sqrt{\frac{2}{\pi\alpha r}}\; e^{-m^2/2\alpha r} $$

    With $y = m / \sqrt{2\alpha r}$ the three are one, $\sqrt{2\alpha} = \mathrm{erf}(y)/y - 2e^{-y^2}/\sqrt\pi$;
    its larger root is the retrieval state. Above the critical load there is none and the overlap is 0.

    Claims: hopfield.phase_transition
    Source: Amit, Gutfreund, Sompolinsky 1985, zero temperature, replica-symmetric.

    >>> round(retrieval_overlap(0.1), 4), retrieval_overlap(0.2)
    (0.998, 0.0)
    """
    width = math.sqrt(2 * positive("load", load))
    peak = _critical_width()
    if width > _retrieval_width(peak):
        return 0.0
    # The right side is below 1 / y, so the root lies below 1 / width.
    root = optimize.root_scalar(lambda y: _retrieval_width(y) - width, bracket=(peak, 2 / width))
    return math.erf(root.root)


def critical_load() -> float:
    r"""The largest load with a retrieval state, $\alpha_c = \max_y \frac12 (\mathrm{erf}(y)/y - 2e^{-y^2}/\sqrt\pi)^2$.

    Claims: hopfield.phase_transition
    Source: Amit, Gutfreund, Sompolinsky 1985, who give 0.138.

    >>> round(critical_load(), 6)
    0.137906
    """
    return _retrieval_width(_critical_width()) ** 2 / 2


def _retrieval_width(y: float) -> float:
    """The square root of twice the load whose retrieval state has m = erf(y)."""
    return math.erf(y) / y - 2 / math.sqrt(math.pi) * math.exp(-y * y)


@cache
def _critical_width() -> float:
    """The y of the critical load: left of it the width still grows with y."""
    found = optimize.minimize_scalar(lambda y: -_retrieval_width(y), bounds=(1, 2), method="bounded")
    return float(found["x"])  # type: ignore[index]
