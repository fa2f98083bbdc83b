r"""The dropout lab: all networks that dropout makes of a small one, their mean, and the one network in their place."""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor, nn

from lemmata.figure import Band, Bars, Figure, Line
from lemmata.lab.site.labs import LabState
from lemmata.tricks.dropout import Dropout, DropoutEnsemble, dropout_ensemble, scaled_for_inference

LAB = {
    "title": "What dropout averages",
    "sentence": "Drop hidden units of a small network: see all networks that are left, and the one in their place.",
    "year": 2014,
    "chapter": "tricks",
    "claims": ("reg.dropout", "reg.dropout.ensemble", "reg.dropout.weight_scaling"),
    "systems": ("dropout", "dropout_ensemble", "scaled_for_inference"),
    "command": "lemmata check 'reg.dropout*'",
    "thumbnail": {"output": "probability", "seed": "2"},
}

MOST = 4  # units, of which there are 16 networks
SECOND = 6  # units of a second hidden layer, which are never dropped
X = torch.linspace(-3, 3, 37, dtype=torch.float64)[:, None]


class State(LabState):
    """How often units are kept, which are kept now, and the network."""

    keep: Annotated[float, Field(ge=0, le=1)] = 0.5
    units: Annotated[int, Field(ge=1, le=MOST)] = 4
    kept: Annotated[str, StringConstraints(pattern=rf"^[01]{{1,{MOST}}}$")] = "1111"
    output: Literal["number", "probability"] = "number"
    layers: Literal["one", "two"] = "one"
    seed: Annotated[int, Field(ge=0, le=9999)] = 0

    def mask(self) -> list[bool]:
        """Which units are kept now; those that the address does not name are."""
        return [bit == "1" for bit in self.kept.ljust(MOST, "1")[: self.units]]

    def network(self) -> nn.Sequential:
        """The first units of a layer that bend at random places, so that more units keep those there were."""
        drawn = torch.Generator().manual_seed(self.seed)
        places, slopes, heights = torch.randn(3, MOST, generator=drawn, dtype=torch.float64)
        slopes, heights = 0.6 + slopes.abs(), 2 * heights
        first, units = nn.Linear(1, self.units, dtype=torch.float64), self.units
        first.weight.data = (slopes * torch.tensor([1.0, -1.0] * (MOST // 2)))[:units, None]
        first.bias.data = -first.weight.data[:, 0] * 1.5 * places[:units]
        parts = [first, nn.Tanh(), Dropout(1 - self.keep, inverted=False)]
        if self.layers == "two":
            parts += [nn.Linear(units, SECOND, dtype=torch.float64), nn.ReLU()]
            mixing = torch.randn(SECOND, MOST + 1, generator=drawn, dtype=torch.float64)
            parts[3].weight.data, parts[3].bias.data = mixing[:, :units].contiguous(), mixing[:, MOST].contiguous()
            heights = torch.randn(SECOND, generator=drawn, dtype=torch.float64)
        last = nn.Linear(len(heights) if self.layers == "two" else units, 1, dtype=torch.float64)
        last.weight.data = heights[None, : last.in_features].contiguous()
        last.bias.data = torch.zeros(1, dtype=torch.float64)
        return nn.Sequential(*parts, last).requires_grad_(False)

    def answer(self, values: Tensor) -> Tensor:
        """Numbers, or the probabilities of two classes of which they are the logit."""
        if self.output == "number":
            return values
        return torch.cat([values.sigmoid(), (-values).sigmoid()], -1)


def show(state: State) -> dict[str, Any]:
    """All networks, the chosen one's probability, and how far the scaled network is from their mean."""
    ensemble = _state_ensemble(state)
    mean, scaled = ensemble.mean()[:, 0], state.answer(scaled_for_inference(state.network())(X))[:, 0]
    return {
        "mask": state.mask(),
        "networks": len(ensemble.masks),
        "probability": float(ensemble.probability[_mask_number(state)]),
        "gap": float((mean - scaled).abs().max()),
        "python": python(state),
        "figures": {"curves": still(state), "weights": weights(state, ensemble)},
    }


def still(state: State) -> Figure:
    """The output of every network, their mean, and that of the scaled one."""
    ensemble, x = _state_ensemble(state), X[:, 0]
    scaled = state.answer(scaled_for_inference(state.network())(X))[:, 0]
    curves = ensemble.outputs[:, :, 0]  # (networks, points)
    thin = 0.004 * max(float(curves.max() - curves.min()), 1e-6)  # they lie behind the others
    marks: list[Line | Band] = [Band(x, values - thin, values + thin, "all networks") for values in curves]
    marks += [
        Line(x, ensemble.mean()[:, 0], "their mean"),
        Line(x, scaled, "one network, weights times π"),
        Line(x, curves[_mask_number(state)], "the chosen network"),
    ]
    if state.output == "probability" and 0 < state.keep < 1:
        marks.append(Line(x, ensemble.geometric_mean()[:, 0], "their geometric mean"))
    label = "output" if state.output == "number" else "probability"
    return Figure(f"{len(ensemble.masks)} networks of {state.units} units", "x", label, marks)


def weights(state: State, ensemble: DropoutEnsemble) -> Figure:
    """The probability of each network, by the units that it keeps."""
    names = ["".join("●" if kept else "○" for kept in mask) for mask in ensemble.masks.tolist()]
    return Figure("Probability of each network", "units kept", "", [Bars(names, ensemble.probability)])


def _state_ensemble(state: State) -> DropoutEnsemble:
    if 0 < state.keep < 1:
        return dropout_ensemble(state.network(), X, state.answer)
    # Where nothing is drawn, all networks are still there, most of them with probability 0.
    half = dropout_ensemble(state.model_copy(update={"keep": 0.5}).network(), X, state.answer)
    certain = torch.where(half.masks, state.keep, 1 - state.keep).double().prod(1)
    return DropoutEnsemble(half.masks, certain, half.outputs)


def _mask_number(state: State) -> int:
    return sum(2**place for place, kept in enumerate(state.mask()) if kept)


def python(state: State) -> str:
    """The same in Python."""
    second = f", nn.Linear({state.units}, {SECOND}), nn.ReLU()" if state.layers == "two" else ""
    last = SECOND if state.layers == "two" else state.units
    end = ", lambda z: torch.cat([z.sigmoid(), (-z).sigmoid()], -1)" if state.output == "probability" else ""
    return (
        "import torch\nfrom torch import nn\n"
        "from lemmata.tricks import Dropout, dropout_ensemble, scaled_for_inference\n\n"
        f"dropout = Dropout({1 - state.keep:g}, inverted=False)\n"
        f"network = nn.Sequential(nn.Linear(1, {state.units}), nn.Tanh(), dropout{second}, nn.Linear({last}, 1))\n"
        "x = torch.linspace(-3, 3, 37)[:, None]\n"
        f"ensemble = dropout_ensemble(network, x{end})\n"
        "print(ensemble.probability, ensemble.mean()[:, 0])\n"
        "print(scaled_for_inference(network)(x)[:, 0])"
    )
