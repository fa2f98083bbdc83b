r"""The divergence of two coins, and its inverses: how far a true rate can be from an observed one.

Whatever is returned is rounded outwards: the upper inverse is never below the true one and the lower never above it,
so that a certificate made of them stays one. A bound of the rounding in each divergence proves it, no closed form.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["bernoulli_kl", "kl_inverse"]

# Terms of the series below its largest argument, (1/3)^2: what is left out is less than a unit in the last place.
TERMS = 17
# What each way to the divergence may be off by: of the result where no term is negative, and of the sizes of its two
# terms where they cancel. Each is made of a dozen operations; a test measures 2 units against 660 digits.
ROUNDING = 32 * torch.finfo(torch.float64).eps
TINY = 1e-290  # below it numbers lose digits, and nothing is proved of them
# The bits of a positive double count its predecessors, so that halving them meets any double in 63 steps.
STEPS = 64


@system("bernoulli_kl", title="Divergence of two coins", kind="function")
def bernoulli_kl(q: Float[Tensor, "*#batch"] | float, p: Float[Tensor, "*#batch"] | float) -> Float[Tensor, "..."]:
    r"""The Kullback-Leibler divergence of two coins that show heads with probability q and p.

    $$ \mathrm{kl}(q\|p) = q\ln\frac qp + (1-q)\ln\frac{1-q}{1-p} $$

    Exact to a few units in the last place also where p and q are nearly equal, infinite where p is 0 or 1 and q is not.

    Shapes:
        q, p: (batch)    returns: (batch), float64

    Claims: pac.bound

    >>> bernoulli_kl(torch.tensor([0.0, 0.5, 0.5]), torch.tensor([0.5, 0.5, 1.0]))
    tensor([0.6931, 0.0000,    inf], dtype=torch.float64)
    """
    rate, other = torch.broadcast_tensors(_double_probability("q", q), _double_probability("p", p))
    first, second = _both_terms(rate, other)
    near, valid = _without_cancellation(rate, other)
    return torch.where(valid, near, first + second).clamp(min=0.0)


@system("kl_inverse", title="Inverse of the binary divergence, rounded outwards", kind="function")
def kl_inverse(
    q: Float[Tensor, "*#batch"] | float, divergence: Float[Tensor, "*#batch"] | float, side: str = "above"
) -> Float[Tensor, "..."]:
    r"""The farthest probability that is within a divergence of q: above it, or with `side="below"` below it.

    $$ \mathrm{kl}^{-1}(q\mid c) = \max\{p \in [q, 1] : \mathrm{kl}(q\|p) \le c\} $$

    Never on the wrong side of the true one, and 1 (or 0) where that is nearer to it than to any other number. Gradients
    are those of the implicit function; they are infinite at c = 0 and, in q, at q = 0 (below: q = 1).

    $$ \frac{\partial p}{\partial c} = \frac{p(1-p)}{p-q}, \qquad
       \frac{\partial p}{\partial q} = \frac{p(1-p)}{p-q}\ln\frac{p(1-q)}{q(1-p)} $$

    Shapes:
        q, divergence: (batch)    returns: (batch), in the dtype of q

    Claims: pac.bound
    Source: Langford and Seeger 2001; Reeb et al. 2018 (gradients).  Differs: bisection over the bits of a double, which
    ends at neighbours, in place of Newton's steps, which pass 1 or stay at q.

    >>> kl_inverse(torch.tensor([0.0, 0.05, 0.597]), torch.tensor([0.01, 0.01, 2850.0]))
    tensor([0.0100, 0.0869, 1.0000])
    >>> kl_inverse(0.05, 0.01, side="below")
    tensor(0.0250, dtype=torch.float64)
    """
    validate.one_of("side", side, ("above", "below"))
    dtype = q.dtype if isinstance(q, Tensor) and q.is_floating_point() else torch.float64
    q = _double_probability("q", q)
    c = divergence if isinstance(divergence, Tensor) else torch.tensor(float(divergence), dtype=torch.float64)
    if validate.visible(c) and (c.detach().isnan().any() or c.detach().amin() < 0):
        raise ValueError(f"divergence must be >= 0, got {float(c.detach().amin()):g}: a divergence is never negative")
    found = _Inverse.apply(*torch.broadcast_tensors(q, c.double().to(q.device)), side == "above")
    return found if dtype == torch.float64 else _round_outward(found, dtype, side == "above")


class _Inverse(torch.autograd.Function):
    """Bisection forwards, the implicit function backwards."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, c: Tensor, above: bool) -> Tensor:
        # One end stays where the divergence is proved to be at least c, or at the last number of all.
        inner, outer = q, torch.ones_like(q) if above else torch.zeros_like(q)
        inner, outer = inner.contiguous().view(torch.int64), outer.view(torch.int64)
        for _ in range(STEPS):
            middle = inner + torch.div(outer - inner, 2, rounding_mode="trunc")
            enough = _at_least(q, middle.view(torch.float64)) >= c
            inner, outer = torch.where(enough, inner, middle), torch.where(enough, middle, outer)
        return torch.where(c == 0, q, outer.view(torch.float64))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
        q, _, _ = inputs
        ctx.save_for_backward(q, output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        q, p = ctx.saved_tensors
        (above,) = gradients
        at_end, at_start = (p == 0) | (p == 1), p == q
        slope = torch.where(at_end, 0.0, p * (1 - p) / (p - q))
        odds = torch.where(at_end, 0.0, torch.log(p) - torch.log1p(-p) - torch.log(q) + torch.log1p(-q))
        along = torch.where(at_start, 1.0, torch.where(at_end, 0.0, slope * odds))
        return above * along, above * slope, None


def _at_least(q: Tensor, p: Tensor) -> Tensor:
    """A number that the divergence is proved to reach: by one of two ways, less what it may have rounded."""
    (first, second), (near, valid) = _both_terms(q, p), _without_cancellation(q, p)
    far = first + second - ROUNDING * (first.abs() + second.abs())
    found = torch.where(valid, near - ROUNDING * near, torch.where(far.isnan(), 0.0, far)) - TINY
    return torch.where((p > 0) & (p < TINY), 0.0, found)


def _both_terms(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """q ln(q / p) and (1 - q) ln((1 - q) / (1 - p)), each to a few units in its own last place."""
    return _one_term(q, p, p - q), _one_term(1 - q, 1 - p, q - p)


def _one_term(weight: Tensor, p: Tensor, gap: Tensor) -> Tensor:
    """weight ln(weight / p), for p - weight known as well as p is; nothing where the weight is 0."""
    some = weight > 0
    whole = torch.where(some, weight, 1.0)
    ratio = torch.where(some, gap / whole, 0.0)
    # ln(1 + x) magnifies the rounding of x where x is near -1; there the quotient itself is far from 1.
    near = (ratio > -0.75) & (ratio < 1)
    quotient = (torch.where(near, whole, p) / whole).clamp(max=torch.finfo(p.dtype).max)
    logarithm = torch.where(near, torch.log1p(torch.where(near, ratio, 0.0)), torch.log(quotient))
    return torch.where(some, -weight * logarithm, 0.0)


def _without_cancellation(q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """q φ((p - q) / q) + (1 - q) φ((q - p) / (1 - q)), of which no term is negative; and where it may be used."""
    gap = p - q
    valid = gap.abs() < 0.5 * torch.minimum(q, 1 - q)
    gap, one, other = (torch.where(valid, part, rest) for part, rest in ((gap, 0.0), (q, 0.5), (1 - q, 0.5)))
    return one * _log_lag(gap / one) + other * _log_lag(-gap / other), valid


def _log_lag(x: Tensor) -> Tensor:
    r"""φ(x) = x - ln(1 + x) for |x| at most about 1/2, from ln(1 + x) = 2 artanh r with r = x / (2 + x)."""
    r = x / (2 + x)
    square, series = r * r, torch.zeros_like(r)
    for k in reversed(range(TERMS)):
        series = series * square + 1 / (2 * k + 3)
    return r * (x - 2 * square * series)


def _round_outward(found: Tensor, dtype: torch.dtype, above: bool) -> Tensor:
    """The same in another dtype, rounded away from q; its ends 0 and 1 are numbers of every dtype."""
    rounded = found.to(dtype)
    wrong = rounded.double() < found if above else rounded.double() > found
    beyond = rounded.detach().nextafter(torch.full_like(rounded, math.inf if above else -math.inf)) - rounded.detach()
    return torch.where(wrong.detach(), rounded + beyond, rounded)


def _double_probability(name: str, value: Tensor | float) -> Tensor:
    """Doubles from 0 to 1."""
    found = value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=torch.float64)
    if validate.visible(found):
        plain = found.detach()
        if plain.isnan().any() or plain.amin() < 0 or plain.amax() > 1:
            worst = plain.amin() if plain.amin() < 0 or plain.isnan().any() else plain.amax()
            raise ValueError(f"{name} must lie between 0 and 1, got {float(worst):g}: clip or rescale it first")
    return found.double()
