"""Word embeddings: the table as a linear map, the law of contexts, and the optimum of negative sampling."""

import math

import torch
from torch.nn import functional

from lemmata.convolution.skip_gram import SkipGram
from lemmata.judge import all_of, claim, close, exactly, lie


def _draw_vectors(draw, model):
    """The model with drawn vectors."""
    with torch.no_grad():
        for values in model.parameters():
            values.copy_(draw.normal(*values.shape))
    return model


def those_that_occur(words, size):
    return functional.one_hot(words, size).sum(0) > 0


def all_rows(words, size):
    return torch.ones(size, dtype=torch.bool)


@claim("embed.definition")
@lie("every row of the table has a gradient", touched=all_rows)
@lie("words are counted from one", first=1)
def a_table_is_a_linear_map_of_one_hot_vectors(draw, touched=those_that_occur, first=0, model=SkipGram):
    """Rows of the table against products with one-hot vectors, to the last bit; then the rows that have a gradient."""
    table, words = _draw_vectors(draw, model(12, 5, dtype=torch.float64)), draw.integers(0, 8, 20)
    one_hot = functional.one_hot((words - first) % 12, 12).double()  # (20, 12)
    vectors = table.embed(words)  # (20, 5)
    (slope,) = torch.autograd.grad((vectors * draw.normal(20, 5)).sum(), table.given.weight)
    return all_of(
        exactly(vectors.detach(), (one_hot @ table.given.weight).detach()),
        exactly((slope != 0).any(1), touched(words, 12), detail="rows with a gradient"),
    )


def over_contexts(scores):
    return scores.logsumexp(1, keepdim=True)


def over_words(scores):
    return scores.logsumexp(0, keepdim=True)


@claim("embed.log_bilinear")
@lie("the sum runs over the given words", normaliser=over_words)
@lie("the loss has the other sign", sign=1.0)
@lie("the observed word has no part in the gradient", observed=0.0)
@lie("the best scores are the probabilities, not their logarithms", best=torch.exp)
def the_law_of_contexts(draw, normaliser=over_contexts, sign=-1.0, observed=1.0, best=torch.log, model=SkipGram):
    """Every pair of seven words, with scores up to a hundred; then counts whose conditional law must be the optimum."""
    size = 7
    words, contexts = torch.cartesian_prod(torch.arange(size), torch.arange(size)).unbind(1)
    losses, formulas, slopes, expected = [], [], [], []
    for scale in (1e-2, 1.0, 30.0):
        drawn = _draw_vectors(draw, model(size, 4, dtype=torch.float64))
        drawn.given.weight.data *= scale
        x, y = drawn.given.weight.detach(), drawn.predicted.weight.detach()
        scores = x @ y.T  # (word, context)
        found = [drawn.loss(w, c) for w, c in zip(words.split(1), contexts.split(1), strict=True)]
        losses.append(torch.stack(found).detach() / scale)
        formulas.append(sign * (scores - normaliser(scores)).flatten() / scale)
        (slope,) = torch.autograd.grad(found[9], drawn.predicted.weight)  # word 1, context 2
        error = scores[1].softmax(0) - observed * functional.one_hot(contexts[9], size).double()
        slopes.append(slope / scale)
        expected.append(error[:, None] * x[1] / scale)

    counts = draw.integers(1, 9, size, size)
    full, law = model(size, size, dtype=torch.float64), counts / counts.sum(1, keepdim=True, dtype=torch.float64)
    full.given.weight.data, full.predicted.weight.data = torch.eye(size, dtype=torch.float64), best(law).T.contiguous()
    pairs = [side.repeat_interleave(counts.flatten()) for side in (words, contexts)]
    optimum = torch.autograd.grad(full.loss(*pairs), tuple(full.parameters()))
    return all_of(
        close(torch.stack(losses), torch.stack(formulas), ulps=256, scale=100.0),
        close(torch.stack(slopes), torch.stack(expected), ulps=256, scale=10.0),
        close(torch.stack(optimum), 0.0, ulps=256, scale=1.0, detail="gradient at the optimum"),
    )


@claim("embed.negative_sampling")
@lie("the optimum does not depend on the weight of the negatives", shift=0.0)
@lie("the optimum is that of the softmax, ln p", noise=0.0)
@lie("negatives count as observed words do", sign=1.0)
def negative_sampling_finds_shifted_pointwise_information(draw, shift=1.0, noise=1.0, sign=-1.0, model=SkipGram):
    """Whole counts make both laws exact: the loss, and its gradient at the optimum."""
    size, beta = 5, 3.0
    counts, tickets = draw.integers(1, 9, size, size), draw.integers(1, 9, size)
    law, conditional = tickets.double() / tickets.sum(), counts.double() / counts.sum(1, keepdim=True)
    pairs = torch.cartesian_prod(torch.arange(size), torch.arange(size)).repeat_interleave(counts.flatten(), dim=0)
    words, contexts = pairs.unbind(1)  # each pair as often as it was counted
    negatives = torch.arange(size).repeat_interleave(tickets).expand(len(words), -1)  # their mean is that over D

    drawn = _draw_vectors(draw, model(size, 3, dtype=torch.float64)).requires_grad_(False)
    scores = drawn.given.weight @ drawn.predicted.weight.T  # (word, context)
    noisy = functional.logsigmoid(sign * scores) @ law  # (word,)
    formula = -(functional.logsigmoid(scores)[words, contexts] + beta * noisy[words]).mean()

    full = model(size, size, dtype=torch.float64)
    best = conditional.log() - shift * math.log(beta) - noise * law.log()
    full.given.weight.data, full.predicted.weight.data = torch.eye(size, dtype=torch.float64), best.T.contiguous()
    optimum = torch.autograd.grad(full.negative_sampling_loss(words, contexts, negatives, beta), [*full.parameters()])
    return all_of(
        close(torch.stack(optimum), 0.0, ulps=256, scale=1.0, detail="gradient at the optimum"),
        close(drawn.negative_sampling_loss(words, contexts, negatives, beta), formula, ulps=256),
    )
