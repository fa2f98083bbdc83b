r"""The boundary lab: a small network learns to tell two classes of points apart, mapping the plane as it goes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from lemmata.data import planar
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure, Line
from lemmata.lab.site.labs import LabState
from lemmata.train.forms import accuracy
from lemmata.train.loop import fit
from lemmata.train.options import Options
from lemmata.train.pictures import decision_map
from lemmata.train.randomness import seeded
from lemmata.train.watch import Watcher

LAB = {
    "title": "Decision boundary",
    "sentence": "Train a small network on points in the plane and watch it bend a border between them.",
    "year": 1986,
    "chapter": "feedforward",
    "claims": (),
    "systems": ("mlp",),
    "command": "lemmata train mlp --data moons",
    "thumbnail": {"data": "spirals", "seed": "2"},
}

FRAMES = 40  # pictures of one training; more would come faster than the eye follows
SHOWN = 150  # points of either kind on the page
CELLS = 60  # of the map, along each axis

Activation = Literal[
    "relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "silu", "softplus", "tanh", "sigmoid", "softsign", "identity"
]


class State(LabState):
    """Which points, which network, and how it learns."""

    data: Literal["moons", "rings", "spirals", "xor"] = "moons"
    noise: Annotated[float, Field(ge=0, le=1)] | None = None
    width: Annotated[int, Field(ge=1, le=256)] = 16
    depth: Annotated[int, Field(ge=0, le=6)] = 2
    activation: Activation = "tanh"
    lr: Annotated[float, Field(ge=1e-5, le=10)] = 0.01
    epochs: Annotated[int, Field(ge=1, le=400)] = 40
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    @property
    def usual(self) -> float:
        """The noise that the data set has by itself, and the command line always."""
        return inspect.signature(getattr(planar, self.data)).parameters["noise"].default

    def points(self) -> Dataset:
        return load(self.data, noise=self.usual if self.noise is None else self.noise)

    def network(self) -> MLP:
        with seeded(self.seed):
            return MLP(2, 2, widths=(self.width,) * self.depth, activation=self.activation)

    def options(self) -> Options:
        chosen = {"epochs": self.epochs, "lr": self.lr, "seed": self.seed}
        return Options(**chosen, schedule="cosine", evaluate=max(1, self.epochs // FRAMES), device="cpu")


def show(state: State) -> dict[str, Any]:
    """What the network sees before it learns."""
    data, network = state.points(), state.network()
    return {
        "fresh": placed(data.test),
        "learnt": placed(data.train),
        "parameters": sum(each.numel() for each in network.parameters()),
        "frame": frame(network, data, 0),
        "accuracy": float((probabilities(network, data.test.x).argmax(1) == data.test.y).double().mean()),
        "noise": state.usual if state.noise is None else state.noise,
        "command": command(state),
        "python": python(state),
        "figures": {"curve": curve([0], *([value] for value in losses(network, data)))},
    }


def still(state: State) -> Figure:
    """The plane as the network sees it before it learns."""
    return picture(state.network(), state.points(), "Before anything is learnt")


# --- Training ---


def run(state: State, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Learn, telling each picture on the way."""
    data, network = state.points(), state.network()
    telling = Telling(state, data, network, tell)
    done = fit(
        network, data.train, test=data.test, metrics={"accuracy": accuracy}, metric="accuracy", largest=True,
        options=state.options(), watchers=[telling], progress=False,
    )  # fmt: skip
    figures = {"curve": curve(telling.epochs, telling.train, telling.test)}
    return {"scores": done.scores, "stopped": done.stopped, "seconds": done.seconds, "figures": figures}


class Telling(Watcher):
    """Passes on the loss, the accuracy and the map of the plane after each evaluation."""

    def __init__(self, state: State, data: Dataset, network: MLP, tell: Callable[[dict[str, Any]], None]) -> None:
        self.state, self.data, self.network, self.tell = state, data, network, tell
        first, second = losses(network, data)
        self.epochs, self.train, self.test = [0], [first], [second]
        self.recent: list[float] = []

    def started(self, facts: Mapping[str, Any]) -> None:
        found = float((probabilities(self.network, self.data.test.x).argmax(1) == self.data.test.y).double().mean())
        first = frame(self.network, self.data, 0)
        self.tell({"event": "started", "epochs": self.state.epochs, "accuracy": found, "frame": first})

    def stepped(self, step: int, epoch: int, numbers: Mapping[str, float]) -> None:
        self.recent.append(numbers["loss"])

    def evaluated(self, step: int, epoch: int, scores: Mapping[str, float]) -> None:
        self.epochs.append(epoch)
        self.train.append(sum(self.recent) / len(self.recent))
        self.test.append(scores["loss"])
        self.recent = []
        drawn = {
            "frame": frame(self.network, self.data, epoch),
            "figures": {"curve": curve(self.epochs, self.train, self.test)},
        }
        self.tell({"event": "frame", "loss": scores["loss"], "accuracy": scores["accuracy"], **drawn})


# --- Pictures ---


def picture(network: MLP, data: Dataset, title: str) -> Figure:
    """The plane as the network sees it, with points that it did not learn from on top."""
    return decision_map(lambda x: probabilities(network, x), data.test[torch.arange(SHOWN)], data.classes, title)


def curve(epochs: list[int], train: list[float], test: list[float]) -> Figure:
    """The loss on both kinds of points."""
    marks = [Line(epochs, train, "points it learns from"), Line(epochs, test, "fresh points")]
    title = "The loss as training goes on" if len(epochs) > 1 else "The loss before anything is learnt"
    return Figure(title, "epoch", "cross-entropy", marks)


@torch.no_grad()
def losses(network: MLP, data: Dataset) -> tuple[float, float]:
    """The cross-entropy on the points that it learns from, and on fresh ones."""
    train, test = (float(cross_entropy(network(part.x), part.y)) for part in (data.train, data.test))
    return train, test


@torch.no_grad()
def probabilities(network: MLP, x: Tensor) -> Tensor:
    """How likely the network holds each class, in the mode of use."""
    training = network.training
    found = network.eval()(x).softmax(1)
    network.train(training)
    return found


def frame(network: MLP, data: Dataset, epoch: int) -> dict[str, Any]:
    """A map for a canvas: how likely the second class is, two hexadecimal digits a cell, rows upwards."""
    across, up = axes(data)
    chance = probabilities(network, torch.cartesian_prod(up, across).flip(1))[:, 1]
    cells = "".join(f"{round(255 * value):02x}" for value in chance.tolist())
    box = [rounded(edge) for edge in (across[0], across[-1], up[0], up[-1])]
    return {"epoch": epoch, "side": CELLS, "box": box, "cells": cells}


def axes(data: Dataset) -> tuple[Tensor, Tensor]:
    """The middles of the cells along both axes: a square, so that a circle looks like one, around all shown points."""
    x = torch.cat([data.train.x[:SHOWN], data.test.x[:SHOWN]])
    low, high = x.amin(0), x.amax(0)
    middle, half = (low + high) / 2, 0.56 * float((high - low).max())
    across, up = (torch.linspace(float(m) - half, float(m) + half, CELLS) for m in middle)
    return across, up


def placed(examples: Examples) -> list[list[float]]:
    """The first points of a set and their classes."""
    places, labels = examples.x[:SHOWN].tolist(), examples.y[:SHOWN].tolist()
    return [[rounded(u), rounded(v), label] for (u, v), label in zip(places, labels, strict=True)]


def rounded(value: float | Tensor) -> float:
    return round(float(value), 3)


# --- The same elsewhere ---


def command(state: State) -> str:
    """The command that trains the same network to the same bits; none with noise that it cannot be told."""
    if state.noise not in (None, state.usual):
        return ""
    widths = f"--widths {' '.join([str(state.width)] * state.depth)}" if state.depth else "--widths"
    learning = f"--lr {state.lr:g} --epochs {state.epochs} --seed {state.seed} --device cpu"
    return f"lemmata train mlp --data {state.data} {widths} --activation {state.activation} {learning}"


def python(state: State) -> str:
    """The same in Python."""
    noise = state.usual if state.noise is None else state.noise
    widths = f"({state.width},) * {state.depth}"
    return (
        "from lemmata.data import load\nfrom lemmata.feedforward import MLP\n"
        "from lemmata.train import Options, accuracy, fit, seeded\n\n"
        f'data = load("{state.data}", noise={noise:g})\nwith seeded({state.seed}):\n'
        f'    network = MLP(2, 2, widths={widths}, activation="{state.activation}")\n'
        f"options = Options(epochs={state.epochs}, lr={state.lr:g}, seed={state.seed}, "
        'schedule="cosine", device="cpu")\n'
        'run = fit(network, data.train, test=data.test, metrics={"accuracy": accuracy}, options=options)\n'
        "print(run.scores)"
    )
