r"""What every translator is: a distribution over targets given a source, one token after another."""

from abc import abstractmethod
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate

__all__ = ["ConditionalSequence"]


class ConditionalSequence(nn.Module):
    r"""$p(y \mid x) = \prod_t p(y_t \mid y_{1:t-1}, x)$: what follows from the steps, whoever makes them.

    A sequence begins after the token `start` and is over with the token `end`. A model says how it reads a source
    (`encode`), makes one step (`step`), runs along a given target (`_taught_output`) and what logits follow
    (`_output_logits`).

    Claims: seq.factorisation
    """

    start: int
    end: int
    target_vocab_size: int
    output_bias: nn.Parameter

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch positions"], lengths: Int[Tensor, " batch"] | None = None) -> Any:
        """Read the source once: the state in which the decoder begins, and what it may look at."""

    @abstractmethod
    def step(self, token: Int[Tensor, " batch"], state: Any, memory: Any = None) -> tuple[Tensor, Any, Tensor | None]:
        """The logits of the next token after this one, the state that has read it, and where was looked."""

    @abstractmethod
    def alignment(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time positions"]:
        """Where the decoder looks before it writes each token of a given target: rows that add up to one."""

    @abstractmethod
    def _taught_output(self, source: Tensor, target: Tensor, lengths: Tensor | None) -> tuple[Tensor, Any]:
        """What the decoder finds, and where it looks, if shown the true tokens before each (teacher forcing)."""

    @abstractmethod
    def _output_logits(self, found: Tensor) -> Tensor:
        """From what the decoder found, steps or whole sequences, to one number for each token."""

    def forward(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time target_vocab_size"]:
        found, _ = self._taught_output(source, target, lengths)  # (batch, time, what the decoder finds)
        return self._output_logits(found)  # (batch, time, target_vocab_size)

    def log_probability(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, " batch"]:
        r"""$\log p(y \mid x)$: the sum over the tokens up to the first `end`. Without an `end`, that of the prefix."""
        steps = self(source, target, lengths).log_softmax(-1)  # (batch, time, target_vocab_size)
        steps = steps.gather(-1, target[..., None]).squeeze(-1)  # (batch, time)
        return steps.masked_fill(~self.counted(target), 0).sum(1)  # (batch,)

    def loss(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        r"""The mean negative log-likelihood $-\log p(y_t \mid y_{1:t-1}, x)$ of the tokens that count.

        With `smoothing` $\epsilon$, the token that came counts $1 - \epsilon$, and all tokens share $\epsilon$.
        """
        counted = self.counted(target)
        logits = self._output_logits(
            self._taught_output(source, target, lengths)[0][counted]
        )  # (counted, target_vocab_size)
        return functional.cross_entropy(logits, target[counted].long(), label_smoothing=smoothing)

    def counted(self, target: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch time"]:
        """Which positions belong to the sequence: those up to the first `end`, which belongs to it."""
        ends = target == self.end
        return ends.cumsum(1) == ends.long()  # no end so far, or this is the first

    def _tokens_before(self, source: Tensor, target: Tensor) -> Tensor:
        """The token before each position of a target: `start`, then the target without its last."""
        if checked_tokens("target", target, self.target_vocab_size).shape[0] != source.shape[0]:
            rows = source.shape[0], target.shape[0]
            raise ValueError(f"target must hold one row for each of {rows[0]} sources, got {rows[1]}")
        return functional.pad(target, (1, 0), value=self.start)[:, : target.shape[1]]  # (batch, time)


def checked_tokens(name: str, tokens: Tensor, size: int) -> Tensor:
    """Rows of integers below `size`."""
    if validate.tensor(name, tokens).ndim != 2:
        raise ValueError(f"{name} must be a (batch, tokens) tensor, got shape {tuple(tokens.shape)}")
    return validate.tokens(name, tokens, size)
