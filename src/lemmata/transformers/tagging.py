r"""What each word of a sentence is: BERT fine-tuned for parts of speech and other tags."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.fine_tuned import FineTuned

__all__ = ["Tagger", "first_pieces", "tag_targets"]

IGNORED = -100  # what torch's cross-entropy leaves out unless told otherwise


@system(
    "tagger",
    title="BERT that tags words",
    kind="module",
    example="Tagger(20, width=16, depth=1, heads=2, hidden=32)(torch.randint(20, (4, 7)))",
)
class Tagger(FineTuned):
    r"""A tag for every token: one classifier, shared by all places, on what BERT says of each.

    $$ p_t = \mathrm{softmax}(W h_t + b) $$

    $h_t$ has seen the whole sentence, so that the same word can be a noun here and a verb there. A word of several
    pieces is tagged at its first (`tag_targets`, `first_pieces`). `Tagger.from_pretrained(folder)` reads Hugging Face's
    BertForTokenClassification, `Tagger.on(encoder, tags)` puts a new layer on a pre-trained BERT.

    Shapes:
        x, segments: (batch, time)    mask: (batch, time), true where there is a token and no padding
        returns: logits (batch, time, classes)

    Claims: bert.finetune.pos
    Source: Devlin et al. 2019.

    >>> model = Tagger(99, classes=["noun", "verb", "other"], width=32, depth=2, heads=4, hidden=64)
    >>> model(torch.randint(99, (2, 10))).shape
    torch.Size([2, 10, 3])
    """

    architecture = "BertForTokenClassification"

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time classes"]:
        h, _ = self.encoder(x, segments, mask)  # (batch, time, width)
        return self.classified(h)  # (batch, time, classes)


def first_pieces(words: Sequence[int | None]) -> list[int]:
    r"""Where each word's first piece stands, given the word that each piece belongs to (None: to none, as [CLS]).

    >>> first_pieces([None, 0, 0, 1, 2, 2, None])
    [1, 3, 4]
    """
    before = [None, *words[:-1]]
    places = [t for t, (word, last) in enumerate(zip(words, before, strict=False)) if word not in (None, last)]
    if [words[t] for t in places] != list(range(len(places))):
        raise ValueError(f"words must number the words 0, 1, ... in their order, each in one run, got {list(words)}")
    return places


def tag_targets(tags: Sequence[int], words: Sequence[int | None]) -> Int[Tensor, " pieces"]:
    r"""The tag of each word at its first piece, and -100 elsewhere: what cross-entropy leaves out.

    >>> tag_targets([4, 7, 5], words=[None, 0, 0, 1, 2, 2, None])
    tensor([-100,    4, -100,    7,    5, -100, -100])
    """
    places = first_pieces(words)
    if len(places) != len(tags):
        raise ValueError(f"tags must be one for each of the {len(places)} words, got {len(tags)}")
    targets = torch.full((len(words),), IGNORED)
    for place, tag in zip(places, tags, strict=True):
        targets[place] = validate.count("tag", tag, least=0)
    return targets
