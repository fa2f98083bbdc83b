"""Decoding against the model's own probabilities: a beam by the book, and all sequences that there are."""

import itertools

import pytest
import torch

from lemmata.recurrent import SequenceToSequence, beam_decode, greedy_decode, sample_decode

WORDS, END, MAX_LENGTH = 5, 3, 4
SOURCE = torch.randint(4, 9, (6, 5), generator=torch.Generator().manual_seed(2))
LENGTHS = torch.tensor([5, 1, 3, 4, 2, 5])
CLOSE = 1e-10  # sums of a few terms of size ten in double precision


def wild(attention, seed=0):
    """A model with opinions: large weights, so that greedy, narrow and wide searches disagree."""
    torch.manual_seed(seed)
    model = SequenceToSequence(9, WORDS, embedding=4, hidden=6, attention=attention).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def row(index):
    return SOURCE[index : index + 1], LENGTHS[index : index + 1]


@torch.no_grad()
def known(model, index, sequences):
    """log p of each sequence, in one batch; they may differ in length."""
    source, length = row(index)
    longest = max(map(len, sequences))
    filled = torch.tensor([[*sequence, *[END] * (longest - len(sequence))] for sequence in sequences])
    # A sequence that is cut off is no sequence that ends: what it is filled up with must not be counted.
    steps = model(source.expand(len(filled), -1), filled, length.expand(len(filled))).log_softmax(-1)
    steps = steps.gather(-1, filled[..., None])[..., 0]
    return [float(steps[i, : len(sequence)].sum()) for i, sequence in enumerate(sequences)]


def stripped(tokens):
    """A row of tokens up to its first end, which belongs to it."""
    tokens = tokens.tolist()
    return tuple(tokens[: tokens.index(END) + 1] if END in tokens else tokens)


def over(sequence):
    return sequence[-1:] == (END,)


def greedy_by_the_book(model, index):
    sequence = ()
    while len(sequence) < MAX_LENGTH and not over(sequence):
        longer = [(*sequence, word) for word in range(WORDS)]
        sequence = longer[int(torch.tensor(known(model, index, longer), dtype=torch.float64).argmax())]
    return sequence, known(model, index, [sequence])[0]


def beam_by_the_book(model, index, beams, power):
    """Lists of sequences, each with its probability from the whole model; the greedy one takes part at the end."""

    def score(scored):
        return scored[1] / len(scored[0]) ** power

    kept = [((), 0.0)]
    for _ in range(MAX_LENGTH):
        longer = [(*sequence, word) for sequence, _ in kept if not over(sequence) for word in range(WORDS)]
        if not longer:
            break
        ended = [each for each in kept if over(each[0])]
        kept = sorted([*ended, *zip(longer, known(model, index, longer), strict=True)], key=score)[::-1][:beams]
    return max(kept[0], greedy_by_the_book(model, index), key=score)


@pytest.mark.parametrize("attention", [False, True])
def test_greedy_takes_the_likeliest_next_token_in_every_row_of_a_batch(attention):
    lengths = []
    for seed in range(4):
        model = wild(attention, seed)
        found = greedy_decode(model, SOURCE, LENGTHS, MAX_LENGTH)
        expected = [greedy_by_the_book(model, index) for index in range(len(SOURCE))]
        assert [stripped(tokens) for tokens in found.tokens] == [sequence for sequence, _ in expected]
        assert found.log_probability.tolist() == pytest.approx([total for _, total in expected], abs=CLOSE)
        lengths.append({len(sequence) for sequence, _ in expected})
    assert any(len(found) > 1 for found in lengths)  # where some are over while others go on


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("beams", [1, 2, 3])
def test_a_beam_is_that_of_the_book_in_every_row_of_a_batch(beams, power):
    better = 0
    for seed in range(3):
        model = wild(attention=True, seed=seed)
        found = beam_decode(model, SOURCE, LENGTHS, MAX_LENGTH, beams, power)
        greedy = greedy_decode(model, SOURCE, LENGTHS, MAX_LENGTH)
        for index in range(len(SOURCE)):
            sequence, total = beam_by_the_book(model, index, beams, power)
            assert stripped(found.tokens[index]) == sequence
            assert float(found.log_probability[index]) == pytest.approx(total, abs=CLOSE)
            better += sequence != stripped(greedy.tokens[index])
    assert (better > 0) == (beams > 1)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_with_beams_for_all_the_best_of_all_sequences_is_found(power):
    model = wild(attention=False)
    others = [word for word in range(WORDS) if word != END]
    ended = [(*body, END) for n in range(MAX_LENGTH) for body in itertools.product(others, repeat=n)]
    every = [*ended, *itertools.product(others, repeat=MAX_LENGTH)]
    found = beam_decode(model, SOURCE, LENGTHS, MAX_LENGTH, len(every), power)
    for index in range(len(SOURCE)):
        scores = [total / len(s) ** power for s, total in zip(every, known(model, index, every), strict=True)]
        assert stripped(found.tokens[index]) == every[max(range(len(every)), key=scores.__getitem__)]


def test_what_is_drawn_has_the_probability_that_the_model_gives_it_at_every_temperature():
    model = wild(attention=True)
    for temperature in (0.3, 1.0, 5.0):
        drawn = sample_decode(model, SOURCE, LENGTHS, MAX_LENGTH, temperature, torch.Generator().manual_seed(4))
        expected = [known(model, index, [stripped(tokens)])[0] for index, tokens in enumerate(drawn.tokens)]
        assert drawn.log_probability.tolist() == pytest.approx(expected, abs=CLOSE)


def test_cold_draws_are_greedy_and_hot_ones_are_even():
    model = wild(attention=True)
    cold = sample_decode(model, SOURCE, LENGTHS, MAX_LENGTH, 1e-6, torch.Generator().manual_seed(0))
    assert torch.equal(cold.tokens, greedy_decode(model, SOURCE, LENGTHS, MAX_LENGTH).tokens)
    source, lengths = (each.repeat_interleave(4000, 0) for each in row(0))
    hot = sample_decode(model, source, lengths, 1, 1e6, torch.Generator().manual_seed(0)).tokens[:, 0]
    counts = torch.bincount(hot, minlength=WORDS)
    # 5 standard deviations of a count: missed once in a million times, and by this seed never.
    assert (counts - 800).abs().max() < 5 * (4000 * 0.2 * 0.8) ** 0.5
