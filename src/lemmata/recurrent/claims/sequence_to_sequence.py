"""Sequence to sequence: the law that encoder and decoder define, how it is decoded, and what its bottleneck costs."""

import itertools

import torch

from lemmata.judge import Figure, Line, Points, all_of, claim, close, exactly, lie, probability_is, reaches
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


def by_counting(draw, vocab_size=3, length=3):
    """Logarithms of all texts of one length by n-grams of a text: as the model says, and as products of its steps."""
    texts = torch.cartesian_prod(*[torch.arange(vocab_size)] * length)
    seen, joint, steps = draw.integers(0, vocab_size - 1, 12), [], []  # one token never came
    for order in (1, 2, 3):
        model = NGram(order, vocab_size).fit(seen)
        joint.append(torch.stack([-model.nll(text).sum() for text in texts]))
        chances = [[model.probabilities(text[:t])[text[t]] for t in range(length)] for text in texts]
        steps.append(torch.tensor(chances).log().sum(1))
    return joint, steps


@claim("seq.factorisation")
@lie("with each token given itself too, the product is still a law of sequences", ahead=1)
@lie("the end of a sequence needs no probability", ending=0)
def the_steps_multiply_to_a_law_of_sequences(draw, ahead=0, ending=1):
    """Every sequence of two tokens up to length four: products of steps, their sum, what comes next; n-grams."""
    source, targets = draw.integers(0, 5, 1, 3), everything()
    begun = targets[:, 0] == 0
    joint, steps = by_counting(draw)
    ratios, second = [], []
    for kind in KINDS:
        model = small(draw, **kind)
        steps.append(torch.stack([by_hand(model, source, target, ahead, ending) for target in targets]))
        joint.append(model.log_probability(source.expand(len(targets), -1), targets))
        # A conditional is a ratio of sums over whole sequences: it must be what the step says.
        chances = joint[-1].exp()
        ratios.append(chances[begun & (targets[:, 1] == 1)].sum() / chances[begun].sum())
        second.append(model(source, torch.tensor([[0, 1]]))[0, 1].softmax(-1)[1])
    model = small(draw, attention=True)
    for parameter in model.parameters():
        parameter.data.mul_(2.0)  # sure enough of itself that another temperature would show
    likely = model.log_probability(source.expand(len(targets), -1), targets)
    which = int(likely.argmax())

    def happens(n):
        made = sample_decode(model, source.expand(n, -1), max_length=MOST, generator=draw.generator).tokens
        made = torch.nn.functional.pad(made, (0, MOST - made.shape[1]), value=END)
        return (made == targets[which]).all(1)

    return all_of(
        close(torch.stack([law.exp().sum() for law in steps]), 1.0),
        close(torch.cat(joint), torch.cat(steps)),
        close(ratios, second),
        probability_is(happens, float(likely[which].exp()), effect=0.02),
    )


class StartsFromNothing(SequenceToSequence):
    """The decoder begins at zero, whatever was read."""

    def encode(self, source, lengths=None):
        state, memory = super().encode(source, lengths)
        return type(super().encode(source))(zeros(state), memory)


def zeros(state):
    return tuple(map(zeros, state)) if isinstance(state, tuple) else torch.zeros_like(state)


def step_by_step(model, source, target):
    """Logits of a decoder that runs as it does in use, shown the target one token at a time: (time, tokens)."""
    (state, memory), logits = model.encode(source), []
    for token in torch.cat([torch.full_like(target[:, :1], model.start), target[:, :-1]], 1).unbind(1):
        found, state, _ = model.step(token, state, memory)
        logits.append(found[0])
    return torch.stack(logits)


def taught_and_used(draw, system):
    """Logits of every kind of model: a padded batch at once, and each source alone, step by step."""
    source, target, lengths = draw.integers(0, 5, 3, 6), everything()[[0, 4, 30]], torch.tensor([6, 1, 4])
    at_once, alone = [], []
    for kind in KINDS:
        model = small(draw, system, **kind)
        at_once.append(model(source, target, lengths))
        rows = [(source[row : row + 1, :n], target[row : row + 1]) for row, n in enumerate(lengths.tolist())]
        alone.append(torch.stack([step_by_step(model, *row) for row in rows]))
    return torch.stack(at_once), torch.stack(alone)


def likeliest(draw, power, beams=40):
    """What beams wide enough for all sequences find, and what is best of all that there are."""
    targets = everything()
    sizes = (targets != END).sum(1).add(1).clamp(max=MOST)  # the end is a token, too
    found, best = [], []
    for kind in KINDS:
        model, source, lengths = small(draw, **kind), draw.integers(0, 5, 3, 4), torch.tensor([4, 2, 3])
        made = beam_decode(model, source, lengths, MOST, beams=beams).tokens
        found.append(torch.nn.functional.pad(made, (0, MOST - made.shape[1]), value=END))
        laws = [model.log_probability(source[[row], :n].expand(31, -1), targets) for row, n in enumerate(lengths)]
        best.append(targets[(torch.stack(laws) / sizes**power).argmax(1)])
    return torch.cat(found), torch.cat(best)


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
    model, source = small(draw, system), draw.integers(0, 5, 3, 6)
    pieces = all_of(
        exactly(model.encode(source).state, model.encoder(model.of_source(source))[1]),
        close(*taught_and_used(draw, system)),
        exactly(*likeliest(draw, power)),
    )
    if not pieces.holds:
        return pieces  # decided without training
    models = {n: draw.trained(reverser, teach_to_reverse, length=n) for n in (6, 20)}
    so_far = [right_digits(model, n, draw.generator).double().cumprod(1).mean(0) for n, model in models.items()]
    whole, wholes = (float(shares[-1]) for shares in so_far)
    lines = [Line(range(1, len(shares) + 1), shares, f"{len(shares) - 1} digits") for shares in so_far]
    marks = [*lines, Points([21], [kept * whole], "20 digits as stated")]
    figure = Figure("Digits written backwards from one state of 64 numbers", "place", "share right so far", marks)
    return all_of(
        reaches(whole, 0.95, detail="six digits without a mistake").showing(figure),
        close(wholes / whole, kept, within=0.5),  # halfway between no loss and a total one
        pieces,
    )
