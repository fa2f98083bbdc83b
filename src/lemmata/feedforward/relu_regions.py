r"""The linear regions of a ReLU network on a box, counted exactly: intervals for one input, polygons for two."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.linear_pieces import linear_pieces
from lemmata.feedforward.polygon_regions import PolygonCutter, box_polygon
from lemmata.feedforward.relu_program import Affine, Coefficients, Step, program
from lemmata.figure import Figure, Line, Points, Polygons
from lemmata.marks import system

__all__ = ["LinearRegions", "linear_regions"]

Box = Sequence[Sequence[int | float]] | Tensor | np.ndarray


@dataclass(frozen=True, eq=False)
class LinearRegions:
    r"""The answer of `linear_regions`: every region with its corners, its active units and its affine map.

    On region $r$ the network is $x \mapsto A_r x + c_r$ with `slopes[r]` $= A_r$ and `constants[r]` $= c_r$. Corners
    are rounded, which decides nothing; rows shorter than the longest are filled up with their first corner, and
    `sizes` says how many are its own. `exact_decisions` counts the signs for which rounding had to be left behind.

    >>> regions = linear_regions(nn.Sequential(nn.Linear(1, 1), nn.ReLU()), box=[(-1e3, 1e3)])
    >>> len(regions)
    2
    """

    corners: Float[Tensor, "regions corners dimensions"]
    sizes: Int[Tensor, "regions"]
    slopes: Float[Tensor, "regions outputs dimensions"]
    constants: Float[Tensor, "regions outputs"]
    patterns: tuple[Bool[Tensor, "regions _"], ...]
    exact_decisions: int

    def __len__(self) -> int:
        return len(self.sizes)

    def figure(self, output: int = 0, title: str = "Linear regions") -> Figure:
        """The graph of one output, with its breakpoints, or the regions in the plane, coloured by their steepness."""
        validate.count("output", output, least=0, most=self.constants.shape[1] - 1)
        if self.corners.shape[-1] == 1:
            ends = torch.cat([self.corners[:, 0, 0], self.corners[-1:, 1, 0]])
            last = self.slopes[-1:, output, 0] * ends[-1:] + self.constants[-1:, output]
            values = torch.cat([self.slopes[:, output, 0] * ends[:-1] + self.constants[:, output], last])
            marks = [Line(ends, values), Points(ends[1:-1], values[1:-1], "breakpoints")]
            return Figure(title, "x", "output", marks, note=f"{len(self):,} pieces.")
        x, y = (
            [row[:size].tolist() for row, size in zip(side, self.sizes.tolist(), strict=True)]
            for side in self.corners.unbind(-1)
        )
        steepness = self.slopes[:, output].norm(dim=-1)
        return Figure(title, "x₁", "x₂", [Polygons(x, y, steepness, "slope")], note=f"{len(self):,} regions.")


@system("linear_regions", title="Linear regions of a ReLU network", kind="function")
def linear_regions(model: nn.Module, box: Box) -> LinearRegions:
    r"""All activation regions of a ReLU network that have an interior in a box, for one or two inputs.

    $$ \mathcal X_\kappa = \{x \in \text{box} : \mathbb 1\{z_j(x) > 0\} = \kappa_j \text{ for every unit } j\} $$

    A region is the set of inputs with one pattern $\kappa$ of active units; it is convex, and the network is affine on
    it. Regions without an interior, a single point or a line, are not counted. Two neighbours whose affine maps happen
    to agree are two regions.

    The count is a proof: a region is cut by a unit exactly where the unit's signs at its corners differ, and every sign
    is decided by a bound on rounding or, where that does not suffice, in fractions, as the weights are fractions. No
    tolerance is involved, and nothing depends on the scale of the weights.

    Leaky units are cut like others. A `BatchNorm1d` in evaluation mode is the affine map that it is by then, its scale
    and shift rounded to doubles.

    Shapes:
        box: one (low, high) for each input, (inputs, 2)    returns: regions, in one dimension from left to right

    Claims: relu.activation_pattern, relu.zaslavsky, relu.montufar, layers.depth_features
    Source: G. Montufar et al., On the number of linear regions of deep neural networks (2014); for the cutting of
        polygons A. Humayun et al., SplineCam (2023).
    Differs: SplineCam works in single precision with tolerances.

    >>> tent = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> len(linear_regions(tent, box=[(0, 1)])) <= 3
    True
    """
    steps = program(model)
    low, high = _box_ends(box)
    affine = [step for step in steps if isinstance(step, Affine)]
    inputs = affine[0].weight.shape[1] if affine else len(low)
    if inputs != len(low):
        raise ValueError(f"box must have one (low, high) for each of the {inputs} inputs, got {len(low)}")
    device = affine[0].weight.device if affine else torch.device("cpu")
    return (_on_a_line if len(low) == 1 else _in_the_plane)(steps, low, high, device)


def _on_a_line(
    steps: list[Step], low: tuple[float, ...], high: tuple[float, ...], device: torch.device
) -> LinearRegions:
    pieces, asked = linear_pieces(steps, low[0], high[0], device)
    count = len(pieces.left.place)
    corners = torch.stack([pieces.left.place, pieces.right.place], dim=1)[..., None]  # (regions, 2, 1)
    patterns = pieces.history.patterns(count, device)
    return _regions_answer(corners, torch.full((count,), 2, device=device), pieces.outputs, patterns, asked)


def _in_the_plane(
    steps: list[Step], low: tuple[float, ...], high: tuple[float, ...], device: torch.device
) -> LinearRegions:
    ends = (low[0], low[1]), (high[0], high[1])
    cutter = PolygonCutter(steps, *ends)
    polygons, patterns, outputs = cutter.run(box_polygon(*ends, device))
    return _regions_answer(polygons.corners, polygons.size, outputs, patterns, cutter.exact.asked)


def _regions_answer(
    corners: Tensor, sizes: Tensor, outputs: Coefficients, patterns: list[Tensor], asked: int
) -> LinearRegions:
    slopes, constants = outputs.value[..., :-1], outputs.value[..., -1]
    slopes, constants = (part.expand(len(sizes), *part.shape[1:]) for part in (slopes, constants))
    return LinearRegions(corners, sizes, slopes, constants, tuple(patterns), asked)


def _box_ends(box: Box) -> tuple[tuple[float, ...], tuple[float, ...]]:
    box = box.tolist() if isinstance(box, Tensor | np.ndarray) else box
    if not isinstance(box, Sequence) or not all(isinstance(ends, Sequence) for ends in box):
        raise TypeError(f"box must be a list of (low, high), one for each input, such as [(0, 1)], got {box!r}")
    if len(box) not in (1, 2):
        raise ValueError(f"box must have one or two (low, high), got {len(box)}: fix the other inputs in a first layer")
    for name, ends in enumerate(box):
        if len(ends) != 2 or not all(validate.finite_number("box", end) == end for end in ends) or ends[0] >= ends[1]:
            raise ValueError(f"box[{name}] must be (low, high) with low < high, got {tuple(ends)}")
    return tuple(float(low) for low, _ in box), tuple(float(high) for _, high in box)
