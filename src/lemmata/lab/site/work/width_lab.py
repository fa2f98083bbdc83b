r"""The width lab: a network of any width, its draws, its kernel before and after training, and what was foretold."""

from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.figure import Figure, Line, Points
from lemmata.kernel.infinite_width import infinite_ntk, nngp
from lemmata.kernel.ntk_parametrisation import ntk_mlp
from lemmata.kernel.tangent_kernel import ntk
from lemmata.kernel.tangent_spectra import kernel_drift
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Infinite width",
    "sentence": "Widen a network until its draws are Gaussian and its kernel stands still, and foretell its training.",
    "year": 2018,
    "chapter": "kernel",
    "claims": ("ntk.constancy", "ntk.infinite_solution", "ntk.deterministic_limit", "gp.neal"),
    "systems": ("ntk", "infinite_ntk", "nngp", "ntk_linear"),
    "command": "lemmata check 'ntk.*' --all",
    "thumbnail": {"power": "9"},
}

PLACES = torch.tensor([-1.6, -0.7, 0.1, 0.9, 1.7], dtype=torch.float64)
TARGETS = torch.tensor([-0.6, 0.9, 0.2, -0.8, 0.5], dtype=torch.float64)
ACROSS = torch.linspace(-2.5, 2.5, 81, dtype=torch.float64)
WEIGHT, STEPS, DRAWS = 6.0, 300, 300
SHOWN = 75  # of them, evenly spread: a hand that drags waits for the drawing


class State(LabState):
    """How wide the network is, which of the draws, and whether the prediction begins where the network does."""

    power: Annotated[int, Field(ge=1, le=10)] = 5
    seed: Annotated[int, Field(ge=0, le=99)] = 0
    start: Literal["yes", "no"] = "yes"


class Erf(nn.Module):
    """A sigmoid whose kernels have a closed form."""

    def forward(self, z: Tensor) -> Tensor:
        return torch.erf(z)


class Trained(NamedTuple):
    """One network before and after, and what theory says of it."""

    before: Tensor
    after: Tensor
    foretold: Tensor
    kernels: tuple[Tensor, Tensor, Tensor]
    """Of the middle point with all places: at the start, at the end, of infinite width."""
    drift: float
    apart: float
    missed: float


def inputs(x: Tensor) -> Tensor:
    return torch.stack([x, torch.ones_like(x)], 1)  # (places, 2): the one is for the bias


def network(state: State) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(state.seed)
        return ntk_mlp([2, 2**state.power, 1], Erf, WEIGHT, dtype=torch.float64)


def trained(state: State) -> Trained:
    """Gradient descent with short steps, against gradient flow with the kernel of infinite width for the same time."""
    model, x, grid = network(state), inputs(PLACES), inputs(ACROSS)
    limit = infinite_ntk(x, activation="erf", weight_variance=WEIGHT)
    across = infinite_ntk(grid, x, activation="erf", weight_variance=WEIGHT)
    rates, vectors = torch.linalg.eigh(limit)
    step = 0.7 / float(rates[-1])
    with torch.no_grad():
        before, at_data = model(grid)[:, 0], model(x)[:, 0]
    first, shown = ntk(model, x)[..., 0, 0], ntk(model, x[2:3], grid)[0, :, 0, 0]
    parameters = list(model.parameters())
    for _ in range(STEPS):
        loss = (model(x)[:, 0] - TARGETS).square().sum() / 2
        with torch.no_grad():
            for p, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p -= step * slope
    with torch.no_grad():
        after, fitted = model(grid)[:, 0], model(x)[:, 0]
    factor = 1.0 if state.start == "yes" else 0.0  # the residual is that of the network in both cases, as printed
    moved = vectors @ (-torch.expm1(-rates * step * STEPS) / rates * (vectors.mT @ (TARGETS - at_data)))
    foretold = factor * before + across @ moved
    kernels = shown, ntk(model, x[2:3], grid)[0, :, 0, 0], across[:, 2]
    drift = kernel_drift(first, ntk(model, x)[..., 0, 0])
    missed = float((factor * at_data + limit @ moved - fitted).abs().max())
    return Trained(before, after, foretold, kernels, drift, float((after - foretold).abs().max()), missed)


def draws(state: State) -> tuple[Tensor, float]:
    """Outputs of many networks at one input in the order of their size, and the standard deviation in the limit."""
    generator = torch.Generator().manual_seed(state.seed)
    m = 2**state.power
    x = inputs(PLACES[-1:])
    first = torch.randn(DRAWS, m, 2, generator=generator, dtype=torch.float64)
    second = torch.randn(DRAWS, m, generator=generator, dtype=torch.float64)
    hidden = torch.erf((WEIGHT / 2) ** 0.5 * first @ x[0])
    values = (WEIGHT / m) ** 0.5 * (hidden * second).sum(1)
    return values.sort().values, float(nngp(x, activation="erf", weight_variance=WEIGHT).sqrt())


def show(state: State) -> dict[str, Any]:
    """How far theory and network are apart, and the pictures."""
    found = trained(state)
    values, spread = draws(state)
    kurtosis = float((values**4).mean() / values.square().mean().square() - 3)
    return {
        "width": 2**state.power,
        "drift": found.drift,
        "apart": found.apart,
        "missed": found.missed,
        "kurtosis": kurtosis,
        "python": python(state),
        "figures": {"functions": functions(found), "kernel": kernel(found), "draws": quantiles(values, spread)},
    }


def still(state: State) -> Figure:
    """The trained network and what theory foretold."""
    return functions(trained(state))


def functions(found: Trained) -> Figure:
    """Before and after, and foretold."""
    marks = [
        Line(ACROSS, found.before, "as drawn"),
        Line(ACROSS, found.after, "trained"),
        Line(ACROSS, found.foretold, "foretold by the kernel"),
        Points(PLACES, TARGETS, "data"),
    ]
    return Figure("The network, and what the kernel foretells", "x", "f(x)", marks)


def kernel(found: Trained) -> Figure:
    """The kernel between the middle point and all others."""
    names = ("at the start", "after training", "infinite width")
    marks = [Line(ACROSS, values, name) for values, name in zip(found.kernels, names, strict=True)]
    return Figure("The tangent kernel k(0.1, x)", "x", "", marks)


def quantiles(values: Tensor, spread: float) -> Figure:
    """Draws in their order against the Gaussian: a line if they are one."""
    levels = (torch.arange(len(values), dtype=torch.float64) + 0.5) / len(values)
    normal = spread * torch.special.ndtri(levels)
    ends = [float(normal[0]), float(normal[-1])]
    shown = torch.linspace(0, len(values) - 1, SHOWN).round().long()
    marks = [Points(normal[shown], values[shown], f"f(1.7) of {DRAWS} networks"), Line(ends, ends, "Gaussian")]
    return Figure("Draws against the Gaussian process", "quantile of the Gaussian", "drawn", marks)


def python(state: State) -> str:
    """The same in Python."""
    return (
        "import torch\nfrom lemmata.kernel import infinite_ntk, ntk, ntk_mlp\n\n"
        f"torch.manual_seed({state.seed})\n"
        f"model = ntk_mlp([2, {2**state.power}, 1], torch.nn.Tanh)\n"
        "x = torch.tensor([[-1.6, 1.0], [0.1, 1.0], [1.7, 1.0]])\n"
        'print(ntk(model, x, form="trace"))\nprint(infinite_ntk(x, activation="tanh"))'
    )
