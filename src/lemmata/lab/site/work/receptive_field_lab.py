r"""The receptive field lab: a stack of layers is built, and a unit of it shows what it sees of a photograph."""

import functools
import re
from typing import Annotated, Any, Literal

import torch
from pydantic import StringConstraints
from torch import Tensor, nn
from torch.nn import functional

from lemmata.convolution.receptive_fields import ReceptiveField, gradient_field, receptive_field
from lemmata.data.images import photos
from lemmata.figure import Bars, Figure, Image
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Receptive field",
    "sentence": "Build a stack of layers, choose a unit of the last one, and see what it sees of the picture.",
    "year": 1989,
    "chapter": "convolution",
    "claims": ("conv.receptive_field", "conv.vgg.stacking", "conv.dilation", "conv.output_size"),
    "systems": ("receptive_field", "output_size"),
    "command": "lemmata check conv.receptive_field conv.vgg.stacking",
    "thumbnail": {"stack": "c3.p2.c3.c3d2", "weights": "random"},
}

SIDE, MOST, CHANNELS = 40, 8, 4
LEVELS = 15  # of a pixel's grey and of a gradient, one hexadecimal digit each
NAMES = {"c": "convolution", "p": "mean of", "u": "upsampling by"}


class State(LabState):
    """Layers joined by full stops (c3 a 3 x 3 convolution, s2 its stride, d2 its dilation, p2, u2), and a unit."""

    stack: Annotated[
        str,
        StringConstraints(
            max_length=60,
            pattern=rf"^(c[1357](s[12])?(d[124])?|p2|u2)(\.(c[1357](s[12])?(d[124])?|p2|u2)){{0,{MOST - 1}}}$",
        ),
    ] = "c3.c3.p2.c3"
    unit: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,3},[0-9]{1,3}$")] | None = None  # row and column
    weights: Literal["positive", "random"] = "positive"
    shortcuts: Literal["no", "yes"] = "no"

    def layers(self) -> list[tuple[str, int, int, int]]:
        """Kind, kernel size, stride and dilation of each."""
        found = [re.findall(r"([a-z])([0-9])", layer) for layer in self.stack.split(".")]
        more = [dict(parts[1:]) for parts in found]
        return [
            (parts[0][0], int(parts[0][1]), int(told.get("s", 1)), int(told.get("d", 1)))
            for parts, told in zip(found, more, strict=True)
        ]


class Residual(nn.Module):
    """A layer whose input goes around it."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(x)


def network(state: State) -> nn.Sequential:
    """The stack: with positive weights nothing cancels; at random, with relu, it is as networks are before training."""
    generator, parts = torch.Generator().manual_seed(0), []
    for kind, k, s, d in state.layers():
        if kind == "c":
            layer: nn.Module = nn.Conv2d(CHANNELS, CHANNELS, k, s, d * (k // 2), d, bias=False)
            deviation = (2 / (CHANNELS * k * k)) ** 0.5
            drawn = torch.randn(layer.weight.shape, generator=generator) * deviation
            layer.weight.data = drawn if state.weights == "random" else torch.full_like(drawn, 1 / drawn[0].numel())
            layer = nn.Sequential(layer, nn.ReLU()) if state.weights == "random" else layer
            parts.append(Residual(layer) if state.shortcuts == "yes" and s == 1 else layer)
        else:
            parts.append(nn.AvgPool2d(2) if kind == "p" else nn.Upsample(scale_factor=2))
    return nn.Sequential(*parts)


@functools.cache
def photo() -> Tensor:
    """A photograph of a camera man, grey, (SIDE, SIDE)."""
    return functional.adaptive_avg_pool2d(photos().parts["camera"].x, SIDE)[0, 0].float()


@functools.cache
def inputs() -> Tensor:
    """The photograph in every channel, with some noise, so that each example opens other units."""
    noise = torch.randn(8, CHANNELS, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    return photo() + 0.3 * noise


def show(state: State) -> dict[str, Any]:
    """What the unit sees by the count, and how strongly by gradients."""
    model, field, unit = chosen(state)
    heat = gradient_field(model, inputs(), unit)
    first, last = zip(*(reach.at(u) or (0, -1) for reach, u in zip(field.reaches, unit, strict=True)), strict=True)
    return {
        "photo": digits(photo()),
        "heat": digits((heat / heat.max().clamp(min=1e-30)).sqrt()),
        "unit": unit,
        "units": field.shape[1:],
        "center": [n + 0.5 for n in field.center],
        "stride": field.stride,
        "field": [first[1], first[0], last[1] - first[1] + 1, last[0] - first[0] + 1],
        "layers": rows(state, field),
        "size": field.size[0],
        "words": words(field, unit, heat),
        "python": python(state, unit),
        "figures": {"growth": growth(state, field)},
    }


def chosen(state: State) -> tuple[nn.Sequential, ReceptiveField, list[int]]:
    """The stack, its field, and the unit that is shown: the one in the middle unless the state names another."""
    model = network(state)
    sizes = [SIDE]
    for kind, _, s, _ in state.layers():
        sizes.append(sizes[-1] // 2 if kind == "p" else sizes[-1] * 2 if kind == "u" else -(-sizes[-1] // s))
    if min(sizes) < 1 or max(sizes) > 2 * SIDE:
        raise ValueError(
            f"the maps must have from 1 to {2 * SIDE} units a side, got {sizes[-1] or 'none'}: take a layer away"
        )
    field = receptive_field(model, (CHANNELS, SIDE, SIDE))
    unit = [int(n) for n in state.unit.split(",")] if state.unit else [n // 2 for n in field.shape[1:]]
    if any(u >= n for u, n in zip(unit, field.shape[1:], strict=True)):
        raise ValueError(f"unit must be below {field.shape[1]},{field.shape[2]}")
    return model, field, unit


def digits(values: Tensor) -> str:
    """Values in [0, 1] as hexadecimal digits; what is not zero stays so."""
    levels = (values * LEVELS).round().clamp(0, LEVELS).long()
    levels = torch.where((values > 0) & (levels == 0), 1, levels)
    return "".join(f"{level:x}" for level in levels.flatten().tolist())


def outcomes(state: State, field: ReceptiveField) -> list[ReceptiveField]:
    """What each layer of the stack sees: the last of the parts that it is made of."""
    found = {layer.name.split(".")[0]: layer for layer in field.layers}
    return [found[str(number)] for number in range(len(state.layers()))]


def rows(state: State, field: ReceptiveField) -> list[list[str]]:
    """Name, size of the map, field and stride of each layer."""
    names = [NAMES[kind] + (" 2" if kind == "u" else f" {k} × {k}") + s_and_d(s, d) for kind, k, s, d in state.layers()]
    told = zip(names, outcomes(state, field), strict=True)
    return [[name, str(layer.shape[1]), str(layer.size[0]), f"{layer.stride[0]:g}"] for name, layer in told]


def s_and_d(stride: int, dilation: int) -> str:
    return (f", stride {stride}" if stride > 1 else "") + (f", dilation {dilation}" if dilation > 1 else "")


def words(field: ReceptiveField, unit: list[int], heat: Tensor) -> str:
    """The count beside what gradients reach."""
    part = field.of(*unit)
    places = heat[part].numel()
    reached, outside = int((heat > 0).sum()), int((heat > 0).sum() - (heat[part] > 0).sum())
    half = int((heat.flatten().sort(descending=True).values.cumsum(0) < heat.sum() / 2).sum()) + 1
    told = f"{places:,} places of the picture lie in its field; the gradient reaches {reached:,} of them"
    return f"{told}, {outside} outside. Half of it comes from {half:,}."


def growth(state: State, field: ReceptiveField) -> Figure:
    """How wide the field is after each layer."""
    sizes = [layer.size[0] for layer in outcomes(state, field)]
    return Figure(
        "Width of the field after each layer", "", "places", [Bars([str(k + 1) for k in range(len(sizes))], sizes)]
    )


def still(state: State) -> Figure:
    """The photograph, and how strongly the unit depends on each place."""
    model, field, unit = chosen(state)
    heat = gradient_field(model, inputs(), unit)
    marks = [Image(photo(), "the picture"), Image((heat / heat.max().clamp(min=1e-30)).sqrt(), "the unit's gradient")]
    return Figure(f"One unit sees {field.size[0]} × {field.size[1]} places", marks=marks)


def python(state: State, unit: list[int]) -> str:
    """The same in Python."""
    made, channels = [], 3
    for kind, k, s, d in state.layers():
        layer = {"p": "nn.AvgPool2d(2)", "u": "nn.Upsample(scale_factor=2)"}.get(kind)
        made.append(layer or f"nn.Conv2d({channels}, 8, {k}, stride={s}, padding={d * (k // 2)}, dilation={d})")
        channels = channels if layer else 8
    return (
        "from torch import nn\nfrom lemmata.convolution import receptive_field\n\n"
        "model = nn.Sequential(\n" + "".join(f"    {layer},\n" for layer in made) + ")\n"
        f"field = receptive_field(model, (3, {SIDE}, {SIDE}))\n"
        f"print(field)\nprint(field.of{tuple(unit)})"
    )
