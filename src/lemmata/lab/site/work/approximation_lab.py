r"""The approximation lab: a function is drawn, and a layer of random units is fitted to it, as wide as one likes."""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.feedforward.piecewise_linear import PiecewiseLinear
from lemmata.feedforward.random_features import RandomFeatures
from lemmata.feedforward.uniform_distances import UniformDistance, uniform_distance
from lemmata.feedforward.uniform_fits import uniform_fit
from lemmata.figure import Figure, Line, Points
from lemmata.foundations.activations import activation
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Universal approximation",
    "sentence": "Draw a function and see how near one hidden layer comes to it, with each activation and width.",
    "year": 1993,
    "chapter": "feedforward",
    "claims": ("approx.uniform_metric", "approx.leshno", "approx.universal_mlp", "relu.universality"),
    "systems": ("random_features", "uniform_distance", "uniform_fit"),
    "command": "lemmata check 'approx.*'",
    "thumbnail": {"hidden": "8", "activation": "tanh"},
}

HANDLES = 9
MOST = 128  # units
SCALE = 8.0  # of the weights
DEGREES = {"square": 2, "cube": 3}
GRID = 201  # points at which a network is fitted
TAKEN = 16_000  # points of the interval around a distance: it has to be there while a point is dragged
NUMBER = r"-?[01](\.[0-9]{1,2})?"


class State(LabState):
    """The heights of the function at equal distances from -1 to 1, and the network."""

    heights: Annotated[str, StringConstraints(max_length=60, pattern=rf"^{NUMBER}(,{NUMBER}){{{HANDLES - 1}}}$")] = (
        "0.8,0.6,0.4,0.2,0,0.2,0.4,0.6,0.8"
    )
    activation: Literal["sigmoid", "tanh", "relu", "sin", "square", "cube"] = "sigmoid"
    hidden: Annotated[int, Field(ge=1, le=MOST)] = 16
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def function(self) -> PiecewiseLinear:
        heights = torch.tensor([float(height) for height in self.heights.split(",")], dtype=torch.float64)
        return PiecewiseLinear(torch.linspace(-1, 1, HANDLES, dtype=torch.float64), heights).requires_grad_(False)

    def network(self, hidden: int) -> RandomFeatures:
        """The first units of a wide layer, so that a wider network has those of a narrower one."""
        drawn, phi = torch.Generator().manual_seed(self.seed), self.units()
        made = [RandomFeatures(1, m, 1, phi, SCALE, 1.0, drawn, dtype=torch.float64)
                for m in (MOST, hidden)]  # fmt: skip
        made[1].hidden.weight.copy_(made[0].hidden.weight[:hidden])
        made[1].hidden.bias.copy_(made[0].hidden.bias[:hidden])
        x = _input_line(GRID)
        return made[1].fit(x, self.function()(x), ridge=1e-6)

    def units(self) -> Callable[[Tensor], Tensor]:
        own = {"sin": torch.sin, "square": torch.square, "cube": lambda z: z**3 - z}
        return own.get(self.activation) or activation(self.activation)


def show(state: State) -> dict[str, Any]:
    """The network beside the function, how far apart they are, and how that falls with the width."""
    network, function = state.network(state.hidden), state.function()
    x = _input_line(GRID)
    values = network(x).detach()[:, 0].clamp(-9, 9)
    found = _network_distance(state, network, function)
    return {
        "curve": [[round(a, 4), round(b, 4)] for a, b in zip(x[:, 0].tolist(), values.tolist(), strict=True)],
        "lower": found.lower,
        "upper": found.upper,
        "words": words(state, function),
        "python": python(state),
        "figures": {"widths": widths(state, found)},
    }


def _network_distance(state: State, network: RandomFeatures, function: PiecewiseLinear) -> UniformDistance:
    reach = float(network.hidden(_input_line(2)).abs().max())  # an affine function is largest at an end
    slopes = {"sin": 1.0, "square": 2 * reach, "cube": 3 * reach**2 + 1}
    known = slopes.get(state.activation) or activation(state.activation).lipschitz
    weights = (network.readout.weight[0].detach() * network.hidden.weight[:, 0]).abs().sum()
    constant = float(function.slopes.abs().max() + known * weights)
    return uniform_distance(function, network, (-1.0, 1.0), constant, tolerance=1e-3, points=TAKEN)


def widths(state: State, found: UniformDistance) -> Figure:
    """The largest error at many points, for widths up to the widest."""
    function, x = state.function(), _input_line(GRID)
    tried = [2**k for k in range(1 + int(math.log2(MOST)))]
    errors = [float((function(x) - state.network(m)(x).detach()).abs().max()) for m in tried]
    marks = [
        Line(tried, [max(e, 1e-6) for e in errors], state.activation),
        Points([state.hidden], [max(found.lower, 1e-6)], "here"),
    ]
    return Figure("Largest error for each width", "units", "largest error", marks, x_log=True, y_log=True)


def still(state: State) -> Figure:
    """The function and the network."""
    x = _input_line(GRID)
    marks = [
        Line(x[:, 0], state.function()(x)[:, 0], "function"),
        Line(x[:, 0], state.network(state.hidden)(x).detach()[:, 0].clamp(-1.5, 1.5), f"{state.hidden} units"),
    ]
    return Figure(f"{state.hidden} {state.activation} units", "x", "", marks)


def words(state: State, function: PiecewiseLinear) -> str:
    """What no width changes, or that every error is reached."""
    if state.activation not in DEGREES:
        return "No polynomial: some width reaches every error."
    x = _input_line(GRID)
    degree = DEGREES[state.activation]
    floor = uniform_fit(x ** torch.arange(degree + 1), function(x)[:, 0]).distance
    return f"Sums of such units are polynomials of degree {degree}: no width comes nearer than {floor:.3f}."


def _input_line(points: int) -> Tensor:
    return torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]


def python(state: State) -> str:
    """The same in Python."""
    phi = {"sin": "torch.sin", "square": "torch.square", "cube": "lambda z: z**3 - z"}.get(state.activation)
    return (
        "import torch\nfrom lemmata.feedforward import PiecewiseLinear, RandomFeatures\n\n"
        f"knots = torch.linspace(-1, 1, {HANDLES})\n"
        f"function = PiecewiseLinear(knots, torch.tensor([{state.heights.replace(',', ', ')}]))\n"
        f"x = torch.linspace(-1, 1, {GRID})[:, None]\n"
        f"network = RandomFeatures(1, {state.hidden}, activation={phi or repr(state.activation)}, scale={SCALE:g})\n"
        "network.fit(x, function(x), ridge=1e-6)\n"
        "print((function(x) - network(x)).abs().max())"
    )
