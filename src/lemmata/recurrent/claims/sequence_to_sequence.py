"""Sequence to sequence: the law that encoder and decoder define, how it is decoded, and what its bottleneck costs."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import torch

from lemmata.judge import Figure, Line, all_of, always, at_least, claim, close, exactly, lie, probability_is, reaches
from lemmata.recurrent.decoding import beam_decode, greedy_decode, sample_decode
from lemmata.recurrent.gru import GRU
from lemmata.recurrent.ngram import NGram
from lemmata.recurrent.sequence_to_sequence import SequenceToSequence
from lemmata.recurrent.stacked import Stacked

END = 2  # of the tokens 0, 1, 2; 0 is also the start, which is never written before the first token
MOST = 4


def two_layers(inputs, hidden):
    return Stacked(GRU(inputs, hidden), GRU(hidden, hidden))


# Every cell, both kinds of encoder, with attention and without.
KINDS = [
    {},
    {"attention": True},
    {"cell": "lstm", "bidirectional": True},
    {"cell": "lstm", "attention": True, "bidirectional": True},
    {"cell": "elman", "bidirectional": True, "tied": True},
    {"cell": two_layers, "attention": True},
]


def small(draw, system=SequenceToSequence, **kind):
    """A model of three tokens with weights large enough for its laws to be far from uniform."""
    with torch.random.fork_rng([]):
        torch.manual_seed(int(draw.integers(0, 2**31, 1)))
        model = system(5, 3, embedding=3, hidden=4, start=0, end=END, **kind).double()
    for parameter in model.parameters():
        parameter.data.mul_(2.0)
    return model.requires_grad_(False)


def everything(max_length=MOST):
    """All sequences: those that end within `max_length` tokens, then those that are cut there; filled up with `end`."""
    ended = [(*body, END) for n in range(max_length) for body in itertools.product((0, 1), repeat=n)]
    rows = [(*row, *[END] * (max_length - len(row))) for row in [*ended, *itertools.product((0, 1), repeat=max_length)]]
    return torch.tensor(rows)


def by_hand(model, source, target, ahead=0, ending=1):
    """The sum of the steps' log-probabilities of one target, token by token up to its end."""
    state, memory = model.encode(source)
    told = [model.start, *target.tolist(), END]
    total = torch.zeros((), dtype=torch.float64)
    for place, token in enumerate(target.tolist()):
        logits, state, _ = model.step(torch.tensor([told[place + ahead]]), state, memory)
        total = total + (ending if token == END else 1) * logits[0].log_softmax(-1)[token]
        if token == END:
            break
    return total


def mixed(text, order, vocab_size, context, token):
    """The probability of a token by counting, as a fraction: each order mixed with the one below it."""
    chance = Fraction(1, vocab_size)
    for n in range(min(order, len(context) + 1)):
        last = context[len(context) - n :]
        after = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == last)
        if after:
            trust = Fraction(sum(after.values()), sum(after.values()) + len(after))
            chance = trust * Fraction(after[token], sum(after.values())) + (1 - trust) * chance
    return chance


def counts_make_a_law(draw, vocab_size=4, longest=3):
    """N-grams of a text without the last token: laws after every context, and texts as products of their steps."""
    text, parts = tuple(draw.integers(0, vocab_size - 1, 12).tolist()), []
    contexts = [context for n in range(longest + 1) for context in itertools.product(range(vocab_size), repeat=n)]
    for order in (1, 2, 3):
        model = NGram(order, vocab_size).fit(torch.tensor(text))
        # With a higher order there are more contexts: all of those that it can tell apart, and a few longer ones.
        chosen = [context for context in contexts if len(context) < order] + contexts[-3:]
        found = torch.stack([model.probabilities(torch.tensor(context, dtype=torch.int64)) for context in chosen])
        law = [[mixed(text, order, vocab_size, context, token) for token in range(vocab_size)] for context in chosen]
        new = tuple(draw.integers(0, vocab_size, 9).tolist())
        product = math.prod(mixed(text, order, vocab_size, new[:t], new[t]) for t in range(len(new)))
        parts += [
            exactly([sum(row) for row in law], [1] * len(law)),
            close(found, torch.tensor([[float(chance) for chance in row] for row in law], dtype=torch.float64)),
            close(model.nll(torch.tensor(new)).sum(), -math.log(product)),
            close(model.nll(torch.tensor(new[:1])).exp(), [float(1 / mixed(text, order, vocab_size, (), new[0]))]),
            close(model.bits(torch.tensor(new)), -math.log2(product) / len(new)),
        ]
    return parts


@claim("seq.factorisation")
@lie("with each token given itself too, the product is still a law of sequences", ahead=1)
@lie("the end of a sequence needs no probability", ending=0)
def the_steps_multiply_to_a_law_of_sequences(draw, ahead=0, ending=1):
    """Every sequence of two tokens up to length four: products of steps, their sum, what comes next; n-grams."""
    source, targets = draw.integers(0, 5, 1, 3), everything()
    parts = []
    for kind in KINDS:
        model = small(draw, **kind)
        steps = torch.stack([by_hand(model, source, target, ahead, ending) for target in targets])
        joint = model.log_probability(source.expand(len(targets), -1), targets)
        parts += [close(steps.exp().sum(), 1.0), close(joint, steps)]
        # A conditional is a ratio of sums over whole sequences: it must be what the step says.
        begun = (targets[:, 0] == 0).nonzero()[:, 0]
        ratio = joint[begun[targets[begun, 1] == 1]].exp().sum() / joint[begun].exp().sum()
        second = model(source, torch.tensor([[0, 1]]))[0, 1].log_softmax(-1)[1].exp()
        parts += [close(ratio, second), close(-model.loss(source, targets[5:6]) * counted(targets[5]), joint[5])]
    if not all_of(*parts).holds:
        return all_of(*parts)
    parts += counts_make_a_law(draw)
    model = small(draw, attention=True)
    for parameter in model.parameters():
        parameter.data.mul_(2.0)  # sure enough of itself that another temperature would show
    likely = model.log_probability(source.expand(len(targets), -1), targets)
    which = int(likely.argmax())

    def happens(n):
        made = sample_decode(model, source.expand(n, -1), max_length=MOST, generator=draw.generator).tokens
        made = torch.nn.functional.pad(made, (0, MOST - made.shape[1]), value=END)
        return (made == targets[which]).all(1)

    return all_of(*parts, probability_is(happens, float(likely[which].exp()), effect=0.02))


def counted(target):
    """How many tokens a sequence has, its end included."""
    return next((place + 1 for place, token in enumerate(target.tolist()) if token == END), len(target))


class StartsFromNothing(SequenceToSequence):
    """The decoder begins at zero, whatever was read."""

    def encode(self, source, lengths=None):
        state, memory = super().encode(source, lengths)
        return type(super().encode(source))(zeros(state), memory)


def zeros(state):
    return tuple(map(zeros, state)) if isinstance(state, tuple) else torch.zeros_like(state)


def step_by_step(model, source, target):
    """Logits and attention of a decoder that runs as it does in use, shown the target one token at a time."""
    (state, memory), logits, looked = model.encode(source), [], []
    for token in torch.cat([torch.full_like(target[:, :1], model.start), target[:, :-1]], 1).unbind(1):
        found, state, weights = model.step(token, state, memory)
        logits.append(found)
        looked += [] if weights is None else [weights]
    return torch.stack(logits, 1)[0], torch.stack(looked, 1)[0] if looked else None


def the_pieces_fit(draw, system, smoothing=0.3):
    """Teacher forcing against steps, padded batches against single sources, the loss against its definition."""
    parts = []
    source, target, lengths = draw.integers(0, 5, 3, 6), everything()[[0, 4, 30]], torch.tensor([6, 1, 4])
    for kind in KINDS:
        model = small(draw, system, **kind)
        taught = model(source, target, lengths)
        for row, n in enumerate(lengths.tolist()):
            alone = source[row : row + 1, :n], target[row : row + 1]
            logits, looked = step_by_step(model, *alone)
            parts += [close(taught[row], logits), close(taught[row], model(*alone)[0])]
            if looked is not None:
                parts.append(close(model.alignment(source, target, lengths)[row, :, :n], looked))
        steps = taught[model.counted(target)].log_softmax(-1)
        exact = steps.gather(1, target[model.counted(target)][:, None]).mean()
        blurred = (1 - smoothing) * exact + smoothing * steps.mean()
        parts += [
            exactly(model.counted(target).sum(1), torch.tensor([1, 3, 4])),
            close(-model.loss(source, target, lengths), exact),
            close(-model.loss(source, target, lengths, smoothing), blurred),
            close(model.log_probability(source, target, lengths), torch.stack([
                by_hand(model, source[row : row + 1, :n], target[row]) for row, n in enumerate(lengths.tolist())
            ])),
        ]  # fmt: skip
        if not kind:  # the same cell twice: the state is handed over as it is, and there is nothing else to look at
            read = model.encoder(model.of_source(source))[1]
            parts += [exactly(model.encode(source).state, read), exactly(model.encode(source).memory is None, True)]
    return parts


def decoding_finds_what_is_likely(draw, system, power, beams=40, models=6):
    """Greedy, a narrow beam and one that keeps everything, against all sequences that there are."""
    targets = everything()
    sizes = torch.tensor([counted(target) for target in targets])
    exhaustive, narrow, scored, greedily = [], [], [], []
    for number in range(models):
        model = small(draw, system, **KINDS[number % len(KINDS)])
        source, lengths = draw.integers(0, 5, 3, 4), torch.tensor([4, 2, 3])
        made = [
            greedy_decode(model, source, lengths, MOST),
            beam_decode(model, source, lengths, MOST, beams=2),
            beam_decode(model, source, lengths, MOST, beams=beams),
            sample_decode(model, source, lengths, MOST, temperature=1e-9, generator=draw.generator),
            beam_decode(model, source, lengths, MOST, beams=1),
            beam_decode(model, source, lengths, MOST, beams=beams, length_power=0.0),
            beam_decode(model, source, lengths, MOST, beams=beams, length_power=0.3),
        ]
        widths = [max(counted(row) for row in each.tokens) for each in made]
        scored.append(exactly([each.tokens.shape[1] for each in made], widths))
        rows = [torch.nn.functional.pad(each.tokens, (0, MOST - each.tokens.shape[1]), value=END) for each in made]
        told = [model.log_probability(source, row, lengths) for row in rows]
        greedily += [rows[0] == rows[3], rows[0] == rows[4]]
        scored.append(close(torch.stack([each.log_probability for each in made]), torch.stack(told)))
        divided = torch.stack([t / torch.tensor([counted(y) for y in row]) for t, row in zip(told, rows, strict=True)])
        narrow.append(at_least(divided[1], divided[0]))
        for row, n in enumerate(lengths.tolist()):
            law = model.log_probability(source[row : row + 1, :n].expand(len(targets), -1), targets)
            exhaustive.append((rows[2][row] == targets[(law / sizes**power).argmax()]).all())
            exhaustive.append((rows[5][row] == targets[law.argmax()]).all())
            exhaustive.append((rows[6][row] == targets[(law / sizes**0.3).argmax()]).all())
            chain = model(source[row : row + 1, :n], rows[0][row : row + 1])[0].argmax(-1)
            greedily.append(chain[: counted(rows[0][row])] == rows[0][row, : counted(rows[0][row])])
    model.output_bias[END] = -1e9  # a model that does not end is stopped
    endless = [decode(model, source).tokens.shape for decode in (greedy_decode, sample_decode, beam_decode)]
    scored.append(exactly(endless, [(3, 100)] * 3))
    return [always(exhaustive), *narrow, *scored, always(torch.cat([each.flatten() for each in greedily]))]


def reversals(count, length, generator):
    """Digits (the numbers 4 to 13) and the same backwards, with their end."""
    digits = torch.randint(4, 14, (count, length), generator=generator)
    return digits, torch.nn.functional.pad(digits.flip(1), (0, 1), value=3)


def reverser():
    """A model without attention, of 64 numbers between its two halves."""
    return SequenceToSequence(14, 14, embedding=16, hidden=64)


def teach_to_reverse(model, generator, length, steps=500, batch=64):
    """Some batches of so many digits each, which the model shall write backwards."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99), fused=True)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 * min((step + 1) / 30, 1.0, 2 - 2 * step / steps)
        optimizer.zero_grad()
        model.loss(*reversals(batch, length, generator)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def right_digits(model, length, generator, count=500):
    """Which digits of some sequences come back in their place, written greedily: (sequences, tokens)."""
    digits, backwards = reversals(count, length, generator)
    made = greedy_decode(model, digits, max_length=length + 1).tokens
    return torch.nn.functional.pad(made, (0, length + 1 - made.shape[1]), value=3) == backwards


@claim("seq.seq2seq")
@lie("the accuracy does not depend on the length of the sequence", kept=1.0)
@lie("the decoder begins from zero, not from what was read", system=StartsFromNothing)
@lie("a search for the likeliest sequence need not mind lengths", power=0.0)
def short_sequences_are_reversed_and_long_ones_do_not_fit_into_the_state(
    draw, kept=0.0, system=SequenceToSequence, power=1.0
):
    """The share of digits reversed without a mistake, by length, after training; and that the pieces fit together."""
    pieces = [*the_pieces_fit(draw, system), *decoding_finds_what_is_likely(draw, system, power)]
    if not all(piece.holds for piece in pieces):
        return all_of(*pieces)  # decided without training
    models = {n: draw.trained(reverser, teach_to_reverse, length=n) for n in (6, 20)}
    short, long = (right_digits(model, n, draw.generator).double() for n, model in models.items())
    marks = [
        Line(range(1, right.shape[1] + 1), right.mean(0), f"{right.shape[1] - 1} digits") for right in (short, long)
    ]
    figure = Figure("Digits written backwards from one state of 64 numbers", "place", "share that is right", marks)
    whole, wholes = (right.prod(1).mean().item() for right in (short, long))
    return all_of(
        reaches(whole, 0.95, detail="six digits without a mistake").showing(figure),
        close(wholes / whole, kept, within=0.5),  # halfway between no loss and a total one
        *pieces,
    )
