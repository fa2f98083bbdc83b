r"""Which words of a passage answer a question: BERT fine-tuned to mark the first and the last of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.transformers.fine_tuned import FineTuned

__all__ = ["QuestionAnswerer", "Span", "SpanLogits", "best_span", "passage_mask"]


class SpanLogits(NamedTuple):
    """How much each token looks like the first of the answer, and like the last."""

    start: Float[Tensor, "batch time"]
    end: Float[Tensor, "batch time"]


class Span(NamedTuple):
    """An answer: where it begins, where it ends (that token belongs to it), and the sum of the two logits."""

    start: Int[Tensor, " *batch"]
    end: Int[Tensor, " *batch"]
    score: Float[Tensor, " *batch"]


@system(
    "question_answerer",
    title="BERT that finds answers",
    kind="module",
    example="QuestionAnswerer(20, width=16, depth=1, heads=2, hidden=32)(torch.randint(20, (4, 7)))",
)
class QuestionAnswerer(FineTuned):
    r"""Two logits for every token, from what BERT says of it: that the answer begins here, and that it ends here.

    $$ s_t = w_s^\top h_t + b_s, \qquad e_t = w_e^\top h_t + b_e, \qquad (i, j) = \arg\max_{i \le j}\, s_i + e_j $$

    A sequence is `[CLS] question [SEP] passage [SEP]`, where the passage has segment 1, and i and j lie inside it.
    `QuestionAnswerer.from_pretrained(folder)` reads Hugging Face's BertForQuestionAnswering,
    `QuestionAnswerer.on(encoder)` puts a new layer on a pre-trained BERT. There is no dropout before that layer, as in
    Hugging Face's: `classifier_dropout` is kept for its config alone.

    Shapes:
        x, segments: (batch, time)    mask: (batch, time), true where there is a token and no padding
        returns: start (batch, time), end (batch, time)

    Claims: bert.finetune.qa
    Source: Devlin et al. 2019; Rajpurkar et al. 2016 (the task).

    >>> model = QuestionAnswerer(99, width=32, depth=2, heads=4, hidden=64)
    >>> [tuple(part.shape) for part in model(torch.randint(99, (3, 10)))]
    [(3, 10), (3, 10)]
    """

    architecture = "BertForQuestionAnswering"
    head = "qa_outputs"

    def __init__(
        self,
        vocab_size: int = 30_522,
        classes: int | Sequence[str] = ("start", "end"),
        classifier_dropout: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(vocab_size, classes, classifier_dropout, device, dtype, **settings)
        if len(self.classes) != 2:
            raise ValueError(f"classes must be 2, the start and the end of an answer, got {len(self.classes)}")

    def forward(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> SpanLogits:
        h, _ = self.encoder(x, segments, mask)  # (batch, time, width)
        start, end = self.classifier(h).unbind(-1)  # (batch, time) each
        return SpanLogits(start, end)

    def loss(
        self,
        x: Int[Tensor, "batch time"],
        start: Int[Tensor, " batch"],
        end: Int[Tensor, " batch"],
        segments: Int[Tensor, "batch time"] | None = None,
        mask: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, ""]:
        """The mean of the two cross-entropies, over all places of a sequence."""
        found = self(x, segments, mask)
        pairs = ((found.start, start.long()), (found.end, end.long()))
        return sum(functional.cross_entropy(logits, place) for logits, place in pairs) / 2  # type: ignore[return-value]

    def answer(
        self,
        x: Int[Tensor, "batch time"],
        segments: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"] | None = None,
        max_length: int | None = None,
    ) -> Span:
        """The best span inside each passage, of at most `max_length` tokens."""
        start, end = self(x, segments, mask)
        return best_span(start, end, passage_mask(segments, mask), max_length)


def passage_mask(
    segments: Int[Tensor, "batch time"], mask: Bool[Tensor, "batch time"] | None = None
) -> Bool[Tensor, "batch time"]:
    """Where the passage is: the tokens of segment 1 without the [SEP] that ends it, and without padding.

    >>> passage_mask(torch.tensor([[0, 0, 0, 1, 1, 1]])).int()
    tensor([[0, 0, 0, 1, 1, 0]], dtype=torch.int32)
    """
    inside = segments == 1
    if mask is not None:
        inside = inside & mask
    later = inside.flip(-1).cumsum(-1).flip(-1)  # tokens of segment 1 from here on
    return inside & (later > 1)


@system("best_span", title="Best span", kind="function")
def best_span(
    start: Float[Tensor, "*batch time"],
    end: Float[Tensor, "*batch time"],
    mask: Bool[Tensor, "*batch time"] | None = None,
    max_length: int | None = None,
) -> Span:
    r"""The span that maximises $s_i + e_j$ with $i \le j$, both where `mask` is true.

    With `max_length` it has at most so many tokens. For each end the best start before it is a running maximum: linear
    in the length, where there are quadratically many spans. The best start and the best end, each by itself, need not
    be a span.

    Shapes:
        start, end, mask: (..., time)    returns: start, end, score, all (...)

    Claims: bert.finetune.qa

    >>> [part.item() for part in best_span(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([4.0, 3.0, 0.0]))]
    [2, 2, 5.0]
    """
    for name, logits in (("start", start), ("end", end)):
        if not validate.tensor(name, logits).is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, got {logits.dtype}: use {name}.float()")
    if start.shape != end.shape or start.ndim == 0 or start.shape[-1] == 0:
        raise ValueError(f"start and end must be (..., time), got {tuple(start.shape)} and {tuple(end.shape)}")
    wide = torch.promote_types(start.dtype, torch.float32)  # a sum in bfloat16 would make many spans equal
    start, end = start.to(wide), end.to(wide)
    if mask is not None:
        if mask.shape != start.shape:
            raise ValueError(f"mask must have the shape of start, {tuple(start.shape)}, got {tuple(mask.shape)}")
        outside = ~mask.bool()
        if validate.visible(mask) and bool(outside.all(-1).any()):
            raise ValueError("mask must leave at least one token to answer with in every row")
        start, end = start.masked_fill(outside, -torch.inf), end.masked_fill(outside, -torch.inf)
    best, place = _best_before(start, max_length)  # of each end, (..., time)
    score, last = (best + end).max(-1)
    return Span(place.gather(-1, last[..., None])[..., 0], last, score)


def _best_before(start: Tensor, max_length: int | None) -> tuple[Tensor, Tensor]:
    """The largest start logit at or before each place, not further back than a span may reach, and where it is."""
    time = start.shape[-1]
    if max_length is None or validate.count("max_length", max_length) >= time:
        return start.cummax(-1)
    padded = functional.pad(start, (max_length - 1, 0), value=-torch.inf)
    best, place = padded.unfold(-1, max_length, 1).max(-1)  # (..., time, max_length) to (..., time)
    return best, place + torch.arange(time, device=start.device) - (max_length - 1)
