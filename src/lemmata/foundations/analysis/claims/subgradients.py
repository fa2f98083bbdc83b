"""Subgradients: the slopes that the definition accepts, against the intervals and polytopes they are known to fill."""

import torch

from lemmata.foundations.analysis.subgradients import MaxAffine, is_subgradient, subdifferential_interval
from lemmata.judge import all_of, always, claim, close, exactly, lie


def hinge(x):
    return torch.relu(1 - x)


# Functions of one variable, a point, and their left and right slope there; the last two are differentiable.
KINKS = [
    (torch.abs, 0.0, -1.0, 1.0),
    (torch.relu, 0.0, 0.0, 1.0),
    (hinge, 1.0, -1.0, 0.0),
    (torch.square, 1.5, 3.0, 3.0),
    (torch.exp, 0.0, 1.0, 1.0),
]


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
    zero = torch.zeros(1, dtype=torch.float64)
    tried = torch.cat([torch.linspace(-3.0, 3.0, 13), torch.tensor([-1.001, -0.999, 0.999, 1.001])]).double()
    accepted = [is_subgradient(lambda x: x.abs().sum(), zero, g[None], (-1.0, 1.0), points=64).value for g in tried]
    slopes = [torch.cat(subdifferential_interval(f, zero + place)) for f, place, *_ in KINKS]
    inside, outside = [], []
    for n in (1, 2, 3, 4):
        # Planes that all pass through one point, and one that stays below it there.
        x, corners = draw.normal(n), draw.normal(n + 3, n)
        offsets = 1.0 - corners @ x
        offsets[-1] -= 0.5
        f, box, corners = MaxAffine(corners, offsets), (x - 2, x + 2), corners[:-1]
        mixtures = torch.nn.functional.normalize(draw.uniform(20, n + 2), p=1, dim=1) @ corners
        centre = corners.mean(0)
        corner = corners[(corners - centre).norm(dim=1).argmax()]  # the farthest is a corner of the hull
        past = corner + beyond * (corner - centre)
        inside += [f.contains(x, g) for g in mixtures]
        inside += [is_subgradient(f, x, g, box, points=256).value for g in mixtures[:3]]
        outside += [f.contains(x, past), is_subgradient(f, x, past, box, points=2048).value]
    absolute = MaxAffine(torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    return all_of(
        exactly(torch.tensor(accepted), tried.abs() <= radius),
        close(torch.stack(slopes), torch.tensor([ends for _, _, *ends in KINKS]).double(), within=1e-5),
        always(inside),
        always([not found for found in outside]),
        exactly((absolute.is_minimum(zero + at), absolute.is_minimum(zero + 1.0)), (True, False)),
    )
