"""Approximation: the uniform distance, the distance from a class, and what it is to be universal."""

import math

import numpy as np
import torch

from lemmata.feedforward.uniform_distances import UniformDistance, uniform_distance
from lemmata.feedforward.uniform_fits import UniformFit, uniform_fit
from lemmata.judge import all_of, at_most, claim, close, exactly, lie, slope_is


def _polynomial_value(coefficients):
    def value(x):
        total = torch.zeros_like(x)
        for c in reversed(list(coefficients)):
            total = total * x + float(c)
        return total

    return value


def _largest_value(coefficients):
    """The largest size of a polynomial on [-1, 1], where its derivative has a root or at an end."""
    polynomial = np.polynomial.Polynomial(coefficients.numpy())
    roots = polynomial.deriv().roots()
    inside = roots[np.abs(roots.imag) < 1e-6].real.clip(-1, 1)
    return float(np.abs(polynomial(np.concatenate([inside, [-1, 1]]))).max())


def _mean_gap(f, g, region, lipschitz):
    x = torch.linspace(region[0], region[1], 10_001, dtype=torch.float64)[:, None]
    mean = float((f(x) - g(x)).abs().mean())
    return UniformDistance(mean, mean, x[0], len(x))


def _narrow_bump(n):
    """Rises from 0 to 1 at 1/n and falls to 0 at 2/n."""
    return lambda x: torch.relu(1 - (n * x - 1).abs())


@claim("approx.uniform_metric")
@lie("the mean of the gaps instead of the largest", distance=_mean_gap)
@lie("what converges at every point converges uniformly", limit=0.0)
def the_largest_gap_is_a_metric_stricter_than_convergence_at_every_point(draw, distance=uniform_distance, limit=1.0):
    """Against the critical points of random polynomials; ever narrower bumps vanish at every point, not uniformly."""
    polynomials = draw.normal(4, 6)
    pairs = [(i, j) for i in range(4) for j in range(4)]
    steepness = [float((torch.arange(6) * (polynomials[i] - polynomials[j]).abs()).sum()) for i, j in pairs]
    functions = [_polynomial_value(row) for row in polynomials]
    found = [distance(functions[i], functions[j], (-1.0, 1.0), L) for (i, j), L in zip(pairs, steepness, strict=True)]
    exact = [_largest_value(polynomials[i] - polynomials[j]) for i, j in pairs]
    ends = torch.tensor([(d.lower, d.upper) for d in found], dtype=torch.float64)
    lower, upper = ends.T.reshape(2, 4, 4)
    ways = upper[:, :, None] + upper[None]  # from i by way of j to k
    counts = [3, 30, 300, 3000]
    bumps = [distance(_narrow_bump(n), torch.zeros_like, (0.0, 1.0), float(n)) for n in counts]
    x = draw.uniform(100, low=0.001)
    return all_of(
        at_most(lower.flatten(), exact, ulps=2**20),
        at_most(exact, upper.flatten(), ulps=2**20),
        at_most((upper - lower).flatten(), 1e-5),
        at_most(lower[:, None, :].expand(4, 4, 4), ways),
        exactly(_narrow_bump(3000)(x), torch.zeros(100, dtype=torch.float64)),
        close([d.upper for d in bumps], [limit] * 4, within=1e-5),
    )


def _chebyshev_powers(x, degree, radius=1.0):
    """Chebyshev's polynomials up to a degree, which span the same as the powers."""
    angle = torch.arccos((x / radius).clamp(-1, 1))
    return torch.cos(angle[:, None] * torch.arange(degree + 1))


def _least_squares(features, y):
    weights = torch.linalg.lstsq(features, y[:, None]).solution[:, 0]
    return UniformFit(weights, float((features @ weights - y).abs().max()))


@claim("approx.class_distance")
@lie("the largest distance of a member", among=torch.max)
@lie("least squares finds the nearest member", fit=_least_squares)
@lie("a third with each degree", base=3.0)
def the_distance_from_a_class_is_that_of_its_nearest_member(draw, among=torch.min, fit=uniform_fit, base=2.0):
    """Chebyshev's distances of a power from the lower ones, and those of |x|; other members are further away."""
    x = torch.cos(torch.linspace(0, math.pi, 841, dtype=torch.float64))  # with all points where an error is largest
    cases = [(x ** (k + 1), k, base**-k) for k in range(7)]
    cases += [(x.abs(), 0, 1 / 2), (x.abs(), 1, 1 / 2), (x.abs(), 2, 1 / 8), (x.abs(), 3, 1 / 8)]
    found = []
    for y, degree, _ in cases:
        features = _chebyshev_powers(x, degree)
        nearest = fit(features, y).weights
        members = torch.cat([nearest[None], nearest + 0.1 * draw.normal(20, degree + 1)])
        found.append(float(among((members @ features.mT - y).abs().amax(1))))
    return close(found, [distance for *_, distance in cases], within=1e-7)


def _cosine_waves(x, size, radius):
    """All waves of period 2, half of them cosines: on [-1/2, 1/2] they approximate everything."""
    angle = math.pi * x[:, None] * torch.arange(size // 2 + 1)
    return torch.cat([angle.cos(), angle[:, 1:].sin()], dim=1)


def _class_distances(family, degrees, most=math.inf):
    """Of |x| from some members of a class, over the half length of three intervals: (intervals, degrees)."""
    rows = []
    for radius in RADII:
        x = radius * torch.cos(torch.linspace(0, math.pi, 801, dtype=torch.float64))
        rows.append([uniform_fit(family(x, min(k, most), radius), x.abs()).distance / radius for k in degrees])
    return torch.tensor(rows, dtype=torch.float64)


RADII = (0.5, 1.5, 3.0)


@claim("approx.universal")
@lie("what is at distance 0 belongs to the class", member=True)
@lie("to approximate on one compact set is enough: waves of period 2", family=_cosine_waves)
@lie("degrees up to 5 approximate as well", most=5, loose="no higher degree is tried")
@lie("the constant is a quarter", constant=0.25)
def a_universal_class_is_at_distance_zero_on_every_compact_set(
    draw, constant=0.2802, family=_chebyshev_powers, most=32, member=False
):
    """The distance of |x| from members of the class on three intervals falls with their degree; that from polynomials
    as one over the degree, and is never 0."""
    found = _class_distances(family, (8, 16, 32), most)
    polynomial = _class_distances(_chebyshev_powers, (16, 32))
    return all_of(
        # Each doubling nearly halves it, on every interval, where a class that is not universal stalls.
        at_most(found[:, 1:], 0.6 * found[:, :-1]),
        at_most(found[:, -1], 0.03),
        close(polynomial * torch.tensor([16, 32]), constant, within=0.002),
        exactly(bool((polynomial < 1e-6).any()), member),
    )


def _bernstein_mean(f, n):
    """The mean of f(k/n) for k successes in n trials of probability x."""
    k = torch.arange(n + 1, dtype=torch.float64)
    choices = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    values = f(k / n)

    def polynomial(x):  # (points, 1)
        return torch.exp(choices + torch.special.xlogy(k, x) + torch.special.xlogy(n - k, 1 - x)) @ values

    return polynomial


def _tent_function(x):
    return (x - 0.5).abs()


def _wave_function(x):
    return (6 * x).sin()


def _compact_radius(radius):
    return radius


def _large_radius(radius):
    return 1000.0


@claim("approx.weierstrass")
@lie("Bernstein's error for the square is 1/(2n)", factor=0.5)
@lie("the error of Bernstein's polynomials always falls as 1/n", order=1.0)
@lie("uniformly on the whole line", domain=_large_radius)
@lie("degree 2 suffices", degree=2, regime="a degree of 12 has room", loose="higher degrees come nearer")
def polynomials_come_as_near_as_one_likes_on_a_compact_set(
    draw, factor=0.25, order=0.5, domain=_compact_radius, degree=12
):
    """Bernstein's polynomials against their exact error and the modulus of continuity; interpolants of the sine."""
    degrees = [4, 16, 64, 256]
    slopes = {
        torch.square: 2.0,
        _tent_function: 1.0,
        _wave_function: 6.0,
    }  # Bernstein's polynomials are no steeper than the function
    found = {
        f: [uniform_distance(_flat_function(f), _bernstein_mean(f, n), (0.0, 1.0), 2 * slope, 1e-3) for n in degrees]
        for f, slope in slopes.items()
    }
    far = []
    for radius in (1.0, 3.0):
        fit = np.polynomial.Chebyshev.interpolate(np.sin, degree, domain=[-radius, radius])
        powers, reach = fit.convert(kind=np.polynomial.Polynomial).coef, domain(radius)
        steepest = 1 + sum(k * abs(c) * reach ** (k - 1) for k, c in enumerate(powers))
        far.append(uniform_distance(torch.sin, _polynomial_value(powers), (-reach, reach), steepest, 1e-3).upper)
    return all_of(
        close([d.lower for d in found[torch.square]], [factor / n for n in degrees], within=1e-9),
        at_most([d.upper for d in found[_tent_function]], [1.25 * n**-0.5 for n in degrees]),
        at_most([d.upper for d in found[_wave_function]], [2.5 * math.sin(3 * n**-0.5) for n in degrees]),
        slope_is(degrees[1:], [d.lower for d in found[_tent_function][1:]], -order, within=0.01),
        at_most(far, 0.01),
    )


def _flat_function(f):
    return lambda x: f(x[:, 0])
