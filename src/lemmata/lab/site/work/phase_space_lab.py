r"""The phase space lab: leapfrogs and Euler's steps around the level lines, and what friction and noise settle at."""

import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Generator, Tensor

from lemmata.bayes.langevin import UnderdampedLangevin
from lemmata.bayes.leapfrog_integrator import leapfrog
from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Leapfrog against Euler",
    "sentence": "Lengthen the step of an orbit, and see which integrator stays on its level line.",
    "year": 1987,
    "chapter": "bayes",
    "claims": ("mcmc.hmc", "mcmc.hmc.dynamics", "mcmc.langevin.underdamped"),
    "systems": ("leapfrog", "hmc", "underdamped_langevin"),
    "command": "lemmata check mcmc.hmc mcmc.langevin.underdamped",
    "thumbnail": {"step": "0.3"},
}

STEPS = 60
FRAME = 3.0  # what is drawn of the phase plane
CHAINS, SETTLING = 3000, 60


class State(LabState):
    """The step, where the orbit starts, and friction and scheme of the dynamics with noise."""

    step: Annotated[float, Field(ge=0.05, le=2.1)] = 0.3
    start: Annotated[float, Field(ge=0.2, le=2)] = 1.0
    friction: Annotated[float, Field(ge=0, le=4)] = 1.0
    scheme: Literal["euler", "baoab"] = "euler"


def log_density(x: Tensor) -> Tensor:
    """The oscillator: a standard normal position."""
    return -0.5 * x.square().sum(1)


def orbits(state: State) -> tuple[Tensor, Tensor]:
    """Both orbits from rest at the start: (steps + 1, 2) each, position and momentum."""
    theta, v = torch.full((1, 1), state.start, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    jumps, tangents = [(theta, v)], [(theta, v)]
    for _ in range(STEPS):
        end = leapfrog(log_density, *jumps[-1], state.step, 1)
        jumps.append((end.position, end.momentum))
        theta, v = tangents[-1]
        tangents.append((theta + state.step * v, v - state.step * theta))
    first, second = (torch.cat([torch.cat(pair, dim=1) for pair in way]) for way in (jumps, tangents))
    return first, second


def exact_variance(state: State) -> float | None:
    """What the position's variance settles at, by the discrete Lyapunov equation; None where it settles nowhere."""
    kernel = UnderdampedLangevin(log_density, step=state.step, friction=state.friction, scheme=state.scheme)
    move = kernel.baoab if state.scheme == "baoab" else kernel.euler
    theta, v = torch.eye(2, dtype=torch.float64).split(1, dim=1)
    nothing, one = torch.zeros(2, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    at = kernel.init(theta)
    moved = move(at._replace(velocity=v), nothing)
    shaken = move(kernel.init(0 * one), one)
    a = torch.cat([moved.position, moved.velocity], dim=1).mT
    b = torch.cat([shaken.position, shaken.velocity], dim=1).mT
    if torch.linalg.eigvals(a).abs().max() > 1 - 1e-9 or not bool(b.any()):
        return None
    whole = torch.eye(4, dtype=torch.float64) - torch.kron(a, a)
    return float(torch.linalg.solve(whole, (b @ b.mT).flatten())[0])


def settled(state: State) -> Tensor:
    """Positions of many chains that started in the target, after some steps."""
    generator = Generator().manual_seed(0)
    kernel = UnderdampedLangevin(log_density, step=state.step, friction=state.friction, scheme=state.scheme)
    now = kernel.init(torch.randn(CHAINS, 1, generator=generator, dtype=torch.float64), generator)
    for _ in range(SETTLING):
        now, _ = kernel.step(now, generator)
    return now.position[:, 0]


def show(state: State) -> dict[str, Any]:
    """How much energy both orbits have at the end, and the variance that friction and noise settle at."""
    energies = [0.5 * way.square().sum(1) for way in orbits(state)]
    variance, positions = exact_variance(state), settled(state)
    found = float(positions.var())
    return {
        "leapfrog": _finite_values(energies[0][-1] / energies[0][0]),
        "worst": _finite_values(energies[0].max() / energies[0][0]),
        "euler": _finite_values(energies[1][-1] / energies[1][0]),
        "variance": variance,
        "measured": _finite_values(torch.tensor(found)),
        "python": python(state),
        "figures": {"orbit": still(state), "energy": energy(energies), "langevin": histogram(positions, variance)},
    }


def still(state: State) -> Figure:
    """Both orbits, as far as they stay in the frame, and the level line that they should follow."""
    turn = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    jumps, tangents = (way[: _inside_frame(way)] for way in orbits(state))
    marks = [
        Line(state.start * turn.cos(), state.start * turn.sin(), "level line of H"),
        Points(jumps[:, 0], jumps[:, 1], "leapfrog"),
        Points(tangents[:, 0], tangents[:, 1], "Euler"),
    ]
    return Figure(f"{STEPS} steps of {state.step:g}", "position", "momentum", marks)


def _inside_frame(way: Tensor) -> int:
    """How many places come before the first outside of the frame."""
    outside = (way.abs() > FRAME).any(1).nonzero()
    return int(outside[0]) if len(outside) else len(way)


def energy(energies: list[Tensor]) -> Figure:
    """The energies of both orbits, step by step."""
    steps = torch.arange(STEPS + 1).double()
    marks = [
        Line(steps, values.clamp(max=1e6) / values[0], name)
        for values, name in zip(energies, ("leapfrog", "Euler"), strict=True)
    ]
    return Figure("Energy, as a multiple of the first", "step", "H", marks, y_log=True)


def histogram(positions: Tensor, variance: float | None) -> Figure:
    """The positions of the chains, the target, and the Gaussian that the step leaves alone."""
    edges = torch.linspace(-4, 4, 41, dtype=torch.float64)
    counts = torch.histogram(positions, edges).hist / len(positions) / (edges[1] - edges[0])
    middle = (edges[1:] + edges[:-1]) / 2
    marks = [Line(middle, counts, f"{CHAINS} chains"), Line(middle, _gaussian_density(middle, 1.0), "target")]
    if variance is not None and variance < 100:
        marks.append(Line(middle, _gaussian_density(middle, variance), f"exactly left alone: variance {variance:.4g}"))
    return Figure(f"Langevin dynamics after {SETTLING} steps", "position", "density", marks)


def _gaussian_density(x: Tensor, variance: float) -> Tensor:
    return torch.exp(-0.5 * x.square() / variance) / math.sqrt(2 * math.pi * variance)


def _finite_values(value: Tensor) -> float | None:
    return float(value) if math.isfinite(value) else None


def python(state: State) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.bayes import UnderdampedLangevin, leapfrog\n\n"
        "log_density = lambda x: -0.5 * x.square().sum(1)\n"
        f"end = leapfrog(log_density, torch.tensor([[{state.start:g}]]), torch.zeros(1, 1), {state.step:g}, {STEPS})\n"
        "print(end.position, end.momentum)\n\n"
        f"kernel = UnderdampedLangevin(log_density, {state.step:g}, {state.friction:g}, {state.scheme!r})\n"
        f"generator, state = torch.Generator().manual_seed(0), kernel.init(torch.randn({CHAINS}, 1))\n"
        f"for _ in range({SETTLING}):\n    state, _ = kernel.step(state, generator)\nprint(state.position.var())"
    )
