r"""The vanishing lab: how fast the gradient of a recurrent network fades or grows, and which rule says so."""

import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.figure import Band, Figure, Line
from lemmata.foundations.activations import activation
from lemmata.lab.site.labs import LabState
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gradient_flow import GradientFlow, measure_gradient_flow, spectral_radius, with_spectral_radius

LAB = {
    "title": "Vanishing gradients",
    "sentence": "Slide the size of the recurrent weights and see what is left of a gradient after sixty steps.",
    "year": 1991,
    "chapter": "recurrent",
    "claims": (
        "rnn.gradient.vanishing",
        "rnn.gradient.exploding",
        "rnn.gradient.stability",
        "rnn.bptt.state",
    ),
    "systems": ("gradient_flow", "elman"),
    "command": "lemmata check 'rnn.gradient.*'",
}

UNITS = 16
RUNS = 8  # inputs tried at once
# By how much rounding alone may change the norm of a product, relatively, with every step: each entry is a sum of UNITS
# terms, and so is each entry of the singular value decomposition that gives its norm.
ROUNDING = 4 * UNITS * torch.finfo(torch.float64).eps
# Nothing is foretold of a bound so near to 1: the change over the longer half of the lags, which is at most half of
# them times its logarithm, must leave the rounding of all of them far behind.
UNDECIDED = 4 * ROUNDING
DRAWN = 1e30  # norms beyond this, or below its inverse, leave the picture


class State(LabState):
    """The network, its input, and how far back its gradient is followed."""

    activation: Literal["tanh", "sigmoid", "relu", "identity"] = "tanh"
    matrix: Literal["random", "orthogonal", "shift"] = "random"
    size: Annotated[float, Field(ge=0.05, le=6)] = 0.5
    drive: Annotated[float, Field(ge=0, le=3)] = 0.3
    steps: Annotated[int, Field(ge=5, le=100)] = 60
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def recurrent(self) -> Tensor:
        """U: of spectral radius `size`; the shift has radius zero, and `size` is its largest singular value."""
        drawn = torch.randn(UNITS, UNITS, generator=self._part_generator(0), dtype=torch.float64)
        if self.matrix == "shift":
            return self.size * torch.eye(UNITS, dtype=torch.float64).roll(1, 0).tril(-1)
        return with_spectral_radius(torch.linalg.qr(drawn).Q if self.matrix == "orthogonal" else drawn, self.size)

    def layer(self) -> Elman:
        made = Elman(1, UNITS, activation=self.activation, bias=False).double()
        with torch.no_grad():
            made.recurrent_weight.copy_(self.recurrent())
            made.input_weight.copy_(torch.randn(UNITS, 1, generator=self._part_generator(1), dtype=torch.float64))
        return made

    def inputs(self) -> Tensor:
        shape = (RUNS, self.steps, 1)
        return self.drive * torch.randn(shape, generator=self._part_generator(2), dtype=torch.float64)

    def _part_generator(self, part: int) -> torch.Generator:
        return torch.Generator().manual_seed(3 * self.seed + part)


def show(state: State) -> dict[str, Any]:
    """The gradients of the network, and what three rules say of them."""
    layer = state.layer()
    flow = measure_gradient_flow(layer, state.inputs())
    assert flow.bound is not None
    slope = activation(state.activation).lipschitz
    norm = flow.bound / slope
    fate = fate_of(flow)
    return {
        "slope": slope,
        "norm": norm,
        "radius": float(spectral_radius(layer.recurrent_weight)),
        "bound": flow.bound,
        "fate": fate,
        "log10": left_over(flow),
        "rules": rules(norm, slope, fate),
        "python": python(state),
        "figures": {"flow": picture(flow)},
    }


def still(state: State) -> Figure:
    """The norms against the lag."""
    return picture(measure_gradient_flow(state.layer(), state.inputs()))


# --- What became of the gradient, and what was foretold ---


def fate_of(flow: GradientFlow) -> str:
    """Where the norm goes over the longer half of the lags, if all runs agree; the shorter ones hold transients."""
    steps = flow.log_norms.shape[1] - 1
    change = flow.log_norms[:, -1] - flow.log_norms[:, steps // 2]
    gone = flow.log_norms[:, -1].isneginf()
    if bool((gone | (change < -steps * ROUNDING)).all()):
        return "vanishes"
    return "explodes" if bool((change > steps * ROUNDING).all()) else "neither"


def left_over(flow: GradientFlow) -> float | None:
    """The decimal logarithm of the median norm at the largest lag; none where nothing is left."""
    exponent = float(flow.log_norms[:, -1].median()) / math.log(10)
    return exponent if exponent > -300 else None


def rules(norm: float, slope: float, fate: str) -> list[dict[str, str]]:
    """Three rules, what each foretells here, and whether it came so. A rule that says nothing cannot fail."""
    below = norm * slope < 1 - UNDECIDED
    sized = "vanishes" if norm < 1 - UNDECIDED else "explodes" if norm > 1 + UNDECIDED else ""
    foretold = [
        ("correct", "vanishes if σ₁(U) < 1/α", "vanishes" if below else ""),
        ("printed in 003", "vanishes if σ₁(U) ≥ 1/α", "" if below else "vanishes"),
        ("printed in 002", "σ₁(U) < 1 vanishes, σ₁(U) > 1 explodes", sized),
    ]
    return [
        {"who": who, "rule": rule, "says": says or "nothing", "kept": _memory_kept(says, fate)}
        for who, rule, says in foretold
    ]


def _memory_kept(says: str, fate: str) -> str:
    if not says:
        return "silent"
    return "right" if says == fate else "wrong"


# --- Pictures ---


def picture(flow: GradientFlow) -> Figure:
    """The norms against the lag, between which no run leaves the band, and the bound above them all."""
    lags = flow.lags.tolist()
    middle = flow.log_norms.median(dim=0).values
    marks: list[Band | Line] = [
        Band(lags, _drawn_values(flow.log_norms.amin(0)), _drawn_values(flow.log_norms.amax(0)), f"{RUNS} inputs"),
        Line(lags, _drawn_values(middle), "the norm, measured"),
    ]
    if flow.log_bounds is not None:
        marks.append(Line(lags, _drawn_values(flow.log_bounds), "at most (ασ₁)ᵏ"))
    title = {
        "vanishes": "The gradient fades with every step it goes back",
        "explodes": "The gradient grows with every step it goes back",
        "neither": "The gradient neither fades nor grows for good",
    }[fate_of(flow)]
    axes = ("lag k, in steps", "norm of the Jacobian of the last state, k steps back")
    return Figure(title, *axes, marks, y_log=True)


def _drawn_values(logarithms: Tensor) -> list[float]:
    """The numbers themselves; those that no picture holds are gaps."""
    within = logarithms.abs() <= math.log(DRAWN)
    return [math.exp(value) if inside else math.nan for value, inside in zip(logarithms.tolist(), within, strict=True)]


def python(state: State) -> str:
    """The same in Python."""
    lines = ["import torch", "from lemmata.recurrent import Elman, measure_gradient_flow, with_spectral_radius", ""]
    lines += [f"layer = Elman(1, {UNITS}, activation={state.activation!r}, bias=False)"]
    start = "torch.randn_like(layer.recurrent_weight)"
    if state.matrix == "shift":
        made = f"{state.size:g} * torch.eye({UNITS}).roll(1, 0).tril(-1)"
    else:
        start = f"torch.linalg.qr({start}).Q" if state.matrix == "orthogonal" else start
        made = f"with_spectral_radius({start}, {state.size:g})"
    lines += ["with torch.no_grad():", f"    layer.recurrent_weight.copy_({made})"]
    lines += [f"flow = measure_gradient_flow(layer, {state.drive:g} * torch.randn({RUNS}, {state.steps}, 1))"]
    lines += ["print(flow.bound, flow.vanishes)  # the factor that no step exceeds, and whether it is below 1"]
    lines += ["print(flow.norms[:, -1])  # what is left after all steps"]
    return "\n".join(lines)
