"""Additive attention: weights that add up to one, the mean they take, and the alignment a trained decoder finds."""

import torch

from lemmata.judge import Figure, Heat, Points, all_of, claim, close, lie, reaches
from lemmata.recurrent.additive_attention import AdditiveAttention
from lemmata.recurrent.claims.sequence_to_sequence import reversals, right_digits, teach_to_reverse
from lemmata.recurrent.sequence_to_sequence import SequenceToSequence

LENGTH = 20


def by_pairs(attention, query, annotation):
    """A network of one hidden layer that is shown the query beside one annotation, put together from its weights."""
    pair = torch.cat([query, annotation])
    first = torch.cat([attention.of_query.weight, attention.of_annotation.weight], 1)
    return attention.score.weight[0] @ torch.tanh(first @ pair + attention.of_query.bias)


def by_products(attention, query, annotation):
    """The other attention: the inner product of two projections."""
    return (attention.of_query(query)) @ (attention.of_annotation(annotation))


def mean_of(shares, annotations):
    return shares @ annotations


def best_of(shares, annotations):
    """Hard attention: the annotation with the largest weight."""
    return annotations[shares.argmax()]


def seen_and_expected(draw, score, take):
    """Weights and contexts beside each other, and the same from pairs taken one at a time: memories of many lengths."""
    attention = AdditiveAttention(queries=3, annotations=4, hidden=6).double()
    for parameter in attention.parameters():
        parameter.data.mul_(3.0)
    queries, annotations, lengths = draw.normal(5, 3), draw.normal(5, 7, 4), torch.tensor([7, 1, 4, 0, 6])
    context, weights = attention(queries, annotations, lengths)
    shares, taken = torch.zeros(5, 7).double(), torch.zeros(5, 4).double()  # nothing is looked at beyond the end
    for row, n in enumerate(lengths.tolist()):
        if n:
            scores = torch.stack([score(attention, queries[row], annotations[row, j]) for j in range(n)])
            shares[row, :n] = scores.softmax(0)
            taken[row] = take(shares[row, :n], annotations[row, :n])
    return torch.cat([weights, context], 1), torch.cat([shares, taken], 1)


def reverser(attention):
    """A model that reads both ways; with attention its decoder looks back at what was read."""
    return SequenceToSequence(14, 14, embedding=16, hidden=32, bidirectional=True, attention=attention)


@claim("seq.bahdanau")
@lie("the weights that a place gets from all steps add up to one", over="i")
@lie("the score is an inner product", score=by_products)
@lie("the context is the annotation of the largest weight", take=best_of)
@lie("the decoder looks from left to right", direction=1)
@lie("without attention it works as well", needed=False)
def the_decoder_learns_where_to_look(draw, over="j", score=by_pairs, take=mean_of, direction=-1, needed=True):
    """Weights and contexts against pairs; twenty digits reversed after training, with the alignment that is learnt."""
    generator = draw.generator
    by_pair = close(*seen_and_expected(draw, score, take))
    if not by_pair.holds:
        return by_pair  # decided without training
    lessons = {"length": LENGTH, "steps": 300, "batch": 32}
    model, plain = (draw.trained(reverser, teach_to_reverse, attention=a, **lessons) for a in (True, False))
    digits, backwards = reversals(50, LENGTH, generator)
    with torch.no_grad():
        weights = model.alignment(digits, backwards)  # (sequences, i, j)
    place = torch.arange(LENGTH)
    expected = place if direction > 0 else place.flip(0)
    # A digit is also seen in the states beside its own, and some models come to look there: one place is allowed for.
    near = (weights[:, :LENGTH].argmax(2) - expected).abs() <= 1
    note = "The source is " + " ".join(str(int(digit) - 4) for digit in digits[0]) + "; the last row is the end of all."
    marks = [Heat(weights[0], label="weight"), Points(expected, place, "the digit to be written")]
    figure = Figure("Where the decoder looks", "digit of the source", "digit written", marks, note=note)
    return all_of(
        reaches(right_digits(model, LENGTH, generator).all(1).double().mean(), 0.95).showing(figure),
        reaches(right_digits(plain, LENGTH, generator).all(1).double().mean(), 0.5, at_most=needed),
        reaches(near.double().mean(), 0.9, detail="largest weights at the digit to be written; 0.15 by chance"),
        close(weights.sum({"i": 1, "j": 2}[over]), torch.ones(()), ulps=256),
        by_pair,
    )
