r"""Decoding: from a distribution over sequences to one of them, token by token: the likeliest, drawn, or by a beam.

Whatever mode a model is in, it writes without dropout.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from lemmata import validate
from lemmata.recurrent.conditional_sequence import ConditionalSequence
from lemmata.train.evaluation_mode import evaluating

__all__ = ["Decoded", "beam_decode", "greedy_decode", "sample_decode"]


class Decoded(NamedTuple):
    """Sequences that a model wrote, filled up with `end`, and the logarithm of the probability it gives to each."""

    tokens: Int[Tensor, "batch time"]
    log_probability: Float[Tensor, " batch"]


def greedy_decode(
    model: ConditionalSequence,
    source: Int[Tensor, "batch positions"],
    lengths: Int[Tensor, " batch"] | None = None,
    max_length: int = 100,
) -> Decoded:
    r"""The likeliest next token, again and again, until `end` or until there are `max_length` tokens.

    $$ y_t = \arg\max_y p(y \mid y_{1:t-1}, x) $$

    Shapes:
        source: (batch, positions), lengths: (batch,)    returns: tokens (batch, time), log_probability (batch,)

    Claims: seq.seq2seq

    >>> from lemmata.recurrent import SequenceToSequence
    >>> model = SequenceToSequence(source_vocab_size=12, target_vocab_size=10, embedding=8, hidden=16)
    >>> greedy_decode(model, torch.randint(4, 12, (2, 7)), max_length=5).log_probability.shape
    torch.Size([2])
    """
    with evaluating(model):
        return _write_tokens(model, source, lengths, max_length, lambda steps: steps.argmax(1))


def sample_decode(
    model: ConditionalSequence,
    source: Int[Tensor, "batch positions"],
    lengths: Int[Tensor, " batch"] | None = None,
    max_length: int = 100,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Decoded:
    r"""Each token drawn given those before; at temperature 1 the sequences have the model's own distribution.

    $$ y_t \sim \mathrm{softmax}(\mu_t / \tau) $$

    Below 1 the likely becomes likelier; towards 0 this is greedy decoding.

    Shapes:
        as for `greedy_decode`

    Claims: seq.seq2seq, seq.factorisation

    >>> from lemmata.recurrent import SequenceToSequence
    >>> model = SequenceToSequence(source_vocab_size=12, target_vocab_size=10, embedding=8, hidden=16)
    >>> source, one = torch.randint(4, 12, (2, 7)), torch.Generator().manual_seed(1)
    >>> sample_decode(model, source, max_length=5, generator=one).tokens.shape[0]
    2
    """
    validate.positive("temperature", temperature)

    def drawn(steps: Tensor) -> Tensor:
        return (steps / temperature).softmax(1).multinomial(1, generator=generator)[:, 0]

    with evaluating(model):
        return _write_tokens(model, source, lengths, max_length, drawn)


def _write_tokens(
    model: ConditionalSequence,
    source: Tensor,
    lengths: Tensor | None,
    max_length: int,
    choose: Callable[[Tensor], Tensor],
) -> Decoded:
    validate.count("max_length", max_length)
    state, memory = model.encode(source, lengths)
    last = source.new_full((len(source),), model.start)  # (batch,)
    over, tokens = torch.zeros_like(last, dtype=torch.bool), []
    total = model.output_bias.new_zeros(len(source))
    for _ in range(max_length):
        logits, state, _ = model.step(last, state, memory)
        steps = logits.log_softmax(1)  # (batch, target_vocab_size)
        last = choose(steps).masked_fill(over, model.end)  # (batch,)
        total = total + steps.gather(1, last[:, None])[:, 0].masked_fill(over, 0)
        tokens.append(last)
        over = last == model.end
        if over.all():
            break
    return Decoded(torch.stack(tokens, 1), total)  # (batch, time)


def beam_decode(
    model: ConditionalSequence,
    source: Int[Tensor, "batch positions"],
    lengths: Int[Tensor, " batch"] | None = None,
    max_length: int = 100,
    beams: int = 4,
    length_power: float = 1.0,
) -> Decoded:
    r"""The best of `beams` sequences that are followed at once, by the logarithm of their probability for each token.

    $$ \max_y\; \frac{\log p(y \mid x)}{|y|^{\alpha}}, \qquad \alpha = \texttt{length\_power} $$

    Without the division ($\alpha = 0$) a search prefers short sequences, for every token costs probability. The greedy
    sequence always takes part at the end, so that the result is never worse than it; with enough beams the search is
    exhaustive. The returned logarithm is that of the model, not divided.

    Shapes:
        as for `greedy_decode`

    Claims: seq.seq2seq

    >>> from lemmata.recurrent import SequenceToSequence
    >>> model = SequenceToSequence(source_vocab_size=12, target_vocab_size=10, embedding=8, hidden=16)
    >>> beam_decode(model, torch.randint(4, 12, (2, 7)), max_length=5, beams=3).tokens.shape[0]
    2
    """
    validate.count("beams", beams)
    validate.finite_number("length_power", length_power)
    with evaluating(model):
        greedy = greedy_decode(model, source, lengths, max_length)
        found = _beam_search(model, model.encode(source, lengths), len(source), max_length, beams, length_power)
    found_score, greedy_score = (_sequence_score(each, model, length_power) for each in (found, greedy))
    better = found_score > greedy_score
    missing = [max_length - each.tokens.shape[1] for each in (found, greedy)]
    both = (
        functional.pad(each.tokens, (0, n), value=model.end) for each, n in zip((found, greedy), missing, strict=True)
    )
    tokens = torch.where(better[:, None], *both)  # (batch, max_length)
    total = torch.where(better, found.log_probability, greedy.log_probability)
    return Decoded(tokens[:, : model.counted(tokens).sum(1).max()], total)


def _beam_search(
    model: ConditionalSequence, encoded: tuple[Any, Any], batch: int, max_length: int, beams: int, power: float
) -> Decoded:
    """The best sequence of a beam: `beams` rows for each source lie one after another."""
    device, dtype = model.output_bias.device, model.output_bias.dtype
    each = torch.arange(batch, device=device).repeat_interleave(beams)
    state, memory = (_select_rows(part, each) for part in encoded)
    total = torch.full((batch, beams), -torch.inf, device=device, dtype=dtype)
    total[:, 0] = 0  # all beams begin alike: one of them is enough
    length = torch.zeros(batch, beams, device=device)
    tokens = torch.empty(batch, beams, 0, dtype=torch.int64, device=device)
    last = torch.full((batch * beams,), model.start, device=device)
    over = torch.zeros(batch, beams, dtype=torch.bool, device=device)
    ending = torch.full((model.target_vocab_size,), -torch.inf, device=device, dtype=dtype)
    ending[model.end] = 0  # what is over goes on with `end` for nothing
    for _ in range(max_length):
        logits, state, _ = model.step(last, state, memory)  # (batch * beams, target_vocab_size)
        steps = logits.log_softmax(1).view(batch, beams, -1)  # (batch, beams, target_vocab_size)
        totals = total[..., None] + torch.where(over[..., None], ending, steps)
        length = length + (~over).to(length)  # (batch, beams)
        ranked = (totals / length[..., None] ** power).flatten(1).topk(beams).indices  # (batch, beams)
        parent, token = ranked // model.target_vocab_size, ranked % model.target_vocab_size
        total, length = totals.flatten(1).gather(1, ranked), length.gather(1, parent)
        before = tokens.gather(1, parent[..., None].expand_as(tokens))  # (batch, beams, time)
        tokens = torch.cat([before, token[..., None]], -1)  # (batch, beams, time + 1)
        over = token == model.end
        if over.all():
            break
        chosen = (parent + beams * torch.arange(batch, device=device)[:, None]).flatten()
        state, last = _select_rows(state, chosen), token.flatten()
    return Decoded(tokens[:, 0], total[:, 0])  # topk puts the best first


def _sequence_score(decoded: Decoded, model: ConditionalSequence, power: float) -> Tensor:
    return decoded.log_probability / model.counted(decoded.tokens).sum(1) ** power


def _select_rows(tree: Any, rows: Tensor) -> Any:
    """These rows of every tensor in a state or a memory, and of what can put its rows in order by itself."""
    if tree is None:
        return None
    if isinstance(tree, tuple):
        parts = [_select_rows(part, rows) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if hasattr(tree, "reorder"):
        tree.reorder(rows)
        return tree
    return tree[rows]
