r"""Sequence to sequence: one recurrent layer reads a sentence, another writes the answer, with attention or without."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.additive_attention import AdditiveAttention, AttentionMemory
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.conditional_sequence import ConditionalSequence, checked_tokens
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.layer import RecurrentLayer, State
from lemmata.recurrent.lstm import LSTM

__all__ = ["Encoded", "SequenceToSequence"]

CELLS = {"gru": GRU, "lstm": LSTM, "elman": Elman}


class Encoded(NamedTuple):
    """What the encoder leaves for the decoder: the state it starts from and, with attention, what it may look at."""

    state: State
    memory: AttentionMemory | None


@system(
    "seq2seq",
    title="Sequence-to-sequence encoder and decoder",
    kind="module",
    example="SequenceToSequence(12, 10, embedding=6, hidden=8, attention=True)"
    "(torch.randint(4, 12, (4, 4)), torch.randint(4, 10, (4, 3)))",
)
class SequenceToSequence(ConditionalSequence):
    r"""A distribution over targets given a source: an encoder reads the source, a decoder writes token by token.

    $$ \zeta = \mathrm{encoder}(x_{1:m}), \qquad z_0 = \zeta, \qquad z_t = F(y_{t-1}, c_t, z_{t-1}), \qquad
       y_t \sim \mathrm{softmax}(\mu(z_t, c_t)) $$

    Tokens are integers. The first input of the decoder is the token `start` ($y_0$); a sequence is over with the
    token `end`. Without attention there is no $c_t$, and everything the decoder knows of the source went through the
    state $\zeta$, whose size does not grow with the source. With `attention`, $c_t$ is the mean of the encoder's
    outputs that additive attention finds for the query $z_{t-1}$.

    `cell` is gru, lstm or elman, or any function `cell(inputs, hidden)` that makes a `RecurrentLayer`.
    Where the states of encoder and decoder differ in shape (a bidirectional encoder), a learnt map takes one to the
    other: an affine map with tanh. With `tied`, the logits use the vectors by which the decoder reads tokens, which
    saves as many parameters again. `dropout` leaves out a fraction of the embedded tokens' values and of the readout's.

    Shapes:
        source: (batch, positions) integers, read up to `lengths` (batch,)
        target: (batch, time) integers, $y_1, y_2, \dots$ without `start`; what follows the first `end` is ignored
        returns: logits (batch, time, target_vocab_size), where position t holds those of $y_t$ given $y_{1:t-1}$

    Claims: seq.seq2seq, seq.factorisation, seq.bahdanau
    Source: Sutskever, Vinyals, Le 2014; Cho et al. 2014; Bahdanau, Cho, Bengio 2015.
    Differs: with attention a compiler unrolls the loop over the target, so that each of its lengths is compiled on its
        own; for the same reason the model does not pass `export_lengths`: an exported one takes targets of one length.

    >>> model = SequenceToSequence(source_vocab_size=12, target_vocab_size=10, embedding=8, hidden=16, attention=True)
    >>> source, target = torch.randint(4, 12, (2, 7)), torch.tensor([[5, 6, 3, 0], [4, 3, 0, 0]])
    >>> model(source, target).shape, model.log_probability(source, target).shape
    (torch.Size([2, 4, 10]), torch.Size([2]))
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        embedding: int = 64,
        hidden: int = 128,
        cell: str | Callable[[int, int], RecurrentLayer] = "gru",
        bidirectional: bool = False,
        attention: bool = False,
        tied: bool = False,
        dropout: float = 0.0,
        start: int = 2,
        end: int = 3,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        validate.count("source_vocab_size", source_vocab_size)
        self.target_vocab_size = validate.count("target_vocab_size", target_vocab_size)
        self.dropout = validate.fraction("dropout", dropout)
        self.start = validate.count("start", start, least=0, most=target_vocab_size - 1)
        self.end = validate.count("end", end, least=0, most=target_vocab_size - 1)
        self.of_source = nn.Embedding(source_vocab_size, validate.count("embedding", embedding), **factory_kwargs)
        self.of_target = nn.Embedding(target_vocab_size, embedding, **factory_kwargs)
        self.encoder = _made_layer(cell, embedding, hidden, **factory_kwargs)
        if validate.flag("bidirectional", bidirectional):
            self.encoder = Bidirectional(self.encoder, _made_layer(cell, embedding, hidden, **factory_kwargs))
        seen = self.encoder.outputs if validate.flag("attention", attention) else 0
        self.decoder = _made_layer(cell, embedding + seen, hidden, **factory_kwargs)
        self.hand_over = _HandOver(self.encoder, self.decoder, **factory_kwargs)
        self.attention = None
        if attention:
            self.attention = AdditiveAttention(_state_width(self.hand_over.begins), seen, hidden, **factory_kwargs)
        self.readout = nn.Linear(self.decoder.outputs + seen, embedding, **factory_kwargs)
        self.output_weight = None
        if not validate.flag("tied", tied):
            self.output_weight = nn.Parameter(torch.empty(target_vocab_size, embedding, **factory_kwargs))
        self.output_bias = nn.Parameter(torch.zeros(target_vocab_size, **factory_kwargs))
        spread = embedding**-0.5  # logits of size one, and the gradients that go with them
        if self.output_weight is None:
            nn.init.normal_(self.of_target.weight, std=spread)
        else:
            nn.init.uniform_(self.output_weight, -spread, spread)

    # --- one sequence at a time in pieces: what decoding needs ---

    def encode(self, source: Int[Tensor, "batch positions"], lengths: Int[Tensor, " batch"] | None = None) -> Encoded:
        """Read the source once: everything the decoder will ever know of it."""
        checked_tokens("source", source, self.of_source.num_embeddings)
        embedded = self._embed_tokens(self.of_source, source)  # (batch, positions, embedding)
        outputs, state = self.encoder(embedded, lengths=lengths)  # (batch, positions, outputs of the encoder)
        memory = self.attention.remember(outputs, lengths) if self.attention else None
        return Encoded(self.hand_over(state), memory)

    def step(
        self, token: Int[Tensor, " batch"], state: State, memory: AttentionMemory | None = None
    ) -> tuple[Float[Tensor, "batch target_vocab_size"], State, Float[Tensor, "batch positions"] | None]:
        """The logits of the next token after this one, the state that has read it, and where was looked."""
        found, state, weights = self._advance_decoder(self._embed_tokens(self.of_target, token), state, memory)
        return self._output_logits(found), state, weights

    # --- a whole target at once ---

    def alignment(
        self,
        source: Int[Tensor, "batch positions"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time positions"]:
        """Where the decoder looks before it writes each token of a given target: rows that add up to one."""
        weights = self._taught_output(source, target, lengths)[1]
        if weights is None:
            raise ValueError("this model has no attention to show: make it with attention=True")
        return weights

    def _taught_output(self, source: Tensor, target: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """What the decoder finds, and where it looks, if shown the true tokens before each (teacher forcing)."""
        state, memory = self.encode(source, lengths)
        inputs = self._embed_tokens(self.of_target, self._tokens_before(source, target))
        if memory is None:
            return self.decoder(inputs, state)[0], None
        rows, (width, positions) = source.shape[0], (self.readout.in_features, source.shape[1])
        found, looked = [inputs.new_empty(rows, 0, width)], [inputs.new_empty(rows, 0, positions)]  # for empty targets
        for x in inputs.unbind(1):  # not inputs[:, t]: the gradient of each such piece is as large as all of them
            output, state, weights = self._advance_decoder(
                x, state, memory
            )  # (batch, width), state, (batch, positions)
            found.append(output[:, None])
            looked.append(weights[:, None])  # type: ignore[index]
        return torch.cat(found, 1), torch.cat(looked, 1)

    def _advance_decoder(
        self, x: Tensor, state: State, memory: AttentionMemory | None
    ) -> tuple[Tensor, State, Tensor | None]:
        if (self.attention is None) != (memory is None):
            raise ValueError("memory must be the one that encode returned")
        if memory is None:
            output, state = self.decoder.step(x, state)
            return output, state, None
        context, weights = self.attention.attend(_state_vector(state), memory)  # type: ignore[union-attr]
        output, state = self.decoder.step(torch.cat([x, context], 1), state)
        return torch.cat([output, context], 1), state, weights

    def _embed_tokens(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        return functional.dropout(table(tokens), self.dropout, self.training)

    def _output_logits(self, found: Tensor) -> Tensor:
        """From what the decoder found, steps or whole sequences, to one number for each token."""
        hidden = functional.dropout(torch.tanh(self.readout(found)), self.dropout, self.training)
        weight = self.of_target.weight if self.output_weight is None else self.output_weight
        return functional.linear(hidden, weight, self.output_bias)


class _HandOver(nn.Module):
    """From the state in which the encoder ends to the one in which the decoder begins."""

    def __init__(self, encoder: RecurrentLayer, decoder: RecurrentLayer, **factory_kwargs: Any) -> None:
        super().__init__()
        ends, self.begins = _state_sizes(encoder.initial_state(1)), _state_sizes(decoder.initial_state(1))
        self.map = None
        if ends != self.begins:
            self.map = nn.Linear(_state_width(ends), _state_width(self.begins), **factory_kwargs)

    def forward(self, state: State) -> State:
        return state if self.map is None else _state_of_vector(torch.tanh(self.map(_state_vector(state))), self.begins)


def _made_layer(
    cell: str | Callable[[int, int], RecurrentLayer], inputs: int, hidden: int, **factory_kwargs: Any
) -> RecurrentLayer:
    if not callable(cell):
        return CELLS[validate.one_of("cell", cell, CELLS)](inputs, hidden, **factory_kwargs)
    layer = cell(inputs, hidden)
    if not isinstance(layer, RecurrentLayer):
        raise TypeError(f"cell must make layers of lemmata.recurrent, got {type(layer).__name__}")
    return layer.to(**factory_kwargs)


# --- states as one vector: they are tensors (batch, hidden), or tuples of states ---


def _state_sizes(state: State) -> Any:
    if isinstance(state, tuple):
        return tuple(map(_state_sizes, state))
    if state.ndim != 2 or state.is_complex():
        raise TypeError(f"cell must have states of real (batch, hidden), got {state.dtype} {tuple(state.shape)}")
    return state.shape[1]


def _state_width(sizes: Any) -> int:
    return sum(map(_state_width, sizes)) if isinstance(sizes, tuple) else sizes


def _state_vector(state: State) -> Tensor:
    return torch.cat([_state_vector(part) for part in state], 1) if isinstance(state, tuple) else state


def _state_of_vector(vector: Tensor, sizes: Any) -> State:
    if not isinstance(sizes, tuple):
        return vector
    pieces = vector.split([_state_width(part) for part in sizes], 1)
    return tuple(_state_of_vector(piece, part) for piece, part in zip(pieces, sizes, strict=True))
