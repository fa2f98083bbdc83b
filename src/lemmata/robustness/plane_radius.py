r"""The smallest perturbation that changes a ReLU network's answer, exactly, for inputs in the plane."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.relu_regions import LinearRegions, linear_regions
from lemmata.marks import system
from lemmata.robustness.attacked_model import under_attack
from lemmata.robustness.norm_ball import norm_of, perturbation_norms
from lemmata.robustness.threat import Threat

__all__ = ["ExactRadius", "exact_radius"]

AT_ONCE = 1 << 20  # distances of points from segments that are held at a time


@dataclass(frozen=True)
class ExactRadius:
    """The nearest points of the box at which another class is as likely as the true one."""

    radius: Float[Tensor, "batch"]
    """Distance of each nearest point: zero where the answer is wrong at once, infinity where none is in the box."""
    nearest: Float[Tensor, "batch 2"]
    """The nearest points themselves, on the boundary and not beyond it; the input where there is none."""


@system("exact_radius", title="Exact robustness radius in the plane", kind="function")
def exact_radius(
    model: nn.Module,
    x: Float[Tensor, "batch 2"],
    y: Int[Tensor, "batch"],
    norm: int | float = math.inf,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> ExactRadius:
    r"""How far each point is from a wrong answer, for a ReLU network of two inputs.

    $$ r(x) = \min\{\|x'-x\|_p : \max_{i\ne y}f_i(x')\ge f_y(x'),\ x'\in\text{box}\} $$

    On each of the network's linear regions, a polygon, the boundary between two classes is a segment of a line, and
    there are no other boundaries. The distance from a point to all of these segments is the truth that attacks bound
    from above and Lipschitz constants from below: robust accuracy at $\epsilon$ is how many of $r(x)$ exceed it. For a
    network of more inputs put a layer in front that maps a plane into its input space.

    Shapes:
        x: (batch, 2), y: (batch,)    returns: ExactRadius

    Claims: robust.tradeoff
    Source: the regions are those of `linear_regions`.
    Differs: the regions are proved, the distances are computed in double precision and rounded as that is.

    >>> import torch
    >>> model = nn.Linear(2, 2).double().eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "bias": torch.zeros(2)})
    >>> exact_radius(model, torch.tensor([[0.6, 0.4]]).double(), torch.tensor([0]))
    ExactRadius(radius=tensor([0.1000], dtype=torch.float64), nearest=tensor([[0.5000, 0.5000]], dtype=torch.float64))
    """
    norm = norm_of(norm)
    if validate.tensor("x", x).ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"x must be (batch, 2), got shape {tuple(x.shape)}: put a layer in front that maps a plane")
    with under_attack(model, x, y, Threat(bounds=bounds)) as attacked:
        wrong, y = attacked.fooled, attacked.y
    regions = linear_regions(model, [bounds, bounds])
    places = x.detach().double()
    radius = torch.full_like(places[:, 0], math.inf)
    nearest = places.clone()
    for label in y.unique().tolist():
        rows = ((y == label) & ~wrong).nonzero()[:, 0]
        begin, end = _boundary_of(regions, label)
        for part in rows.split(max(1, AT_ONCE // max(1, len(begin)))):
            if len(begin):
                points = _nearest_on_segments(places[part], begin, end, norm)  # (rows, segments, 2)
                away = points - places[part, None]
                distances = perturbation_norms(away.flatten(0, 1), norm).view(away.shape[:2])
                radius[part], which = distances.min(1)
                nearest[part] = points[torch.arange(len(part), device=x.device), which]
    return ExactRadius(torch.where(wrong, 0.0, radius), nearest.to(x.dtype))


def _boundary_of(regions: LinearRegions, label: int) -> tuple[Float[Tensor, "segments 2"], Float[Tensor, "segments 2"]]:
    """Both ends of every segment on which another logit equals that of the label; it does so nowhere else."""
    corners = regions.corners  # (regions, corners, 2)
    logits = torch.einsum("rod,rkd->rko", regions.slopes, corners) + regions.constants[:, None]
    ahead = logits - logits[..., label : label + 1]  # (regions, corners, classes)
    others = [k for k in range(ahead.shape[-1]) if k != label]
    ahead = ahead[..., others].movedim(-1, 1).flatten(0, 1)  # (regions * others, corners)
    corners = corners.repeat_interleave(len(others), 0)
    sizes = regions.sizes.repeat_interleave(len(others))[:, None]
    place = torch.arange(corners.shape[1], device=corners.device)
    after = torch.where(place + 1 < sizes, place + 1, 0)  # the corner at the other end of each side
    next_ahead = ahead.gather(1, after)
    crossed = ((ahead * next_ahead < 0) | (ahead == 0)) & (place < sizes)
    share = torch.where(ahead == 0, 0, ahead / torch.where(ahead == next_ahead, 1, ahead - next_ahead))
    next_corners = corners.gather(1, after[..., None].expand(-1, -1, 2))
    crossing = corners + share[..., None] * (next_corners - corners)  # (regions * others, corners, 2)
    return _pairs_of(crossing, crossed)


def _pairs_of(
    points: Float[Tensor, "regions corners 2"], used: Bool[Tensor, "regions corners"]
) -> tuple[Tensor, Tensor]:
    """A line crosses a polygon twice; where it runs along sides, or the logits are equal everywhere, more often."""
    rows = used.any(1)
    points, used = points[rows], used[rows]
    pairs = used[:, :, None] & used[:, None]
    pairs &= torch.ones_like(pairs[:1]).triu()
    region, first, second = pairs.nonzero(as_tuple=True)
    return points[region, first], points[region, second]


def _nearest_on_segments(
    x: Float[Tensor, "rows 2"], begin: Float[Tensor, "segments 2"], end: Float[Tensor, "segments 2"], norm: int | float
) -> Float[Tensor, "rows segments 2"]:
    """The nearest point of each segment: a norm along a line is least at an end or where one of its pieces ends."""
    a, b = begin - x[:, None], (end - begin).expand(len(x), -1, -1)  # (rows, segments, 2) each: from x, and along
    (a1, a2), (b1, b2) = a.unbind(-1), b.unbind(-1)
    if norm == 2:
        kinks = [(-(a1 * b1 + a2 * b2), b1**2 + b2**2)]
    else:  # where a coordinate is zero, or both are as large
        kinks = [(-a1, b1), (-a2, b2), (a2 - a1, b1 - b2), (-a1 - a2, b1 + b2)]
    shares = torch.stack(
        [torch.zeros_like(a1), torch.ones_like(a1), *(torch.where(d == 0, 0, n / d) for n, d in kinks)]
    )
    points = a + shares.clamp(0, 1)[..., None] * b  # (shares, rows, segments, 2), as seen from x
    lengths = perturbation_norms(points.flatten(0, 2), norm).view(points.shape[:3])
    chosen = lengths.argmin(0)[None, ..., None].expand(1, *a.shape)
    return x[:, None] + points.gather(0, chosen)[0]
