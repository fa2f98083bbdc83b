r"""The acceptance lab: five states in fractions and a bent density, under any proposal, right and printed ratio."""

from fractions import Fraction
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Generator, Tensor

from lemmata.bayes.finite_chain import metropolis, metropolis_matrix, stationary_distribution
from lemmata.bayes.metropolis_hastings import MetropolisHastings
from lemmata.bayes.transition import Random, acceptance_of, normal
from lemmata.figure import Bars, Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.measure.effective_samples import effective_sample_size

LAB = {
    "title": "Accept or reject",
    "sentence": "Choose how a chain proposes and how it decides, and see what it samples.",
    "year": 1953,
    "chapter": "bayes",
    "claims": ("mcmc.metropolis_hastings", "mcmc.mh.symmetric", "mcmc.mh.burn_in", "mcmc.detailed_balance"),
    "systems": ("metropolis_hastings", "metropolis_matrix", "stationary_distribution"),
    "command": "lemmata check 'mcmc.mh.*'",
    "thumbnail": {"width": "0.8"},
}

WEIGHTS = [Fraction(k, 20) for k in (1, 3, 8, 6, 2)]
CHAINS, TRANSITIONS = 64, 200
WINDOW = 4.0  # what is drawn of the plane: x from -4 to 4, y from -3 to 9


class State(LabState):
    """How moves are proposed, and by which ratio they are accepted."""

    width: Annotated[float, Field(ge=0.1, le=8)] = 1.5
    lean: Annotated[float, Field(ge=0, le=0.8)] = 0.0
    ratio: Literal["move", "target", "back"] = "move"
    seed: Annotated[int, Field(ge=0, le=999)] = 0


def log_density(x: Tensor) -> Tensor:
    """A banana: y is near half the square of x."""
    return -0.5 * x[:, 0].square() - 2 * (x[:, 1] - 0.5 * x[:, 0].square()).square()


class Leaning:
    """Normal steps whose middle lies `lean` widths to the right."""

    def __init__(self, width: float, lean: float) -> None:
        self.width, self.lean = width, lean

    def __call__(self, position: Tensor, generator: Random) -> tuple[Tensor, Tensor]:
        step = normal(position, generator)
        step[:, 0] += self.lean
        # Forward the noise is step - lean, backward it is -step - lean.
        return position + self.width * step, -2 * self.lean * step[:, 0]


class ByAnotherRatio(MetropolisHastings):
    """A chain that takes a ratio which is not its own."""

    ratio = "target"

    def acceptance(self, state: Any, proposed: Any, log_ratio: Tensor) -> Tensor:
        if self.ratio == "target":
            return acceptance_of(proposed.log_density - state.log_density)
        return acceptance_of(state.log_density - proposed.log_density - log_ratio)


def ring(state: State) -> list[Fraction]:
    """What the chain on five states in a ring leaves alone, where a step to the right is likelier by `lean`."""
    right = (1 + Fraction(round(100 * state.lean), 100)) / 2
    moves = [[right * ((i + 1) % 5 == j) + (1 - right) * ((i - 1) % 5 == j) for j in range(5)] for i in range(5)]
    if state.ratio == "move":
        return stationary_distribution(metropolis_matrix(WEIGHTS, moves))
    if state.ratio == "back":
        return stationary_distribution(metropolis_matrix(WEIGHTS, moves, lambda ratio: min(Fraction(1), 1 / ratio)))
    accepted = [[metropolis(WEIGHTS[j] / WEIGHTS[i]) for j in range(5)] for i in range(5)]
    matrix = [[moves[i][j] * accepted[i][j] for j in range(5)] for i in range(5)]
    for i in range(5):
        matrix[i][i] = Fraction(1) - sum(matrix[i])
    return stationary_distribution(matrix)


def walk(state: State) -> tuple[Tensor, Tensor]:
    """Positions (chains, transitions, 2) and which of them are new, (chains, transitions)."""
    if state.ratio == "move":
        kernel = MetropolisHastings(log_density, Leaning(state.width, state.lean))
    else:
        kernel = ByAnotherRatio(log_density, Leaning(state.width, state.lean))
        kernel.ratio = state.ratio
    generator = Generator().manual_seed(state.seed)
    now = kernel.init(torch.tensor([[0.0, 0.5]], dtype=torch.float64).repeat(CHAINS, 1))
    positions, accepted = [], []
    for _ in range(TRANSITIONS):
        now, transition = kernel.step(now, generator)
        positions.append(now.position)
        accepted.append(transition.accepted)
    return torch.stack(positions, dim=1), torch.stack(accepted, dim=1)


def show(state: State) -> dict[str, Any]:
    """How often it accepts, what its draws are worth, and how far five states are from their target."""
    positions, accepted = walk(state)
    found = ring(state)
    error = max(abs(a - b) for a, b in zip(found, WEIGHTS, strict=True))
    return {
        "accepted": float(accepted.double().mean()),
        "worth": effective_sample_size(positions[:, 50:, 0]) / (CHAINS * (TRANSITIONS - 50)),
        "off": float(error),
        "exact": str(error),
        "outside": float((positions[:, 50:, 0].abs() > WINDOW).double().mean()),
        "python": python(state),
        "figures": {"states": states(found), "walk": path(state, positions, accepted), "spread": spread(positions)},
    }


def still(state: State) -> Figure:
    """The first chain on the bent density."""
    return path(state, *walk(state))


def states(found: list[Fraction]) -> Figure:
    """Five states: the target and what the chain leaves alone."""
    names = [str(k + 1) for k in range(5)]
    marks = [
        Bars(names, [float(each) for each in WEIGHTS], "target"),
        Bars(names, [float(each) for each in found], "chain, exactly"),
    ]
    return Figure("Five states in a ring", "state", "probability", marks)


def path(state: State, positions: Tensor, accepted: Tensor) -> Figure:
    """The first chain's way over the plane, with the line along which the density is highest."""
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    way, kept = positions[0], accepted[0]
    inside = (way[:, 0].abs() < WINDOW) & (way[:, 1] > -3) & (way[:, 1] < 9)
    marks: list[Line | Points] = [Line(x, 0.5 * x.square(), "where the density is highest")]
    if bool(inside.any()):
        marks.append(Line(way[inside, 0], way[inside, 1], "one chain"))
    if bool((inside & kept).any()):
        marks.append(Points(way[inside & kept, 0], way[inside & kept, 1], "accepted"))
    return Figure(f"{TRANSITIONS} proposals of width {state.width:g}, {int(kept.sum())} accepted", "x", "y", marks)


def spread(positions: Tensor) -> Figure:
    """How x is distributed over all chains, against the target, after 50 transitions."""
    x = positions[:, 50:, 0].flatten()
    edges = torch.linspace(-WINDOW, WINDOW, 33, dtype=torch.float64)
    counts = torch.histogram(x, edges).hist / len(x) / (edges[1] - edges[0])
    middle = (edges[1:] + edges[:-1]) / 2
    normal_curve = torch.exp(-0.5 * middle.square()) / (2 * torch.pi) ** 0.5
    marks = [Line(middle, normal_curve, "target"), Line(middle, counts, f"{CHAINS} chains")]
    return Figure("Distribution of x", "x", "density", marks)


def python(state: State) -> str:
    """The same in Python; the library has the ratio of the move alone."""
    return (
        "import torch\nfrom lemmata.bayes import MetropolisHastings, sample\n\n"
        "def log_density(x):\n"
        "    return -0.5 * x[:, 0].square() - 2 * (x[:, 1] - 0.5 * x[:, 0].square()).square()\n\n"
        "def propose(position, streams):\n"
        f"    step = streams.normal(position) + torch.tensor([{state.lean:g}, 0.0])\n"
        f"    return position + {state.width:g} * step, {-2 * state.lean:g} * step[:, 0]\n\n"
        "kernel = MetropolisHastings(log_density, propose)\n"
        "start = torch.tensor([0.0, 0.5])\n"
        f"draws = sample(log_density, start, chains={CHAINS}, draws=200, warmup=50, kernel=kernel, seed={state.seed})\n"
        "print(draws.summary())"
    )
