r"""The shattering lab: points are dragged, and every labelling of them is listed, with a classifier that has it."""

import re
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.connectionism.separability import separate
from lemmata.figure import Figure, Line, Points
from lemmata.generalization.shattering import growth_function, labellings
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Shattering game",
    "sentence": "Drag points until lines, discs or boxes can give them every labelling, or cannot.",
    "year": 1971,
    "chapter": "generalization",
    "claims": ("slt.outcome_set", "slt.vc_dim", "slt.vc_inequality"),
    "systems": ("labellings", "growth_function", "vc_dimension"),
    "command": "lemmata check slt.vc_dim",
    "thumbnail": {"by": "discs"},
}

MOST = 5  # points
REACH = 1.0
NUMBER = r"-?[01](\.[0-9]{1,3})?"
GROWTH = 6  # the largest number of points in the figure


class State(LabState):
    """Where the points lie (0.3,0.2; several joined by a semicolon), who labels them, and which labelling is shown."""

    points: Annotated[
        str, StringConstraints(max_length=120, pattern=rf"^{NUMBER},{NUMBER}(;{NUMBER},{NUMBER}){{0,{MOST - 1}}}$")
    ] = "-0.5,-0.3;0.5,-0.2;0,0.5"
    by: Literal["half-spaces", "discs", "rectangles"] = "half-spaces"
    shown: Annotated[int, Field(ge=0, lt=2**MOST)] = 1

    def places(self) -> Tensor:
        pairs = re.findall(r"([-.0-9]+),([-.0-9]+)", self.points)
        return torch.tensor([[float(x), float(y)] for x, y in pairs], dtype=torch.float64)  # (points, 2)


def show(state: State) -> dict[str, Any]:
    """All labellings in counting order, whether they are realised, and the area of a classifier with the chosen one."""
    x = state.places()
    found = {"".join(str(int(label)) for label in row) for row in labellings(state.by, x)}
    every = [format(k, f"0{len(x)}b") for k in range(2 ** len(x))]
    shown = min(state.shown, len(every) - 1)
    realised = [labels in found for labels in every]
    return {
        "every": every,
        "realised": realised,
        "shown": shown,
        "area": area(state.by, x, every[shown]) if realised[shown] else None,
        "count": len(found),
        "largest": growth_function(state.by, len(x)),
        "python": python(state),
        "figures": {"growth": still(state, len(found))},
    }


def area(by: str, x: Tensor, labels: str) -> dict[str, Any]:
    """What one classifier with these labels says yes to: a half-plane as a corner-less line, a circle, or a box."""
    inside = torch.tensor([label == "1" for label in labels])
    y = torch.where(inside, 1.0, -1.0).double()
    if not inside.any() and by != "half-spaces":
        return {"kind": "nothing"}
    if by == "rectangles":
        low, high = x[inside].amin(0), x[inside].amax(0)
        return {
            "kind": "box",
            "low": (low - margin(x, low, high)).tolist(),
            "high": (high + margin(x, low, high)).tolist(),
        }
    if by == "half-spaces":
        if inside.all() or not inside.any():
            return {"kind": "everything" if inside.all() else "nothing"}
        return {"kind": "line", "weights": separator(x, y, bias=True)}
    if inside.all():
        return {"kind": "disc", "centre": x.mean(0).tolist(), "radius": float((x - x.mean(0)).norm(dim=1).max()) + 0.05}
    squares = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    rows = torch.cat([squares, torch.cat([x.square().sum(1, keepdim=True), x, torch.ones_like(x[:, :1])], dim=1)])
    bend, across, up, rest = separator(rows, torch.cat([-torch.ones(1).double(), y]), bias=False)
    centre = [-across / (2 * bend), -up / (2 * bend)]
    return {"kind": "disc", "centre": centre, "radius": max(centre[0] ** 2 + centre[1] ** 2 - rest / bend, 0.0) ** 0.5}


def separator(rows: Tensor, y: Tensor, bias: bool) -> list[float]:
    """The weights, and the bias where there is one, of a unit that has these labels."""
    plane = separate(rows, y, bias)
    if plane.weight is None or plane.bias is None:
        raise ValueError("points must lie farther apart: what the squares round decides here")
    return [*plane.weight.tolist(), *([float(plane.bias)] if bias else [])]


def margin(x: Tensor, low: Tensor, high: Tensor) -> float:
    """Half of the way to the nearest point outside, at most a twentieth of the picture."""
    beyond = torch.maximum(low - x, x - high).amax(1)
    outside = beyond[beyond > 0]
    return min(0.05, float(outside.min()) / 2) if len(outside) else 0.05


def still(state: State, count: int | None = None) -> Figure:
    """The growth function beside all labellings there are, and these points."""
    n, x = list(range(1, GROWTH + 1)), state.places()
    count = len(labellings(state.by, x)) if count is None else count
    name = {"half-spaces": "lines", "discs": "discs", "rectangles": "boxes"}[state.by]
    marks = [
        Line(n, [2**k for k in n], "all labellings"),
        Line(n, [growth_function(state.by, k) for k in n], f"the most of {name}"),
        Points([len(x)], [count], "these points"),
    ]
    return Figure(f"Labellings by {name}", "points n", "labellings", marks, y_log=True)


def python(state: State) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.generalization import growth_function, labellings\n\n"
        f"points = torch.tensor({[[round(v, 3) for v in place] for place in state.places().tolist()]})\n"
        f"found = labellings({state.by!r}, points)\n"
        f"print(found.int(), len(found), growth_function({state.by!r}, len(points)), 2 ** len(points))"
    )
