"""Encoder and decoder: torch's own stacks, what only positions tell, and a decoder that runs step by step."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import all_of, claim, close, lie, reaches
from lemmata.transformers.encoder_decoder import TransformerDecoder, TransformerEncoder
from lemmata.transformers.positions import sinusoidal_encoding

WIDTH, HEADS, TOKENS, LENGTH = 16, 4, 5, 10


class AttentionFirst(TransformerEncoder):
    """All attentions one after another, and then all networks of a position."""

    def forward(self, x, mask=None):
        block: Any
        h = self._add_positions(x)
        for block in self.blocks:
            h = block._add_part(h, block.self_attention_norm, lambda h, part=block: part.self_attention(h, mask))
        for block in self.blocks:
            h = block._add_part(h, block.feed_forward_norm, block.feed_forward)
        return self._final_norm(h)


def torchs(kind, layer, first) -> Any:
    """Two of torch's layers, as they come, in float64."""
    settings = {"norm_first": first, "batch_first": True, "dropout": 0.0}
    last = nn.LayerNorm(WIDTH) if first else None
    kept = {"enable_nested_tensor": False} if kind is nn.TransformerEncoder else {}
    stack = kind(layer(WIDTH, HEADS, 24, **settings), 2, last, **kept).double()
    for values in stack.parameters():  # all layers begin alike, and biases at zero
        values.data += 0.1 * torch.randn_like(values)
    return stack


def first_before_second(count, generator):
    """Five symbols in ten places, of which 0 and 1 come once each; whether 0 comes first. Each row also backwards."""
    rows = torch.randint(2, TOKENS, (count, LENGTH), generator=generator)
    places = torch.rand(count, LENGTH, generator=generator).argsort(1)[:, :2]  # two of them, no two alike
    rows.scatter_(1, places, torch.tensor([0, 1]).expand(count, 2))
    before = places[:, 0] < places[:, 1]
    return torch.cat([rows, rows.flip(1)]), torch.cat([before, ~before])


def reader(positions):
    """Symbols, an encoder, and one number from the mean of what it found."""
    encoder = TransformerEncoder(WIDTH, depth=2, heads=HEADS, hidden=32, positions=positions)
    return nn.ModuleDict({"symbols": nn.Embedding(TOKENS, WIDTH), "encoder": encoder, "score": nn.Linear(WIDTH, 1)})


def scores(model, rows):
    return model["score"](model["encoder"](model["symbols"](rows)).mean(1))[:, 0]


def teach_to_read(model, generator, steps=300):
    """Batches of 32 rows and the same backwards."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows, before = first_before_second(32, generator)
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(scores(model, rows), before.float()).backward()
        optimizer.step()


@claim("transformer.encoder")
@lie("all attentions come before all networks", encoder=AttentionFirst)
@lie("the positions are multiplied with the vectors", joined=torch.mul)
@lie("without positions it can tell which of two symbols comes first", positions=None)
def an_encoder_reads_in_order_if_told_the_positions(
    draw, encoder=TransformerEncoder, joined=torch.add, positions="sinusoidal"
):
    """Torch's encoder with padding; vectors shuffled; and whether one symbol comes before another, after training."""
    x, lengths, shuffled = draw.normal(3, 7, WIDTH), torch.tensor([7, 1, 4]), draw.permutation(7)
    mask, p = torch.arange(7) < lengths[:, None], sinusoidal_encoding(torch.arange(7), WIDTH, dtype=torch.float64)
    measured, predicted = [], []
    for first in (True, False):
        theirs = torchs(nn.TransformerEncoder, nn.TransformerEncoderLayer, first)
        ours, placed = encoder.from_torch(theirs), encoder(WIDTH, 2, HEADS, 24, norm_first=first, dtype=torch.float64)
        placed.load_state_dict(ours.state_dict())
        measured += [placed(x, mask)[mask], ours(x[:, shuffled])]
        predicted += [theirs(joined(x, p), src_key_padding_mask=~mask)[mask], ours(x)[:, shuffled]]
    pieces = all_of(*(close(a, b, ulps=1000) for a, b in zip(measured, predicted, strict=True)))
    if not pieces.holds:
        return pieces  # decided without training
    told = draw.trained(reader, teach_to_read, positions=positions)
    rows, before = first_before_second(1000, draw.generator)
    with torch.no_grad():
        right = ((scores(told, rows) > 0) == before).double().mean()
    return all_of(reaches(right, 0.95, detail="which of two symbols comes first; half by chance"), pieces)


class LooksAhead(TransformerDecoder):
    """Self-attention without a mask."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        block: Any
        for block in self.blocks:
            block.self_attention.causal = False


class StartsAgain(TransformerDecoder):
    """Each new token is told that it is the first."""

    def _add_positions(self, x, start=0):
        return super()._add_positions(x, 0)


class LooksAtTheSourceFirst(TransformerDecoder):
    """Cross-attention before self-attention."""

    def forward(self, x, memory, memory_mask=None, caches=None):
        block: Any
        h, remembered = self._add_positions(x, len(caches[0]) if caches else 0), self.remember(memory)  # type: ignore
        for k, block in enumerate(self.blocks):
            look, cache = block.cross_attention, caches[k] if caches else None
            h = block._add_part(
                h, block.cross_attention_norm, lambda h, k=k, look=look: look(h, remembered[k], memory_mask)
            )
            h = block._add_part(h, block.self_attention_norm, lambda h, b=block, c=cache: b.self_attention(h, None, c))
            h = block._add_part(h, block.feed_forward_norm, block.feed_forward)
        return self._final_norm(h)


@claim("transformer.decoder")
@lie("the history is read without a mask", decoder=LooksAhead)
@lie("the source is looked at before the history", decoder=LooksAtTheSourceFirst)
@lie("a token that is written is always the first", decoder=StartsAgain)
@lie("what is kept need not follow sequences that a search puts in another order", follows=False)
def a_decoder_writes_step_by_step_what_it_would_at_once(draw, decoder=TransformerDecoder, follows=True):
    """Torch's decoder with both masks; beginnings alone; one token at a time or two, and sequences in another order."""
    y, memory, lengths = draw.normal(3, 6, WIDTH), draw.normal(3, 7, WIDTH), torch.tensor([7, 1, 4])
    seen, ahead = torch.arange(7) < lengths[:, None], torch.ones(6, 6, dtype=torch.bool).triu(1)
    at_once, torch_says, alone, stepped, exchanged = ([] for _ in range(5))
    order = torch.tensor([2, 0, 1])
    for first in (True, False):
        theirs = torchs(nn.TransformerDecoder, nn.TransformerDecoderLayer, first)
        ours = decoder(WIDTH, 2, HEADS, 24, norm_first=first, dtype=torch.float64)
        ours.load_state_dict(decoder.from_torch(theirs).state_dict())
        placed = y + sinusoidal_encoding(torch.arange(6), WIDTH, dtype=torch.float64)
        torch_says.append(theirs(placed, memory, tgt_mask=ahead, memory_key_padding_mask=~seen))
        at_once.append(ours(y, memory, seen))
        alone.append(torch.stack([ours(y[:, : t + 1], memory, seen)[:, t] for t in range(6)], 1))
        caches = ours.new_caches()
        stepped.append(torch.cat([ours(y[:, t : t + 1], memory, seen, caches) for t in range(6)], 1))
        caches = ours.new_caches()
        before = [ours(piece, memory, seen, caches) for piece in y[:, :4].split(2, 1)]
        for cache in caches if follows else ():
            cache.reorder(order)
        after = [ours(piece, memory[order], seen[order], caches) for piece in y[order, 4:].split(1, 1)]
        exchanged.append(torch.cat([*(piece[order] for piece in before), *after], 1))
    whole = torch.stack(at_once)
    return all_of(
        close(whole, torch.stack(torch_says), ulps=1000),
        close(whole, torch.stack(alone), ulps=1000),
        close(whole, torch.stack(stepped), ulps=1000),
        close(whole[:, order], torch.stack(exchanged), ulps=1000),
    )
