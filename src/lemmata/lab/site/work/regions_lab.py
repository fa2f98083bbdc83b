r"""The regions lab: the lines of a first layer are dragged, and the regions of the network are counted exactly."""

import math
import re
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor, nn

from lemmata.feedforward.folding import folding_network
from lemmata.feedforward.hyperplane_arrangement import most_regions
from lemmata.feedforward.relu_regions import LinearRegions, linear_regions
from lemmata.figure import Bars, Figure
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "ReLU regions",
    "sentence": "Drag the lines of a ReLU network and watch it cut the plane into regions, every one of them counted.",
    "year": 2014,
    "chapter": "feedforward",
    "claims": ("relu.activation_pattern", "relu.zaslavsky", "relu.montufar", "relu.depth_complexity"),
    "systems": ("linear_regions", "folding_network"),
    "command": "lemmata check 'relu.*'",
    "thumbnail": {"layers": "3", "seed": "4"},
}

MOST = 8  # lines
NEAREST = 0.02  # of a line to the middle: there it would have no direction
BOX = [(-1.0, 1.0), (-1.0, 1.0)]
NUMBER = r"-?[01](\.[0-9]{1,3})?"


class State(LabState):
    """The point of each line that is nearest to the middle (0.3,0.2; several joined by a semicolon), and the depth."""

    points: Annotated[
        str, StringConstraints(max_length=200, pattern=rf"^{NUMBER},{NUMBER}(;{NUMBER},{NUMBER}){{0,{MOST - 1}}}$")
    ] = "0.3,0.4;-0.5,0.2;0.1,-0.4;-0.2,-0.3;0.45,-0.1"
    kind: Literal["lines", "folding"] = "lines"
    layers: Annotated[int, Field(ge=1, le=4)] = 1
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def lines(self) -> Tensor:
        pairs = re.findall(r"([-.0-9]+),([-.0-9]+)", self.points)
        return torch.tensor([[float(x), float(y)] for x, y in pairs], dtype=torch.float64)  # (lines, 2)

    def network(self) -> nn.Sequential:
        points = self.lines()
        if self.kind == "folding":
            unit_square = _linear_layer(
                torch.eye(2, dtype=torch.float64) / 2, torch.full((2,), 0.5, dtype=torch.float64)
            )
            return nn.Sequential(unit_square, folding_network(2, max(2, len(points)), self.layers))
        generator = torch.Generator().manual_seed(self.seed)
        reach = points.norm(dim=1, keepdim=True).clamp(min=NEAREST)  # (lines, 1)
        layers: list[nn.Module] = [_linear_layer(points / reach, -reach[:, 0]), nn.ReLU()]
        width = len(points)
        for outputs in [*[width] * (self.layers - 1), 1]:
            weight, bias = (torch.randn(outputs, n, generator=generator, dtype=torch.float64) for n in (width, 1))
            layers += [_linear_layer(weight * math.sqrt(2 / width), 0.3 * bias[:, 0]), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def show(state: State) -> dict[str, Any]:
    """The regions in the square from -1 to 1, each with its corners and how steep the network is there."""
    regions = linear_regions(state.network(), BOX)
    steep = regions.slopes[:, 0].norm(dim=-1)
    shades = (steep / steep.max().clamp(min=1e-300)).tolist()
    corners = [
        [[round(x, 4), round(y, 4)] for x, y in row[:size]]
        for row, size in zip(regions.corners.tolist(), regions.sizes.tolist(), strict=True)
    ]
    return {
        "polygons": [{"corners": own, "shade": round(shade, 3)} for own, shade in zip(corners, shades, strict=True)],
        "count": len(regions),
        "words": words(state, regions),
        "python": python(state),
        "figures": {"growth": growth(regions)},
    }


def growth(regions: LinearRegions) -> Figure:
    """How many regions there are after each layer: as many as patterns of the units up to it."""
    layers = range(1, len(regions.patterns) + 1)
    counts = [len(torch.unique(torch.cat(regions.patterns[:k], dim=1), dim=0)) for k in layers]
    return Figure("Regions after each layer", "", "regions", [Bars([f"layer {k}" for k in layers], counts)])


def still(state: State) -> Figure:
    """The regions, coloured by the slope of the network."""
    regions = linear_regions(state.network(), BOX)
    return regions.figure(title=f"{len(regions)} regions in the square")


def words(state: State, regions: LinearRegions) -> str:
    """What the number compares with."""
    width = len(state.lines())
    if state.kind == "folding" and width < 2:
        width = 2
    lines, layers = _count_noun(width, "line"), _count_noun(state.layers, "layer")
    if state.layers == 1:
        return f"{lines} cut the whole plane into at most {most_regions(width, 2)} regions."
    if width < 2:
        return f"One unit a layer, {layers}: each can cut only once more."
    fold = (width // 2) ** (2 * (state.layers - 1)) * most_regions(width, 2)
    return f"{layers} of {width} units: a network that folds has {fold:,}, as Montufar's bound says."


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _linear_layer(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def python(state: State) -> str:
    """The same in Python."""
    counted = "regions = linear_regions(network, box=[(-1, 1), (-1, 1)])\nprint(len(regions))"
    if state.kind == "folding":
        width = max(2, len(state.lines()))
        return (
            "from lemmata.feedforward import folding_network, linear_regions\n\n"
            f"network = folding_network(inputs=2, width={width}, depth={state.layers})\n"
            "print(len(linear_regions(network, box=[(0, 1), (0, 1)])))"
        )
    return (
        "import torch\nfrom torch import nn\nfrom lemmata.feedforward import linear_regions\n\n"
        f"points = torch.tensor({state.lines().tolist()}, dtype=torch.float64)  # of each line, the nearest to 0\n"
        "first = nn.Linear(2, len(points), dtype=torch.float64)\n"
        "with torch.no_grad():\n"
        "    first.weight.copy_(points / points.norm(dim=1, keepdim=True))\n"
        "    first.bias.copy_(-points.norm(dim=1))\n"
        "network = nn.Sequential(first, nn.ReLU())  # and further layers as you like\n"
        f"{counted}"
    )
