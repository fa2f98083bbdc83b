"""Linear regions of a ReLU network, counted exactly against the patterns that a grid of points sees."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.folding import folding_network, sawtooth_network
from lemmata.feedforward.relu_regions import linear_regions

DEPTH, POINTS, SIDE = 14, 1 << 20, 1024


class Network(NamedTuple):
    """The network, its box, and a grid fine enough to have a point in every region."""

    model: nn.Sequential
    box: list[tuple[float, float]]
    grid: Tensor


@entry(
    "linear_regions",
    title="Regions of a ReLU network",
    measures="one count; the grid has a point in every region, which only the exact count can know",
    cases={"line": "sawtooth of depth 14, 2^20 points", "plane": "folding, 2 layers of 6 units, 1,024^2 points"},
    targets={"grid of points": 1.0},
)
def folded(case: str, device: str) -> Network:
    """Networks whose regions are all of about the same size, which is the best that a grid can hope for."""
    if case == "line":
        x = (torch.arange(POINTS, dtype=torch.float64, device=device) + 0.5) / POINTS
        return Network(sawtooth_network(DEPTH).to(device), [(0.0, 1.0)], x[:, None])
    side = (torch.arange(SIDE, dtype=torch.float64, device=device) + 0.5) / SIDE
    model = folding_network(inputs=2, width=6, depth=2).to(device)
    return Network(model, [(0.0, 1.0), (0.0, 1.0)], torch.cartesian_prod(side, side))


@ours("lemmata")
def by_cutting(network: Network) -> Callable[[], int]:
    """A proof: every sign at every corner is decided."""
    return lambda: len(linear_regions(network.model, network.box))


@peer("grid of points")
def by_looking(network: Network) -> Callable[[], int]:
    """Different patterns of active units among the points."""
    return lambda: len(torch.unique(_activation_patterns(network), dim=0))


@limit("the network once in every region")
def one_point_each(network: Network) -> Callable[[], int]:
    """Whoever lists the regions must know the units of each."""
    count = len(linear_regions(network.model, network.box))
    few = Network(network.model, network.box, network.grid[:: max(1, len(network.grid) // count)][:count])
    return lambda: len(_activation_patterns(few))


@torch.no_grad()
def _activation_patterns(network: Network) -> Tensor:
    """The active units of each point, 62 of them in an integer."""
    found, hidden = [], network.grid
    for layer in network.model:
        hidden = layer(hidden)
        if isinstance(layer, nn.ReLU):
            found.append(hidden > 0)
    active = torch.cat(found, dim=1).long()  # (points, units)
    powers = 2 ** torch.arange(62, device=active.device)
    return torch.stack([(part * powers[: part.shape[1]]).sum(1) for part in active.split(62, dim=1)], dim=1)


@agreement(within=0)
def in_numbers(count: int) -> dict[str, float]:
    """How many there are."""
    return {"regions": count}
