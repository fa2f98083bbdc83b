r"""Counting what follows what: the n-gram, which every model of text has to beat."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lemmata import validate

__all__ = ["NGram"]


class NGram:
    r"""The next token by counts of what followed the last few, each order interpolated with the one below it.

    $$ p_k(w \mid h) = \frac{c(hw) + d(h)\,p_{k-1}(w \mid h')}{c(h) + d(h)}, \qquad p_{-1}(w) = 1/V $$

    where $h$ are the last $k$ tokens, $h'$ all but the first of them, $c$ counts occurrences in the training text and
    $d(h)$ is the number of different tokens seen after $h$ (Witten and Bell): a context that was followed by many
    different tokens is trusted less. There is nothing to tune, so nothing is chosen on the test text. `order` = 1 is
    the unigram, 3 the trigram, which looks at the last two tokens. At the beginning of a text, where fewer are known,
    the lower orders answer.

    Shapes:
        tokens: (tokens,) integers below `vocab_size`

    Claims: seq.factorisation
    Source: Witten and Bell 1991; Chen and Goodman 1999, section 2.6.

    >>> model = NGram(order=2, vocab_size=3).fit(torch.tensor([0, 1, 0, 1, 0, 2]))
    >>> model.probabilities(torch.tensor([1]))  # after 1 came 0, twice: (2 + p(0)) / (2 + 1), p(0) = (3 + 1) / (6 + 3)
    tensor([0.8148, 0.1111, 0.0741], dtype=torch.float64)
    """

    def __init__(self, order: int, vocab_size: int) -> None:
        self.order, self.vocab_size = validate.count("order", order), validate.count("vocab_size", vocab_size)
        if order * math.log2(vocab_size) >= 63:  # contexts are numbered in int64
            raise ValueError(f"order must be < {63 / math.log2(vocab_size):.0f} for {vocab_size} tokens, got {order}")
        self.counts_: list[tuple[_Counts, _Counts, Tensor]] | None = None

    def fit(self, tokens: Int[Tensor, " tokens"]) -> "NGram":
        """Count all orders in a text."""
        tokens = self._checked_tokens(tokens)
        if len(tokens) < self.order:
            raise ValueError(f"tokens must be at least {self.order} for this order, got {len(tokens)}")
        self.counts_ = []
        for length in range(self.order):
            contexts = self._context_numbers(tokens, length)
            followed = _Counts(contexts * self.vocab_size + tokens[length:])
            seen = _Counts(contexts)
            kinds = _Counts(followed.keys // self.vocab_size)  # each pair once: how many tokens follow a context
            self.counts_.append((followed, seen, kinds.counts))
        return self

    def _context_numbers(self, tokens: Tensor, length: int) -> Tensor:
        """The number of the `length` tokens before each token that has so many before it."""
        numbers = torch.zeros(len(tokens) - length, dtype=torch.int64)
        for first in range(length):
            numbers = numbers * self.vocab_size + tokens[first : len(tokens) - length + first]
        return numbers

    def nll(self, tokens: Int[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
        r"""The negative log-likelihood $-\ln p$ of every token of a text given those before it, in nats."""
        if self.counts_ is None:
            raise ValueError("the n-gram has counted nothing yet: call fit")
        tokens = self._checked_tokens(tokens)
        probability = torch.full((len(tokens),), 1 / self.vocab_size, dtype=torch.float64)
        for length, (followed, seen, kinds) in enumerate(self.counts_[: len(tokens)]):
            contexts = self._context_numbers(tokens, length)
            together = followed.of(contexts * self.vocab_size + tokens[length:])
            alone, different = seen.of(contexts), seen.of(contexts, kinds)
            mixed = (together + different * probability[length:]) / (alone + different)
            # A context that was never seen says nothing: the order below answers.
            probability[length:] = torch.where(alone > 0, mixed, probability[length:])
        return -probability.log()

    def bits(self, tokens: Int[Tensor, " tokens"]) -> float:
        """The mean negative log-likelihood of a text in bits a token."""
        return self.nll(tokens).mean().item() / math.log(2)

    def probabilities(self, context: Int[Tensor, " time"]) -> Float[Tensor, " vocab_size"]:
        """How likely every token is after a text, of which the last order - 1 tokens count."""
        context = self._checked_tokens(context, least=0)
        context = context[max(0, len(context) - self.order + 1) :]  # the rest has no influence
        texts = [torch.cat([context, torch.tensor([token])]) for token in range(self.vocab_size)]
        return torch.stack([self.nll(text)[-1] for text in texts]).neg().exp()

    def _checked_tokens(self, tokens: Tensor, least: int = 1) -> Tensor:
        tokens = validate.tokens("tokens", tokens.cpu(), self.vocab_size)
        if tokens.ndim != 1 or len(tokens) < least:
            raise ValueError(f"tokens must be a tensor with one axis, not empty, got shape {tuple(tokens.shape)}")
        return tokens.long()


class _Counts:
    """How often each number occurs, found again by bisection."""

    def __init__(self, numbers: Tensor) -> None:
        self.keys, self.counts = numbers.unique(return_counts=True)

    def of(self, numbers: Tensor, values: Tensor | None = None) -> Tensor:
        """The counts of some numbers, or other values kept beside the keys; 0 for what was never seen."""
        places = torch.searchsorted(self.keys, numbers).clamp(max=len(self.keys) - 1)
        return torch.where(self.keys[places] == numbers, (self.counts if values is None else values)[places], 0)
