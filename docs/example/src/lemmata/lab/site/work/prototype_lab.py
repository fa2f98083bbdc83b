"""The prototype lab: where the boundary lies between three prototypes, and how it follows one of them."""

from typing import Annotated, Any

import torch
from pydantic import Field

from lemmata.connectionism.nearest_prototype import NearestPrototype
from lemmata.figure import Figure, Heat, Points
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Nearest prototypes",
    "sentence": "Slide one of three prototypes and see its part of the plane follow.",
    "year": 1986,
    "chapter": "connectionism",
    "claims": ("nearest_prototype.boundary",),
    "systems": ("nearest_prototype",),
    "command": "lemmata check nearest_prototype.boundary",
}

FIXED = ((-1.0, -0.6), (1.0, -0.6))
SIDE = 61  # points across the picture


class State(LabState):
    """Where the first prototype stands; the address says the same."""

    x: Annotated[float, Field(ge=-2, le=2)] = 0.0
    y: Annotated[float, Field(ge=-2, le=2)] = 1.0


def show(state: State) -> dict[str, Any]:
    """The classes of the plane, and how much of it the first prototype has."""
    places, classes = _classes(state)
    part = float((classes == 0).double().mean())
    axis = places.tolist()
    marks = [Heat(classes.double(), axis, axis, "class"), *_points(state)]
    title = f"The first prototype has {part:.0%} of this plane"
    return {"part": part, "python": python(state), "figures": {"plane": Figure(title, "x", "y", marks)}}


def still(state: State) -> Figure:
    """The picture with which the page comes."""
    return show(state)["figures"]["plane"]


def _classes(state: State) -> tuple[torch.Tensor, torch.Tensor]:
    classifier = NearestPrototype(inputs=2, classes=3)
    with torch.no_grad():
        classifier.prototypes.copy_(torch.tensor([(state.x, state.y), *FIXED]))
    axis = torch.linspace(-2, 2, SIDE)
    plane = torch.cartesian_prod(axis, axis).flip(1)  # (side * side, 2): y outside, x inside
    return axis, classifier.predict(plane).reshape(SIDE, SIDE)


def _points(state: State) -> list[Points]:
    return [Points([x], [y], str(k)) for k, (x, y) in enumerate([(state.x, state.y), *FIXED])]


def python(state: State) -> str:
    """The same in Python."""
    return "\n".join(
        [
            "import torch",
            "from lemmata.connectionism import NearestPrototype",
            "",
            "classifier = NearestPrototype(inputs=2, classes=3)",
            f"classifier.prototypes.data = torch.tensor({[(state.x, state.y), *FIXED]})",
            "print(classifier.predict(torch.zeros(1, 2)))",
        ]
    )
