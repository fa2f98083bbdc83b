"""Subgradients: the slopes that the definition accepts, against the intervals and polytopes they are known to fill."""

import torch
import torch._dynamo  # which the first use of torch.func would import anyway, on the clock of a claim

from lemmata.foundations.subgradients import MaxAffine, is_subgradient, subdifferential_interval
from lemmata.judge import Figure, Line, all_of, always, at_least, claim, close, exactly, lie


def hinge(x):
    return torch.relu(1 - x)


@claim("subdiff.definition")
@lie("the subdifferential of |x| at 0 is {0}", radius=0.0)
@lie("the subdifferential of |x| at 0 is [-2, 2]", radius=2.0)
@lie("1/2 minimises |x|, for 0 is a subgradient there", at=0.5)
@lie(
    "a slope within the polytope is no subgradient",
    regime="the corner is the border: beyond it, however little, lies no subgradient",
    loose="farther out there is none either",
    beyond=-0.3,
)
def subgradients_are_the_slopes_of_supporting_planes(draw, radius=1.0, at=0.0, beyond=0.3):
    """Slopes tried on |x|, ReLU and the hinge, the interval of one-sided slopes, and polytopes of random maxima."""
    zero = torch.zeros(1, dtype=torch.float64)
    tried = torch.cat([torch.linspace(-3.0, 3.0, 13), torch.tensor([-1.001, -0.999, 0.999, 1.001])]).double()
    accepted = torch.tensor(
        [is_subgradient(lambda x: x.abs().sum(), zero, g[None], (-1.0, 1.0), points=64).value for g in tried]
    )
    kinks = {
        torch.abs: (0.0, -1.0, 1.0),
        torch.relu: (0.0, 0.0, 1.0),
        hinge: (1.0, -1.0, 0.0),
        torch.square: (1.5, 3.0, 3.0),
        torch.exp: (0.0, 1.0, 1.0),
    }
    ends = [subdifferential_interval(f, zero + place) for f, (place, _, _) in kinks.items()]
    parts = []
    for n in (1, 2, 3, 4):
        # Planes that all pass through one point, and one that stays below it there.
        x, slopes = draw.normal(n), draw.normal(n + 3, n)
        offsets = 1.0 - slopes @ x
        offsets[-1] -= 0.5
        f = MaxAffine(slopes, offsets)
        corners = slopes[:-1]
        inside = torch.nn.functional.normalize(draw.uniform(20, n + 2), p=1, dim=1) @ corners
        centre = corners.mean(0)
        corner = corners[(corners - centre).norm(dim=1).argmax()]  # the farthest is a corner of the hull
        outside = corner + beyond * (corner - centre)
        box = (x - 2, x + 2)
        cut = is_subgradient(f, x, outside, box, points=2048)
        weights = [f.multipliers(x, g) for g in inside]
        parts += [
            always([found is not None and bool((found >= 0).all()) for found in weights]),
            close(torch.stack([found @ slopes for found in weights if found is not None]), inside, within=1e-8),
            always([is_subgradient(f, x, g, box, points=256).value for g in inside[:3]]),
            exactly((f.contains(x, outside), cut.value), (False, False)),
            exactly(f.active(torch.stack([x, x])), torch.tensor([[True] * (n + 2) + [False]] * 2)),
            exactly(MaxAffine(1e9 * slopes, 1e9 * offsets).active(x), f.active(x)),
            always([cut.certified, float(f(cut.witness[0])) < float(f(x) + (cut.witness[0] - x) @ outside)]),
        ]
    absolute = MaxAffine(torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    larger = MaxAffine(torch.eye(2, dtype=torch.float64))
    tie = torch.ones(2, dtype=torch.float64)
    share = torch.linspace(-0.5, 1.5, 41, dtype=torch.float64)
    mixed = [larger.contains(tie, torch.stack([t, 1 - t])) for t in share]
    # What rounding alone cuts off is no cut: the plane of a steep line, and of the zero function.
    place = torch.full((1,), 0.3, dtype=torch.float64)
    flat = [
        is_subgradient(lambda x, s=s: (s * x - 0.3 * s).sum(), place, zero + s, (-1.0, 1.0)) for s in (1e9, 1.0, 0.0)
    ]
    far = subdifferential_interval(lambda x: (x - 2.0**60).abs(), zero + 2.0**60)
    sample = draw.normal(100, 1)
    line = torch.linspace(-1.0, 1.0, 41, dtype=torch.float64)
    figure = Figure(
        "Lines that support |x| at 0", "x", "value",
        [Line(line, line.abs(), "|x|"), Line(line, 0.5 * line, "g = 0.5"), Line(line, 1.5 * line, "g = 1.5, cuts")],
    )  # fmt: skip
    return all_of(
        exactly(accepted, tried.abs() <= radius).showing(figure),
        close([low for low, _ in ends], torch.tensor([[low] for _, low, _ in kinks.values()]).double(), within=1e-5),
        close(
            [high for _, high in ends], torch.tensor([[high] for _, _, high in kinks.values()]).double(), within=1e-5
        ),
        exactly(mixed, [bool(0 <= t <= 1) for t in share.round(decimals=9)]),
        exactly((absolute.is_minimum(zero + at), absolute.is_minimum(zero + 1.0)), (True, False)),
        at_least(absolute(sample), absolute(zero + 0.0)),
        exactly(absolute(sample), sample[:, 0].abs()),
        exactly([(found.value, found.certified) for found in flat], [(True, False)] * 3),
        exactly(torch.cat(far), torch.tensor([-1.0, 1.0], dtype=torch.float64)),
        *parts,
    )
