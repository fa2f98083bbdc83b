r"""A flow layer by layer: the grid of the noise's plane, its density, and one small square, after each coupling."""

import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.data.registry import load
from lemmata.figure import Figure, Heat, Line, Points
from lemmata.generative.flows.coupling import AffineCoupling
from lemmata.generative.flows.flow import Flow, StandardNormal
from lemmata.lab.site.labs import LabState
from lemmata.train.randomness import seeded

LAB = {
    "title": "Flow, layer by layer",
    "sentence": "Bend the plane coupling by coupling and see a density thin out where area grows.",
    "year": 2017,
    "chapter": "generative",
    "claims": ("flow.change_of_variables", "flow.log_density", "flow.coupling", "flow.coupling_logdet", "flow.system"),
    "systems": ("real_nvp", "affine_coupling", "flow"),
    "command": "lemmata check 'flow.*'",
    "thumbnail": {"layer": "6"},
}

REACH, CELLS, LAYERS = 3.0, 48, 6
SIDE = 0.3  # of the square around the point, in the noise's plane
LEVELS = 8
STEPS = 700  # of training


class State(LabState):
    """Which layers, after how many of them we look, and where the point is then."""

    flow: Literal["moons", "rings", "hand"] = "moons"
    layer: Annotated[int, Field(ge=0, le=LAYERS)] = 3
    masks: Literal["alternate", "same"] = "alternate"
    stretch: Annotated[float, Field(ge=-1, le=1)] = 0.4
    bend: Annotated[float, Field(ge=-1, le=1)] = 0.5
    x: Annotated[float, Field(ge=-REACH, le=REACH)] = 0.7
    y: Annotated[float, Field(ge=-REACH, le=REACH)] = 0.4

    def made(self) -> Flow:
        if self.flow == "hand":
            return by_hand(self.stretch, self.bend, self.masks == "alternate")
        return trained(self.flow, self.masks == "alternate")


class HandSet(nn.Module):
    """Scale and shift that are set by hand: s = a sin(2h), t = b (h² - 1)."""

    def __init__(self, stretch: float, bend: float) -> None:
        super().__init__()
        self.stretch, self.bend = stretch, bend

    def forward(self, half: Tensor) -> Tensor:
        return torch.cat([self.stretch * torch.sin(2 * half), self.bend * (half.square() - 1) / 2], 1)


def by_hand(stretch: float, bend: float, alternate: bool) -> Flow:
    layers = [
        AffineCoupling(2, alternate and bool(k % 2), HandSet(stretch, bend), max_log_scale=2.0) for k in range(LAYERS)
    ]
    return Flow(StandardNormal(2, dtype=torch.float64), layers)


def points_of(data: str) -> Tensor:
    """The points with mean 0 and deviation 1, as the noise has."""
    x = load(data).train.x.double()
    return (x - x.mean(0)) / x.std(0)


@functools.cache
def trained(data: str, alternate: bool) -> Flow:
    """Trained in seconds by whoever asks first."""
    x = points_of(data).float()
    with seeded(0):
        layers = [AffineCoupling(2, alternate and bool(k % 2), widths=(32, 32)) for k in range(LAYERS)]
        flow = Flow(StandardNormal(2), layers)
        optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = 5e-3 * min(1.0, (step + 1) / 50) * (1 - step / STEPS)
            loss = flow.loss(x[torch.randint(len(x), (128,))])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
    return flow.double().eval().requires_grad_(False)


def after(flow: Flow, layer: int) -> Flow:
    """The first layers alone: what the noise has become there."""
    return Flow(flow.base, list(flow.transforms)[:layer])


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The grid and the density there, the square's area, and the point's way through all layers."""
    flow = state.made()
    with torch.no_grad():
        part = after(flow, state.layer)
        here = torch.tensor([[state.x, state.y]], dtype=torch.float64)
        z = part.encode(here)
        path = torch.cat([after(flow, k).decode(z) for k in range(LAYERS + 1)])
        outlines = [after(flow, k).decode(square_around(z)) for k in range(LAYERS + 1)]
        stretched = [float(after(flow, k).pushed_forward(z)[1].exp()) for k in range(LAYERS + 1)]
        density = part.log_prob(cell_centres()).exp()
        noise, there = (float(each.exp()) for each in (flow.base.log_prob(z), part.log_prob(here)))
        areas = [enclosed_area(outline) / SIDE**2 for outline in outlines]
        return {
            "lines": [rounded(part.decode(line)) for line in grid_lines()],
            "levels": cells_by_level(density),
            "square": rounded(outlines[state.layer]),
            "path": rounded(path),
            "data": [] if state.flow == "hand" or state.layer < LAYERS else rounded(points_of(state.flow)[:200]),
            "layer": state.layer,
            "det": round(stretched[state.layer], 4),
            "area": round(areas[state.layer], 4),
            "density": round(there, 4),
            "noise": round(noise, 4),
            "words": words(state, stretched[state.layer], areas[state.layer]),
            "python": python(state),
            "figures": {"areas": area_curves(stretched, areas, state.layer)},
        }


def words(state: State, det: float, area: float) -> str:
    if state.layer == 0:
        said = "This is the noise itself: nothing has been moved."
    else:
        turned = "thinner" if det > 1 else "denser"
        size = f"{det:.3g} times as large" if det >= 1 else f"{1 / det:.3g} times smaller"
        said = (
            f"After {state.layer} of {LAYERS} layers a small area here is {size}, so the density is as much {turned}."
        )
    if state.masks == "same" and state.layer:
        said += " With the same half passing every time, vertical lines stay where they were."
    if abs(area / det - 1) > 0.1:
        said += f" The square on the page is {area:.3g} times as large: it is too wide for the bends here."
    return said


def square_around(z: Tensor) -> Tensor:
    """The outline of a square, with points along its sides, for they will bend: (60, 2)."""
    way = torch.linspace(-1, 1, 16, dtype=torch.float64)[:-1]
    one = torch.ones_like(way)
    sides = [(way, -one), (one, way), (-way, one), (-one, -way)]
    return z + 0.5 * SIDE * torch.cat([torch.stack(side, 1) for side in sides])


def enclosed_area(outline: Tensor) -> float:
    following = outline.roll(-1, 0)
    return abs(float((outline[:, 0] * following[:, 1] - outline[:, 1] * following[:, 0]).sum())) / 2


def grid_lines() -> list[Tensor]:
    along = torch.linspace(-2.5, 2.5, 41, dtype=torch.float64)
    places = torch.linspace(-2.5, 2.5, 11, dtype=torch.float64)
    return [torch.stack(pair, 1) for c in places for pair in ((along, c.expand(41)), (c.expand(41), along))]


def cell_centres() -> Tensor:
    steps = ((torch.arange(CELLS, dtype=torch.float64) + 0.5) / CELLS * 2 - 1) * REACH
    return torch.cartesian_prod(steps, steps)


def cells_by_level(density: Tensor) -> list[list[int]]:
    """For each level the numbers of the cells that are as dense; the levels are those of the noise, and up."""
    return [torch.where(density > 0.3 * (k / LEVELS) ** 2)[0].tolist() for k in range(1, LEVELS + 1)]


def area_curves(det: list[float], areas: list[float], layer: int) -> Figure:
    steps = range(LAYERS + 1)
    marks = [Line(steps, det, "|det|"), Line(steps, areas, "area of the square"), Points([layer], [det[layer]], "here")]
    return Figure("How much an area has grown", "layers", "times", marks)


def rounded(places: Tensor) -> list[list[float]]:
    return [[round(max(-99.0, min(99.0, value)), 3) for value in place] for place in places.tolist()]


def still(state: State) -> Figure:
    """The density with the grid."""
    flow = after(state.made(), state.layer)
    with torch.no_grad():
        density = flow.log_prob(cell_centres()).exp().reshape(CELLS, CELLS).mT
        lines = [flow.decode(line) for line in grid_lines()]
    steps = (((torch.arange(CELLS) + 0.5) / CELLS * 2 - 1) * REACH).tolist()
    heat = Heat(density.mul(1000).round().div(1000), x=steps, y=steps, label="density")
    shown = [line.clamp(-REACH, REACH) for line in lines]
    marks: list[Any] = [heat, *(Line(line[:, 0], line[:, 1]) for line in shown)]
    return Figure(f"The plane after {state.layer} of {LAYERS} layers", "x₁", "x₂", marks)


def python(state: State) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.data import load\nfrom lemmata.generative import RealNVP\n"
        "from lemmata.train import fit\n\n"
        f"x = load('{'moons' if state.flow == 'hand' else state.flow}').train.x\n"
        f"torch.manual_seed(0)\nflow = RealNVP(2, couplings={LAYERS}, widths=(32, 32))\nflow.standardize(x)\n"
        "fit(flow, x, epochs=40, lr=5e-3, warmup=50, clip=5.0, schedule='cosine', device='cpu')\n"
        "z = torch.randn(1, 2)\n"
        f"for layer in flow.transforms[:{state.layer}]:\n"
        "    z, log_det = layer(z)\n    print(z, log_det.exp())"
    )
