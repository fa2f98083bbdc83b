r"""The convolution lab: a kernel is drawn on a photograph's side, laid on it as it is, and turned around."""

import base64
import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor
from torch.nn import functional

from lemmata.convolution.convolution_layer import conv_nd
from lemmata.convolution.sizes import output_size
from lemmata.data.images import glyphs, photos
from lemmata.figure import Figure, Image
from lemmata.lab.site.labs import LabState

LAB = {
    "title": "Convolution and correlation",
    "sentence": "Draw a kernel and see what it makes of a photograph, as it is and turned by half a turn.",
    "year": 1980,
    "chapter": "convolution",
    "claims": (
        "conv.cross_correlation",
        "conv.symmetric_kernel",
        "conv.multidim",
        "conv.padding",
        "conv.stride",
        "conv.dilation",
        "conv.output_size",
    ),
    "systems": ("conv_nd", "output_size", "convolve", "correlate"),
    "command": "lemmata check conv.cross_correlation conv.symmetric_kernel conv.output_size",
    "thumbnail": {"kernel": "slope", "picture": "coffee"},
}

SIDE, TAPS = 64, 5
KERNELS = {
    "slope": "0 0 0 0 0  0 -1 0 1 0  0 -2 0 2 0  0 -1 0 1 0  0 0 0 0 0",
    "shift": "1 0 0 0 0  0 0 0 0 0  0 0 0 0 0  0 0 0 0 0  0 0 0 0 0",
    "stroke": "1 0 0 0 0  0 1 0 0 0  0 0 1 0 0  0 0 1 0 0  0 0 1 0 0",
    "relief": "0 0 0 0 0  0 -2 -1 0 0  0 -1 1 1 0  0 0 1 2 0  0 0 0 0 0",
    "blur": "0 1 2 1 0  1 4 6 4 1  2 6 9 6 2  1 4 6 4 1  0 1 2 1 0",
    "sharpen": "0 0 0 0 0  0 0 -1 0 0  0 -1 5 -1 0  0 0 -1 0 0  0 0 0 0 0",
    "laplace": "0 0 0 0 0  0 0 1 0 0  0 1 -4 1 0  0 0 1 0 0  0 0 0 0 0",
}
CELLS = r"-?[0-9](,-?[0-9]){24}"


class State(LabState):
    """The picture, the kernel by name or by the reader's hand, and how it is moved over the picture."""

    picture: Literal["camera", "cat", "coffee", "letter", "point"] = "camera"
    kernel: Literal["slope", "shift", "stroke", "relief", "blur", "sharpen", "laplace"] = "slope"
    cells: Annotated[str, StringConstraints(max_length=75, pattern=rf"^{CELLS}$")] | None = None
    stride: Annotated[int, Field(ge=1, le=4)] = 1
    dilation: Annotated[int, Field(ge=1, le=4)] = 1
    padding: Annotated[int, Field(ge=0, le=4)] = 2
    padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros"

    def taps(self) -> Tensor:
        """The kernel, rows downwards."""
        numbers = self.cells.split(",") if self.cells else KERNELS[self.kernel].split()
        return torch.tensor([int(number) for number in numbers], dtype=torch.float64).reshape(TAPS, TAPS)

    def moved(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("stride", "padding", "dilation", "padding_mode")}


@functools.cache
def picture(name: str) -> Tensor:
    """(64, 64) values from 0 for black to 1 for white."""
    if name == "point":
        point = torch.zeros(SIDE, SIDE, dtype=torch.float64)
        point[SIDE // 2, SIDE // 2] = 1
        return point
    if name == "letter":
        data = glyphs()
        letter = data.train.x[data.train.y == data.classes.index("F")][0]
        return functional.pad(letter.repeat_interleave(2, 0).repeat_interleave(2, 1), [4, 4, 4, 4]).double()
    grey = photos().parts[name].x.mean(1, keepdim=True).double()  # (1, 1, height, width)
    return functional.interpolate(grey, (SIDE, SIDE), mode="area")[0, 0]


def layers(state: State) -> tuple[Tensor, Tensor]:
    """The picture correlated and convolved with the kernel, from -1 to 1 whatever the kernel."""
    kernel, x = state.taps(), picture(state.picture)[None, None]
    kernel = kernel / max(float(kernel.clamp(min=0).sum()), float(kernel.clamp(max=0).abs().sum()), 1.0)
    turned = kernel.flip(0, 1)
    correlated, convolved = (conv_nd(x, taps[None, None], **state.moved())[0, 0] for taps in (kernel, turned))
    return correlated, convolved


def show(state: State) -> dict[str, Any]:
    """Both pictures, and where they differ."""
    correlated, convolved = layers(state)
    taps, signed = state.taps(), bool((state.taps() < 0).any())
    difference = (correlated - convolved).abs()
    size = output_size(SIDE, TAPS, state.stride, state.padding, state.dilation)
    return {
        "taps": taps.int().flatten().tolist(),
        "signed": signed,
        "symmetric": torch.equal(taps, taps.flip(0, 1)),
        "difference": round(float(difference.max()), 3),
        "size": size,
        "room": SIDE + 2 * state.padding - state.dilation * (TAPS - 1) - 1,
        "pictures": {
            "input": packed(picture(state.picture)),
            "correlation": packed(seen(correlated, signed)),
            "convolution": packed(seen(convolved, signed)),
            "difference": packed(difference),
        },
        "python": python(state),
        "figures": {},
    }


def seen(y: Tensor, signed: bool) -> Tensor:
    """As a picture: where a kernel has negative taps, grey is zero."""
    return (0.5 + y / 2 if signed else y).clamp(0, 1)


def packed(picture: Tensor) -> str:
    """A byte for each pixel, as text."""
    return base64.b64encode(bytes((255 * picture).round().clamp(0, 255).byte().flatten().tolist())).decode()


def still(state: State) -> Figure:
    """The picture, and what comes of it, smaller."""
    taps, signed = state.taps(), bool((state.taps() < 0).any())
    most = max(float(taps.abs().max()), 1.0)
    marks = [Image(smaller(picture(state.picture)), "the picture"), Image(0.5 + taps / (2 * most), "the kernel")]
    names = "correlation", "convolution: the kernel turned"
    marks += [Image(smaller(seen(y, signed)), name) for y, name in zip(layers(state), names, strict=True)]
    return Figure("A kernel on a picture, as it is and turned around", marks=marks)


def smaller(picture: Tensor) -> Tensor:
    """At most 32 pixels to a side, in 16 greys."""
    side = min(len(picture), SIDE // 2)
    small = functional.interpolate(picture[None, None], (side, side), mode="area")[0, 0]
    return (15 * small).round() / 15


def python(state: State) -> str:
    """The same in Python."""
    given = "".join(f", {name}={value!r}" for name, value in state.moved().items())
    loaded = {
        "point": f"x = torch.zeros(1, 1, {SIDE}, {SIDE})\nx[0, 0, {SIDE // 2}, {SIDE // 2}] = 1",
        "letter": 'data = glyphs()\nx = data.train.x[data.train.y == data.classes.index("F")][:1, None]',
    }
    photo = f"x = photos().parts[{state.picture!r}].x.mean(1, keepdim=True)"
    source = "glyphs" if state.picture == "letter" else "photos"
    read = "" if state.picture == "point" else f"from lemmata.data import {source}\n"
    return (
        f"import torch\nfrom lemmata.convolution import conv_nd\n{read}\n"
        f"{loaded.get(state.picture, photo)}\n"
        f"kernel = torch.tensor({state.taps().int().tolist()}).float()[None, None]\n"
        f"correlation = conv_nd(x, kernel{given})\n"
        f"convolution = conv_nd(x, kernel.flip(2, 3){given})\n"
        "print(correlation.shape, (correlation - convolution).abs().max())"
    )
