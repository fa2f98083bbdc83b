r"""Distances of two samples that need neither a density nor a critic: energy distance, Cramér and its slices."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.marks import system

__all__ = ["cramer_distance", "energy_distance", "sliced_cramer"]

ROWS = 1024  # of which distances to all others are held at a time


@system("energy_distance", title="Energy distance", kind="function")
def energy_distance(
    x: Float[Tensor, "points features"], y: Float[Tensor, "others features"], *, unbiased: bool = False
) -> Float[Tensor, ""]:
    r"""Twice the mean distance across two samples, less those within each: zero iff both have one distribution.

    $$ D(p, q) = 2\,\mathbb E\|X-Y\| - \mathbb E\|X-X'\| - \mathbb E\|Y-Y'\| \ge 0 $$

    As it stands, it is the distance of the samples themselves, never negative and too large by some $1/n$ as an
    estimate of that of their distributions. `unbiased` leaves out the pairs of a point with itself: right in the mean,
    and then it may be negative. Points lie where one feature counts as much as another: scale them before.

    Shapes:
        x: (points, features), y: (others, features)    returns: ()

    Claims: divergence.sliced_cramer, ae.latent_prior
    Differs: scipy.stats.energy_distance is the root of it, for one feature alone.

    >>> energy_distance(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [3.0]]))
    tensor(3.)
    """
    x, y = sample_pair(x, y, least=2 if unbiased else 1)
    across = _summed_distances(x, y) / (len(x) * len(y))
    within = [_summed_distances(z, z) / (len(z) * (len(z) - unbiased)) for z in (x, y)]
    return 2 * across - within[0] - within[1]


@system("cramer_distance", title="Cramér distance", kind="function")
def cramer_distance(x: Float[Tensor, "*batch points"], y: Float[Tensor, "*batch others"]) -> Float[Tensor, "*batch"]:
    r"""The squared area between the two distribution functions on the line: half of the energy distance there.

    $$ C(p, q) = \int (F_p(t) - F_q(t))^2\,dt $$

    Shapes:
        x: (..., points), y: (..., others)    returns: (...)

    Claims: divergence.sliced_cramer

    >>> cramer_distance(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0]))
    tensor(1.5000)
    """
    gaps, heights = steps_between(x, y)
    return (gaps * heights.square()).sum(-1)


@system("sliced_cramer", title="Sliced Cramér distance", kind="function")
def sliced_cramer(
    x: Float[Tensor, "points features"],
    y: Float[Tensor, "others features"],
    directions: Float[Tensor, "directions features"] | int | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    r"""The mean Cramér distance of the projections on lines; over all directions in closed form.

    $$ \frac1{|S^{d-1}|}\int_{S^{d-1}} C(u^\top X, u^\top Y)\,du = \frac{c_d}2 D(p, q),
       \qquad c_d = \mathbb E|u_1| = \frac{\Gamma(d/2)}{\sqrt\pi\,\Gamma((d+1)/2)} $$

    with the energy distance $D$: no direction need be drawn. `directions` are lines of your own, of unit length, or
    how many to draw.

    Shapes:
        x: (points, features), y: (others, features), directions: (directions, features)    returns: ()

    Claims: divergence.sliced_cramer

    >>> sliced_cramer(torch.zeros(1, 3), torch.tensor([[0.0, 0.0, 2.0]]))
    tensor(1.)
    """
    x, y = sample_pair(x, y)
    features = x.shape[1]
    if directions is None:
        mean_cosine = math.exp(math.lgamma(features / 2) - math.lgamma((features + 1) / 2)) / math.sqrt(math.pi)
        return mean_cosine / 2 * energy_distance(x, y)
    if isinstance(directions, int):
        count = validate.count("directions", directions)
        drawn = torch.randn(count, features, generator=generator, dtype=x.dtype, device=x.device)
        directions = torch.nn.functional.normalize(drawn, dim=1)
    lines = validate.last_axis("directions", directions, features).to(x)
    return cramer_distance(lines @ x.mT, lines @ y.mT).mean()


def sample_pair(x: Tensor, y: Tensor, least: int = 1) -> tuple[Tensor, Tensor]:
    """Two samples of one width, on one device, in one dtype, with at least so many points; half precision widened."""
    for name, value in (("x", x), ("y", y)):
        if len(validate.matrix(name, value)) < least:
            raise ValueError(f"{name} must have at least {least} points, got {len(value)}")
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x and y must have the same number of features, got {x.shape[1]} and {y.shape[1]}")
    if x.dtype != y.dtype:
        raise TypeError(f"x and y must have one dtype, got {x.dtype} and {y.dtype}")
    wide = torch.promote_types(x.dtype, torch.float32)
    return x.to(wide), y.to(wide)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """Of each point to each other, (points, others), exact for near points too; of equal ones 0, with gradient 0."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def _summed_distances(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack([distances(rows, y).sum() for rows in x.split(ROWS)]).sum()


def steps_between(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The lengths between neighbours of both samples on the line, and how much the two functions differ there."""
    for name, value in (("x", x), ("y", y)):
        validate.floating(name, value)
    if x.shape[:-1] != y.shape[:-1]:
        raise ValueError(f"x and y must have the same batch, got {tuple(x.shape[:-1])} and {tuple(y.shape[:-1])}")
    values, order = torch.cat([x, y], -1).sort(-1)  # (..., points + others)
    jumps = torch.cat(
        [values.new_full((x.shape[-1],), 1 / x.shape[-1]), values.new_full((y.shape[-1],), -1 / y.shape[-1])]
    )
    return values.diff(dim=-1), jumps[order].cumsum(-1)[..., :-1]
