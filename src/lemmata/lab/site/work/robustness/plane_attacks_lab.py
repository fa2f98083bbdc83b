r"""Attacks in the plane: three attacks on a small network from one point, beside the nearest point that fools it."""

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.relu_regions import linear_regions
from lemmata.figure import Figure, Line, Points, Polygons
from lemmata.lab.site.labs import LabState
from lemmata.robustness.adversarial_training import AdversarialTraining
from lemmata.robustness.attacked_model import under_attack
from lemmata.robustness.fast_gradient import fgsm
from lemmata.robustness.nearest_boundary import deepfool
from lemmata.robustness.norm_ball import per_example, perturbation_norms
from lemmata.robustness.plane_radius import exact_radius
from lemmata.robustness.projected_gradient import climb
from lemmata.robustness.threat import Threat
from lemmata.train.loop import fit
from lemmata.train.randomness import seeded

LAB = {
    "title": "Attacks in the plane",
    "sentence": "Drag a point, follow three attacks on a network, and see what they miss of the exact nearest point.",
    "year": 2018,
    "chapter": "robustness",
    "claims": (
        "attack.fgsm", "attack.pgd", "attack.pgd_projection_l2", "attack.pgd_projection_linf", "attack.deepfool",
        "attack.fixed_vs_minimal",
    ),
    "systems": ("fgsm", "pgd", "deepfool", "exact_radius", "project_ball"),
    "command": "lemmata check 'attack.pgd*'",
    "thumbnail": {"norm": "2", "eps": "0.5"},
}  # fmt: skip

REACH = 2.0  # the plane is the box from -2 to 2, with the moons around its middle
BOUNDS = (-REACH, REACH)
MIDDLE = (0.5, 0.25)  # of the moons as they are loaded
CLASSES = ("upper", "lower")
SHOWN = 80  # points of the moons on the page
ROUNDING = 1e-9  # by which a projection may miss the ball
TRAINED_FOR = 0.3  # radius of the attack in training


class State(LabState):
    """Where the point is, what an attack may do, and how the network was trained."""

    x: Annotated[float, Field(ge=-REACH, le=REACH)] = -0.68
    y: Annotated[float, Field(ge=-REACH, le=REACH)] = 0.75
    norm: Literal["inf", "2", "1"] = "inf"
    eps: Annotated[float, Field(ge=0.05, le=1)] = 0.4
    steps: Annotated[int, Field(ge=1, le=40)] = 10
    projection: Literal["project", "rescale", "none"] = "project"
    training: Literal["clean", "adversarial"] = "clean"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def point(self) -> Tensor:
        return torch.tensor([[self.x, self.y]], dtype=torch.float64)

    def ball_norm(self) -> float:
        return float(self.norm)


# --- The network ---


def moon_points() -> Examples:
    train = load("moons").train
    return Examples(x=train.x.double() - torch.tensor(MIDDLE, dtype=torch.float64), y=train.y)


@functools.cache
def network(training: str) -> nn.Sequential:
    """Two hidden layers of 16 units, trained in a second by whoever asks first."""
    with seeded(0):
        made = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)).double()
    adversarial = training == "adversarial"
    loss = AdversarialTraining(TRAINED_FOR * adversarial, steps=5 * adversarial, bounds=BOUNDS)
    fit(made, moon_points(), loss=loss, epochs=20, lr=1e-2, schedule="cosine", device="cpu", progress=False)
    return made.eval().requires_grad_(False)


@functools.cache
def areas(training: str) -> list[dict[str, Any]]:
    """The polygons on which the network is affine, cut where its answer changes: one more unit that says which."""
    lead = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        lead.weight.copy_(torch.tensor([[-1.0, 1.0]]))
    regions = linear_regions(nn.Sequential(*network(training), lead, nn.ReLU()), [BOUNDS, BOUNDS])
    corners = [_rounded_places(row[:size]) for row, size in zip(regions.corners, regions.sizes.tolist(), strict=True)]
    return [
        {"corners": own, "class": int(lower)}
        for own, lower in zip(corners, regions.patterns[-1][:, 0].tolist(), strict=True)
    ]


# --- The attacks ---


@dataclass(frozen=True)
class SwitchedThreat(Threat):
    """A threat whose way back into the ball can be replaced by a wrong one."""

    projection: str = "project"

    def project(self, x: Tensor, candidates: Tensor) -> Tensor:
        if self.projection == "project":
            return super().project(x, candidates)
        if self.projection == "rescale":  # inside the ball too, where nothing is to be done
            moved = candidates - x
            length = perturbation_norms(moved, self.norm).clamp(min=torch.finfo(torch.float64).tiny)
            candidates = x + per_example(self.eps / length, x) * moved
        return candidates.clamp(*self.bounds)


class Traced:
    """The network, and every place at which it was asked for a gradient, with the last place of all."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.turns: list[Tensor] = []
        self.last = torch.zeros(1, 2, dtype=torch.float64)

    def __call__(self, x: Tensor) -> Tensor:
        self.last = x.detach().clone()
        if x.requires_grad:
            self.turns.append(self.last)
        return self.model(x)

    def path(self) -> Tensor:
        """Where an attack turned, and where it ended: (places, 2)."""
        return torch.cat([*self.turns, self.last])


@dataclass(frozen=True)
class Attempt:
    """What one attack did: its path, and the place that it took for its example."""

    name: str
    path: Tensor  # (places, 2)
    found: Tensor  # (1, 2)


def attempts(state: State) -> list[Attempt]:
    """The attacks, each as the library has it, but for the projection where the reader switched it."""
    x, norm, model = state.point(), state.ball_norm(), network(state.training)
    with torch.no_grad():
        y = model(x).argmax(1)
    step, many = Traced(model), Traced(model)
    fgsm(step, x, y, state.eps, norm, BOUNDS)
    with under_attack(many, x, y, SwitchedThreat(state.eps, norm, BOUNDS, projection=state.projection)) as attacked:
        start = torch.Generator().manual_seed(state.seed)
        found = climb(attacked, state.steps, 2.5 * state.eps / state.steps, start)
    made = [Attempt("FGSM", step.path(), step.last), Attempt("PGD", many.path(), found)]
    if norm != 1:  # in which DeepFool is not defined
        nearest = Traced(model)
        deepfool(nearest, x, y, norm=norm, bounds=BOUNDS)
        made.append(Attempt("DeepFool", nearest.path(), nearest.last))
    return made


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The paths, what came of each, and the nearest point that changes the answer."""
    x, norm, model = state.point(), state.ball_norm(), network(state.training)
    made = attempts(state)
    with torch.no_grad():
        own = int(model(x).argmax(1))
        exact = exact_radius(model, x, torch.tensor([own]), norm, BOUNDS)
        rows = [_attempt_row(state, attempt, own) for attempt in made]
    moons = moon_points()
    return {
        "areas": areas(state.training),
        "moons": [
            [*place, label]
            for place, label in zip(_rounded_places(moons.x[:SHOWN]), moons.y[:SHOWN].tolist(), strict=True)
        ],
        "place": [state.x, state.y],
        "norm": state.norm,
        "class": own,
        "answer": CLASSES[own],
        "radius": round(float(exact.radius), 4),
        "nearest": _rounded_places(exact.nearest)[0],
        "rows": rows,
        "words": words(state, float(exact.radius), rows),
        "python": python(state),
        "figures": {"leads": leads(made, model, own)},
    }


def _attempt_row(state: State, attempt: Attempt, own: int) -> dict[str, Any]:
    distance = float(perturbation_norms(attempt.found - state.point(), state.ball_norm()))
    answer, inside = int(network(state.training)(attempt.found).argmax(1)), distance <= state.eps + ROUNDING
    where = "" if inside else ", beyond ε" if attempt.name == "DeepFool" else ", outside the ball"
    return {
        "name": attempt.name,
        "path": _rounded_places(attempt.path),
        "found": _rounded_places(attempt.found)[0],
        "distance": round(distance, 4),
        "inside": inside,
        "cheats": not inside and attempt.name != "DeepFool",  # which looks for the boundary, not in the ball
        "fooled": answer != own,
        "outcome": f"{'' if answer != own else 'still '}{CLASSES[answer]}{where}",
    }


def words(state: State, radius: float, rows: list[dict[str, Any]]) -> str:
    """What is true, and which attack found it."""
    if radius > state.eps:
        told = f"The nearest other answer is {radius:.3g} away: in this ball there is none, whatever an attack says."
    else:
        told = f"The nearest other answer is {radius:.3g} away, inside the ball."
    missed = [row["name"] for row in rows if row["inside"] and not row["fooled"]]
    for row in rows:
        if row["cheats"]:
            told += f" {row['name']} ends {row['distance']:.3g} away, outside the ball: its example does not count."
    if missed and radius <= state.eps:
        told += f" Missed by {' and '.join(missed)}."
    return told


def leads(made: list[Attempt], model: nn.Module, own: int) -> Figure:
    """By how much the answer at the point leads along each path; below zero the network is fooled."""
    with torch.no_grad():
        curves = [model(attempt.path) for attempt in made]
    lead = [logits[:, own] - logits[:, 1 - own] for logits in curves]
    marks: list[Any] = [Line([0, max(len(each) for each in lead) - 1], [0, 0]), Points([0], lead[0][:1], "the point")]
    marks += [Line(range(len(each)), each, attempt.name) for attempt, each in zip(made, lead, strict=True)]
    return Figure("Lead of the first answer", "step", "difference of logits", marks)


def still(state: State) -> Figure:
    """The plane with both answers, the paths, and the nearest point."""
    polygons = areas(state.training)
    x, y = ([[place[k] for place in area["corners"]] for area in polygons] for k in (0, 1))
    told = show(state)
    marks: list[Any] = [Polygons(x, y, [area["class"] for area in polygons], "answer")]
    marks += [Line([a for a, _ in row["path"]], [b for _, b in row["path"]], row["name"]) for row in told["rows"]]
    marks.append(Points([told["nearest"][0]], [told["nearest"][1]], "nearest"))
    return Figure(f"The nearest other answer is {told['radius']:.3g} away", "x₁", "x₂", marks)


def _rounded_places(places: Tensor) -> list[list[float]]:
    return [[round(value, 3) for value in place] for place in places.tolist()]


def python(state: State) -> str:
    """The same in Python, with the projection as it should be."""
    norm = "torch.inf" if state.norm == "inf" else state.norm
    eps, steps = (TRAINED_FOR, 5) if state.training == "adversarial" else (0, 0)
    nearest = "" if state.ball_norm() == 1 else "print(deepfool(network, x, y, norm=norm, bounds=box))\n"
    return (
        "import torch\nfrom torch import nn\nfrom lemmata.data import load\n"
        "from lemmata.robustness import AdversarialTraining, deepfool, exact_radius, fgsm, pgd\n"
        "from lemmata.train import fit\n\n"
        f"box, eps, norm = {BOUNDS}, {state.eps:g}, {norm}\n"
        f"moons = load('moons').train\ndata = (moons.x.double() - torch.tensor({MIDDLE}).double(), moons.y)\n"
        "torch.manual_seed(0)\n"
        "layers = [nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)]\n"
        "network = nn.Sequential(*layers).double()\n"
        f"loss = AdversarialTraining({eps:g}, steps={steps}, bounds=box)\n"
        "fit(network, data, loss=loss, epochs=20, lr=1e-2, schedule='cosine', device='cpu', progress=False)\n"
        f"x = torch.tensor([[{state.x:g}, {state.y:g}]]).double()\ny = network.eval()(x).argmax(1)\n"
        "print(fgsm(network, x, y, eps, norm, box))\n"
        f"start = torch.Generator().manual_seed({state.seed})\n"
        f"print(pgd(network, x, y, eps, norm, box, generator=start, steps={state.steps}))\n"
        f"{nearest}print(exact_radius(network, x, y, norm, box))"
    )
