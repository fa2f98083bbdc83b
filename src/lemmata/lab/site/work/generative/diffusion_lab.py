r"""The diffusion lab: particles on their way from noise to data, by right samplers and by printed ones."""

import math
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.figure import Band, Figure, Line
from lemmata.generative.diffusion.ddim import ddim_sampling
from lemmata.generative.diffusion.noise_schedule import CosineSchedule, DiffusionSteps, LinearSchedule
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "From noise to data",
    "sentence": "Send particles from noise to data, and see by their exact variance which samplers arrive.",
    "year": 2020,
    "chapter": "generative",
    "claims": ("ddpm.sampling", "ddpm.posterior", "ddpm.sigma_choice", "ddpm.schedule", "diffusion.sde_reverse"),
    "systems": ("ddpm", "ddim_sampling", "ancestral_sampling", "linear_schedule", "cosine_schedule"),
    "command": "lemmata check 'ddpm.*'",
    "thumbnail": {"data": "bumps", "noising": "60"},
}

PATHS = 30  # particles that are drawn
COUNTED = 400  # particles whose variance is taken, where there is no exact one
SCHEDULES = {"linear": LinearSchedule(), "cosine": CosineSchedule()}
LAWS = {"normal": ((1.0,), (0.5,)), "bumps": ((-1.0, 1.0), (0.25, 0.25))}  # means and standard deviations
SAMPLERS = {
    "right": "the right sampler",
    "start": "started around the data, as printed",
    "spread": "noise √α at each step, as printed",
    "bar": "√(1 − α) without its bar, as printed",
    "last": "noise in the last step, too",
}


class State(LabState):
    """Which data, how they become noise, and how they are made of it again."""

    data: Literal["normal", "bumps"] = "normal"
    noise_schedule: Literal["linear", "cosine"] = "linear"
    noising: Annotated[int, Field(ge=2, le=100)] = 50
    visited: Annotated[int, Field(ge=1, le=100)] = 100
    eta: Annotated[float, Field(ge=0, le=1)] = 1.0
    sampler: Literal["right", "start", "spread", "bar", "last"] = "right"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def walk(self) -> list[int]:
        """The times that are visited; a printed sampler visits all of them."""
        count = min(self.visited, self.noising) if self.sampler in ("right", "start") else self.noising
        return torch.linspace(self.noising, 0, count + 1).round().long().tolist()


# --- What is known exactly ---


def spread_of(data: str) -> tuple[Tensor, Tensor]:
    means, deviations = LAWS[data]
    return torch.tensor(means).double(), torch.tensor(deviations).double()


def data_moments(data: str) -> tuple[float, float]:
    """Mean and variance of the data."""
    means, deviations = spread_of(data)
    return float(means.mean()), float((deviations**2 + means**2).mean() - means.mean() ** 2)


def expected_noise(data: str, steps: DiffusionSteps) -> Any:
    """What a perfect network answers: the noise that is expected in a state."""
    means, deviations = spread_of(data)

    def model(x: Tensor, t: Tensor) -> Tensor:
        signal = steps.signal[int(t[0])]
        variance = signal * deviations**2 + 1 - signal
        apart = x - signal.sqrt() * means  # (particles, bumps)
        weights = (-(apart**2) / (2 * variance) - variance.log() / 2).softmax(1)
        return (1 - signal).sqrt() * (weights * apart / variance).sum(1, keepdim=True)

    return model


def stepped(state: State, steps: DiffusionSteps, x: Tensor, t: int, to: int, drawn: torch.Generator) -> Tensor:
    """One step of the sampler that was chosen: the library's, or one as a source prints it."""
    model = expected_noise(state.data, steps)
    if state.sampler in ("right", "start"):
        return ddim_sampling(model, x, steps, [t, to], eta=state.eta, generator=drawn)
    kept, rate, noise = (float(values[t]) for values in (steps.kept, steps.noise_rates, steps.noise))
    divisor = rate if state.sampler == "bar" else noise
    mean = (x - rate / math.sqrt(divisor) * model(x, torch.full((len(x),), t))) / math.sqrt(kept)
    spread = math.sqrt(kept if state.sampler == "spread" else rate)
    z = torch.randn(x.shape, generator=drawn, dtype=x.dtype)
    return mean + spread * z if to or state.sampler == "last" else mean


def start_variance(state: State) -> float:
    return 1 + data_moments(state.data)[1] if state.sampler == "start" else 1.0


def exact_variances(state: State, steps: DiffusionSteps) -> list[float]:
    """Of the particles at each time of the walk, for normal data: each step multiplies, and adds some noise."""
    walk, found = state.walk(), [start_variance(state)]
    for t, to in pairwise(walk):
        # Two particles with the same noise tell the gain; one without any state of its own would tell the noise.
        one, other = (
            stepped(state, steps, torch.full((1, 1), x).double(), t, to, torch.Generator().manual_seed(0))
            for x in (0.0, 1.0)
        )
        gain = float(other - one)
        found.append(gain**2 * found[-1] + added_variance(state, steps, t, to))
    return found


def added_variance(state: State, steps: DiffusionSteps, t: int, to: int) -> float:
    kept, rate = float(steps.kept[t]), float(steps.noise_rates[t])
    if state.sampler in ("right", "start"):
        between = 1 - float(steps.signal[t] / steps.signal[to])
        return state.eta**2 * float(steps.noise[to] / steps.noise[t]) * between
    if not to and state.sampler != "last":
        return 0.0
    return kept if state.sampler == "spread" else rate


# --- What is shown ---


def particles(state: State, steps: DiffusionSteps) -> Tensor:
    """Their places at each time of the walk, (times, particles)."""
    drawn = torch.Generator().manual_seed(state.seed)
    x = torch.randn(COUNTED, 1, generator=drawn, dtype=torch.float64)
    if state.sampler == "start":
        means, deviations = spread_of(state.data)
        which = torch.randint(len(means), (COUNTED,), generator=drawn)
        noise = torch.randn(COUNTED, generator=drawn, dtype=torch.float64)
        x = x + (means[which] + deviations[which] * noise)[:, None]
    walk, places = state.walk(), [x]
    for t, to in pairwise(walk):
        places.append(stepped(state, steps, places[-1], t, to, drawn))
    return torch.cat(places, 1).mT


def show(state: State) -> dict[str, Any]:
    """The particles, their variance beside that of noisy data, and whether they arrive."""
    with torch.no_grad():
        steps = SCHEDULES[state.noise_schedule].steps(state.noising)
        places = particles(state, steps)
        exact = state.data == "normal"
        variances = exact_variances(state, steps) if exact else places.var(1).tolist()
    wanted = data_moments(state.data)[1]
    return {
        "variance": round(variances[-1], 4),
        "wanted": round(wanted, 4),
        "left": float(steps.signal[-1]),
        "words": words(state, variances[-1], wanted, float(steps.signal[-1])),
        "python": python(state),
        "figures": {"paths": paths_figure(state, steps, places), "variance": variance_figure(state, steps, variances)},
    }


def words(state: State, variance: float, wanted: float, left: float) -> str:
    """What is true, with its reason."""
    how = "exactly" if state.data == "normal" else f"of {COUNTED} particles"
    told = f"{SAMPLERS[state.sampler].capitalize()}: variance {variance:.3g}, {how}; that of the data is {wanted:.3g}."
    if state.sampler in ("right", "start") and left > 0.01:
        told += f" At T {left:.1%} of the signal is left, so pure noise is the wrong place to start."
    return told


def marginal_moments(state: State, steps: DiffusionSteps) -> tuple[list[float], list[float]]:
    """Means and variances of noisy data at the times 0, ..., T."""
    mean, variance = data_moments(state.data)
    return (steps.signal.sqrt() * mean).tolist(), (steps.signal * variance + steps.noise).tolist()


def paths_figure(state: State, steps: DiffusionSteps, places: Tensor) -> Figure:
    """Paths of the particles from noise, on the left, to data, before two deviations of noisy data at each time."""
    walk = [state.noising - t for t in state.walk()]
    mean, variance = marginal_moments(state, steps)
    times = [state.noising - t for t in range(state.noising + 1)]
    low, high = ([m + k * math.sqrt(v) for m, v in zip(mean, variance, strict=True)] for k in (-2, 2))
    marks: list[Any] = [Band(times, low, high, "noisy data, two deviations")]
    shown = places[:, :PATHS].clamp(-6, 6).mul(1000).round().div(1000)
    between = torch.full((1, shown.shape[1]), math.nan).double()  # where the pen is lifted
    drawn = torch.cat([shown, between]).mT.flatten()
    marks.append(Line([*walk, math.nan] * shown.shape[1], drawn, "particles"))
    marks.append(Line(times, mean, "mean of noisy data"))
    return Figure("From noise to data", "steps done, T − t", "x", marks)


def variance_figure(state: State, steps: DiffusionSteps, variances: list[float]) -> Figure:
    """The variance of the particles beside that of noisy data."""
    walk = [state.noising - t for t in state.walk()]
    times = [state.noising - t for t in range(state.noising + 1)]
    marks = [
        Line(times, marginal_moments(state, steps)[1], "noisy data"),
        Line(walk, [min(v, 20.0) for v in variances], "particles"),
    ]
    return Figure("Variance on the way", "steps done, T − t", "variance", marks)


def still(state: State) -> Figure:
    """The particles on their way."""
    with torch.no_grad():
        steps = SCHEDULES[state.noise_schedule].steps(state.noising)
        return paths_figure(state, steps, particles(state, steps))


def python(state: State) -> str:
    """The right sampler for normal data in Python."""
    kind = type(SCHEDULES[state.noise_schedule]).__name__
    mean, deviation = LAWS["normal"][0][0], LAWS["normal"][1][0]
    return (
        "import torch\n"
        f"from lemmata.generative.diffusion import {kind}, ddim_sampling, spaced_times\n\n"
        f"steps = {kind}().steps({state.noising})\n\n"
        "def noise(x, t):\n    signal = steps.signal[t][:, None]\n"
        f"    variance = signal * {deviation:g} ** 2 + 1 - signal\n"
        f"    return (1 - signal).sqrt() * (x - signal.sqrt() * {mean:g}) / variance\n\n"
        "x = torch.randn(1000, 1).double()\n"
        f"times = spaced_times({state.noising}, {min(state.visited, state.noising)})\n"
        f"print(ddim_sampling(noise, x, steps, times, eta={state.eta:g}).var())"
    )
