r"""Two samples told apart by nearest neighbours: a test that sees what means and covariances do not show."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata.marks import system
from lemmata.measure.sample_distances import ROWS, distances, sample_pair

__all__ = ["neighbour_accuracy"]


@system("neighbour_accuracy", title="Nearest-neighbour two-sample test", kind="function")
def neighbour_accuracy(x: Float[Tensor, "points features"], y: Float[Tensor, "others features"]) -> float:
    r"""How often a point's nearest neighbour, among all others of both samples, is of its own sample.

    About 1/2 for two samples of one distribution, 1 where they lie apart, and near 0 where one repeats the other. As
    many of each are taken, the first. Blurred or scattered images are found out, though means and covariances be right:
    energy distances of many pixels see little else.

    Shapes:
        x: (points, features), y: (others, features)

    Source: D. Lopez-Paz and M. Oquab, Revisiting classifier two-sample tests (2017), with one neighbour.

    >>> neighbour_accuracy(torch.tensor([[0.0], [1.0]]), torch.tensor([[9.0], [9.5]]))
    1.0
    """
    x, y = sample_pair(x, y)
    count = min(len(x), len(y))
    points = torch.cat([x[:count], y[:count]]).detach()
    nearest = []
    for first in range(0, len(points), ROWS):
        ways = distances(points[first : first + ROWS], points)  # (rows, points)
        ways.diagonal(first).fill_(torch.inf)  # its own place
        nearest.append(ways.argmin(1))
    own = torch.arange(len(points), device=points.device) < count
    return float((own[torch.cat(nearest)] == own).double().mean())
