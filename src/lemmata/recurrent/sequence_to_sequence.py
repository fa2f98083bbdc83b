r"""Sequence to sequence: one recurrent layer reads a sentence, another writes the answer, with attention or without."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from lemmata import validate
from lemmata.marks import system
from lemmata.recurrent.additive_attention import AdditiveAttention, AttentionMemory
from lemmata.recurrent.bidirectional import Bidirectional
from lemmata.recurrent.elman import Elman
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.layer import RecurrentLayer, State
from lemmata.recurrent.lstm import LSTM

__all__ = ["Encoded", "SequenceToSequence"]

# Of the two kinds of GRU the one for which torch has a kernel: encoding takes a third of the time.
CELLS = {"gru": partial(GRU, reset="after"), "lstm": LSTM, "elman": Elman}


class Encoded(NamedTuple):
    """What the encoder leaves for the decoder: the state it starts from and, with attention, what it may look at."""

    state: State
    memory: AttentionMemory | None


@system("seq2seq", title="Sequence-to-sequence encoder and decoder", kind="module")
class SequenceToSequence(nn.Module):
    r"""A law of target sequences given a source: an encoder reads the source, a decoder writes one symbol at a time.

    $$ \zeta = \mathrm{encoder}(x_{1:m}), \qquad z_0 = \zeta, \qquad z_t = F(y_{t-1}, c_t, z_{t-1}), \qquad
       y_t \sim \mathrm{softmax}(\mu(z_t, c_t)) $$

    Symbols are whole numbers. The first input of the decoder is the symbol `start` ($y_0$); a sequence is over with the
    symbol `end`. Without attention there is no $c_t$, and everything the decoder knows of the source went through the
    state $\zeta$, whose size does not grow with the source. With `attention`, $c_t$ is the mean of the encoder's
    outputs that additive attention finds for the query $z_{t-1}$.

    `cell` is gru, lstm or elman, or any function `cell(inputs, hidden)` that makes a `RecurrentLayer`.
    Where the states of encoder and decoder differ in shape (a bidirectional encoder), a learnt map takes one to the
    other: an affine map with tanh. With `tied`, the logits use the vectors by which the decoder reads symbols, which
    saves as many parameters again. `dropout` leaves out a share of the embedded symbols' values and of the read-out's.

    Shapes:
        source: (batch, places) whole numbers, read up to `lengths` (batch,)
        target: (batch, time) whole numbers, $y_1, y_2, \dots$ without `start`; what follows the first `end` is ignored
        returns: logits (batch, time, targets), where place t holds those of $y_t$ given $y_{1:t-1}$

    Claims: seq.seq2seq, seq.factorisation, seq.bahdanau
    Source: Sutskever, Vinyals, Le 2014; Cho et al. 2014; Bahdanau, Cho, Bengio 2015.

    >>> model = SequenceToSequence(sources=12, targets=10, embedding=8, hidden=16, attention=True)
    >>> source, target = torch.randint(4, 12, (2, 7)), torch.tensor([[5, 6, 3, 0], [4, 3, 0, 0]])
    >>> model(source, target).shape, model.log_probability(source, target).shape
    (torch.Size([2, 4, 10]), torch.Size([2]))
    """

    def __init__(
        self,
        sources: int,
        targets: int,
        embedding: int = 64,
        hidden: int = 128,
        cell: str | Callable[[int, int], RecurrentLayer] = "gru",
        bidirectional: bool = False,
        attention: bool = False,
        tied: bool = False,
        dropout: float = 0.0,
        start: int = 2,
        end: int = 3,
    ) -> None:
        super().__init__()
        make = _maker(cell)
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout!r}")
        self.targets, self.dropout = validate.count("targets", targets), dropout
        self.start = validate.count("start", start, least=0, most=targets - 1)
        self.end = validate.count("end", end, least=0, most=targets - 1)
        self.of_source = nn.Embedding(validate.count("sources", sources), validate.count("embedding", embedding))
        self.of_target = nn.Embedding(targets, embedding)
        self.encoder = make(embedding, hidden)
        if not isinstance(self.encoder, RecurrentLayer):
            raise TypeError(f"cell must make layers of lemmata.recurrent, got {type(self.encoder).__name__}")
        if validate.flag("bidirectional", bidirectional):
            self.encoder = Bidirectional(self.encoder, make(embedding, hidden))
        seen = self.encoder.outputs if validate.flag("attention", attention) else 0
        self.decoder = make(embedding + seen, hidden)
        self.hand_over = _HandOver(self.encoder, self.decoder)
        self.attention = AdditiveAttention(_width(self.hand_over.begins), seen, hidden) if attention else None
        self.readout = nn.Linear(self.decoder.outputs + seen, embedding)
        self.output_weight = None if validate.flag("tied", tied) else nn.Parameter(torch.empty(targets, embedding))
        self.output_bias = nn.Parameter(torch.zeros(targets))
        spread = embedding**-0.5  # logits of size one, and the gradients that go with them
        if self.output_weight is None:
            nn.init.normal_(self.of_target.weight, std=spread)
        else:
            nn.init.uniform_(self.output_weight, -spread, spread)

    # --- one sequence at a time in pieces: what decoding needs ---

    def encode(self, source: Int[Tensor, "batch places"], lengths: Int[Tensor, " batch"] | None = None) -> Encoded:
        """Read the source once: everything the decoder will ever know of it."""
        _symbols("source", source, self.of_source.num_embeddings)
        outputs, state = self.encoder(self._embedded(self.of_source, source), lengths=lengths)
        memory = self.attention.remember(outputs, lengths) if self.attention else None
        return Encoded(self.hand_over(state), memory)

    def step(
        self, symbol: Int[Tensor, " batch"], state: State, memory: AttentionMemory | None = None
    ) -> tuple[Float[Tensor, "batch targets"], State, Float[Tensor, "batch places"] | None]:
        """The logits of the next symbol after this one, the state that has read it, and where was looked."""
        found, state, weights = self._advance(self._embedded(self.of_target, symbol), state, memory)
        return self._logits(found), state, weights

    # --- a whole target at once ---

    def forward(
        self,
        source: Int[Tensor, "batch places"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time targets"]:
        return self._logits(self._taught(source, target, lengths)[0])

    def log_probability(
        self,
        source: Int[Tensor, "batch places"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, " batch"]:
        r"""$\log p(y \mid x)$: the sum over the symbols up to the first `end`. Without an `end`, that of the prefix."""
        steps = self(source, target, lengths).log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)
        return steps.masked_fill(~self.counted(target), 0).sum(1)

    def loss(
        self,
        source: Int[Tensor, "batch places"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        r"""The mean surprise of a symbol, $-\log p(y_t \mid y_{1:t-1}, x)$, where only symbols that count are computed.

        With `smoothing` $\epsilon$, the symbol that came counts $1 - \epsilon$, and all symbols share $\epsilon$.
        """
        counted = self.counted(target)
        logits = self._logits(self._taught(source, target, lengths)[0][counted])
        return functional.cross_entropy(logits, target[counted].long(), label_smoothing=smoothing)

    def alignment(
        self,
        source: Int[Tensor, "batch places"],
        target: Int[Tensor, "batch time"],
        lengths: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch time places"]:
        """Where the decoder looks before it writes each symbol of a given target: rows that add up to one."""
        weights = self._taught(source, target, lengths)[1]
        if weights is None:
            raise ValueError("this model has no attention to show: make it with attention=True")
        return weights

    def counted(self, target: Int[Tensor, "batch time"]) -> Bool[Tensor, "batch time"]:
        """Which places belong to the sequence: those up to the first `end`, which belongs to it."""
        ends = target == self.end
        return ends.cumsum(1) == ends.long()  # no end so far, or this is the first

    def _taught(self, source: Tensor, target: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """What the decoder finds, and where it looks, if shown the true symbols before each place (teacher forcing)."""
        if len(_symbols("target", target, self.targets)) != len(source):
            raise ValueError(f"target must hold one row for each of {len(source)} sources, got {len(target)}")
        state, memory = self.encode(source, lengths)
        before = torch.cat([torch.full_like(target[:, :1], self.start), target[:, :-1]], 1)
        inputs = self._embedded(self.of_target, before)
        if memory is None:
            return self.decoder(inputs, state)[0], None
        rows, (width, places) = len(source), (self.readout.in_features, source.shape[1])
        found, looked = [inputs.new_empty(rows, 0, width)], [inputs.new_empty(rows, 0, places)]  # a target may be empty
        for x in inputs.unbind(1):  # not inputs[:, t]: the gradient of each such piece is as large as all of them
            output, state, weights = self._advance(x, state, memory)
            found.append(output[:, None])
            looked.append(weights[:, None])  # type: ignore[index]
        return torch.cat(found, 1), torch.cat(looked, 1)

    def _advance(self, x: Tensor, state: State, memory: AttentionMemory | None) -> tuple[Tensor, State, Tensor | None]:
        if (self.attention is None) != (memory is None):
            raise ValueError("memory must be the one that encode returned")
        if memory is None:
            output, state = self.decoder.step(x, state)
            return output, state, None
        context, weights = self.attention.look(_flat(state), memory)  # type: ignore[union-attr]
        output, state = self.decoder.step(torch.cat([x, context], 1), state)
        return torch.cat([output, context], 1), state, weights

    def _embedded(self, table: nn.Embedding, symbols: Tensor) -> Tensor:
        return functional.dropout(table(symbols), self.dropout, self.training)

    def _logits(self, found: Tensor) -> Tensor:
        """From what the decoder found, steps or whole sequences, to one number for each symbol."""
        hidden = functional.dropout(torch.tanh(self.readout(found)), self.dropout, self.training)
        weight = self.of_target.weight if self.output_weight is None else self.output_weight
        return functional.linear(hidden, weight, self.output_bias)


class _HandOver(nn.Module):
    """From the state in which the encoder ends to the one in which the decoder begins."""

    def __init__(self, encoder: RecurrentLayer, decoder: RecurrentLayer) -> None:
        super().__init__()
        ends, self.begins = _sizes(encoder.initial_state(1)), _sizes(decoder.initial_state(1))
        self.map = None if ends == self.begins else nn.Linear(_width(ends), _width(self.begins))

    def forward(self, state: State) -> State:
        return state if self.map is None else _shaped(torch.tanh(self.map(_flat(state))), self.begins)


def _maker(cell: str | Callable[[int, int], RecurrentLayer]) -> Callable[[int, int], RecurrentLayer]:
    if callable(cell):
        return cell
    if cell not in CELLS:
        raise ValueError(f"cell must be one of {', '.join(CELLS)}, or make a recurrent layer, got {cell!r}")
    return CELLS[cell]


def _symbols(name: str, symbols: Tensor, size: int) -> Tensor:
    if symbols.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must hold whole numbers, got {symbols.dtype}: use {name}.long()")
    if symbols.ndim != 2:
        raise ValueError(f"{name} must be a (batch, symbols) tensor, got shape {tuple(symbols.shape)}")
    for wrong in symbols[(symbols < 0) | (symbols >= size)][:1].tolist():
        raise ValueError(f"{name} must hold symbols from 0 to {size - 1}, got {wrong}")
    return symbols


# --- states as one vector: they are tensors (batch, hidden), or tuples of states ---


def _sizes(state: State) -> Any:
    if isinstance(state, tuple):
        return tuple(map(_sizes, state))
    if state.ndim != 2 or state.is_complex():
        raise TypeError(f"cell must have states of real (batch, hidden), got {state.dtype} {tuple(state.shape)}")
    return state.shape[1]


def _width(sizes: Any) -> int:
    return sum(map(_width, sizes)) if isinstance(sizes, tuple) else sizes


def _flat(state: State) -> Tensor:
    return torch.cat([_flat(part) for part in state], 1) if isinstance(state, tuple) else state


def _shaped(vector: Tensor, sizes: Any) -> State:
    if not isinstance(sizes, tuple):
        return vector
    pieces = vector.split([_width(part) for part in sizes], 1)
    return tuple(_shaped(piece, part) for piece, part in zip(pieces, sizes, strict=True))
