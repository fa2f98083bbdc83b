r"""The backpropagation lab: a small network computes forwards, and its gradient comes back, one layer at a time."""

import functools
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.optim.backpropagation import BackwardSweep, backpropagate, finite_differences, forward_mode

LAB = {
    "title": "Backpropagation",
    "sentence": "Step through a small network: numbers go forwards, and what the loss owes to each of them comes back.",
    "year": 1986,
    "chapter": "optim",
    "claims": (
        "backprop.delta_recurrence",
        "backprop.param_gradient",
        "backprop.ridge_layer",
        "backprop.linear_time",
    ),
    "systems": ("backpropagation",),
    "command": "lemmata check 'backprop.*'",
    "thumbnail": {"at": "11", "seed": "3"},
}

SIZES = (2, 3, 2, 1)
NAMES = ("x", "z₁", "a₁", "z₂", "a₂", "y")  # what the network computes, in its order
LAST = 11  # steps: five layers forwards, the loss, five layers back
DIVERGED = 1e4  # a loss beyond which gradient descent goes no further
ACTIVATIONS = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU, "softplus": nn.Softplus}


class State(LabState):
    """The network, its example, how far it has learned, and how far the two sweeps have come."""

    activation: Literal["tanh", "sigmoid", "relu", "softplus"] = "tanh"
    x1: Annotated[float, Field(ge=-2, le=2)] = 1.0
    x2: Annotated[float, Field(ge=-2, le=2)] = -0.5
    target: Annotated[float, Field(ge=-2, le=2)] = 1.0
    lr: Annotated[float, Field(ge=0.05, le=1)] = 0.2
    descents: Annotated[int, Field(ge=0, le=40)] = 0
    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    weight: Annotated[int, Field(ge=0, le=19)] = 0
    at: Annotated[int, Field(ge=0, le=LAST)] = 0

    def network(self) -> nn.Sequential:
        generator, phi = torch.Generator().manual_seed(self.seed), ACTIVATIONS[self.activation]
        a, b, c = (nn.Linear(n, m).double() for n, m in pairwise(SIZES))
        made = nn.Sequential(a, phi(), b, phi(), c).requires_grad_(False)
        for values in made.parameters():
            scale = values.shape[-1] ** -0.5 if values.ndim == 2 else 0.3
            values.copy_(scale * torch.randn(values.shape, generator=generator, dtype=torch.float64))
        return made

    def example(self) -> Tensor:
        return torch.tensor([[self.x1, self.x2]], dtype=torch.float64)

    def loss(self, outputs: Tensor) -> Tensor:
        return (outputs - self.target).square().sum() / 2


def learned(state: State) -> tuple[nn.Sequential, list[BackwardSweep]]:
    """The network after as many steps of gradient descent, and the sweep before each of them and after all."""
    network, sweeps = state.network(), []
    for step in range(state.descents + 1):
        sweeps.append(backpropagate(network, state.example(), state.loss))
        if step == state.descents or sweeps[-1].loss > DIVERGED:
            break
        for name, gradient in sweeps[-1].gradients.items():
            network.get_parameter(name).sub_(state.lr * gradient)
    return network, sweeps


def show(state: State) -> dict[str, Any]:
    """Every number of both sweeps, what the steps do in words, and what they cost."""
    network, sweeps = learned(state)
    sweep = sweeps[-1]
    return {
        "at": state.at,
        "layers": [
            {"name": name, "values": values[0].tolist(), "deltas": deltas[0].tolist()}
            for name, values, deltas in zip(NAMES, sweep.hidden, sweep.deltas, strict=True)
        ],
        "weights": weights(network, sweep),
        "loss": sweep.loss.item(),
        "target": state.target,
        "steps": words(state, sweep),
        "off": off(network, sweep, state),
        "costs": costs(network, state),
        "python": python(state),
        "figures": {"sizes": sizes(sweep), "descent": descent(state, sweeps), "growth": growth()},
    }


def still(state: State) -> Figure:
    """How large the numbers of both sweeps are, layer by layer."""
    return sizes(learned(state)[1][-1])


def weights(network: nn.Sequential, sweep: BackwardSweep) -> list[dict[str, Any]]:
    """Weights and biases in the order of the network: where they lead, their value and their gradient."""
    found = []
    for name, values in network.named_parameters():
        layer, kind = name.split(".")
        gradients = sweep.gradients[name]
        for place in torch.cartesian_prod(*(torch.arange(n) for n in values.shape)).reshape(-1, values.ndim).tolist():
            into, *source = place
            found.append(
                {
                    "layer": int(layer),
                    "to": into,
                    "from": source[0] if kind == "weight" else None,
                    "value": values[tuple(place)].item(),
                    "gradient": gradients[tuple(place)].item(),
                }
            )
    return found


def words(state: State, sweep: BackwardSweep) -> list[str]:
    """What each step does."""
    phi = "φ" if state.activation != "relu" else "relu"
    outputs, loss = sweep.hidden[-1].item(), sweep.loss.item()
    return [
        "The example x is given, and the weights are what they are.",
        "Forwards: z₁ = W₁x + b₁, one product for each edge.",
        f"Forwards: a₁ = {phi}(z₁), unit by unit.",
        "Forwards: z₂ = W₂a₁ + b₂.",
        f"Forwards: a₂ = {phi}(z₂).",
        f"Forwards: y = W₃a₂ + b₃ = {outputs:.3g}.",
        f"The loss is ½(y − t)² = {loss:.3g}. Its slope in y is δ = y − t = {outputs - state.target:.3g}.",
        "Back: the gradient of W₃ is δ times a₂, that of b₃ is δ; and W₃ᵀδ goes on to a₂.",
        "Back: at each unit δ is multiplied by the slope φ′(z₂).",
        "Back: the gradient of W₂ is δ times a₁, that of b₂ is δ; and W₂ᵀδ goes on to a₁.",
        "Back: again the slope, φ′(z₁).",
        "Back: the gradient of W₁ is δ times x. All gradients are known, and nothing was computed twice.",
    ]


def off(network: nn.Sequential, sweep: BackwardSweep, state: State) -> float:
    """The largest difference from autograd's gradients."""
    with torch.enable_grad():
        leaves = {name: values.clone().requires_grad_() for name, values in network.named_parameters()}
        loss = state.loss(torch.func.functional_call(network, leaves, (state.example(),)))
        found = torch.autograd.grad(loss, list(leaves.values()))
    pairs = zip(found, sweep.gradients.values(), strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


def costs(network: nn.Sequential, state: State) -> list[tuple[str, int]]:
    """Multiply-adds of one pass, and of the gradient in three ways."""
    ways = {"backpropagation": backpropagate, "forward mode": forward_mode, "differences": finite_differences}
    found = {name: way(network, state.example(), state.loss) for name, way in ways.items()}
    forward = ("one pass", found["backpropagation"].forward_multiply_adds)
    return [forward, *((name, counted.multiply_adds) for name, counted in found.items())]


# --- Pictures ---


def sizes(sweep: BackwardSweep) -> Figure:
    """The lengths of what goes forwards and of what comes back, layer by layer."""
    places = range(len(NAMES))
    values, deltas = ([part.norm().item() for part in parts] for parts in (sweep.hidden, sweep.deltas))
    marks = [
        Line(places, values, "values h"),
        Points(places, values),
        Line(places, deltas, "δ"),
        Points(places, deltas),
    ]
    return Figure("What goes forwards and what comes back", f"layer: {', '.join(NAMES)}", "length", marks)


def descent(state: State, sweeps: list[BackwardSweep]) -> Figure:
    """The loss at each step of gradient descent so far."""
    losses = [sweep.loss.item() for sweep in sweeps]
    marks = [Line(range(len(losses)), losses, "loss"), Points([len(losses) - 1], [losses[-1]], "here")]
    title = "No step of gradient descent yet" if len(losses) == 1 else f"Gradient descent with step {state.lr:g}"
    title = f"{title} leaves the picture" if losses[-1] > DIVERGED else title
    return Figure(title, "steps", "loss", marks)


@functools.cache
def growth() -> Figure:
    """What a gradient costs as a network grows: counted on shapes alone."""
    rows = []
    with torch.device("meta"):
        for width in (2, 4, 8, 16, 32, 64, 128):
            layers = [part for _ in range(3) for part in (nn.Linear(width, width), nn.Tanh())]
            network, x = nn.Sequential(*layers), torch.empty(1, width)
            parameters = sum(values.numel() for values in network.parameters())
            back, forth = (way(network, x, torch.sum) for way in (backpropagate, forward_mode))
            once = back.forward_multiply_adds
            rows.append((parameters, once, back.multiply_adds, forth.multiply_adds, once * (1 + 2 * parameters)))
    x, *curves = zip(*rows, strict=True)
    labels = ("one pass", "backpropagation", "forward mode", "differences")
    marks = [Line(x, y, label) for y, label in zip(curves, labels, strict=True)]
    title = "Cost of a gradient as the network grows"
    return Figure(title, "parameters", "multiply-adds", marks, x_log=True, y_log=True)


def python(state: State) -> str:
    """The same in Python."""
    name = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "ReLU", "softplus": "Softplus"}[state.activation]
    return (
        "import torch\nfrom torch import nn\nfrom lemmata.optim import backpropagate\n\n"
        f"layers = [nn.Linear(2, 3), nn.{name}(), nn.Linear(3, 2), nn.{name}(), nn.Linear(2, 1)]\n"
        f"x = torch.tensor([[{state.x1:g}, {state.x2:g}]])\n"
        f"found = backpropagate(nn.Sequential(*layers), x, lambda y: (y - {state.target:g}).square().sum() / 2)\n"
        "for h, delta in zip(found.hidden, found.deltas):\n    print(h, delta)\n"
        "print(found.gradients, found.multiply_adds)"
    )
