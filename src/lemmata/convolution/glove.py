r"""Word embeddings by weighted least squares on the logarithms of co-occurrence counts (GloVe)."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.fast.glove_sweep import WordTables, sweep_entries
from lemmata.marks import system

__all__ = ["CoOccurrences", "GloVe", "cooccurrence_counts"]


class CoOccurrences(NamedTuple):
    """The entries of a table of co-occurrences that are not zero: which words, and how often they met."""

    pairs: Int[Tensor, "entries 2"]
    counts: Float[Tensor, " entries"]


@system(
    "glove",
    title="GloVe",
    kind="module",
    example="GloVe(vocab_size=20, dimensions=4)(torch.randint(20, (3,)))",
)
class GloVe(nn.Module):
    r"""Vectors whose products are the logarithms of how often words meet.

    $$ J = \sum_{X_{ij} > 0} f(X_{ij})\, (w_i^\top \tilde w_j + b_i + \tilde b_j - \ln X_{ij})^2, \qquad
       f(x) = \min\{1, (x / x_{\max})^{\alpha}\} $$

    A word has two vectors, one as row of the table and one as column; what is used is their sum, `embed`. `loss` is J,
    for any optimiser; `sweep` is a pass of AdaGrad over the entries without autograd, at the speed of C.

    Shapes:
        words: (...)    returns: estimates of ln X (..., vocab_size)

    Claims: embed.glove
    Source: J. Pennington, R. Socher and C. D. Manning, GloVe: Global vectors for word representation (2014).
    Differs: AdaGrad takes the squares of the present step into account before it divides, as torch's does.

    >>> text = torch.tensor([0, 1, 2, 0, 1, 3, 0, 1, 2])
    >>> pairs, counts = cooccurrence_counts(text, vocab_size=4, window=2)
    >>> model = GloVe(vocab_size=4, dimensions=4)
    >>> squares = model.initial_squares()
    >>> losses = [model.sweep(pairs, counts, squares, lr=0.1) for _ in range(300)]
    >>> losses[-1] < losses[0] / 100
    True
    """

    def __init__(
        self,
        vocab_size: int,
        dimensions: int = 64,
        maximum: float = 100.0,
        exponent: float = 0.75,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = validate.count("vocab_size", vocab_size, least=2)
        self.dimensions = validate.count("dimensions", dimensions)
        self.maximum = validate.positive("maximum", maximum)
        self.exponent = validate.number("exponent", exponent, least=0)
        place = {"device": device, "dtype": dtype}
        self.given = nn.Embedding(vocab_size, dimensions, **place)
        self.predicted = nn.Embedding(vocab_size, dimensions, **place)
        self.given_bias = nn.Parameter(torch.empty(vocab_size, **place))
        self.predicted_bias = nn.Parameter(torch.empty(vocab_size, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial vectors and constants anew."""
        for values in self.parameters():
            nn.init.uniform_(values, -0.5 / self.dimensions, 0.5 / self.dimensions)

    def forward(self, words: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch vocab"]:
        validate.tokens("words", words, self.vocab_size)
        products = self.given(words) @ self.predicted.weight.mT  # (..., vocab_size)
        return products + self.given_bias[words][..., None] + self.predicted_bias

    def embed(self, words: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch dimensions"]:
        """The vectors of these words: the sum of their two."""
        validate.tokens("words", words, self.vocab_size)
        return self.given(words) + self.predicted(words)

    def weights(self, counts: Float[Tensor, "entries"]) -> Float[Tensor, "entries"]:
        """What each entry counts in the loss: less for words that met seldom, at most 1."""
        return (counts / self.maximum).pow(self.exponent).clamp(max=1.0)

    def loss(self, pairs: Int[Tensor, "entries 2"], counts: Float[Tensor, "entries"]) -> Float[Tensor, ""]:
        """J, the sum over these entries."""
        self._check_entries(pairs, counts)
        words, contexts = pairs.unbind(1)
        products = (self.given(words) * self.predicted(contexts)).sum(1)  # (entries,)
        errors = products + self.given_bias[words] + self.predicted_bias[contexts] - counts.log()
        return (self.weights(counts) * errors.square()).sum()

    def initial_squares(self) -> WordTables:
        """What AdaGrad begins with, a one for each number; each sweep changes it."""
        return WordTables(*(torch.ones_like(values) for values in self._word_tables()))

    @torch.no_grad()
    def sweep(
        self,
        pairs: Int[Tensor, "entries 2"],
        counts: Float[Tensor, "entries"],
        squares: WordTables,
        lr: float = 0.05,
        batch_size: int = 1,
    ) -> float:
        """One pass of AdaGrad over the entries in their order, as published; the mean of J's terms on the way.

        A step takes the gradient of half of J, summed over a batch. `squares` come from `initial_squares()` before the
        first pass. Shuffle the entries for each pass.
        """
        self._check_entries(pairs, counts)
        counts = counts.to(self.given.weight.dtype)
        validate.positive("lr", lr)
        return sweep_entries(
            self._word_tables(), squares, pairs.long(), counts.log(), self.weights(counts), lr, batch_size
        )

    @torch.no_grad()
    def nearest(self, words: Int[Tensor, "batch"], count: int = 5) -> Int[Tensor, "batch count"]:
        """For each word the others whose vectors point most nearly in the same direction, nearest first."""
        validate.count("count", count, most=self.vocab_size - 1)
        if validate.tokens("words", words, self.vocab_size).ndim != 1:
            raise ValueError(f"words must be one row of words, got shape {tuple(words.shape)}")
        return self._most_alike(self._both_directions()[words], words[:, None].long(), count)

    @torch.no_grad()
    def analogies(self, questions: Int[Tensor, "batch 3"], count: int = 1) -> Int[Tensor, "batch count"]:
        """For each question a, b, c the words that are to c as b is to a: nearest to b - a + c, but for these three."""
        validate.count("count", count, most=max(self.vocab_size - 3, 1))
        if validate.tokens("questions", questions, self.vocab_size).ndim != 2 or questions.shape[1] != 3:
            raise ValueError(f"questions must be (batch, 3) words, got shape {tuple(questions.shape)}")
        a, b, c = self._both_directions()[questions].unbind(1)  # (batch, dimensions) each
        return self._most_alike(b - a + c, questions.long(), count)

    def _both_directions(self) -> Float[Tensor, "vocab dimensions"]:
        return functional.normalize(self.given.weight + self.predicted.weight, dim=1)

    def _most_alike(self, x: Tensor, without: Tensor, count: int) -> Tensor:
        cosines = x @ self._both_directions().mT  # (batch, vocab_size), up to the length of x
        return cosines.scatter(1, without, -torch.inf).topk(count).indices

    def _word_tables(self) -> WordTables:
        parts = (self.given.weight, self.predicted.weight, self.given_bias, self.predicted_bias)
        return WordTables(*(part.detach() for part in parts))

    def _check_entries(self, pairs: Tensor, counts: Tensor) -> None:
        if validate.tensor("pairs", pairs).ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError(f"pairs must be (entries, 2) with at least one entry, got shape {tuple(pairs.shape)}")
        validate.tokens("pairs", pairs, self.vocab_size)
        if validate.tensor("counts", counts).shape != (len(pairs),):
            raise ValueError(f"counts must be one number for each of {len(pairs)} pairs, got {tuple(counts.shape)}")
        for name, values in (("pairs", pairs), ("counts", counts)):
            if values.device != self.given.weight.device:
                place = self.given.weight.device
                raise ValueError(f"{name} must be on {place}, where the vectors are, got {values.device}")
        if counts.device.type != "meta" and not bool(((counts > 0) & counts.isfinite()).all()):
            raise ValueError(
                "counts must be > 0 and finite, got others: words that never met have no logarithm, leave them out"
            )

    def extra_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, dimensions={self.dimensions}"


def cooccurrence_counts(tokens: Int[Tensor, "time"], vocab_size: int, window: int = 10) -> CoOccurrences:
    r"""How often each two words stand at most `window` places apart; at d places they count $1/d$.

    >>> pairs, counts = cooccurrence_counts(torch.tensor([2, 0, 1, 0]), vocab_size=3, window=2)
    >>> dict(zip(map(tuple, pairs.tolist()), counts.tolist()))
    {(0, 0): 1.0, (0, 1): 2.0, (0, 2): 1.0, (1, 0): 2.0, (1, 2): 0.5, (2, 0): 1.0, (2, 1): 0.5}
    """
    if validate.tensor("tokens", tokens).ndim != 1 or len(tokens) < 2:
        raise ValueError(f"tokens must be one row of at least 2 words, got shape {tuple(tokens.shape)}")
    validate.tokens("tokens", tokens, validate.count("vocab_size", vocab_size))
    validate.count("window", window)
    apart = range(1, min(window, len(tokens) - 1) + 1)
    keys = torch.cat([tokens[:-d].long() * vocab_size + tokens[d:] for d in apart])
    weights = torch.cat([torch.full((len(tokens) - d,), 1 / d, dtype=torch.float64) for d in apart])
    both = torch.cat([keys, keys % vocab_size * vocab_size + keys // vocab_size])  # each in both orders
    met, place = both.unique(return_inverse=True)
    weights = weights.repeat(2).to(tokens.device)
    counts = weights.new_zeros(len(met)).index_add_(0, place, weights)
    pairs = torch.stack([met // vocab_size, met % vocab_size], dim=1)
    return CoOccurrences(pairs, counts.to(torch.get_default_dtype()))
