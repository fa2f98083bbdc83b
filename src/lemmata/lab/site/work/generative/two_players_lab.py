r"""Two players: what becomes of a game by three ways to play, and by what each step multiplies the distance."""

import cmath
import itertools
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.data.examples import Examples
from lemmata.figure import Figure, Line, Points
from lemmata.generative.adversarial.two_player import Player, TwoPlayer
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Two players",
    "sentence": "Let two players learn against each other, and see who spirals out, who circles, and who arrives.",
    "year": 1976,
    "chapter": "generative",
    "claims": ("gan.gda_bilinear", "gan.alternating", "gan.extragradient", "gan.saddle"),
    "systems": ("extragradient", "gan"),
    "command": "lemmata check gan.gda_bilinear gan.extragradient",
    "thumbnail": {"eta": "0.4", "steps": "30"},
}

REACH = 2.0  # the plane is the box from -2 to 2, with the solution in its middle
SEEN = 1.05 * REACH
PLAYS = ("simultaneous", "alternating", "extragradient")
NOTHING = Examples(x=torch.zeros(1, 1))  # a game has no data


class State(LabState):
    """Where both players begin, what they play for, and how."""

    x: Annotated[float, Field(ge=-REACH, le=REACH)] = 1.0
    y: Annotated[float, Field(ge=-REACH, le=REACH)] = 0.0
    eta: Annotated[float, Field(ge=0.05, le=2.2)] = 0.3
    strength: Annotated[float, Field(ge=0, le=1)] = 0.0
    steps: Annotated[int, Field(ge=1, le=60)] = 24
    look: Literal["both", "itself"] = "both"


class Game(nn.Module):
    """Both places, as parameters, and the value that one lowers and the other raises."""

    def __init__(self, x: float, y: float, strength: float) -> None:
        super().__init__()
        self.theta, self.phi = (nn.Parameter(torch.tensor(place, dtype=torch.float64)) for place in (x, y))
        self.strength = strength

    def forward(self) -> Tensor:
        return self.theta * self.phi + self.strength / 2 * (self.theta**2 - self.phi**2)


# --- What is played ---


def played(x: float, y: float, eta: float, strength: float, play: str, steps: int) -> list[tuple[float, float]]:
    """The places of both players before and after each step, as the library plays it."""
    game = Game(x, y, strength)
    lower = Player([game.theta], lambda game, batch: game(), eta, torch.optim.SGD)
    upper = Player([game.phi], lambda game, batch: -game(), eta, torch.optim.SGD)
    learner, places = TwoPlayer(game, lower, upper, play=play), [(x, y)]
    for _ in range(steps):
        learner.step(NOTHING, 0.0)
        places.append((game.theta.item(), game.phi.item()))
    return places


def ahead_of_itself(x: float, y: float, eta: float, strength: float, steps: int) -> list[tuple[float, float]]:
    """Extragradient steps as two of the sources print them: each player tries its own step, and none of the other's."""
    places = [(x, y)]
    for _ in range(steps):
        theta, phi = places[-1]
        ahead = theta - eta * (phi + strength * theta), phi + eta * (theta - strength * phi)
        places.append((theta - eta * (phi + strength * ahead[0]), phi + eta * (theta - strength * ahead[1])))
    return places


def multiplier(play: str, eta: float, strength: float, look: str = "both") -> float:
    """By what a step multiplies the distance in the long run: the largest modulus of an eigenvalue, in closed form."""
    field = complex(strength, 1)  # an eigenvalue of the gradients of both players
    if play == "simultaneous":
        return abs(1 - eta * field)
    if play == "extragradient":
        if look == "itself":
            return math.hypot(1 - eta * strength + (eta * strength) ** 2, eta * (1 - eta * strength))
        return abs(1 - eta * field + (eta * field) ** 2)
    half, det = (1 - eta * strength) - eta**2 / 2, (1 - eta * strength) ** 2
    root = cmath.sqrt(half**2 - det)
    return max(abs(half + root), abs(half - root))


@dataclass(frozen=True)
class Course:
    """One way to play, where it led, and by what its steps multiply."""

    name: str
    places: list[tuple[float, float]]
    multiplier: float
    bounded: bool  # where steps multiply by 1

    @property
    def outcome(self) -> str:
        """What becomes of it."""
        if abs(self.multiplier - 1) < 1e-9:
            return "circles" if self.bounded else "drifts off"
        return "spirals out" if self.multiplier > 1 else "arrives"


def courses(state: State) -> list[Course]:
    """The three ways to play from one place."""
    made = []
    for play in PLAYS:
        settings = state.eta, state.strength
        wrong = play == "extragradient" and state.look == "itself"
        places = (
            ahead_of_itself(state.x, state.y, *settings, state.steps)
            if wrong
            else played(state.x, state.y, *settings, play, state.steps)
        )
        # At a step of 2 both eigenvalues of turns are -1, with one direction between them: places grow with the steps.
        bounded = play != "alternating" or state.eta < 2
        made.append(Course(play, places, multiplier(play, *settings, state.look), bounded))
    return made


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """The ways, by what a step multiplies, and how far from the solution each of them is in the end."""
    made = courses(state)
    return {
        "place": [state.x, state.y],
        "rows": [_course_row(each) for each in made],
        "words": words(state, made),
        "python": python(state),
        "figures": {"distances": distances(made)},
    }


def _course_row(course: Course) -> dict[str, Any]:
    inside = list(itertools.takewhile(lambda place: max(map(abs, place)) <= 2 * SEEN, course.places))
    return {
        "name": course.name,
        "path": [[round(value, 4) for value in place] for place in inside],
        "multiplier": f"{course.multiplier:.4f}",
        "distance": _short_number(math.hypot(*course.places[-1])),
        "outcome": course.outcome,
    }


def words(state: State, made: list[Course]) -> str:
    """What is seen, in a sentence or two."""
    said = {each.name: each.outcome for each in made}
    told = ". ".join(f"{name.capitalize()} play {what}" for name, what in said.items()) + "."
    if state.look == "itself" and state.strength == 0:
        told += " Who looks ahead of itself alone sees nothing new: every step is the simultaneous one."
    elif state.eta >= 2 and said["alternating"] != "arrives":
        told += " From a step of 2 on taking turns does not help any more."
    return told


def distances(made: list[Course]) -> Figure:
    """How far from the solution each way is, step by step."""
    marks = []
    for each in made:
        far = [math.hypot(*place) for place in each.places]
        marks.append(Line(range(len(far)), [min(max(d, 1e-6), 1e6) for d in far], each.name))
    return Figure("Distance from the solution", "step", "distance", marks, y_log=True)


def still(state: State) -> Figure:
    """The plane with the three ways."""
    marks: list[Any] = []
    for row in (_course_row(each) for each in courses(state)):
        path = [place for place in row["path"] if max(map(abs, place)) <= SEEN]
        marks.append(Line([a for a, _ in path], [b for _, b in path], row["name"]))
    marks.append(Points([0.0], [0.0], "solution"))
    return Figure(f"Two players with steps of {state.eta:g}", "θ", "φ", marks)


def _short_number(value: float) -> str:
    return f"{value:.3g}" if value < 1e4 else f"{value:.1e}"


def python(state: State) -> str:
    """The same in Python, with steps ahead of both players."""
    return (
        "import torch\nfrom torch import nn\nfrom lemmata.data import Examples\n"
        "from lemmata.generative.adversarial import Player, TwoPlayer\n\n"
        "class Game(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.theta = nn.Parameter(torch.tensor({state.x}))\n"
        f"        self.phi = nn.Parameter(torch.tensor({state.y}))\n\n"
        "    def forward(self):\n"
        f"        return self.theta * self.phi + {state.strength:g} / 2 * (self.theta**2 - self.phi**2)\n\n"
        "for play in ('simultaneous', 'alternating', 'extragradient'):\n"
        "    game = Game()\n"
        f"    first = Player([game.theta], lambda game, batch: game(), {state.eta:g}, torch.optim.SGD)\n"
        f"    second = Player([game.phi], lambda game, batch: -game(), {state.eta:g}, torch.optim.SGD)\n"
        "    learner = TwoPlayer(game, first, second, play=play)\n"
        f"    for step in range({state.steps}):\n"
        "        learner.step(Examples(x=torch.zeros(1, 1)), 0.0)\n"
        "    print(play, game.theta.item(), game.phi.item())"
    )
