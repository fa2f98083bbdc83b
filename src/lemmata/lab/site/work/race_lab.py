r"""The optimiser race: from one start, on a landscape or in the weights of a network, with steps up to 2/L and past."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.data.planar import moons
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.optim.adagrad import Adagrad
from lemmata.optim.adam import Adam
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.landscapes import landscape
from lemmata.optim.nesterov import Nesterov
from lemmata.optim.rmsprop import RMSprop
from lemmata.optim.stepsizes import stability_limit
from lemmata.train.randomness import seeded

LAB = {
    "title": "Optimiser race",
    "sentence": "Send optimisers down a landscape, or through the weights of a network, and push their steps past 2/L.",
    "year": 1964,
    "chapter": "optim",
    "claims": (
        "optim.stepsize.two_over_beta",
        "optim.gd.stepsize_optimality",
        "optim.nesterov.rate",
        "optim.gradient_flow",
    ),
    "systems": ("sgd", "heavy_ball", "nesterov", "adagrad", "rmsprop", "adam", "stability_limit", "landscape"),
    "command": "lemmata check 'optim.stepsize.*'",
    "thumbnail": {"place": "rosenbrock"},
}

STEPS = 80
CELLS = 56  # of the relief, along each axis
EDGE = 1.05  # how far the picture reaches beyond the window
FINISH = 0.01  # of the height of the start: there a racer has arrived
FINISH_OF_NETWORK = 0.2
GRADIENT = {"descent": GradientDescent, "heavy": HeavyBall, "nesterov": Nesterov}  # whose steps are measured by 2/L
ADAPTIVE = {"adagrad": Adagrad, "rmsprop": RMSprop, "adam": Adam}
NAMES = {
    "descent": "Descent",
    "heavy": "Heavy ball",
    "nesterov": "Nesterov",
    "adagrad": "AdaGrad",
    "rmsprop": "RMSProp",
    "adam": "Adam",
}
RACER = "|".join(NAMES)


class State(LabState):
    """Where they race and from where, who takes part (joined by commas), and how long their steps are."""

    place: Literal["valley", "turned", "rosenbrock", "double_well", "saddle", "beale", "ripples", "network"] = "valley"
    x: Annotated[float, Field(ge=-6, le=6)] | None = None
    y: Annotated[float, Field(ge=-6, le=6)] | None = None
    racers: Annotated[str, StringConstraints(max_length=60, pattern=rf"^({RACER})(,({RACER})){{0,5}}$")] = (
        "descent,heavy,nesterov,adam"
    )
    share: Annotated[float, Field(ge=0.05, le=2)] = 0.5
    momentum: Annotated[float, Field(ge=0, le=0.99)] = 0.9
    rate: Annotated[float, Field(ge=0.01, le=1)] = 0.2
    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    at: Annotated[int, Field(ge=0, le=STEPS)] = 0

    def chosen(self) -> list[str]:
        """In the order of the course, whatever the address says."""
        given = set(self.racers.split(","))
        return [name for name in NAMES if name in given]

    def settings(self, name: str, limit: float) -> tuple[tuple[str, float], ...]:
        """What an optimiser is made with."""
        rate = ("lr", self.rate if name in ADAPTIVE else self.share * limit)
        return (rate, ("momentum", self.momentum)) if name in ("heavy", "nesterov") else (rate,)


@dataclass(frozen=True, eq=False)
class Course:
    """A function of (..., n), its least value, a start, and the limit 2/L: beside the minimum, or at the start."""

    f: Callable[[Tensor], Tensor]
    lowest: float
    start: Tensor
    limit: float


def course(state: State) -> Course:
    return network_course(state.seed) if state.place == "network" else ground_course(state.place, state.x, state.y)


# What a hand that drags one thing does not change is computed once.


@functools.lru_cache(8)
def ground_course(place: str, x: float | None, y: float | None) -> Course:
    ground = landscape(place)
    start = [given if given is not None else own for given, own in zip((x, y), ground.start, strict=True)]
    lowest = float(ground(torch.tensor(ground.minima[0], dtype=torch.float64)))
    return Course(ground, lowest, torch.tensor(start, dtype=torch.float64), ground.limit())


@functools.lru_cache(8)
def network_course(seed: int) -> Course:
    """The squared error of an MLP with eight tanh units on 60 points of two moons, as a function of its weights."""
    data, network = moons_and_network(seed)
    x, y = data
    start = torch.nn.utils.parameters_to_vector(network.parameters()).detach()

    def losses(w: Tensor) -> Tensor:
        first, offset, last, bias = w.split([16, 8, 8, 1], -1)  # as MLP(2, 1, widths=(8,)) has them
        hidden = torch.tanh(x @ first.unflatten(-1, (8, 2)).mT + offset[..., None, :])  # (..., points, units)
        return ((hidden @ last[..., None])[..., 0] + bias - y).square().mean(-1)

    place = start.clone().requires_grad_()
    return Course(losses, 0.0, start, stability_limit(lambda: losses(place), [place]))


def moons_and_network(seed: int) -> tuple[tuple[Tensor, Tensor], MLP]:
    data = moons(n=60, test=2, seed=seed).train
    with seeded(seed):
        network = MLP(2, 1, widths=(8,), activation="tanh").double()
    return (data.x.double(), 2.0 * data.y.double() - 1), network


@functools.lru_cache(64)
def run_of(on: Course, name: str, settings: tuple[tuple[str, float], ...]) -> tuple[Tensor, Tensor]:
    """The path of one racer, (steps + 1, n), and its heights; what has flown off is infinite or NaN."""
    kind = {**GRADIENT, **ADAPTIVE}[name]
    path = descent_path(on.f, on.start, STEPS, lambda parameters: kind(parameters, **dict(settings)))
    return path, on.f(path) - on.lowest


def show(state: State) -> dict[str, Any]:
    """The relief, the paths in it, the heights on the way, and who arrived when."""
    on = course(state)
    runs = {name: run_of(on, name, state.settings(name, on.limit)) for name in state.chosen()}
    paths, heights = ({name: run[k] for name, run in runs.items()} for k in (0, 1))
    finish = FINISH_OF_NETWORK if state.place == "network" else FINISH
    window, relief, flat = ground_of(state, on, paths, heights)
    racers = [
        {
            "name": NAMES[name],
            "path": [[round(u, 4), round(v, 4)] for u, v in within(flat[name]).tolist()],
            "heights": [float(f"{h:.3g}") if math.isfinite(h) else None for h in heights[name].tolist()],
            "arrived": arrived(heights[name], finish),
            "lost": lost(heights[name]),
        }
        for name in paths
    ]
    return {
        "relief": relief,
        "window": window,
        "racers": racers,
        "minima": [] if state.place == "network" else [list(at) for at in landscape(state.place).minima],
        "start": within(flat[next(iter(flat))])[0].tolist(),
        "finish": finish,
        "limit": on.limit,
        "lr": state.share * on.limit,
        "python": python(state, on),
        "figures": {"loss": falling(heights), "sweep": sweep(state)},
    }


def arrived(heights: Tensor, finish: float) -> int | None:
    """The first step at which only this part of the height is left."""
    there = (heights <= finish * heights[0]).nonzero()
    return int(there[0]) if len(there) else None


def lost(heights: Tensor) -> int | None:
    """The first step that is a hundred times as high as the start, if it never comes back from there."""
    high = ~(heights <= 100 * heights[0].clamp(min=1e-12))  # or not a number
    return int(high.nonzero()[0]) if bool(high[-1]) else None


# --- The plane ---


def within(path: Tensor) -> Tensor:
    """The path up to where it has left all pictures, with that point kept on the way out."""
    outside = (~(path.abs() <= 1e3).all(-1)).nonzero()
    return path[: int(outside[0])] if len(outside) else path


def ground_of(
    state: State, on: Course, paths: dict[str, Tensor], heights: dict[str, Tensor]
) -> tuple[list[float], str, dict[str, Tensor]]:
    """The window (middle and half its side), the relief in it, and the paths in its plane.

    Of a network it is the plane in which the paths move most: their first two principal directions.
    """
    if state.place != "network":
        left, right, bottom, top = landscape(state.place).window
        middle, half = torch.tensor([left + right, bottom + top], dtype=torch.float64) / 2, (right - left) / 2
        axes, origin, flat = torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64), paths
    else:
        kept = [path[heights[name] <= 2 * heights[name][0]] for name, path in paths.items()]
        points = torch.cat(kept)
        origin = points.mean(0)
        axes = torch.linalg.svd(points - origin, full_matrices=False).Vh[:2]  # (2, weights)
        axes = axes * torch.where(axes @ (on.start - origin) > 0, -1.0, 1.0)[:, None]  # the start at the lower left
        flat = {name: (path - origin) @ axes.T for name, path in paths.items()}
        shown = (points - origin) @ axes.T
        middle = (shown.amax(0) + shown.amin(0)) / 2
        half = 0.58 * float((shown.amax(0) - shown.amin(0)).max()) or 1.0
    return [*map(float, middle), half], relief_of(on.f, middle, half, axes, origin), flat


def relief_of(f: Callable[[Tensor], Tensor], middle: Tensor, half: float, axes: Tensor, origin: Tensor) -> str:
    """The logarithm of the heights in the window, two hexadecimal digits a cell, rows upwards."""
    line = torch.linspace(-EDGE * half, EDGE * half, CELLS, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(middle[0] + line, middle[1] + line, indexing="xy"), -1)  # rows upwards
    values = f(grid @ axes + origin).flatten()
    above = torch.log1p((values - values.min()) / (values.median() - values.min()).clamp(min=1e-300))
    return bytes((255 * above / above.max().clamp(min=1e-300)).round().to(torch.uint8).tolist()).hex()


# --- Figures ---


def falling(heights: dict[str, Tensor]) -> Figure:
    """The height above the minimum, step by step."""
    top = 10 * max(float(h[0]) for h in heights.values())
    lines = [
        Line(range(STEPS + 1), torch.where((h <= top) & (h > 1e-12), h, torch.nan), NAMES[name])
        for name, h in heights.items()
    ]
    return Figure("Height above the minimum", "step", "height", lines, y_log=True)


HIGHEST = 100.0  # times the height of the start: what is higher is not shown
SHARES = [round(0.05 * 1.13**k, 4) for k in range(31)]  # of 2/L, up to 1.95


@functools.lru_cache(32)
def left_over(on: Course, name: str, settings: tuple[tuple[str, float], ...]) -> Tensor:
    """What is left of the height after the race with steps of each length."""
    # A step of length s on f is a step of length 1 on s f: so all lengths race at once.
    lengths = on.limit * torch.tensor(SHARES, dtype=torch.float64)
    optimizer = functools.partial(GRADIENT[name], lr=1.0, **dict(settings))
    path = descent_path(lambda x: lengths * on.f(x), on.start.expand(len(SHARES), -1), STEPS, optimizer)
    return ((on.f(path[-1]) - on.lowest) / (on.f(on.start) - on.lowest).clamp(min=1e-12)).clamp(min=1e-12)


def sweep(state: State) -> Figure:
    """What is left after the race with steps of each length: below 2/L descent arrives, above it never does."""
    on = course(State(place=state.place, seed=state.seed))  # from the usual start, whichever is dragged
    marks: list[Any] = []
    for name in [name for name in state.chosen() if name in GRADIENT]:
        rest = left_over(on, name, state.settings(name, on.limit)[1:])
        marks.append(Line(SHARES, torch.where(rest <= HIGHEST, rest, torch.nan), NAMES[name]))
    least = min([0.1, *(left for mark in marks for left in mark.y if left is not None)])
    marks.append(Line([1.0, 1.0], [least, HIGHEST], "2/L"))
    marks.append(Points([state.share], [1.0], "your step"))
    return Figure(f"What {STEPS} steps leave", "step, in units of 2/L", "of the height", marks, x_log=True, y_log=True)


def still(state: State) -> Figure:
    """The landscape with the paths; of a network, the losses."""
    on = course(state)
    runs = {name: run_of(on, name, state.settings(name, on.limit)) for name in state.chosen()}
    if state.place == "network":
        return falling({name: heights for name, (_, heights) in runs.items()})
    return landscape(state.place).figure({NAMES[name]: path for name, (path, _) in runs.items()})


def python(state: State, on: Course) -> str:
    """The same in Python, of the first racer."""
    name = state.chosen()[0]
    kind, lr = (ADAPTIVE[name], state.rate) if name in ADAPTIVE else (GRADIENT[name], state.share * on.limit)
    more = f", momentum={state.momentum:g}" if name in ("heavy", "nesterov") else ""
    if state.place == "network":
        return (
            "import torch\nfrom lemmata.data import load\nfrom lemmata.feedforward import MLP\n"
            f"from lemmata.optim import {kind.__name__}, stability_limit\nfrom lemmata.train import seeded\n\n"
            f'data = load("moons", n=60, test=2, seed={state.seed}).train\n'
            "x, y = data.x.double(), 2.0 * data.y.double() - 1\n"
            f'with seeded({state.seed}):\n    network = MLP(2, 1, widths=(8,), activation="tanh").double()\n\n'
            "def loss():\n    return (network(x)[:, 0] - y).square().mean()\n\n"
            "limit = stability_limit(loss, network.parameters())  # 2/L at the start\n"
            f"optimizer = {kind.__name__}(network.parameters(), lr={lr:.6g}{more})\n"
            f"for step in range({STEPS}):\n    optimizer.zero_grad()\n    loss().backward()\n    optimizer.step()\n"
            "print(limit, loss().item())"
        )
    x, y = on.start.tolist()
    return (
        "import torch\n"
        f"from lemmata.optim import {kind.__name__}, descent_path, landscape\n\n"
        f'ground, start = landscape("{state.place}"), torch.tensor([{x:g}, {y:g}], dtype=torch.float64)\n'
        f"path = descent_path(ground, start, {STEPS}, lambda p: {kind.__name__}(p, lr={lr:.6g}{more}))\n"
        "print(ground.limit(), ground(path[-1]).item())"
    )
