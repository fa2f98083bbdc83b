r"""The double descent lab: the exact risk of minimum-norm fits, and fits of one data set with and without a ridge."""

import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from lemmata.figure import Figure, Line, Points
from lemmata.generalization.min_norm import double_descent_risk, min_norm_fit
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Double descent",
    "sentence": "Give a linear fit more parameters than examples, and watch its error rise, and fall again.",
    "year": 2019,
    "chapter": "generalization",
    "claims": ("slt.double_descent", "slt.generalisation_gap", "regression.ridge"),
    "systems": ("min_norm_fit", "double_descent_risk"),
    "command": "lemmata check slt.double_descent",
    "thumbnail": {"p": "60"},
}

FEATURES = 80
SIGNAL = 2.0  # squared length of the true weights


class State(LabState):
    """How many parameters, how many examples, how noisy, and what holds the weights back."""

    p: Annotated[int, Field(ge=0, le=FEATURES)] = 40
    n: Annotated[int, Field(ge=5, le=40)] = 20
    noise: Annotated[float, Field(ge=0, le=2)] = 0.5
    ridge: Literal["none", "0.01", "0.1", "1", "best"] = "none"
    signal: Literal["even", "first"] = "even"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def weight(self) -> Tensor:
        """The true weights: spread over all features, or in the first ten."""
        size = torch.ones(FEATURES, dtype=torch.float64)
        if self.signal == "first":
            size[10:] = 0.0
        return size * math.sqrt(SIGNAL / size.sum())

    def penalty(self, p: int) -> float:
        """The best ridge is the noise over the signal of a feature, of everything that is not fitted."""
        if self.ridge != "best":
            return 0.0 if self.ridge == "none" else float(self.ridge)
        inside = float(self.weight()[:p].square().sum())
        return p * (SIGNAL - inside + self.noise**2) / (self.n * inside) if inside else 0.0

    def fit(self, p: int) -> tuple[float, float]:
        """Risk on new examples and squared length of the weights that this data set leads to."""
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.randn(40, FEATURES, generator=generator, dtype=torch.float64)[: self.n]
        y = x @ self.weight() + self.noise * torch.randn(40, generator=generator, dtype=torch.float64)[: self.n]
        found = self.weight().new_zeros(FEATURES)
        if p:
            found[:p] = min_norm_fit(x[:, :p].contiguous(), y, self.penalty(p))
        return float((found - self.weight()).square().sum()) + self.noise**2, float(found.square().sum())


def show(state: State) -> dict[str, Any]:
    """The risk at this number of parameters, expected and of this data set."""
    here, (risk, norm) = double_descent_risk(state.weight(), state.p, state.n, state.noise**2), state.fit(state.p)
    fits = [state.fit(p) for p in sizes(state)]
    return {
        "expected": here.risk if math.isfinite(here.risk) else None,
        "risk": risk,
        "norm": norm,
        "interpolates": state.p >= state.n and not state.penalty(state.p),
        "python": python(state),
        "figures": {"risk": still(state, fits), "norm": curves(state, 1, "Squared norm of the fit", "norm²", fits)},
    }


def sizes(state: State) -> list[int]:
    """Numbers of parameters, densely around the number of examples."""
    near = range(max(1, state.n - 4), state.n + 5)
    return sorted({*range(1, FEATURES, 6), *near, FEATURES, max(state.p, 1)})


def still(state: State, fits: list[tuple[float, float]] | None = None) -> Figure:
    """Risk against the number of parameters."""
    fits = fits or [state.fit(p) for p in sizes(state)]
    return curves(state, 0, "Risk on new examples", "risk", fits)


def curves(state: State, part: int, title: str, label: str, fits: list[tuple[float, float]]) -> Figure:
    """The exact curve without a ridge, the fits of this data set, and the one that is chosen."""
    whole = [double_descent_risk(state.weight(), p, state.n, state.noise**2)[part] for p in range(1, FEATURES + 1)]
    exact = [value if math.isfinite(value) and value > 0 else math.nan for value in whole]
    at = sizes(state)
    found = [max(fit[part], 1e-12) for fit in fits]
    name = {"none": "fits", "best": "fits, best ridge"}.get(state.ridge, f"fits, ridge {state.ridge}")
    marks = [Line(list(range(1, FEATURES + 1)), exact, "expected, no ridge"), Points(at, found, name)]
    if state.p:
        marks.append(Points([state.p], [found[at.index(state.p)]], "here"))
    return Figure(f"{title}, {state.n} examples", "parameters p", label, marks, y_log=True)


def python(state: State) -> str:
    """The same in Python."""
    weight = (
        f"torch.full(({FEATURES},), ({SIGNAL} / {FEATURES}) ** 0.5)"
        if state.signal == "even"
        else f"torch.cat([torch.full((10,), ({SIGNAL} / 10) ** 0.5), torch.zeros({FEATURES - 10})])"
    )
    return (
        "import torch\nfrom lemmata.generalization import double_descent_risk\n\n"
        f"weight = {weight}\n"
        f"for p in range(0, {FEATURES + 1}, 5):\n"
        f"    print(p, double_descent_risk(weight, p, n={state.n}, variance={state.noise:g}**2))"
    )
