r"""The positions lab: sines and cosines that tell positions apart, and a shift that turns every pair like a hand."""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.figure import Band, Figure, Heat, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.transformers.positions import sinusoidal_encoding

LAB = {
    "title": "Positions as clocks",
    "sentence": "Shift a position and see every pair of its encoding turn; take the pairs apart and see it fail.",
    "year": 2017,
    "chapter": "transformers",
    "claims": ("attention.positional", "attention.positional.shift"),
    "systems": ("sinusoidal_encoding",),
    "command": "lemmata check 'attention.positional*'",
}

TIME, WIDTH = 20, 12  # rows and columns of the map


class State(LabState):
    """The base as a power of ten, a position, how far it is shifted, and which columns share a frequency."""

    power: Annotated[float, Field(ge=0.5, le=5)] = 4.0
    position: Annotated[int, Field(ge=0, le=39)] = 6
    shift: Annotated[int, Field(ge=-20, le=20)] = 5
    columns: Literal["paired", "unpaired"] = "paired"

    def encoding(self, positions: Tensor) -> Tensor:
        """As the library has it, or every column with a frequency of its own, as if it were one of twice as many."""
        if self.columns == "paired":
            return sinusoidal_encoding(positions, WIDTH, 10**self.power, torch.float64)
        column = torch.arange(WIDTH)
        return sinusoidal_encoding(positions, 2 * WIDTH, 10**self.power, torch.float64)[..., 2 * column + column % 2]


def show(state: State) -> dict[str, Any]:
    """The map, the pairs before and after the shift, and products with all positions."""
    before, after = state.encoding(torch.tensor([state.position, state.position + state.shift]))
    missed = float((_turn_pairs(before, state) - after).norm())
    return {
        "missed": missed,
        "product": float(before @ after),
        "length": float(before @ before),
        "python": python(state),
        "figures": {
            "map": still(state),
            "clocks": _clock_points(state, before, after),
            "products": _distance_products(state),
        },
    }


def still(state: State) -> Figure:
    """The encoding of the first positions."""
    values = state.encoding(torch.arange(TIME)).mul(100).round().div(100)
    marks = [Heat(values, list(range(WIDTH)), list(range(TIME)), "value")]
    return Figure("Encoding of the first positions", "column", "position", marks)


def _turn_pairs(before: Tensor, state: State) -> Tensor:
    """Each pair turned by its frequency times the shift."""
    turn = sinusoidal_encoding(torch.tensor(state.shift), WIDTH, 10**state.power, torch.float64).unflatten(-1, (-1, 2))
    (sin, cos), (s, c) = turn.unbind(-1), before.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([s * cos + c * sin, c * cos - s * sin], -1).flatten()


def _clock_points(state: State, before: Tensor, after: Tensor) -> Figure:
    """The pairs as points: at the position, after the shift, and where a rotation would bring them."""
    circle = torch.linspace(0, 2 * torch.pi, 73)
    marks: list[Any] = [Line(circle.cos(), circle.sin(), "unit circle")]
    for name, values in (("at t", before), ("at t + Δ", after), ("turned by Δ", _turn_pairs(before, state))):
        sines, cosines = values.unflatten(-1, (-1, 2)).unbind(-1)
        marks.append(Points(cosines, sines, name))
    # A plot is twice as wide as high: a band without height makes room on both sides, so that the circle is round.
    marks.append(Band([-2.2, 2.2], [0, 0], [0, 0]))
    return Figure("Every pair, before and after the shift", "cosine", "sine", marks)


def _distance_products(state: State) -> Figure:
    """Products with all positions, by distance, for this position and for the shifted one."""
    apart, marks = torch.arange(-20, 21), []
    for name, place in (("from t", state.position), ("from t + Δ", state.position + state.shift)):
        here, there = state.encoding(torch.tensor(place)), state.encoding(place + apart)
        marks.append(Line(apart, there @ here, name))
    return Figure("Products with the positions around", "distance", "product", marks)


def python(state: State) -> str:
    """The same in Python."""
    return "\n".join(
        [
            "import torch",
            "from lemmata.transformers import sinusoidal_encoding",
            "",
            f"t = torch.tensor([{state.position}, {state.position + state.shift}])",
            f"before, after = sinusoidal_encoding(t, width={WIDTH}, base={round(10**state.power, 3)})",
            "print(before @ after, before @ before)",
        ]
    )
