r"""A convolutional network that classifies sentences by the phrases in them, wherever they stand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.signatures import config_of

__all__ = ["TextCNN", "TextCNNConfig"]


@dataclass(frozen=True)
class TextCNNConfig:
    """Configuration of a text CNN; vocabulary and classes follow from the data."""

    dimensions: int = 64
    """Dimension of the word embedding."""
    filters: int = 32
    """Number of filters of each width."""
    widths: tuple[int, ...] = (2, 3, 4)
    """Filter widths, in words."""
    dropout: float = 0.0
    """Dropout probability of the pooled features."""

    def __post_init__(self) -> None:
        validate.count("dimensions", self.dimensions)
        validate.count("filters", self.filters)
        if not isinstance(self.widths, tuple) or not self.widths:
            raise ValueError(f"widths must name at least one width, as (2, 3), got {self.widths!r}")
        for width in self.widths:
            validate.count("widths", width)
        validate.fraction("dropout", self.dropout)


@system(
    "textcnn",
    title="Text CNN",
    kind="module",
    example="TextCNN(vocab_size=20, classes=2, dimensions=6, filters=4)(torch.randint(1, 20, (3, 12)))",
)
class TextCNN(nn.Module):
    r"""Filters of several widths slide over the words' vectors; of each, the greatest value in the sentence counts.

    $$ c_f = \max_t\, \phi\Big(b_f + \sum_{j=0}^{k_f-1} w_{f,j}^\top x_{t+j}\Big), \qquad \text{logits} = Cc + a $$

    Token 0 is padding, its vector is zero, and `max_k` zeros stand before and after every sentence: the logits depend
    neither on where the words stand nor on how much padding there is. Pre-trained vectors are given as `vectors`.

    Shapes:
        x: (batch, time) tokens    returns: logits (batch, classes)

    Claims: conv.text_cnn
    Source: Y. Kim, Convolutional neural networks for sentence classification (2014).
    Differs: zeros on both sides, so that sentences may be shorter than a filter; no bound on the norm of the head.

    >>> network = TextCNN(vocab_size=100, classes=2)
    >>> network(torch.randint(100, (5, 12))).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        vocab_size: int,
        classes: int,
        dimensions: int = TextCNNConfig.dimensions,
        filters: int = TextCNNConfig.filters,
        widths: Sequence[int] = TextCNNConfig.widths,
        dropout: float = TextCNNConfig.dropout,
        vectors: Float[Tensor, "vocab dimensions"] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(TextCNNConfig, locals())
        self.vocab_size, place = validate.count("vocab_size", vocab_size, least=2), {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(vocab_size, dimensions, padding_idx=0, **place)
        self.filters = nn.ModuleList(nn.Conv1d(dimensions, filters, width, **place) for width in widths)
        self.head = nn.Linear(filters * len(widths), validate.count("classes", classes, least=2), **place)
        if vectors is not None:
            if validate.tensor("vectors", vectors).shape != self.embedding.weight.shape:
                wanted, given = tuple(self.embedding.weight.shape), tuple(vectors.shape)
                raise ValueError(f"vectors must be {wanted}, one for each token, got shape {given}")
            with torch.no_grad():
                self.embedding.weight[1:] = vectors[1:].to(self.embedding.weight)  # padding stays zero

    def forward(self, x: Int[Tensor, "batch time"]) -> Float[Tensor, "batch classes"]:
        pooled = torch.cat([scores.amax(2) for scores in self.scores(x)], dim=1)  # (batch, filters * widths)
        return self.head(functional.dropout(pooled, self.config.dropout, self.training))

    def scores(self, x: Int[Tensor, "batch time"]) -> list[Tensor]:
        """For each width what its filters say of each window, (batch, filters, windows).

        Window t begins `max(widths)` places before word t.
        """
        validate.tokens("x", x, self.vocab_size)
        if x.ndim != 2:
            raise ValueError(f"x must be (batch, time), got shape {tuple(x.shape)}")
        # As many zeros as the widest filter: every sentence, even a full one, has a window without words.
        around = max(self.config.widths)
        words = self.embedding(x) * (x != 0)[..., None]  # padding is zero, whatever its row of the table holds
        embedded = functional.pad(words.mT, (around, around))  # (batch, dimensions, time + zeros)
        return [part(embedded).relu() for part in self.filters]

    @torch.no_grad()
    def strongest(self, x: Int[Tensor, "batch time"]) -> list[Int[Tensor, "batch filters"]]:
        """For each width where the window begins that each filter took, as a place in the sentence.

        It may be negative, or past the end, where the window hangs over the edge.
        """
        return [scores.argmax(2) - max(self.config.widths) for scores in self.scores(x)]
