"""Subgradients: the slopes that the definition accepts, against the intervals and polytopes they are known to fill."""

import torch

from lemmata.foundations.analysis.function_values import batch_values
from lemmata.foundations.analysis.subgradients import is_subgradient
from lemmata.judge import all_of, always, claim, exactly, lie


def absolute(x):
    return x.abs().sum()


# Functions of one variable, a point, and their left and right slope there; the last two are differentiable.
KINKS = [
    (absolute, 0.0, -1.0, 1.0),
    (lambda x: torch.relu(x).sum(), 0.0, 0.0, 1.0),
    (lambda x: torch.relu(1 - x).sum(), 1.0, -1.0, 0.0),
    (lambda x: x.square().sum(), 1.5, 3.0, 3.0),
    (lambda x: torch.exp(x).sum(), 0.0, 1.0, 1.0),
]


def slopes_accepted(f, at, slopes):
    """Which slopes are those of subgradients of a function of one variable, as far as a unit away from a point."""
    x = torch.tensor([at], dtype=torch.float64)
    return [is_subgradient(f, x, slope[None], (at - 1, at + 1), points=64).value for slope in slopes]


@claim("subdiff.definition")
@lie("the subdifferential of |x| at 0 is {0}", radius=0.0)
@lie("1/2 minimises |x|, for 0 is a subgradient there", at=0.5)
@lie(
    "a slope within the polytope is no subgradient",
    regime="the corner is the border: beyond it, however little, lies no subgradient",
    loose="farther out there is none either",
    beyond=-0.3,
)
def subgradients_are_the_slopes_of_supporting_planes(draw, radius=1.0, at=0.0, beyond=0.3):
    """Slopes tried on |x|, intervals of one-sided slopes, and the polytopes of slopes of random maxima."""
    tried = torch.cat([torch.linspace(-3.0, 3.0, 13), torch.tensor([-1.001, -0.999, 0.999, 1.001])]).double()
    accepted = slopes_accepted(absolute, 0.0, tried)
    inside = [tried.abs() <= radius]
    for f, place, left, right in KINKS:
        beside = torch.tensor([left - 1e-3, left, (left + right) / 2, right, right + 1e-3], dtype=torch.float64)
        accepted += slopes_accepted(f, place, beside)
        inside.append(torch.tensor([False, True, True, True, False]))
    mixed, outside = [], []
    for n in (1, 2, 3, 4):
        # Planes that all pass through one point, and one that stays below it there.
        x, slopes = draw.normal(n), draw.normal(n + 3, n)
        offsets = 1.0 - slopes @ x
        offsets[-1] -= 0.5

        def highest(t, slopes=slopes, offsets=offsets):
            return (slopes @ t + offsets).amax()

        corners, box = slopes[:-1], (x - 2, x + 2)
        mixtures = torch.nn.functional.normalize(draw.uniform(20, n + 2), p=1, dim=1) @ corners
        centre = corners.mean(0)
        corner = corners[(corners - centre).norm(dim=1).argmax()]  # the farthest is a corner of the hull
        mixed += [is_subgradient(highest, x, g, box, points=256).value for g in [*mixtures, *corners]]
        past = corner + beyond * (corner - centre)
        outside.append(is_subgradient(highest, x, past, box, points=2048).value)
    line = torch.arange(-20, 21, dtype=torch.float64) / 20
    lowest = batch_values(absolute, line[:, None]).argmin()
    level = torch.zeros(1, dtype=torch.float64)
    return all_of(
        exactly(torch.tensor(accepted), torch.cat(inside)),
        always(mixed),
        always([not found for found in outside]),
        # Where 0 is a subgradient there is the minimum, and nowhere else.
        exactly([slopes_accepted(absolute, float(place), level)[0] for place in line], line == line[lowest]),
        always(slopes_accepted(absolute, at, level)),
    )
