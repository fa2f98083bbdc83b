r"""The attention lab: where every head of a small GPT looks in a text that is typed, and what it foresees."""

import copy
import functools
import math
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, StringConstraints
from torch import Tensor
from torch.nn.functional import cross_entropy

from lemmata.data.text import Vocabulary, shakespeare
from lemmata.figure import Figure, Heat, Image
from lemmata.lab.site.labs import LabState
from lemmata.testing.trained import trained
from lemmata.transformers.attention_recording import attention_maps
from lemmata.transformers.claims.gpt import read_plays, reader_of_plays
from lemmata.transformers.gpt import GPT

LAB = {
    "title": "Attention",
    "sentence": "Type a line and see where every head of a small GPT looks, with and without its causal mask.",
    "year": 2017,
    "chapter": "transformers",
    "claims": ("attention.softmax", "attention.scaling", "attention.causal_mask", "attention.multihead"),
    "systems": ("attention", "self_attention", "gpt"),
    "command": "lemmata train gpt",
    "thumbnail": {"head": "1.2"},
    "seconds": 180,
}

LONGEST = 20  # characters
LINE = "/"  # stands for a new line: no play has it
VISIBLE = {" ": "␣", "\n": "↵"}


class State(LabState):
    """What was typed, who looks, and how."""

    text: Annotated[str, StringConstraints(max_length=LONGEST)] = "To be, or not to be,"
    place: Annotated[int, Field(ge=1, le=LONGEST)] = LONGEST
    head: Literal["1.1", "1.2", "1.3", "1.4", "2.1", "2.2", "2.3", "2.4"] = "1.1"
    temperature: Annotated[float, Field(ge=0.1, le=5)] = 1.0
    mask: Literal["causal", "none"] = "causal"


@functools.cache
def _trained_model() -> GPT:
    """By whoever asks first, then remembered, here and in the cache folder; the lab of the next token has it too."""
    return trained(reader_of_plays, read_plays, {"steps": 600}, 0)


@functools.cache
def _play_vocabulary() -> Vocabulary:
    """Of the plays: reading them takes longer than all else."""
    return shakespeare().extra["vocabulary"]


def network(state: State) -> GPT:
    """The trained model with the temperature and the mask of the state.

    Scores divided by a temperature are scores of queries divided by it.
    """
    model = copy.deepcopy(_trained_model())
    with torch.no_grad():
        for block in model.blocks:
            layer: Any = block.self_attention
            layer.causal = state.mask == "causal"
            for values in layer.project.parameters():  # the first third of the rows are the queries
                values[: len(values) // 3] /= state.temperature
    return model


def numbers_of(text: str, vocabulary: Vocabulary) -> Tensor:
    """The tokens of what was typed, (1, time); of nothing, those of a new line."""
    read = (text or LINE).replace(LINE, "\n")
    strange = next((character for character in read if character not in vocabulary.numbers), None)
    if strange is not None:
        raise ValueError(f"text: the plays have no {strange!r}, type another character")
    return vocabulary.encode(read)[None]


@torch.no_grad()
def looks(state: State) -> tuple[list[str], dict[str, Tensor], Tensor, float | None]:
    """The characters, the weights of each head, the next one's probabilities, and the bits that the text has cost."""
    vocabulary = _play_vocabulary()
    model, numbers = network(state), numbers_of(state.text, vocabulary)
    maps = attention_maps(model, numbers).values()  # of each block (1, heads, time, time)
    weights = {f"{b + 1}.{h + 1}": each for b, block in enumerate(maps) for h, each in enumerate(block[0])}
    logits = model(numbers)[0]  # (time, vocab_size)
    cost = float(cross_entropy(logits[:-1], numbers[0, 1:])) / math.log(2) if len(logits) > 1 else None
    characters = [VISIBLE.get(token, token) for token in (str(vocabulary.tokens[k]) for k in numbers[0].tolist())]
    return characters, weights, logits[-1].softmax(-1), cost


def show(state: State) -> dict[str, Any]:
    """Where the chosen place looks, by each head; the whole map of one head; and what is foreseen."""
    characters, weights, chances, cost = looks(state)
    place = min(state.place, len(characters)) - 1
    row = weights[state.head][place]  # (time,)
    best, tokens = int(chances.argmax()), _play_vocabulary().tokens
    return {
        "characters": characters,
        "weights": [round(each, 3) for each in row.tolist()],
        "place": place + 1,
        "most": int(row.argmax()) + 1,
        "spread": float(torch.special.entr(row).sum().exp()),  # as even as a look at so many places
        "ahead": float(row[place + 1 :].sum()),
        "next": VISIBLE.get(tokens[best], tokens[best]),
        "probability": float(chances[best]),
        "bits": cost,
        "python": python(state),
        "figures": {"map": picture(state, characters, weights), "heads": all_heads(place, characters, weights)},
    }


def still(state: State) -> Figure:
    """The map of the chosen head, the darker the more is looked at."""
    _, weights, _, _ = looks(state)
    return Figure(f"Head {state.head}", marks=[Image(1 - rounded(weights[state.head]), "weights")])


def picture(state: State, characters: list[str], weights: dict[str, Tensor]) -> Figure:
    """Who looks, from above to below, and at what, from left to right."""
    block, head = state.head.split(".")
    heat = Heat(rounded(weights[state.head]), label="weight", columns=characters, rows=characters)
    return Figure(f"Head {head} of block {block}", "looked at", "looks", [heat])


def all_heads(place: int, characters: list[str], weights: dict[str, Tensor]) -> Figure:
    """What one place looks at, by each head."""
    rows = torch.stack([each[place] for each in weights.values()])  # (heads, time)
    heat = Heat(rounded(rows), label="weight", columns=characters, rows=list(weights))
    return Figure(f"Where “{characters[place]}” at place {place + 1} looks", "looked at", "block.head", [heat])


def rounded(values: Tensor) -> Tensor:
    """In hundredths: what is sent while a slider is dragged is small."""
    return (100 * values.double()).round() / 100


def python(state: State) -> str:
    """The same in Python, with a model of one's own from `lemmata train gpt`."""
    block, head = (int(number) - 1 for number in state.head.split("."))
    lines = ["import lemmata", "from lemmata.data import load", "from lemmata.transformers import attention_maps", ""]
    lines += ['model = lemmata.load("runs/gpt-shakespeare-1")  # the folder that lemmata train gpt has named']
    if state.mask == "none":
        lines += ["for block in model.blocks:", "    block.self_attention.causal = False"]
    if state.temperature != 1:
        lines += ["for block in model.blocks:", "    for values in block.self_attention.project.parameters():"]
        lines += [f"        values.data[: len(values) // 3] /= {state.temperature:g}  # the queries"]
    lines += [f'text = load("shakespeare").extra["vocabulary"].encode({(state.text or LINE).replace(LINE, chr(10))!r})']
    lines += [f'print(attention_maps(model, text[None])["blocks.{block}.self_attention"][0, {head}])']
    return "\n".join(lines)
