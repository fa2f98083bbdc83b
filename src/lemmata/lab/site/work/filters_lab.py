r"""The filters lab: a trained LeNet-5 looks at a drawn digit; all its maps, and what a cover over a stroke changes."""

import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, cross_entropy, interpolate

from lemmata.convolution.lenet import LeNet5
from lemmata.data.examples import Examples
from lemmata.data.images import digits
from lemmata.figure import Bars, Figure, Heat, Image
from lemmata.lab.site.labs import LabState
from lemmata.testing.trained import trained
from lemmata.train.loop import fit
from lemmata.train.shifted_images import moved

LAB = {
    "title": "Filters and feature maps",
    "sentence": "Draw a digit, look at every map that a trained LeNet-5 makes of it, and cover a stroke.",
    "year": 1998,
    "chapter": "convolution",
    "claims": ("conv.lenet5",),
    "systems": ("lenet",),
    "command": "lemmata train lenet",
    "thumbnail": {"digit": "5"},
    "seconds": 180,
}

CELLS, PIXELS = 16, 28  # sides of the drawing, and of what the network is given
NAMES = {
    "conv1": "first convolution",
    "pool1": "first pooling",
    "conv2": "second convolution",
    "pool2": "second pooling",
}
LEVELS = 14  # of what is painted: as static/lab_filters.js reads it
SLID = 4  # cells: the side of the cover that is slid over the drawing where the reader has none
EPOCHS = 5  # little more than a second of training


class State(LabState):
    """What is drawn, what is covered of it, and which map is looked at."""

    digit: Annotated[int, Field(ge=0, le=9)] = 3
    picture: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None  # by the reader
    size: Annotated[int, Field(ge=0, le=8)] = 0
    row: Annotated[int, Field(ge=0, le=CELLS - 1)] = 6
    column: Annotated[int, Field(ge=0, le=CELLS - 1)] = 6
    map: Annotated[str, StringConstraints(pattern=r"^((conv1|pool1)-[0-5]|(conv2|pool2)-([0-9]|1[0-5]))$")] = "conv1-0"
    view: Literal["values", "change"] = "values"

    def drawing(self) -> Tensor:
        """Ink and paper as 1 and 0, (16, 16)."""
        if self.picture is None:
            return _example_image(self.digit)
        bits = f"{int(self.picture, 16):0{CELLS * CELLS}b}"
        return torch.tensor([float(bit) for bit in bits]).reshape(CELLS, CELLS)


@functools.cache
def _example_image(digit: int) -> Tensor:
    test = digits().test
    return drawings(test.x[test.y == digit][:1])[0]


# --- The network ---


def drawings(x: Tensor) -> Tensor:
    """Grey digits of 8 x 8 pixels as ink and paper on 16 x 16 cells."""
    return (interpolate(x[:, None], size=(CELLS, CELLS), mode="bilinear")[:, 0] > 0.5).float()


def enlarged(drawn: Tensor) -> Tensor:
    """What the network is given, (batch, 1, 28, 28)."""
    return interpolate(drawn[:, None], size=(PIXELS, PIXELS), mode="bilinear")


def build() -> LeNet5:
    return LeNet5(activation="relu", padding=2)


def teach(network: LeNet5, generator: torch.Generator) -> None:
    """Learn the embedded digits as they look when they are drawn here, each moved a little whenever it is seen."""
    del generator  # the training has a seed, and numbers of its own

    def loss(network: nn.Module, batch: Examples) -> Tensor:
        return cross_entropy(network(moved(batch.x, 1)[:, None]), batch.y)

    train = digits().train
    fit(
        network, Examples(x=enlarged(drawings(train.x))[:, 0], y=train.y), loss=loss, epochs=EPOCHS, lr=6e-3,
        schedule="cosine", device="cpu", progress=False,
    )  # fmt: skip


def network() -> LeNet5:
    """Trained once by whoever asks first, and then remembered, in this process and in the cache folder."""
    return trained(build, teach, {}, 0)


@torch.no_grad()
def layers(network: LeNet5, drawn: Tensor) -> dict[str, Tensor]:
    """What every layer makes of drawings, (batch, maps, height, width) or (batch, units), and the probabilities."""
    found: dict[str, Tensor] = {}
    watched = {name: getattr(network, name) for name in ("conv1", "conv2", "fc1", "fc2")}
    hooks = [
        part.register_forward_hook(lambda _, __, values, name=name: found.update({name: values.relu()}))
        for name, part in watched.items()
    ]
    try:
        logits = network(enlarged(drawn))
    finally:
        for hook in hooks:
            hook.remove()
    pooled = {f"pool{k}": avg_pool2d(found[f"conv{k}"], 2) for k in (1, 2)}
    return found | pooled | {"probability": logits.softmax(1)}


# --- The cover ---


def covered(drawn: Tensor, row: int, column: int, size: int) -> Tensor:
    """The drawing with paper laid over a square whose upper left corner is there."""
    changed = drawn.clone()
    changed[row : row + size, column : column + size] = 0
    return changed


def slid(network: LeNet5, drawn: Tensor, size: int) -> Tensor:
    """How likely the digit that is seen in the whole drawing still is, for each place of the cover."""
    places = range(CELLS - size + 1)
    hidden = torch.stack([drawn, *(covered(drawn, row, column, size) for row in places for column in places)])
    probability = layers(network, hidden)["probability"]
    return probability[1:, probability[0].argmax()].reshape(len(places), len(places))


# --- What is shown ---


def show(state: State) -> dict[str, Any]:
    """Every map, of the drawing or of what the cover changes in it; the answer with and without the cover, in words."""
    lenet, drawn = network(), state.drawing()
    both = torch.stack([drawn, covered(drawn, state.row, state.column, state.size)])
    found = layers(lenet, both)
    chance = slid(lenet, drawn, state.size or SLID)
    worst = divmod(int(chance.argmin()), chance.shape[1])
    return {
        "picture": packed(drawn),
        "covered": packed(both[1]),
        "maps": {name: painted(found[name], state.view) for name in NAMES},
        "weights": weights(lenet, state),
        "signed": state.view == "change",
        "worst": {"row": worst[0], "column": worst[1], "size": state.size or SLID},
        "said": words(found["probability"], state),
        "looked": looked(found, state),
        "python": python(state, packed(drawn)),
        "figures": {
            "answer": answer(found["probability"], state),
            "occlusion": occlusion(chance, int(found["probability"][0].argmax())),
        },
    }


def still(state: State) -> Figure:
    """The drawing, and the maps of the first convolution."""
    found = layers(network(), state.drawing()[None])["conv1"][0]
    bright = found / found.max().clamp(min=1e-9)
    marks = [Image(1 - state.drawing(), "drawn")]
    marks += [Image((1 - values).mul(100).round() / 100, f"map {k + 1}") for k, values in enumerate(bright)]
    return Figure("A digit, and what six filters make of it", marks=marks)


def packed(drawn: Tensor) -> str:
    """Cells as hexadecimal digits, four each."""
    bits = "".join("1" if ink > 0.5 else "0" for ink in drawn.flatten().tolist())
    return f"{int(bits, 2):0{len(bits) // 4}x}"


def painted(values: Tensor, view: str) -> list[str]:
    """Each map as text: its values, or what the cover changes in them."""
    if view == "change":
        return digits_of(signed(values[1] - values[0]))
    return digits_of(LEVELS * values[1] / values.max().clamp(min=1e-9))  # one scale with and without a cover


def signed(values: Tensor) -> Tensor:
    """Numbers around zero as levels around the middle one."""
    return LEVELS / 2 * (1 + values / values.abs().max().clamp(min=1e-9))


def digits_of(levels: Tensor) -> list[str]:
    """A hexadecimal digit for each level from 0 to 14, map by map."""
    return ["".join(f"{level:x}" for level in each.round().int().flatten().tolist()) for each in levels]


def words(probability: Tensor, state: State) -> str:
    """What the network takes the drawing for."""
    (sure, still_sure), taken = probability.amax(1).tolist(), probability.argmax(1).tolist()
    before, now = (f"{'an' if digit == 8 else 'a'} {digit}" for digit in taken)
    told = f"The drawing is taken for {before}, with probability {sure:.2f}."
    if not state.size:
        return told
    if before == now:
        return f"{told} With the cover it still is, with {still_sure:.2f}."
    return f"{told} With the cover it is taken for {now}, with {still_sure:.2f}."


def looked(found: dict[str, Tensor], state: State) -> str:
    """What there is to say of the chosen map."""
    layer, number = state.map.split("-")
    before, now = found[layer][:, int(number)]
    told = (
        f"Map {int(number) + 1} of the {NAMES[layer]}, {now.shape[0]} × {now.shape[1]}: at most {float(now.max()):.2f}"
    )
    off = float((now - before).norm() / before.norm().clamp(min=1e-9))
    if float(before.max()) == 0:
        return f"{told}; it is silent here."
    return f"{told}; the cover changes {100 * off:.0f} % of it." if state.size else f"{told}."


def answer(probability: Tensor, state: State) -> Figure:
    """The probability of each digit."""
    names = [str(digit) for digit in range(10)]
    marks = [Bars(names, probability[0].mul(1000).round() / 1000, "whole drawing" if state.size else "")]
    if state.size:
        marks.append(Bars(names, probability[1].mul(1000).round() / 1000, "with the cover"))
    return Figure("What it is taken for", "digit", "probability", marks)


def weights(lenet: LeNet5, state: State) -> list[str]:
    """The weights that make the chosen map, a square of 5 x 5 for each map that they look at."""
    layer, number = state.map.split("-")
    convolution = lenet.conv1 if layer in ("conv1", "pool1") else lenet.conv2
    return digits_of(signed(convolution.weight.detach()[int(number)]))  # (inputs, 5, 5)


def occlusion(chance: Tensor, digit: int) -> Figure:
    """Where a cover hurts: the probability that is left for each place of it."""
    size = CELLS - len(chance) + 1
    values = (chance * 1000).round() / 1000
    note = f"A square of {size} × {size} cells, by its upper left corner."
    title = f"Probability of {digit} with a cover there"
    return Figure(title, "column", "row", [Heat(values, label="probability")], note=note)


def python(state: State, picture: str) -> str:
    """The same in Python."""
    cover = f"drawn[:, :, {state.row}:{state.row + state.size}, {state.column}:{state.column + state.size}] = 0\n"
    return (
        "import torch\nfrom torch.nn.functional import avg_pool2d, interpolate\n"
        "from lemmata import fit\nfrom lemmata.convolution import LeNet5\nfrom lemmata.data import load\n\n"
        'enlarged = lambda x: interpolate(x, size=(28, 28), mode="bilinear")\n'
        'train = load("digits").train\n'
        'x = (interpolate(train.x[:, None], size=(16, 16), mode="bilinear") > 0.5).float()\n'
        'network = LeNet5(activation="relu", padding=2)\n'
        f"fit(network, (enlarged(x), train.y), epochs={EPOCHS}, lr=6e-3, progress=False)\n"
        f'bits = f"{{0x{picture}:0256b}}"\n'
        "drawn = torch.tensor([float(bit) for bit in bits]).reshape(1, 1, 16, 16)\n"
        f"{cover if state.size else ''}"
        "conv1 = network.conv1(enlarged(drawn)).relu()\nconv2 = network.conv2(avg_pool2d(conv1, 2)).relu()\n"
        "print(conv1.shape, conv2.shape, network(enlarged(drawn)).softmax(1))"
    )
