r"""The digit lab: one image, what attacks make of it, and three defences that only hide."""

import functools
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor, nn
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.figure import Bars, Figure, Image
from lemmata.lab.site.labs import LabState
from lemmata.robustness.projected_gradient import pgd
from lemmata.robustness.sham_flags import sham_robustness
from lemmata.robustness.square_search import square_attack
from lemmata.tricks.augmentation import rotated

LAB = {
    "title": "Fooling a digit",
    "sentence": "Change, turn or attack a digit until a network misreads it, and see which defences only pretend.",
    "year": 2018,
    "chapter": "robustness",
    "claims": (
        "attack.adversarial_example",
        "attack.pgd",
        "attack.other_perturbations",
        "attack.threat_knowledge",
        "attack.cw_defences",
    ),
    "systems": ("pgd", "square_attack", "sham_robustness"),
    "command": "lemmata check --all attack.pgd attack.cw_defences",
    "thumbnail": {"digit": "2", "eps": "0.2"},
}

SIDE, STEPS, QUERIES = 8, 10, 100
TEMPERATURE, LEVELS, NOISE = 0.001, 16, 0.1
DRAWS = 64  # of the noise, whose mean is the answer
EXAMINED, RADIUS = 40, 0.1  # test digits on which a defence is examined, and how far they may be moved


class State(LabState):
    """The digit, what the reader does to it, how far attacks may go, and what stands in their way."""

    digit: Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] = "3"
    turn: Annotated[int, Field(ge=-60, le=60)] = 0
    right: Annotated[int, Field(ge=-3, le=3)] = 0
    down: Annotated[int, Field(ge=-3, le=3)] = 0
    pixels: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")] | None = None
    eps: Annotated[float, Field(ge=0, le=0.5)] = 0.15
    defence: Literal["none", "temperature", "quantiser", "noise"] = "none"

    def label(self) -> Tensor:
        return torch.tensor([int(self.digit)])

    def image(self) -> Tensor:
        """(1, 1, 8, 8): the first test image of its class, turned, moved, and with the reader's pixels turned over."""
        test = load("digits").test
        x = test.x[test.y == int(self.digit)][:1, None]
        x = rotated(x, torch.tensor([self.turn * torch.pi / 180]))
        x = functional.pad(x, (self.right, -self.right, self.down, -self.down)).clamp(0, 1)
        return torch.where(self.chosen(), (x < 0.5).to(x), x)

    def chosen(self) -> Tensor:
        """The pixels that the reader turned over, (8, 8)."""
        bits = f"{int(self.pixels or '0', 16):064b}"
        return torch.tensor([bit == "1" for bit in bits]).reshape(SIDE, SIDE)


class Defended(nn.Module):
    """The trained network behind a defence; none of them changes what it has learned."""

    def __init__(self, defence: str):
        super().__init__()
        self.defence, self.network = defence, trained_network()
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        logits = self.network(self.before(x))  # (batch, 10)
        return logits / TEMPERATURE if self.defence == "temperature" else logits

    def before(self, x: Tensor) -> Tensor:
        """What the network is shown."""
        if self.defence == "quantiser":
            return (x * LEVELS).round() / LEVELS
        return x + NOISE * torch.randn_like(x) if self.defence == "noise" else x

    def probabilities(self, x: Tensor) -> Tensor:
        """(1, 10); behind noise, the mean of many answers."""
        draws = DRAWS if self.defence == "noise" else 1
        with torch.no_grad():
            return self(x.expand(draws, -1, -1, -1)).softmax(1).mean(0, keepdim=True)


@functools.cache
def trained_network() -> nn.Module:
    """A convolutional network that reads 97 % of the test digits, in a third of a second."""
    train = load("digits").train
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]  # (batch, 16, 4, 4)
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten()]  # (batch, 512)
        network = nn.Sequential(*first, *second, nn.Linear(512, 10))
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
        for rows in torch.randint(len(train), (200, 64)):
            optimizer.zero_grad()
            functional.cross_entropy(network(train.x[rows, None]), train.y[rows]).backward()
            optimizer.step()
    return network.eval().requires_grad_(False)


@functools.cache
def examined(defence: str) -> dict[str, Any]:
    """What is suspicious about a defence, and how many digits are answered wrongly without and with attacks."""
    test, model = load("digits").test, Defended(defence)
    x, y = test.x[:EXAMINED, None], test.y[:EXAMINED]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        wrong = int((model(x).argmax(1) != y).sum())
        moved = int(pgd(model, x, y, RADIUS, steps=STEPS).success.sum())
        squares = int(square_attack(model, x, y, RADIUS, queries=QUERIES).success.sum())
        counts = (
            f"Read wrongly of {EXAMINED} test digits: {wrong} as they are; moved by up to {RADIUS} a pixel, "
            f"{moved} with projected gradients and {squares} with random squares."
        )
        flags = sham_robustness(model, x, y, RADIUS)
        return {"flags": flags, "wrong": wrong, "pgd": moved, "squares": squares, "counts": counts}


def attacked(state: State) -> dict[str, Tensor]:
    """The digit, what both attacks make of it, and what the network is shown of it."""
    x, y, model = state.image(), state.label(), Defended(state.defence)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the noise: the same state looks the same again
        moved = pgd(model, x, y, state.eps, steps=STEPS).examples
        squares = square_attack(model, x, y, state.eps, queries=QUERIES).examples
        return {"digit": x, "pgd": moved, "squares": squares, "shown": model.before(x).clamp(0, 1)}


def answers(state: State, images: dict[str, Tensor]) -> dict[str, Tensor]:
    """The probabilities of the ten classes for each image that is answered, (10,)."""
    model = Defended(state.defence)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return {name: model.probabilities(images[name])[0] for name in ("digit", "pgd", "squares")}


def show(state: State) -> dict[str, Any]:
    """The images, the answers to them, and the signs that the defence is none."""
    images = attacked(state)
    found = answers(state, images)
    read = {name: int(each.argmax()) for name, each in found.items()}
    change = {name: images[name] - images["digit"] for name in ("pgd", "squares")}
    return {
        "pixels": [bool(bit) for bit in state.chosen().flatten()],
        "images": {name: rounded(image) for name, image in images.items()},
        "changes": {name: rounded(each / max(state.eps, 1e-9)) for name, each in change.items()},
        "read": read,
        "sure": {name: round(float(each.max()), 4) for name, each in found.items()},
        "said": said(state, read),
        "examined": examined(state.defence),
        "python": python(state),
        "figures": {"probabilities": probabilities(found)},
    }


def rounded(image: Tensor) -> list[float]:
    """Row by row, as the script paints it."""
    return [round(float(value), 3) for value in image.flatten()]


def said(state: State, read: dict[str, int]) -> str:
    """What became of the digit, in a sentence."""
    true = int(state.digit)
    if read["digit"] != true:
        return f"This {true} is read as {read['digit']} without any attack."
    fooling = {"pgd": "projected gradients", "squares": "random squares"}
    fooled = [f"{fooling[name]} make it {read[name]}" for name in fooling if read[name] != true]
    failed = [words for name, words in fooling.items() if read[name] == true]
    if not fooled:
        return f"This {true} is read rightly, and both attacks fail."
    return f"This {true} is read rightly: {' and '.join(fooled)}{f'; {failed[0]} fail' if failed else ''}."


def probabilities(found: dict[str, Tensor]) -> Figure:
    """What is answered to the digit as it is and to both examples."""
    words = {"digit": "the digit", "pgd": "after projected gradients", "squares": "after random squares"}
    bars = [Bars([str(k) for k in range(10)], found[name], label) for name, label in words.items()]
    return Figure("What is answered", "class", "probability", bars)


def still(state: State) -> Figure:
    """The digit, and what the attacks make of it."""
    images = attacked(state)
    read = {name: int(each.argmax()) for name, each in answers(state, images).items()}
    words = {"digit": "the digit", "pgd": "projected gradients", "squares": "random squares"}
    marks = [Image(1 - images[name][0, 0], f"{label}: read as {read[name]}") for name, label in words.items()]
    return Figure("A digit and what attacks make of it", marks=marks)


def python(state: State) -> str:
    """The same defence in Python, on a network that is trained anew."""
    defended = {
        "none": "network(x)",
        "temperature": f"network(x) / {TEMPERATURE}",
        "quantiser": f"network((x * {LEVELS}).round() / {LEVELS})",
        "noise": f"network(x + {NOISE} * torch.randn_like(x))",
    }
    radius = f"{state.eps:g}"
    return (
        "import torch\n"
        "from lemmata.data import load\n"
        "from lemmata.robustness import pgd, sham_robustness, square_attack\n\n"
        "train, test = load('digits').train, load('digits').test\n"
        "network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(),\n"
        "                              torch.nn.Linear(64, 10))\n"
        "optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)\n"
        "for _ in range(80):\n"
        "    optimizer.zero_grad()\n"
        "    torch.nn.functional.cross_entropy(network(train.x[:, None]), train.y).backward()\n"
        "    optimizer.step()\n\n"
        f"x, y = test.x[:{EXAMINED}, None], test.y[:{EXAMINED}]\n"
        f"model = lambda x: {defended[state.defence]}\n"
        f"print(pgd(model, x, y, {radius}, steps={STEPS}))\n"
        f"print(square_attack(model, x, y, {radius}, queries={QUERIES}))\n"
        f"print(sham_robustness(model, x, y, {RADIUS}))"
    )
