r"""How many modes of a mixture samples hit, and how many samples hit none."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.measure.sample_distances import distances, sample_pair

__all__ = ["ModeCoverage", "mode_coverage"]


class ModeCoverage(NamedTuple):
    """How many modes are hit, the part of samples that lie near none, and how many samples each mode has."""

    modes: int
    outliers: float
    counts: Int[Tensor, " modes"]


@system("mode_coverage", title="Mode coverage", kind="function")
def mode_coverage(
    samples: Float[Tensor, "samples features"],
    centres: Float[Tensor, "modes features"],
    radius: float,
    *,
    fewest: int = 1,
) -> ModeCoverage:
    r"""Each sample belongs to its nearest centre within `radius`; a mode is hit by `fewest` samples or more.

    For a mixture of Gaussians the radius is some standard deviations: within three of them lie 98.9 % in the plane.
    Samples of one mode alone have no outlier, and good samples may have many, so that both numbers are needed.

    Shapes:
        samples: (samples, features), centres: (modes, features)

    >>> corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> mode_coverage(torch.tensor([[0.1, 0.0], [0.9, 0.0], [1.0, 0.1], [9.0, 9.0]]), corners, radius=0.2)
    ModeCoverage(modes=2, outliers=0.25, counts=tensor([1, 2, 0]))
    """
    samples, centres = sample_pair(samples, centres)
    validate.positive("radius", radius)
    validate.count("fewest", fewest)
    nearest = distances(samples, centres).min(1)
    inside = nearest.values <= radius
    counts = torch.bincount(nearest.indices[inside], minlength=len(centres))
    return ModeCoverage(int((counts >= fewest).sum()), float((~inside).double().mean()), counts)
