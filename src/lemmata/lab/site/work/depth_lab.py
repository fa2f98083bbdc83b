r"""The depth lab: how large signals and gradients are in each layer of a deep network whose weights were just drawn."""

import math
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.initialization import initialize
from lemmata.tricks.layer_norm import LayerNorm
from lemmata.tricks.mean_field import expected_profile
from lemmata.tricks.signal_propagation import VarianceProfile, variance_profile

LAB = {
    "title": "Variance through depth",
    "sentence": "Choose initial weights, depth and activation, and see what is left of signals and gradients.",
    "year": 2010,
    "chapter": "tricks",
    "claims": ("init.lecun", "init.glorot", "init.he", "init.orthogonal", "norm.batch", "norm.layer"),
    "systems": ("initialize", "variance_profile", "expected_profile", "batch_norm", "layer_norm"),
    "command": "lemmata check 'init.*'",
    "thumbnail": {"scheme": "lecun"},
}

BATCH = 32  # examples
WIDTHS = {"equal": (64, 64), "narrowing": (96, 24), "widening": (24, 96)}
ACTIVATIONS = {
    "relu": ("nn.ReLU()", nn.ReLU),
    "tanh": ("nn.Tanh()", nn.Tanh),
    "sigmoid": ("nn.Sigmoid()", nn.Sigmoid),
    "gelu": ("nn.GELU()", nn.GELU),
    "identity": ("nn.Identity()", nn.Identity),
}
NAMES = {
    "relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "gelu": "gelu", "identity": "linear",
    "lecun": "LeCun's weights", "glorot": "Glorot's weights", "he": "He's weights", "orthogonal": "orthogonal weights",
}  # fmt: skip
NORMS = {"batch": BatchNorm, "layer": LayerNorm}
DRAWN = 1e30  # what is beyond this, or below its inverse, leaves the picture


class State(LabState):
    """The network and how its weights are drawn."""

    scheme: Literal["lecun", "glorot", "he", "orthogonal"] = "he"
    activation: Literal["relu", "tanh", "sigmoid", "gelu", "identity"] = "relu"
    depth: Annotated[int, Field(ge=2, le=50)] = 30
    gain: Annotated[float, Field(ge=0.5, le=2)] = 1.0
    widths: Literal["equal", "narrowing", "widening"] = "equal"
    normalization: Literal["none", "batch", "layer"] = "none"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def sizes(self) -> list[int]:
        """Units of the input and of each layer, from the first width to the last by equal factors."""
        first, last = WIDTHS[self.widths]
        return [round(first * (last / first) ** (layer / self.depth)) for layer in range(self.depth + 1)]

    def network(self) -> nn.Sequential:
        parts: list[nn.Module] = []
        for inputs, outputs in pairwise(self.sizes()):
            parts.append(nn.Linear(inputs, outputs))
            if self.normalization != "none":
                parts.append(NORMS[self.normalization](outputs))
            parts.append(ACTIVATIONS[self.activation][1]())
        network = nn.Sequential(*parts[:-1]).double()  # the last layer has no activation
        initialize(network, self.scheme, gain=self.gain, generator=self._part_generator(0))
        return network

    def profile(self) -> VarianceProfile:
        x = torch.randn(BATCH, self.sizes()[0], generator=self._part_generator(1), dtype=torch.float64)
        return variance_profile(self.network(), x, self._part_generator(2)).of("Linear")

    def expected(self) -> VarianceProfile | None:
        """Of networks without normalisation."""
        if self.normalization != "none":
            return None
        return expected_profile(self.sizes(), self.activation, self.scheme, self.gain)

    def _part_generator(self, part: int) -> torch.Generator:
        return torch.Generator().manual_seed(3 * self.seed + part)


def show(state: State) -> dict[str, Any]:
    """The profile, and by which powers of ten signals and gradients change on their way."""
    profile = state.profile()
    return {
        "signal": _decimal_power(profile.forward[-1] / profile.forward[0]),
        "gradient": _decimal_power(profile.backward[0] / profile.backward[-1]),
        "python": python(state),
        "figures": {"profile": picture(state, profile)},
    }


def still(state: State) -> Figure:
    """Both profiles."""
    return picture(state, state.profile())


def picture(state: State, profile: VarianceProfile) -> Figure:
    """Mean squares over where they start: points as measured, lines as expected of a wide network."""
    layers, expected = list(range(1, state.depth + 1)), state.expected()
    marks: list[Line | Points] = [
        Points(layers, _drawn_values(profile.forward / profile.forward[0]), "signal, from the first layer"),
        Points(layers, _drawn_values(profile.backward / profile.backward[-1]), "gradient, from the last"),
    ]
    if expected:
        marks.append(Line(layers, _drawn_values(expected.forward / expected.forward[0]), "signal, expected if wide"))
        marks.append(Line(layers, _drawn_values(expected.backward), "gradient, expected if wide"))
    title = f"{state.depth} layers, {NAMES[state.activation]}, {NAMES[state.scheme]}"
    return Figure(title, "layer", "mean square, where it starts = 1", marks, y_log=True)


def _decimal_power(ratio: Tensor) -> float | None:
    """The decimal logarithm; None where nothing is left, or more than a number holds."""
    exponent = float(ratio.log10())
    return exponent if math.isfinite(exponent) else None


def _drawn_values(values: Tensor) -> list[float]:
    """The numbers themselves; those that no picture holds are gaps."""
    return [value if 1 / DRAWN <= value <= DRAWN else math.nan for value in values.tolist()]


def python(state: State) -> str:
    """The same in Python."""
    norm = {"none": "", "batch": ", BatchNorm(m)", "layer": ", LayerNorm(m)"}[state.normalization]
    names = ["initialize", "variance_profile", *(["BatchNorm"] if state.normalization == "batch" else [])]
    names += ["LayerNorm"] if state.normalization == "layer" else []
    first, last = WIDTHS[state.widths]
    choices = f"{state.scheme!r}" + (f", gain={state.gain:g}" if state.gain != 1 else "")
    return "\n".join(
        [
            "import torch",
            "from torch import nn",
            f"from lemmata.tricks import {', '.join(sorted(names))}",
            "",
            f"sizes = [round({first} * ({last} / {first}) ** (k / {state.depth})) for k in range({state.depth} + 1)]",
            f"parts = [[nn.Linear(n, m){norm}, {ACTIVATIONS[state.activation][0]}] for n, m in zip(sizes, sizes[1:])]",
            "model = nn.Sequential(*sum(parts, [])[:-1])",
            f"initialize(model, {choices})",
            f'profile = variance_profile(model, torch.randn({BATCH}, sizes[0])).of("Linear")',
            "print(profile.forward[-1] / profile.forward[0], profile.backward[0] / profile.backward[-1])",
        ]
    )
