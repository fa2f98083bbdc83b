"""Code lengths: what a code made for one distribution costs on symbols of another."""

import heapq
import itertools
import math

import torch

from lemmata.foundations.information.claims.information import distributions
from lemmata.foundations.information.discrete import entropy, kl_divergence
from lemmata.judge import all_of, at_least, at_most, claim, close, lie

BIT = math.log(2)  # in nats


def huffman_lengths(q):
    """The lengths of Huffman's code words: the two least probable groups are joined, again and again."""
    tie = itertools.count()
    groups = [(weight, next(tie), [symbol]) for symbol, weight in enumerate(q.tolist())]
    lengths = [0] * len(groups)
    heapq.heapify(groups)
    while len(groups) > 1:
        (less, _, left), (more, _, right) = heapq.heappop(groups), heapq.heappop(groups)
        for symbol in left + right:
            lengths[symbol] += 1
        heapq.heappush(groups, (less + more, next(tie), left + right))
    return torch.tensor(lengths, dtype=torch.float64)


def dyadic(draw, splits=7):
    """A random distribution of powers of one half: a certain outcome, halved again and again."""
    parts = [1.0]
    for _ in range(splits):
        half = parts.pop(int(draw.integers(0, len(parts), 1))) / 2
        parts += [half, half]
    return torch.tensor(parts, dtype=torch.float64)


def from_model_to_truth(p, q):
    """The divergence the other way round."""
    return kl_divergence(q, p)


@claim("information.kl_code_length")
@lie("the excess is the divergence of the truth from the model", divergence=from_model_to_truth)
@lie("the divergence counts bits as it is", bit=1.0)
@lie(
    "integer lengths cost at most half a bit more",
    regime="random pairs come near the supremum of one bit, and do not reach it",
    loose="a larger bound holds, too",
    most=0.5,
)
def the_divergence_is_the_excess_length_of_a_code(draw, divergence=kl_divergence, bit=BIT, most=1.0):
    """Mean lengths of ideal codes, of codes with integer lengths, and of Huffman's code where it is ideal."""
    p, q = distributions(draw, 200, 8), distributions(draw, 200, 8)
    cost = (entropy(p) + divergence(p, q)) / bit
    lengths = (-torch.log2(q)).ceil()  # (200, 8)
    rounded = (p * lengths).sum(-1)
    models = [dyadic(draw) for _ in range(20)]
    truths = distributions(draw, 20, len(models[0]))
    coded = torch.stack([truth @ huffman_lengths(model) for truth, model in zip(truths, models, strict=True)])
    ideal = (entropy(truths) + divergence(truths, torch.stack(models))) / bit
    return all_of(
        close((p * -torch.log2(q)).sum(-1), cost, scale=10 + cost),
        at_most(torch.exp2(-lengths).sum(-1), 1.0),  # Kraft: such a code exists
        at_least(rounded, cost),
        at_most(rounded, cost + most),
        close(coded, ideal, scale=10 + ideal),
    )
