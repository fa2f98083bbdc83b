r"""The next-token lab: type a text, and see what a small GPT holds likely to come next, and how it would go on."""

import functools
from typing import Annotated, Any

import torch
from pydantic import Field, StringConstraints
from torch import Tensor

from lemmata.data.text import Vocabulary, shakespeare
from lemmata.figure import Bars, Figure
from lemmata.lab.site.labs import LabState
from lemmata.testing.trained import trained
from lemmata.transformers.claims.gpt import read_plays, reader_of_plays
from lemmata.transformers.generation import generate, next_token_distribution
from lemmata.transformers.gpt import GPT

LAB = {
    "title": "The next token",
    "sentence": "Type the beginning of a line and see what a small GPT that has read three plays expects to follow.",
    "year": 2018,
    "chapter": "transformers",
    "claims": ("gpt.objective", "gpt.model", "gpt.in_context"),
    "systems": ("gpt", "generation"),
    "command": "lemmata train gpt",
    "thumbnail": {"text": "What is th"},
    "seconds": 180,
}

SHOWN = 12  # tokens with a bar
AHEAD = 24  # characters that it goes on
LINE = "/"  # stands for a new line: no play has it


class State(LabState):
    """What was typed, and how the next token is drawn."""

    text: Annotated[str, StringConstraints(max_length=40)] = "To be, or not to b"
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    top_k: Annotated[int, Field(ge=1, le=70)] = 70
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, le=999)] = 0


@functools.cache
def network() -> GPT:
    """Trained once by whoever asks first, and then remembered, in this process and in the cache folder."""
    return trained(reader_of_plays, read_plays, {"steps": 600}, 0)


@functools.cache
def letters() -> Vocabulary:
    return shakespeare().extra["vocabulary"]


def numbers_of(text: str) -> Tensor:
    """The tokens of what was typed, (1, time); of nothing, those of a new line."""
    read = (text or LINE).replace(LINE, "\n")
    strange = next((character for character in read if character not in letters().numbers), None)
    if strange is not None:
        raise ValueError(f"text: the plays have no {strange!r}, type another character")
    return letters().encode(read)[None]


@torch.no_grad()
def expected(state: State) -> tuple[Tensor, str]:
    """The distribution of the next token, and some characters with which the text goes on."""
    model, numbers = network(), numbers_of(state.text)
    chances = next_token_distribution(model(numbers)[0, -1].double(), state.temperature, state.top_k, state.top_p)
    seeded = torch.Generator().manual_seed(state.seed)
    more = generate(model, numbers, AHEAD, state.temperature, state.top_k, state.top_p, generator=seeded)
    return chances, letters().decode(more[0])


def show(state: State) -> dict[str, Any]:
    """What is likely next, how sure the model is of it, and how it goes on."""
    chances, more = expected(state)
    tokens = letters().tokens
    best = int(chances.argmax())
    surprise = torch.special.entr(chances).sum().exp()  # perplexity: as many equally likely tokens are as open a choice
    return {
        "likeliest": tokens[best].replace("\n", LINE),
        "named": visible(tokens[best]),
        "probability": float(chances[best]),
        "kept": int((chances > 0).sum()),
        "choices": float(surprise),
        "more": more.replace("\n", LINE),
        "python": python(state),
        "figures": {"bars": bars(chances)},
    }


def still(state: State) -> Figure:
    """The bars of the likeliest tokens."""
    return bars(expected(state)[0])


def visible(character: str) -> str:
    return {" ": "␣", "\n": "↵"}.get(character) or character


def bars(chances: Tensor) -> Figure:
    tokens = letters().tokens
    values, order = chances.sort(descending=True, stable=True)
    names = [visible(tokens[k]) for k in order[:SHOWN].tolist()]
    return Figure("What may come next", "character", "probability", [Bars(names, values[:SHOWN])])


def python(state: State) -> str:
    """The same in Python, with a model of one's own from `lemmata train gpt`."""
    read = (state.text or LINE).replace(LINE, "\n")
    return (
        "import torch, lemmata\nfrom lemmata.data import load\n"
        "from lemmata.transformers import generate, next_token_distribution\n\n"
        'model = lemmata.load("runs/gpt-shakespeare-1")  # the folder that lemmata train gpt has named\n'
        'vocabulary = load("shakespeare").extra["vocabulary"]\n'
        f"text = vocabulary.encode({read!r})[None]\n"
        f"words = dict(temperature={state.temperature:g}, top_k={state.top_k}, top_p={state.top_p:g})\n"
        "print(next_token_distribution(model(text)[0, -1], **words).topk(5))\n"
        f"more = generate(model, text, {AHEAD}, **words, generator=torch.Generator().manual_seed({state.seed}))\n"
        "print(vocabulary.decode(more[0]))"
    )
