r"""The lab of Gaussian processes: points are placed, and mean, band, samples and likelihood follow."""

import re
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.figure import Band, Figure, Heat, Line, Points
from lemmata.kernel.gaussian_process import GaussianPrediction, GaussianProcess
from lemmata.kernel.gp_likelihood import gaussian_log_likelihood
from lemmata.kernel.named_kernels import covariance_function
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Gaussian process by clicking",
    "sentence": "Place points, and see which functions are left: their mean, their band, and how likely the data are.",
    "year": 2006,
    "chapter": "kernel",
    "claims": ("gp.def", "gp.kernel_regression", "gp.rbf_prior", "gp.pros_cons"),
    "systems": ("gp", "covariance_function", "gaussian_log_likelihood"),
    "command": "lemmata check 'gp.*'",
    "thumbnail": {"kernel": "matern32"},
}

REACH = 5.0
MOST = 40  # points
HEIGHT = 2.0  # standard deviation of the function where nothing is known
POINT = r"-?[0-9](\.[0-9]{1,3})?,-?[0-9](\.[0-9]{1,3})?"
START = "-4,-1;-2.5,0.5;-1.5,1.75;1,1;2.5,-1.5"
LENGTHS = [k / 5 for k in range(1, 16)]
NOISES = [k / 10 for k in range(1, 11)]


class State(LabState):
    """Points (x,y;x,y), the kernel, its length scale, the standard deviation of the noise, and how many samples."""

    points: Annotated[str, StringConstraints(max_length=800, pattern=rf"^({POINT}(;{POINT}){{0,{MOST - 1}}})?$")] = (
        START
    )
    kernel: Literal["rbf", "matern12", "matern32", "matern52", "periodic", "linear"] = "rbf"
    length_scale: Annotated[float, Field(ge=0.2, le=3)] = 1.0
    noise: Annotated[float, Field(ge=0, le=1)] = 0.2
    samples: Annotated[int, Field(ge=0, le=5)] = 3
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def data(self) -> tuple[Tensor, Tensor]:
        found = [[float(value) for value in point.split(",")] for point in re.split(";", self.points) if point]
        both = torch.tensor(found, dtype=torch.float64).reshape(-1, 2)
        if bool((both.abs() > REACH).any()):
            raise ValueError(f"points must lie between -{REACH:g} and {REACH:g}")
        return both[:, :1], both[:, 1]

    def process(self) -> GaussianProcess:
        made = GaussianProcess(_state_kernel(self.kernel, self.length_scale), noise=max(self.noise, 0.01) ** 2)
        x, y = self.data()
        return made.fit(x, y, optimize=False) if len(x) else made


def _state_kernel(name: str, length: float) -> Any:
    kernel: Any = covariance_function(name)
    kernel.variance = HEIGHT**2
    if name == "periodic":
        kernel.period = 4.0
    if name != "linear":
        kernel.length_scale = length
    return kernel


def show(state: State) -> dict[str, Any]:
    """Mean, band and samples along the plane, and the likelihood beside that of other choices."""
    process, (x, _) = state.process(), state.data()
    found, drawn = _points_along(state, process)
    spread = found.variance.sqrt()
    told: dict[str, Any] = {
        "at": _rounded_values(_parameter_grid()[:, 0]),
        "mean": _rounded_values(found.mean),
        "low": _rounded_values(found.mean - 1.96 * spread),
        "high": _rounded_values(found.mean + 1.96 * spread),
        "drawn": [_rounded_values(sample) for sample in drawn],
        "points": state.points,
        "python": python(state),
        "likelihood": None,
        "best": None,
    }
    if len(x) == 0:
        return told | {"figures": {"landscape": Figure("No data, no likelihood", "length scale", "noise")}}
    values = landscape(state)
    row, column = divmod(int(values.argmax()), len(LENGTHS))
    best = {"noise": NOISES[row], "length_scale": LENGTHS[column], "likelihood": float(values.max())}
    here = float(process.log_likelihood().detach())
    return told | {"likelihood": here, "best": best, "figures": {"landscape": map_of(state, values, best)}}


def still(state: State) -> Figure:
    """The points, the mean and the band, and some of the functions that are left."""
    process, (x, y) = state.process(), state.data()
    found, drawn = _points_along(state, process)
    at, spread = _parameter_grid()[:, 0], found.variance.sqrt()
    marks: list[Any] = [Band(at, found.mean - 1.96 * spread, found.mean + 1.96 * spread, "95 %")]
    marks += [Line(at, sample, f"sample {k + 1}") for k, sample in enumerate(drawn)]
    marks += [Line(at, found.mean, "mean"), Points(x[:, 0], y, "data")]
    return Figure(f"A Gaussian process with the kernel {state.kernel}", "x", "f(x)", marks)


def _parameter_grid() -> Tensor:
    return torch.linspace(-REACH, REACH, 81, dtype=torch.float64)[:, None]


def _points_along(state: State, process: GaussianProcess) -> tuple[GaussianPrediction, Tensor]:
    """Predictions, and samples that move and do not jump while something is dragged: the seed stays."""
    generator = torch.Generator().manual_seed(state.seed)
    drawn = process.sample(_parameter_grid(), 5, generator)[: state.samples]
    return process.predict(_parameter_grid()), drawn


def landscape(state: State) -> Tensor:
    """The logarithm of the likelihood for each noise (rows) and length scale (columns)."""
    x, y = state.data()
    with torch.no_grad():
        grams = [_state_kernel(state.kernel, length)(x) for length in LENGTHS]
        return torch.stack(
            [torch.stack([gaussian_log_likelihood(gram, noise**2, y) for gram in grams]) for noise in NOISES]
        )


def map_of(state: State, values: Tensor, best: dict[str, float]) -> Figure:
    """The likelihood of every choice, cut off far below the best, with the present choice and the best one."""
    shown = values.clamp(min=float(values.max()) - 10)
    marks = [
        Heat(shown.mul(100).round().div(100).tolist(), LENGTHS, NOISES, "log-likelihood"),
        Points([best["length_scale"]], [best["noise"]], "best of these"),
        Points([state.length_scale], [max(state.noise, NOISES[0])], "here"),
    ]
    return Figure("Log-likelihood of the points", "length scale", "noise", marks)


def python(state: State) -> str:
    """The same in Python."""
    x, y = state.data()
    return (
        "import torch\nfrom lemmata.kernel import GaussianProcess, covariance_function\n\n"
        f"x = torch.tensor({x.tolist()}, dtype=torch.float64).reshape(-1, 1)\n"
        f"y = torch.tensor({y.tolist()}, dtype=torch.float64)\n"
        f"kernel = covariance_function({state.kernel!r})\nkernel.variance = {HEIGHT**2:g}\n"
        + (f"kernel.length_scale = {state.length_scale:g}\n" if state.kernel != "linear" else "")
        + ("kernel.period = 4.0\n" if state.kernel == "periodic" else "")
        + f"process = GaussianProcess(kernel, noise={max(state.noise, 0.01) ** 2:.4g})\n"
        + (
            "process.fit(x, y, optimize=False)  # or let it find length scale and noise: process.fit(x, y)\n"
            if len(x)
            else ""
        )
        + "print(process.predict(torch.zeros(1, 1, dtype=torch.float64)))"
    )


def _rounded_values(values: Tensor) -> list[float]:
    return [round(float(value), 3) for value in values]
