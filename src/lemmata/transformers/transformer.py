r"""The transformer: an encoder reads a sentence, a decoder writes another, and attention is all that joins them."""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.conditional_sequence import ConditionalSequence, checked_tokens
from lemmata.signatures import config_of
from lemmata.transformers.cross_attention import Remembered
from lemmata.transformers.encoder_decoder import TransformerDecoder, TransformerEncoder, TransformerStackConfig
from lemmata.transformers.key_value_cache import KeyValueCache

__all__ = ["Transformer", "TransformerMemory"]


class TransformerMemory(NamedTuple):
    """What the decoder may look at: keys and values of the source for each block, and where there is a token."""

    blocks: tuple[Remembered, ...]
    mask: Bool[Tensor, "batch positions"] | None


@system(
    "transformer",
    title="Encoder-decoder transformer",
    kind="module",
    example="Transformer(12, 10, width=8, depth=1, heads=2)"
    "(torch.randint(4, 12, (4, 7)), torch.randint(4, 10, (4, 5)))",
)
class Transformer(ConditionalSequence):
    r"""A distribution over targets given a source, without recurrence: each step looks back at everything.

    $$ \Xi = \mathrm{encoder}(\sqrt{d}\,E_x + P), \qquad H = \mathrm{decoder}(\sqrt{d}\,E_{y_{0:t-1}} + P,\ \Xi), \qquad
       p(y_t \mid y_{1:t-1}, x) = \mathrm{softmax}(E H_t + b) $$

    Tokens are integers. The first input of the decoder is the token `start` ($y_0$); a sequence is over with the
    token `end`. All steps of a given target are computed at once, for the decoder's self-attention looks back only; in
    use, `step` goes on from what caches keep. With `tied`, the logits use the vectors by which the decoder reads
    tokens. `dropout` leaves out a fraction of what each part adds and of the embedded tokens, `attention_dropout` of
    the weights of attention. `greedy_decode`, `sample_decode` and `beam_decode` of lemmata.recurrent write with it.

    Shapes:
        source: (batch, positions) integers, read up to `lengths` (batch,)
        target: (batch, time) integers, $y_1, y_2, \dots$ without `start`; what follows the first `end` is ignored
        returns: logits (batch, time, target_vocab_size), where place t holds those of $y_t$ given $y_{1:t-1}$

    Claims: transformer.translation
    Source: Vaswani et al. 2017.
    Differs: normalises first unless told otherwise, and has a bias for each token; torch.nn.Transformer has neither
        embeddings nor positions nor logits (`TransformerEncoder.from_torch` and the decoder's take its weights).

    >>> model = Transformer(source_vocab_size=12, target_vocab_size=10, width=16, depth=2, heads=4)
    >>> source, target = torch.randint(4, 12, (2, 7)), torch.tensor([[5, 6, 3, 0], [4, 3, 0, 0]])
    >>> model(source, target).shape, model.log_probability(source, target).shape
    (torch.Size([2, 4, 10]), torch.Size([2]))
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        width: int = TransformerStackConfig.width,
        depth: int = TransformerStackConfig.depth,
        heads: int = TransformerStackConfig.heads,
        hidden: int | None = TransformerStackConfig.hidden,
        activation: str = TransformerStackConfig.activation,
        norm_first: bool = TransformerStackConfig.norm_first,
        positions: Literal["sinusoidal", "learned"] | None = TransformerStackConfig.positions,
        max_length: int = TransformerStackConfig.max_length,
        dropout: float = TransformerStackConfig.dropout,
        attention_dropout: float = TransformerStackConfig.attention_dropout,
        eps: float = TransformerStackConfig.eps,
        tied: bool = True,
        start: int = 2,
        end: int = 3,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config_of(TransformerStackConfig, locals())
        self.source_vocab_size = validate.count("source_vocab_size", source_vocab_size)
        self.target_vocab_size = validate.count("target_vocab_size", target_vocab_size)
        self.width, self.max_length, self.tied = width, max_length, validate.flag("tied", tied)
        self.start = validate.count("start", start, least=0, most=target_vocab_size - 1)
        self.end = validate.count("end", end, least=0, most=target_vocab_size - 1)
        with torch.device(device or torch.get_default_device()):
            self.of_source = nn.Embedding(source_vocab_size, width)
            self.of_target = nn.Embedding(target_vocab_size, width)
            self.encoder = TransformerEncoder(**vars(self.config))
            self.decoder = TransformerDecoder(**vars(self.config))
            self.output_weight = None if tied else nn.Parameter(torch.empty(target_vocab_size, width))
            self.output_bias = nn.Parameter(torch.empty(target_vocab_size))
        self.to(dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial weights of the tokens anew: with them logits are of size one, and so is what is read."""
        for weight in (self.of_source.weight, self.of_target.weight, self.output_weight):
            if weight is not None:
                nn.init.normal_(weight, std=self.width**-0.5)
        nn.init.zeros_(self.output_bias)

    # --- one sequence at a time in pieces: what decoding needs ---

    def encode(
        self, source: Int[Tensor, "batch positions"], lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[tuple[KeyValueCache, ...], TransformerMemory]:
        """Read the source once: empty caches for the decoder, and all that it will ever look at."""
        return self.decoder.new_caches(), self._encode_memory(source, lengths)

    def step(
        self, token: Int[Tensor, " batch"], state: tuple[KeyValueCache, ...], memory: TransformerMemory
    ) -> tuple[Float[Tensor, "batch target_vocab_size"], tuple[KeyValueCache, ...], None]:
        """The logits of the next token after this one, and the caches, which have read it; `alignment` tells more."""
        found = self.decoder(self._embed_tokens(self.of_target, token[:, None]), memory.blocks, memory.mask, state)
        return self._output_logits(found[:, 0]), state, None

    def alignment(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
        layer: int | None = None,
    ) -> Float[Tensor, "batch time positions"]:
        """Where the decoder looks before each token of a given target is written: the mean of all heads and blocks.

        Rows add up to one; `layer` chooses one block. What stands at a place has seen all of the source: take it as a
        hint.
        """
        looked: list[Tensor] = []
        blocks = self.decoder.blocks if layer is None else [self.decoder.blocks[layer]]
        parts: list[Any] = [block.cross_attention for block in blocks]
        hooks = [
            part.register_forward_pre_hook(lambda part, given: looked.append(part.weights(*given))) for part in parts
        ]
        try:
            self._taught_output(source, target, lengths)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.cat(looked, 1).mean(1)  # (batch, heads of all blocks, time, positions) before the mean

    def _encode_memory(self, source: Tensor, lengths: Tensor | None) -> TransformerMemory:
        checked_tokens("source", source, self.of_source.num_embeddings)
        mask = None if lengths is None else _within_lengths(lengths, source)  # (batch, positions)
        found = self.encoder(self._embed_tokens(self.of_source, source), mask)  # (batch, positions, width)
        return TransformerMemory(self.decoder.remember(found), mask)

    def _taught_output(self, source: Tensor, target: Tensor, lengths: Tensor | None) -> tuple[Tensor, None]:
        blocks, mask = self._encode_memory(source, lengths)
        before = self._tokens_before(source, target)  # (batch, time)
        return self.decoder(self._embed_tokens(self.of_target, before), blocks, mask), None  # (batch, time, width)

    def _embed_tokens(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        return self.width**0.5 * table(tokens)  # of size one, as the positions that are added are

    def _output_logits(self, found: Tensor) -> Tensor:
        weight = self.of_target.weight if self.output_weight is None else self.output_weight
        return functional.linear(found, weight, self.output_bias)


def _within_lengths(lengths: Tensor, source: Tensor) -> Tensor:
    """Which positions of the sources hold a token: those before the end."""
    if validate.tensor("lengths", lengths).shape != source.shape[:1]:
        rows = source.shape[0]
        raise ValueError(f"lengths must hold one number for each of {rows} sources, got {tuple(lengths.shape)}")
    if validate.visible(lengths):
        wrong = lengths[(lengths < 0) | (lengths > source.shape[1])]
        if len(wrong):
            raise ValueError(
                f"lengths must be from 0 to {source.shape[1]}, the positions of source, got {int(wrong[0])}"
            )
    return torch.arange(source.shape[1], device=source.device) < lengths.to(source.device)[:, None]
