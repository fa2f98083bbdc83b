r"""The perceptron lab: every correction that the algorithm makes on some points of the plane, and why it must end."""

import math
import re
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.connectionism.linear_threshold import augment
from lemmata.connectionism.max_margin import MaximumMarginClassifier
from lemmata.connectionism.perceptron import Perceptron
from lemmata.connectionism.separability import Separation, separate
from lemmata.data.margins import separable
from lemmata.data.planar import xor
from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.lab.words import count

LAB = {
    "title": "Perceptron",
    "sentence": "Place points of two classes and watch a line find its way between them, mistake by mistake.",
    "year": 1958,
    "chapter": "connectionism",
    "claims": (
        "perceptron.algorithm",
        "perceptron.novikoff",
        "perceptron.novikoff_bias",
        "perceptron.margin_difficulty",
        "perceptron.xor",
        "perceptron.nonseparable",
    ),
    "systems": ("perceptron", "separability", "max_margin"),
    "command": "lemmata check 'perceptron.*'",
    "thumbnail": {"example": "narrow", "seed": "3", "at": "400"},
}

REACH = 5.0  # the plane is the square from -REACH to REACH
GRID = 8  # places for a point along a unit: eighths are exact in binary, so weights that repeat do so to the last bit
SWEEPS = 400
SHOWN = 1500  # corrections that travel to the page; the count of all of them does too
POINT = r"[pn]-?[0-9](\.[0-9]{1,3})?,-?[0-9](\.[0-9]{1,3})?"


class State(LabState):
    """Points (p1.5,2 is one of class +1, n0,-1 one of class -1), or an example; and how many corrections are made."""

    example: Literal["wide", "narrow", "xor", "clouds", "mislabelled"] = "wide"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    points: Annotated[str, StringConstraints(max_length=4000, pattern=rf"^({POINT}){{0,200}}$")] | None = None
    at: Annotated[int, Field(ge=0, le=SHOWN)] = 0

    def data(self) -> tuple[Tensor, Tensor]:
        return example(self.example, self.seed) if self.points is None else read_points(self.points)


def show(state: State) -> dict[str, Any]:
    """Everything the page needs to play the run on these points forwards and backwards."""
    x, y = state.data()
    told: dict[str, Any] = {"points": written(x, y), "python": python(x, y)}
    if len(x) == 0:
        told |= {"updates": [], "sweeps": [], "path": [[0.0, 0.0, 0.0]], "mistakes": 0, "status": "empty", "at": 0}
        words = "An empty plane: place a few points."
        return told | {"bound": None, "limit": "", "proof": None, "best": None, "began": words, "ended": words}
    learnt = learn(x, y)
    known = separate(x, y)
    bound = novikoff(x, y) if known.separable else None
    updates = learnt.updates_[:SHOWN].tolist()
    return (
        told
        | {
            "updates": updates,
            "sweeps": [t for t in range(1, len(updates)) if updates[t] <= updates[t - 1]],  # where the next one begins
            "path": learnt.trajectory_[: SHOWN + 1].tolist(),
            "mistakes": learnt.mistakes_,
            "status": learnt.status_ if known.separable else "not separable",
            "repeats": learnt.certificate_ is not None,  # the weights came back, so the rest would only repeat
            "bound": bound and bound["bound"],
            "limit": f"of at most R²/γ² = {bound['bound']:,}" if bound else "no bound: no line separates these points",
            "began": began(len(x), bound),
            "ended": ended(learnt, bound),
            "best": bound and bound["best"],
            "proof": None if known.separable else proof(known, x, y),
            "at": min(state.at, learnt.mistakes_, SHOWN),
            "figures": {"squeeze": squeeze(learnt, augment(x), bound)},
        }
    )


def still(state: State) -> Figure:
    """The points and the line."""
    x, y = state.data()
    if len(x) == 0:
        return Figure("An empty plane", "x₁", "x₂")
    learnt = learn(x, y)
    return plane(x, y, learnt.trajectory_[min(state.at, learnt.mistakes_)])


# --- Points ---


def example(name: str, seed: int) -> tuple[Tensor, Tensor]:
    """A few points of a data set, on the grid."""
    if name in ("xor", "clouds"):
        x, y = xor(n=4 if name == "xor" else 32, test=1, noise=0.0 if name == "xor" else 0.3, seed=seed).train
        return _on_grid(2.25 * x), _label_signs(y)
    margin = {"wide": 0.75, "narrow": 0.25, "mislabelled": 0.75}[name]
    data = separable(n=24, test=3, margin=margin, radius=2.75, seed=seed)
    away = 2.0 * data.extra["weight"]  # a line through the origin would be found after very few mistakes
    points, labels = _on_grid(data.train.x + away), _label_signs(data.train.y)
    if name == "mislabelled":  # the point nearest to the middle of its class
        centre = points[labels == labels[0]].mean(0)
        deep = ((points - centre).norm(dim=1) + 100.0 * (labels != labels[0])).argmin()
        labels[deep] = -labels[deep]
    return points, labels


def read_points(text: str) -> tuple[Tensor, Tensor]:
    """The points that an address spells out.

    >>> read_points("p1.5,2n0,-1")
    (tensor([[ 1.5000,  2.0000],
            [ 0.0000, -1.0000]], dtype=torch.float64), tensor([ 1., -1.], dtype=torch.float64))
    """
    found = re.findall(r"([pn])([-.0-9]+),([-.0-9]+)", text)
    x = torch.tensor([[float(u), float(v)] for _, u, v in found], dtype=torch.float64).reshape(-1, 2)
    if bool((x.abs() > REACH).any()):
        raise ValueError(f"points must lie between -{REACH:g} and {REACH:g}")
    return x, torch.tensor([1.0 if sign == "p" else -1.0 for sign, _, _ in found], dtype=torch.float64)


def written(x: Tensor, y: Tensor) -> str:
    """The same the other way round."""
    return "".join(f"{'p' if s > 0 else 'n'}{u:g},{v:g}" for (u, v), s in zip(x.tolist(), y.tolist(), strict=True))


def _on_grid(x: Tensor) -> Tensor:
    return ((x.double() * GRID).round() / GRID).clamp(-REACH, REACH) + 0.0  # + 0.0: no minus zeros


def _label_signs(y: Tensor) -> Tensor:
    return 2.0 * y.double() - 1


# --- The run ---


def learn(x: Tensor, y: Tensor) -> Perceptron:
    """The algorithm itself, every correction recorded."""
    return Perceptron(max_epochs=SWEEPS, certify=False, record=True).fit(x, y)


def began(points: int, bound: dict[str, Any] | None) -> str:
    """What is known before the first correction."""
    if bound is None:
        return f"{count(points, 'point')}. No line separates them; the rings prove it."
    needed = count(bound["bound"], "correction")
    return f"{count(points, 'point')}. A line exists, so at most {needed} will be needed."


def ended(learnt: Perceptron, bound: dict[str, Any] | None) -> str:
    """What became of it, in a sentence."""
    made = count(learnt.mistakes_, "correction")
    shown = f" (shown: the first {SHOWN:,})" if learnt.mistakes_ > SHOWN else ""
    if bound is None and learnt.certificate_ is not None:
        return f"After {made} the weights are back where they were before: it will go round for ever{shown}."
    if bound is None:
        return f"{made} and no end in sight{shown}: no line exists."
    if learnt.status_ != "separated":
        return f"Still not done after {made}{shown}; the theorem allows {bound['bound']:,}."
    below = (
        f", of {bound['bound']:,} that the theorem allows"
        if bound["bound"] > learnt.mistakes_
        else ": exactly the bound"
    )
    return f"Every point is on its side after {made}{below}."


def novikoff(x: Tensor, y: Tensor) -> dict[str, Any]:
    r"""Novikoff's bound $\tilde R^2/\tilde\gamma^2$ from the best margin there is, bias absorbed in the points."""
    rows = augment(x)
    widest = MaximumMarginClassifier(bias=False).fit(rows, y)
    ratio = float(rows.square().sum(1).max()) / widest.margin_**2
    best = widest.weight_ / widest.weight_.norm()
    return {"bound": math.floor(ratio * (1 + 1e-12)), "ratio": ratio, "margin": widest.margin_, "best": best.tolist()}


def proof(known: Separation, x: Tensor, y: Tensor) -> dict[str, Any]:
    """Why no line can do it: weights under which both classes have the same mean."""
    assert known.multipliers is not None
    weights = torch.where(known.multipliers > 1e-12, known.multipliers, 0.0)
    plus = weights * (y > 0)
    meeting = (plus[:, None] * x).sum(0) / plus.sum()
    return {"weights": weights.tolist(), "meeting": meeting.tolist()}


# --- Pictures ---


def plane(x: Tensor, y: Tensor, weights: Tensor) -> Figure:
    """The points and the line."""
    marks: list[Line | Points] = []
    for sign, name in ((1, "class +1"), (-1, "class −1")):
        marks.append(Points(x[y == sign, 0].tolist(), x[y == sign, 1].tolist(), name))
    if ends := boundary(*weights.tolist()):
        marks.append(Line([u for u, _ in ends], [v for _, v in ends], "the line"))
    return Figure("The points and the line", "x₁", "x₂", marks)


def boundary(a: float, b: float, c: float) -> list[tuple[float, float]]:
    """Where the line ax + by + c = 0 meets the rim of the plane: two points, or none."""
    found = []
    for edge in (-REACH, REACH):
        found += [(edge, -(a * edge + c) / b)] if b else []
        found += [(-(b * edge + c) / a, edge)] if a else []
    inside = sorted({(u, v) for u, v in found if max(abs(u), abs(v)) <= REACH + 1e-9})
    return [inside[0], inside[-1]] if len(inside) > 1 else []


def squeeze(learnt: Perceptron, rows: Tensor, bound: dict[str, Any] | None) -> Figure:
    """The proof of the theorem as a picture: the length of the weights between a line and a root."""
    lengths = learnt.trajectory_[1 : SHOWN + 1].norm(dim=1)
    radius = float(rows.norm(dim=1).max())
    axes = ("corrections t", "length of the weights (w, b)")
    marks: list[Line | Points] = [Line(range(1, len(lengths) + 1), lengths.tolist(), "‖w‖, measured")]
    if bound is None:
        steps = [1.1 * len(lengths) * (k / 60) ** 2 for k in range(61)]
        marks.append(Line(steps, [radius * math.sqrt(t) for t in steps], "at most R√t"))
        return Figure("No line, no margin: nothing pushes from below, so it need not end", *axes, marks)
    last = max(1.5 * bound["ratio"], 4.0)
    marks.append(Line([1, last], [radius, radius * math.sqrt(last)], "at most R√t"))
    marks.append(Line([1, last], [bound["margin"], bound["margin"] * last], "at least γt"))
    marks.append(Points([bound["ratio"]], [radius * math.sqrt(bound["ratio"])], "no room beyond: R²/γ²"))
    title = f"The whole run: {count(learnt.mistakes_, 'correction')}; after {bound['bound']:,} there is no room left"
    note = "‖w‖ may not rise above the root nor sink below the line; where they cross, learning must be over."
    return Figure(title, *axes, marks, x_log=True, y_log=True, note=note)


def python(x: Tensor, y: Tensor) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.connectionism import Perceptron\n\n"
        f"x = torch.tensor({x.tolist()}, dtype=torch.float64)\ny = torch.tensor({[int(sign) for sign in y]})\n"
        "learnt = Perceptron(record=True).fit(x, y)\n"
        "print(learnt.status_, learnt.mistakes_, learnt.weight_, learnt.bias_)\n"
        "print(learnt.updates_)  # the point of every correction, in order"
    )
