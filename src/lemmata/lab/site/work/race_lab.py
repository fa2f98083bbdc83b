r"""The race lab: up to three optimisers on a landscape or a small network, and the step that is too long."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.func import hessian
from torch.nn.utils import parameters_to_vector

from lemmata.data.planar import moons
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.softmax import binary_cross_entropy
from lemmata.figure import Figure, Heat, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.optim.adagrad import Adagrad
from lemmata.optim.adam import Adam
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.heavy_ball import HeavyBall
from lemmata.optim.landscapes import landscape
from lemmata.optim.nesterov import Nesterov
from lemmata.optim.rmsprop import RMSprop
from lemmata.train.randomness import seeded

LAB = {
    "title": "Optimiser race",
    "sentence": "Let three optimisers run down a landscape or a small network, and cross the longest step by hand.",
    "year": 1964,
    "chapter": "optim",
    "claims": ("optim.gd", "optim.heavy_ball", "optim.nesterov", "optim.adam", "optim.stepsize.two_over_beta"),
    "systems": ("sgd", "heavy_ball", "nesterov", "adagrad", "rmsprop", "adam", "landscape"),
    "command": "lemmata check 'optim.*'",
    "thumbnail": {"where": "turned", "steps": "60"},
}

KINDS = {
    "sgd": GradientDescent,
    "heavy_ball": HeavyBall,
    "nesterov": Nesterov,
    "adagrad": Adagrad,
    "rmsprop": RMSprop,
    "adam": Adam,
}
WORDS = {"sgd": "gradient descent", "heavy_ball": "heavy ball", "nesterov": "Nesterov", "adagrad": "AdaGrad"}
WORDS |= {"rmsprop": "RMSProp", "adam": "Adam"}
Where = Literal["valley", "turned", "rosenbrock", "double_well", "saddle", "beale", "ripples", "network"]
Racer = Literal["none", "sgd", "heavy_ball", "nesterov", "adagrad", "rmsprop", "adam"]
Rate = Annotated[float, Field(ge=-4, le=0.5)]
Place = Annotated[float, Field(ge=0, le=1)]
RATES = 13  # step sizes that are tried beside the race, three to a power of ten
ARRIVED = 1e-4  # of the loss at the start
WIDTH, EXAMPLES = 8, 100  # of the network


class State(LabState):
    """Where it goes, from which place of the window, who runs (with the decimal logarithm of lr), and how long."""

    where: Where = "valley"
    across: Place = 0.05
    up: Place = 0.75
    one: Racer = "sgd"
    rate_one: Rate = -1.05
    two: Racer = "heavy_ball"
    rate_two: Rate = -1.5
    three: Racer = "adam"
    rate_three: Rate = -0.5
    steps: Annotated[int, Field(ge=1, le=120)] = 60
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def chosen(self) -> list[tuple[str, float]]:
        """What is chosen for the three places, with the decimal logarithm of lr."""
        return [(self.one, self.rate_one), (self.two, self.rate_two), (self.three, self.rate_three)]

    def racers(self) -> list[tuple[str, float]]:
        """Who runs, with which lr."""
        found = [(name, 10**rate) for name, rate in self.chosen() if name != "none"]
        if not found:
            raise ValueError("somebody must run: choose an optimiser")
        return found


@dataclass
class Arena:
    """A function of many points at once, where it starts, and its least value."""

    function: Callable[[Tensor], Tensor]
    start: Tensor
    least: float
    limit: Callable[[Tensor], float]  # the longest step of gradient descent, by where it has come to


@dataclass
class Race:
    """The points (steps + 1, racers, dimensions) and losses (steps + 1, racers), and the losses of all rates tried."""

    paths: Tensor
    losses: Tensor
    tried: Tensor  # (rates,), at the end


# --- The arenas ---


def arena(state: State) -> Arena:
    """What the address asks for."""
    return network(state) if state.where == "network" else plane(state)


def plane(state: State) -> Arena:
    """A landscape; the longest step is 2/L, or beside a minimum 2 over the largest curvature there."""
    place = landscape(state.where)
    left, right, bottom, top = place.window
    start = [left + state.across * (right - left), bottom + state.up * (top - bottom)]
    minima = torch.tensor(place.minima, dtype=torch.float64)

    def limit(end: Tensor) -> float:
        if math.isfinite(place.smoothness):
            return 2 / place.smoothness
        return place.limit(int((minima - end).nan_to_num(1e9).norm(dim=1).argmin()))

    least = float(place(minima).min())
    return Arena(place, torch.tensor(start, dtype=torch.float64), least, limit)


def classifier(state: State) -> tuple[MLP, Tensor, Tensor]:
    """A network with one hidden layer, and a hundred points of two moons."""
    with seeded(state.seed):
        model = MLP(2, 1, widths=(WIDTH,), activation="tanh").double()
    data = moons(EXAMPLES, test=1, noise=0.15, seed=state.seed).train
    return model, torch.as_tensor(data.x).double(), torch.as_tensor(data.y)


def network(state: State) -> Arena:
    """The cross-entropy of the network as a function of all its weights."""
    model, x, y = classifier(state)

    def loss(weights: Tensor) -> Tensor:
        return binary_cross_entropy(outputs(weights, x), y.expand(*weights.shape[:-1], -1), reduction="none").mean(-1)

    def limit(end: Tensor) -> float:
        if not end.isfinite().all():
            return math.nan
        largest = float(torch.linalg.eigvalsh(hessian(loss)(end))[-1])  # type: ignore[operator]
        return 2 / largest if largest > 0 else math.inf

    start = parameters_to_vector(model.parameters()).detach()
    return Arena(loss, start, 0.0, limit)


def outputs(weights: Tensor, x: Tensor) -> Tensor:
    """What networks with weights (..., 33), in the order of the MLP's parameters, say of points: (..., points)."""
    first, bias, second, last = weights.split([2 * WIDTH, WIDTH, WIDTH, 1], dim=-1)
    hidden = torch.tanh(x @ first.unflatten(-1, (WIDTH, 2)).mT + bias[..., None, :])  # (..., points, WIDTH)
    return (hidden @ second[..., None])[..., 0] + last


# --- The race ---


def run_race(where: Arena, racers: Sequence[tuple[str, float]], steps: int, rates: Sequence[float] = ()) -> Race:
    """All run at once: one evaluation of the function gives everybody's gradient."""
    together = where.start.repeat(len(racers) + len(rates), 1)
    points = list(together.unbind())  # views: who steps, moves in `together`
    optimizers = [KINDS[name]([point], lr=lr) for (name, lr), point in zip(racers, points, strict=False)]
    if rates:  # the first racer's kind with other rates
        groups = [{"params": [p], "lr": lr} for p, lr in zip(points[len(racers) :], rates, strict=True)]
        optimizers.append(KINDS[racers[0][0]](groups))
    paths, losses = [], []
    for step in range(steps + 1):
        here = together.clone().requires_grad_()
        values = where.function(here)
        paths.append(here.detach()[: len(racers)])
        losses.append(values.detach())
        if step < steps:
            (gradients,) = torch.autograd.grad(values.sum(), here)
            for point, gradient in zip(points, gradients.unbind(), strict=True):
                point.grad = gradient
            for optimizer in optimizers:
                optimizer.step()
    found = torch.stack(losses) - where.least
    return Race(torch.stack(paths), found[:, : len(racers)], found[-1, len(racers) :])


def fate(losses: Tensor) -> str:
    """What became of a racer."""
    if not losses[-1].isfinite() or losses[-1] > 2 * losses[0]:
        return "diverged"
    return "arrived" if bool((losses <= ARRIVED * losses[0]).any()) else "on the way"


def show(state: State) -> dict[str, Any]:
    """How far everybody came, and which steps would have been too long for the first."""
    where, racers = arena(state), state.racers()
    rates = [10 ** (0.5 - k / 3) for k in reversed(range(RATES))]
    race = run_race(where, racers, state.steps, rates)
    limit = where.limit(race.paths[-1, 0])
    rows = []
    for index, (name, lr) in enumerate(racers):
        losses = race.losses[:, index]
        there = (losses <= ARRIVED * losses[0]).nonzero()
        end = float(losses[-1])
        rows.append({"name": WORDS[name], "lr": lr, "loss": end if math.isfinite(end) else None, "fate": fate(losses)})
        rows[-1]["step"] = int(there[0]) if len(there) else None
    return {
        "racers": rows,
        "limit": limit if math.isfinite(limit) else None,
        "local": state.where == "network" or not math.isfinite(getattr(where.function, "smoothness", math.inf)),
        "python": python(state),
        "figures": {
            "arena": picture(state, where, race, racers),
            "loss": curves(race, racers),
            "rates": tried(race, racers[0], rates, limit),
        },
    }


def still(state: State) -> Figure:
    """The paths."""
    where, racers = arena(state), state.racers()
    return picture(state, where, run_race(where, racers, state.steps), racers)


# --- Pictures ---


def labels(racers: Sequence[tuple[str, float]]) -> list[str]:
    return [f"{WORDS[name]}, lr {lr:.3g}" for name, lr in racers]


def picture(state: State, where: Arena, race: Race, racers: Sequence[tuple[str, float]]) -> Figure:
    """The landscape with all paths, or the plane as the first racer's network sees it."""
    if state.where != "network":
        paths = {label: race.paths[:, index] for index, label in enumerate(labels(racers))}
        return landscape(state.where).figure(paths, columns=41)
    _, x, y = classifier(state)
    across, up = torch.linspace(-1.5, 2.5, 41).double(), torch.linspace(-1.0, 1.5, 26).double()
    grid = torch.stack(torch.meshgrid(across, up, indexing="xy"), -1)  # (rows, columns, 2)
    seen = torch.sigmoid(outputs(race.paths[-1, 0], grid.flatten(0, 1))).reshape(grid.shape[:2])
    marks = [Heat(seen, across, up)]
    marks += [Points(x[y == k][:, 0], x[y == k][:, 1], word) for k, word in ((0, "one moon"), (1, "the other"))]
    return Figure(f"What {WORDS[racers[0][0]]} learnt in {state.steps} steps", "x", "y", marks)


def curves(race: Race, racers: Sequence[tuple[str, float]]) -> Figure:
    """Every racer's loss above the least one, against the steps."""
    top = 1e3 * float(race.losses[0].max())
    shown = race.losses.clamp(min=1e-16).where((race.losses > 1e-16) & (race.losses < top), math.nan)
    steps = list(range(len(shown)))
    marks = [Line(steps, shown[:, index], label) for index, label in enumerate(labels(racers))]
    return Figure("Loss above the minimum", "step", "loss", marks, y_log=True)


def tried(race: Race, first: tuple[str, float], rates: Sequence[float], limit: float) -> Figure:
    """The first racer's loss at the end by its lr, its own lr, and the longest step of gradient descent."""
    low, high = (factor * max(float(race.losses[0, 0]), 1e-12) for factor in (1e-12, 1e3))
    (name, lr), own = first, race.losses[-1, :1]
    ends, own = (losses.nan_to_num(high, high).clamp(low, high) for losses in (race.tried, own))
    marks: list[Line | Points] = [Line(rates, ends, WORDS[name]), Points([lr], own, "its lr in the race")]
    if math.isfinite(limit) and rates[0] <= limit <= rates[-1]:
        marks.append(Line([limit, limit], [float(ends.min()), high], "2/L"))
    axes = ("lr", f"loss after {len(race.losses) - 1} steps")
    return Figure(f"Which lr serves {WORDS[name]}", *axes, marks, x_log=True, y_log=True)


def python(state: State) -> str:
    """The first racer's run in Python."""
    name, rate = next(pair for pair in state.chosen() if pair[0] != "none")
    kind = KINDS[name].__name__
    if state.where == "network":
        imports = "from lemmata.data import moons\nfrom lemmata.feedforward import MLP, binary_cross_entropy\n"
        imports += f"from lemmata.optim import {kind}\nfrom lemmata.train import seeded\n\n"
        made = f"data = moons({EXAMPLES}, test=1, noise=0.15, seed={state.seed}).train\n"
        made += f"x, y = data.x.double(), data.y\nwith seeded({state.seed}):\n"
        made += f"    model = MLP(2, 1, widths=({WIDTH},), activation='tanh').double()\n"
        parameters, loss = "model.parameters()", "binary_cross_entropy(model(x)[:, 0], y)"
    else:
        start = ", ".join(f"{x:.12g}" for x in arena(state).start.tolist())
        imports = f"import torch\nfrom lemmata.optim import {kind}, landscape\n\n"
        made = f"x = torch.tensor([{start}], dtype=torch.float64, requires_grad=True)\n"
        parameters, loss = "[x]", f"landscape({state.where!r})(x)"
    descent = f"optimizer = {kind}({parameters}, lr=10 ** {rate:g})\nfor _ in range({state.steps}):\n"
    descent += f"    optimizer.zero_grad()\n    {loss}.backward()\n    optimizer.step()\n"
    return f"{imports}{made}{descent}print({loss}.item())"
