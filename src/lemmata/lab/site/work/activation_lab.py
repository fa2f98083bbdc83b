r"""The activation lab: a function, the tangent at a point that is moved along it, and what it lets pass backwards."""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field

from lemmata.figure import Figure, Line, Points
from lemmata.foundations.activations import activation
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Activation and slope",
    "sentence": "Move along an activation function and see how much of a gradient passes through it.",
    "year": 2010,
    "chapter": "foundations",
    "claims": ("activation.sigmoid_derivative", "activation.tanh_derivative", "activation.relu_derivative"),
    "systems": ("activation",),
    "command": "lemmata check 'activation.*'",
    "thumbnail": {"name": "gelu", "z": "-0.6"},
}


class State(LabState):
    """Which function, and where on it."""

    name: Literal["sigmoid", "tanh", "relu", "gelu", "silu"] = "sigmoid"
    z: Annotated[float, Field(ge=-6, le=6)] = 1.0


def show(state: State) -> dict[str, Any]:
    """The value and the slope there, beside the steepest slope anywhere."""
    function, z = activation(state.name), torch.tensor(state.z, dtype=torch.float64)
    return {
        "value": float(function(z)),
        "slope": float(function.derivative(z)),
        "steepest": function.lipschitz,
        "python": python(state),
        "figures": {"curve": still(state)},
    }


def still(state: State) -> Figure:
    """The function and its slope, and the tangent at the point."""
    function, z = activation(state.name), torch.linspace(-6, 6, 241, dtype=torch.float64)
    here = torch.tensor(state.z, dtype=torch.float64)
    value, slope = float(function(here)), float(function.derivative(here))
    near = [state.z - 1.5, state.z + 1.5]
    marks = [
        Line(z, function(z), "φ(z)"),
        Line(z, function.derivative(z), "its slope φ′(z)"),
        Line(near, [value - 1.5 * slope, value + 1.5 * slope], "tangent"),
        Points([state.z], [value], "here"),
    ]
    return Figure(f"{state.name} at z = {state.z:g}: slope {slope:.3g}", "z", "", marks)


def python(state: State) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.foundations import activation\n\n"
        f"function, z = activation({state.name!r}), torch.tensor({state.z:g})\n"
        "print(function(z), function.derivative(z), function.lipschitz)"
    )
