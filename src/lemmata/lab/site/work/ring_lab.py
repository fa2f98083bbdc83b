r"""The ring lab: eigenvalues of a linear recurrence in the complex plane, and what it answers to a single tap."""

import base64
import math
import re
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.recurrent.diagonalisation import impulse_response
from lemmata.recurrent.eigenvalue_ring import eigenvalues_on_ring
from lemmata.recurrent.linear_stability import is_stable

LAB = {
    "title": "Eigenvalue ring",
    "sentence": "Drag the eigenvalues of a linear recurrence; see, and hear, how it answers to a single tap.",
    "year": 2023,
    "chapter": "recurrent",
    "claims": (
        "rnn.lru",
        "rnn.lru.polar",
        "rnn.lru.init",
        "rnn.linear.stability",
        "rnn.linear.diagonalisation",
        "rnn.linear.state_space",
    ),
    "systems": ("lru",),
    "command": "lemmata check 'rnn.lru*' 'rnn.linear.*'",
    "thumbnail": {"points": "0.96,0.2;0.5,0.75;0.1,0.55;-0.55,0.6;-0.8,0"},
}

REACH = 1.2  # the plane is the square from -REACH to REACH; stable is what lies within 1
MOST = 12
DRAWN = 8  # by chance, on a ring
RATE = 8000  # steps a second, when it is heard: the angle is then a pitch
HEARD = RATE  # steps, a second of them
WORDS = {
    "empty": "No eigenvalues: add one.",
    "forgets": "Everything is forgotten in time: states stay bounded under every bounded input.",
    "rings": "It rings for ever: bounded by itself, but an input in step with it makes the state grow.",
    "explodes": "It explodes: an eigenvalue lies outside the unit circle.",
}
NUMBER = r"-?[01](\.[0-9]{1,3})?"


class State(LabState):
    """Eigenvalues (0.9,0.2 and its mirror image; several joined by a semicolon), or some drawn on a ring."""

    points: Annotated[
        str, StringConstraints(max_length=300, pattern=rf"^({NUMBER},{NUMBER}(;{NUMBER},{NUMBER}){{0,{MOST - 1}}})?$")
    ] = "0.93,0.3;0.6,0"
    ring: Literal["", "radius", "area"] = ""
    inner: Annotated[float, Field(ge=0.01, le=0.99)] = 0.5
    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    steps: Annotated[int, Field(ge=10, le=400)] = 80
    sound: Annotated[int, Field(ge=0, le=1)] = 0

    def eigenvalues(self) -> Tensor:
        """Those above the real axis or on it; each of the first has its mirror image below."""
        if not self.ring:
            return read_points(self.points)
        generator = torch.Generator().manual_seed(self.seed)
        drawn = eigenvalues_on_ring(DRAWN, self.inner, 0.999, math.pi, self.ring == "area", generator)
        return read_points(written(drawn))  # as the address would spell them


def show(state: State) -> dict[str, Any]:
    """How the system answers."""
    upper = state.eigenvalues()
    told: dict[str, Any] = {"points": written(upper), "python": python(upper, state.steps)}
    told["figures"] = {"response": response(upper, state.steps)}
    if len(upper) == 0:
        return told | {"radius": 0.0, "verdict": "empty", "words": WORDS["empty"], "half": None}
    kind, radius = kind_of(upper)
    told |= {"radius": radius, "verdict": kind, "words": WORDS[kind], "half": half_life(radius)}
    if state.sound:
        told["sound"] = {"rate": RATE, "samples": samples(answer(upper, HEARD))}
    return told


def still(state: State) -> Figure:
    """The eigenvalues around the unit circle."""
    turns = [2 * math.pi * k / 90 for k in range(91)]
    circle = Line([math.cos(turn) for turn in turns], [math.sin(turn) for turn in turns], "unit circle")
    upper = state.eigenvalues()
    both = torch.cat([upper, upper[upper.imag > 0].conj()])
    points = Points(both.real.tolist(), both.imag.tolist(), "eigenvalues")
    return Figure("Eigenvalues around the unit circle", "real part", "imaginary part", [circle, points])


# --- Eigenvalues ---


def read_points(text: str) -> Tensor:
    """The eigenvalues that an address spells out.

    >>> read_points("0.9,0.2;0.5,0")
    tensor([0.9000+0.2000j, 0.5000+0.0000j], dtype=torch.complex128)
    """
    found = [complex(float(u), abs(float(v))) for u, v in re.findall(r"([-.0-9]+),([-.0-9]+)", text)]
    if any(max(abs(each.real), abs(each.imag)) > REACH for each in found):
        raise ValueError(f"eigenvalues must lie between -{REACH:g} and {REACH:g}")
    return torch.tensor(found, dtype=torch.complex128)


def written(points: Tensor) -> str:
    """The same the other way round."""
    return ";".join(f"{_short_number(each.real)},{_short_number(each.imag)}" for each in points.tolist())


def _short_number(value: float) -> str:
    return f"{round(value, 3) + 0.0:g}"


def answer(upper: Tensor, steps: int) -> Tensor:
    """The response to a single one, the mirror images included, beginning with 1."""
    weights = 2.0 - (upper.imag == 0).double()  # a pair's two terms have the same real part
    return impulse_response(upper, steps, weights / weights.sum())


def kind_of(upper: Tensor) -> tuple[str, float]:
    """What becomes of a tap, and the largest modulus.

    Decimals such as 0.6 + 0.8i lie on the circle as written, and next to it as stored: that close they count as on it.
    """
    verdict = is_stable(upper)
    if abs(verdict.radius - 1) <= 4 * torch.finfo(upper.real.dtype).eps:
        return "rings", 1.0
    return "forgets" if verdict else "explodes", verdict.radius


def half_life(radius: float) -> float | None:
    """The steps after which the slowest channel has lost half of what it held; none if it loses nothing."""
    return None if radius >= 1 or radius == 0 else math.log(0.5) / math.log(radius)


def samples(heard: Tensor) -> str:
    """Sixteen bits a sample, low byte first, in base64. Too loud is cut off, and so is what overflowed."""
    levels = (heard.nan_to_num(1.0).clamp(-1, 1) * 32767).round().to(torch.int16)
    return base64.b64encode(levels.numpy().astype("<i2").tobytes()).decode()


# --- Pictures ---


def response(upper: Tensor, steps: int) -> Figure:
    """The response step by step, and the envelope within which the slowest channel keeps it."""
    axes = ("steps k since the tap", "state, read out")
    if len(upper) == 0:
        return Figure("No eigenvalue, no answer", *axes)
    kind, radius = kind_of(upper)
    envelope = [radius**k for k in range(steps)]
    marks = [Line(range(steps), answer(upper, steps).tolist(), "response to one tap")]
    marks.append(Line(range(steps), envelope, "largest modulus, |λ|ᵏ"))
    title = {"forgets": "is forgotten", "rings": "is never forgotten", "explodes": "explodes"}[kind]
    return Figure(f"The tap {title}", *axes, marks)


def python(upper: Tensor, steps: int) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.recurrent import impulse_response, is_stable\n\n"
        f"eigenvalues = torch.tensor({upper.tolist()}, dtype=torch.complex128)  # and their mirror images\n"
        "weights = torch.where(eigenvalues.imag == 0, 1.0, 2.0)\n"
        f"print(impulse_response(eigenvalues, {steps}, weights / weights.sum()))\n"
        "print(is_stable(eigenvalues).reason)"
    )
