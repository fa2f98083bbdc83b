r"""The tokens lab: a typed text cut into pieces of a vocabulary that grows from single characters to whole words."""

import functools
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from lemmata.data.stored import stored_text
from lemmata.figure import Figure, Line, Points
from lemmata.lab.site.labs import LabState
from lemmata.transformers.byte_pair import BytePairEncoding
from lemmata.transformers.wordpiece import WordPiece

LAB = {
    "title": "Pieces of words",
    "sentence": "Type a line and see it fall into the pieces that BERT or GPT would read, as the vocabulary grows.",
    "year": 2012,
    "chapter": "transformers",
    "claims": ("transformer.wordpiece",),
    "systems": ("wordpiece", "byte_pair_encoding"),
    "command": "lemmata check transformer.wordpiece",
    "thumbnail": {"merges": "600"},
}

LEARNT_FROM = 100_000  # characters of the plays: enough for some thousand pieces, in a second or two
MOST = 1500  # merges that are learnt
SIZES = (0, 10, 25, 50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1250, 1500)

Method = Literal["count", "likelihood", "bytes"]


class State(LabState):
    """What was typed, how the vocabulary was learnt, and how many pairs were merged."""

    text: Annotated[str, StringConstraints(max_length=80)] = "What dreames may come, when we haue shuffled off"
    method: Method = "count"
    merges: Annotated[int, Field(ge=0, le=MOST)] = 300


@functools.cache
def learnt(method: Method) -> WordPiece | BytePairEncoding:
    """The largest vocabulary: those of fewer merges are its beginning."""
    text = [stored_text("shakespeare.txt.gz")[:LEARNT_FROM]]
    if method == "bytes":
        return BytePairEncoding.train(text, 257 + MOST)
    return WordPiece.train(text, len(WordPiece.train(text, 1000, min_freq=LEARNT_FROM).vocab) + MOST, by=method)


@functools.cache
def tokenizer(method: Method, merges: int) -> WordPiece | BytePairEncoding:
    """The tokeniser after so many merges."""
    largest = learnt(method)
    if isinstance(largest, BytePairEncoding):
        return BytePairEncoding(largest.numbers, largest.merges[:merges])
    return WordPiece(largest.vocab[: len(largest.vocab) - MOST + merges])


def pieces(state: State, merges: int) -> list[str]:
    return tokenizer(state.method, merges).tokenize(state.text)


def show(state: State) -> dict[str, Any]:
    """The pieces, the number of each, and how many there are for a word."""
    chosen = tokenizer(state.method, state.merges)
    found = pieces(state, state.merges)
    words = len(state.text.split())
    return {
        "pieces": found,
        "numbers": [chosen.numbers[piece] for piece in found],
        "words": words,
        "size": 257 + state.merges if isinstance(chosen, BytePairEncoding) else len(chosen.vocab),
        "python": python(state),
        "figures": {"curve": still(state)},
    }


def still(state: State) -> Figure:
    """How many pieces the text has, with every vocabulary."""
    counts = [len(pieces(state, merges)) for merges in SIZES]
    marks = [
        Line(list(SIZES), counts, "pieces of the text"),
        Points([state.merges], [len(pieces(state, state.merges))], "here"),
    ]
    return Figure("Pieces of the text as pairs are merged", "pairs merged", "pieces", marks)


def python(state: State) -> str:
    """The same in Python."""
    start = (
        'from lemmata.data import load\n\ndata = load("shakespeare")\n'
        f'text = data.extra["vocabulary"].decode(data.train.x[:{LEARNT_FROM}])\n'
    )
    if state.method == "bytes":
        made = f"BytePairEncoding.train([text], vocab_size=257 + {state.merges})"
        name = "BytePairEncoding"
    else:
        size = len(learnt(state.method).vocab) - MOST + state.merges  # type: ignore[union-attr]
        made, name = f'WordPiece.train([text], vocab_size={size}, by="{state.method}")', "WordPiece"
    last = f"tokenizer = {made}\nprint(tokenizer.tokenize({state.text!r}))"
    return f"from lemmata.transformers import {name}\n{start}{last}"
