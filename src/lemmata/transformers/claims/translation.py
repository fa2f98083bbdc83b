"""Translation without recurrence: the whole model against torch's halves, decoding, and a small language learnt."""

import torch
from torch import nn
from torch.nn import functional

from lemmata.judge import Figure, Heat, all_of, claim, close, exactly, lie, reaches
from lemmata.recurrent.decoding import beam_decode, greedy_decode
from lemmata.recurrent.sequence_to_sequence import SequenceToSequence
from lemmata.transformers.claims.encoder_decoder import HEADS, WIDTH, torchs
from lemmata.transformers.cross_attention import Remembered
from lemmata.transformers.encoder_decoder import TransformerDecoder, TransformerEncoder
from lemmata.transformers.positions import sinusoidal_encoding
from lemmata.transformers.transformer import Transformer

WORDS, LENGTH, END = 14, 10, 3  # words are the numbers 4 to 13
LEXICON = torch.tensor([7, 5, 8, 4, 9, 13, 6, 10, 12, 11])


class Unseeing(Transformer):
    """Cross-attention finds nothing, wherever it looks."""

    def _encode_memory(self, source, lengths):
        memory = super()._encode_memory(source, lengths)
        return memory._replace(blocks=tuple(Remembered(key, 0 * value) for key, value in memory.blocks))


def transformer(seeing):
    return (Transformer if seeing else Unseeing)(WORDS, WORDS, width=32, depth=1, heads=4, hidden=64)


def recurrent(attention):
    """The network of 2014, and the attention that was added to it in the same year."""
    return SequenceToSequence(WORDS, WORDS, embedding=16, hidden=32, bidirectional=True, attention=attention)


def sentences(count, generator):
    """Ten words, and their translations by a lexicon in the opposite order, with the end."""
    source = torch.randint(4, WORDS, (count, LENGTH), generator=generator)
    return source, functional.pad(LEXICON[source - 4].flip(1), (0, 1), value=END)


def teach_to_translate(model, generator, steps=300):
    """Batches of 32 fresh sentences."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 1.0, 2 - 2 * step / steps)
    )
    for _ in range(steps):
        optimizer.zero_grad()
        model.loss(*sentences(32, generator)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def translated(model, generator):
    """Which of 500 new sentences are translated without a mistake."""
    source, target = sentences(500, generator)
    made = greedy_decode(model, source, max_length=LENGTH + 1).tokens
    return (functional.pad(made, (0, LENGTH + 1 - made.shape[1]), value=END) == target).all(1).double().mean()


def assembled(draw, power):
    """Logits of a whole model, and the same from torch's encoder and decoder, with a padded source."""
    model = Transformer(WORDS, WORDS, WIDTH, 2, HEADS, 24, dtype=torch.float64)
    encoder = torchs(nn.TransformerEncoder, nn.TransformerEncoderLayer, True)
    decoder = torchs(nn.TransformerDecoder, nn.TransformerDecoderLayer, True)
    for ours, name, theirs in ((TransformerEncoder, "encoder", encoder), (TransformerDecoder, "decoder", decoder)):
        getattr(model, name).load_state_dict(ours.from_torch(theirs).state_dict())  # type: ignore
    source, target, lengths = draw.integers(4, WORDS, 3, 7), draw.integers(4, WORDS, 3, 6), torch.tensor([7, 1, 4])
    before = functional.pad(target[:, :-1], (1, 0), value=model.start)
    read, told = (
        WIDTH**power * table.weight[tokens] + sinusoidal_encoding(torch.arange(n), WIDTH, dtype=torch.float64)
        for table, tokens, n in ((model.of_source, source, 7), (model.of_target, before, 6))
    )
    padded, ahead = torch.arange(7) >= lengths[:, None], torch.ones(6, 6, dtype=torch.bool).triu(1)
    found = decoder(told, encoder(read, src_key_padding_mask=padded), ahead, memory_key_padding_mask=padded)
    return model(source, target, lengths), found @ model.of_target.weight.mT + model.output_bias


def opinionated(draw):
    """A model with drawn weights."""
    model = Transformer(WORDS, WORDS, 8, 1, 2, dtype=torch.float64)
    for values in model.parameters():
        values.data = 0.5 * draw.normal(*values.shape)
    return model


def same_tokens(model, source, beams):
    """Whether a search with so many beams finds what the likeliest next token leads to."""
    found, greedy = beam_decode(model, source, None, 8, beams).tokens, greedy_decode(model, source, None, 8).tokens
    return found.shape == greedy.shape and bool((found == greedy).all())


@claim("transformer.translation")
@lie("it translates as well without cross-attention", seeing=False)
@lie("a recurrent network learns the same in as many steps without attention", earlier=False)
@lie("tokens are read as small as they are drawn", power=0.0)
@lie("two beams find what the likeliest next token leads to", beams=2)
def attention_alone_translates(draw, seeing=True, earlier=True, power=0.5, beams=1):
    """The whole against torch's halves; a search with one beam; a language with a lexicon and the opposite order."""
    pieces = close(*assembled(draw, power), ulps=1000)
    if not pieces.holds:
        return pieces  # decided without training
    source = draw.integers(4, WORDS, 50, 6)
    # Opinions, though not so strong that wider searches would find nothing better.
    wild = draw.until(lambda: opinionated(draw), lambda model: not same_tokens(model, source, beams=2))
    searches = exactly(beam_decode(wild, source, None, 8, beams).tokens, greedy_decode(wild, source, None, 8).tokens)
    if not searches.holds:
        return searches
    model = draw.trained(transformer, teach_to_translate, seeing=seeing)
    before = draw.trained(recurrent, teach_to_translate, attention=earlier)
    read, written = sentences(1, draw.generator)
    with torch.no_grad():
        looked = Heat(model.alignment(read, written)[0], label="weight")
    figure = Figure("Where the decoder looks", "word read", "word written", [looked])
    return all_of(
        reaches(translated(model, draw.generator), 0.95).showing(figure),
        reaches(translated(before, draw.generator), 0.95, detail="a recurrent network with attention, of 2014"),
        pieces,
        searches,
    )
