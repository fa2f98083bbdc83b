"""Attention: weights that add up to one, the mean they take of the values, its limits, and why scores are scaled."""

import math

import torch
from torch.nn import functional

from lemmata.judge import ALPHA, all_of, at_least, at_most, claim, close, exactly, lie, mean_is, slope_is
from lemmata.recurrent.claims.recall import with_drawn_weights
from lemmata.transformers.dot_product_attention import attention, attention_weights
from lemmata.transformers.self_attention import SelfAttention

EPS = torch.finfo(torch.float64).eps


@claim("attention.mixing")
@lie("the matrix of weights is not turned over", turned=torch.clone)
@lie("the weights add up to two", total=2.0)
@lie("weights may be negative", least=-0.1)
def outputs_are_means_of_the_values(draw, turned=torch.adjoint, total=1.0, least=0.0, attend=attention):
    """Columns of W X Aᵀ against attention in rows: from equal weights, with scale 0, to a single one, with 10,000."""
    x, w, query, key = draw.normal(3, 7), draw.normal(4, 3), draw.normal(7, 5), draw.normal(7, 5)  # X has columns
    value = (w @ x).mT  # (time, 4)
    scales = (0.0, 1.0, -1.0, 1e4)
    weights = torch.stack([attention_weights(query, key, scale=scale) for scale in scales])  # (scales, time, time)
    found = torch.stack([attend(query, key, value, scale=scale) for scale in scales])  # (scales, time, 4)
    return all_of(
        close(found.mT, w @ x @ turned(weights)),
        close(weights.sum(-1), total),
        at_least(weights, least, attained=True),
        at_most(found, value.amax(0), detail="no coordinate leaves the range of the values"),
        at_least(found, value.amin(0)),
    )


def queries_and_keys(draw, rank, width=8, time=12):
    """Tokens, queries and keys of a layer whose queries are so wide, and its two matrices."""
    layer = with_drawn_weights(SelfAttention(width, head_width=rank, bias=False), draw).requires_grad_(False)
    x = draw.normal(1, time, width)
    query, key, _ = layer.heads_of(x)
    return x[0], query[0, 0], key[0, 0], layer.project.weight.chunk(3)[:2]


@claim("attention.query_key")
@lie("the rank is the largest of the three", least=max)
@lie("queries and keys may be exchanged", product="KQ")
@lie("the weights after the softmax have no larger rank", after="q")
def scores_have_the_rank_of_the_queries(draw, least=min, product="QK", after="T"):
    """Ranks of scores for queries 1 to 10 wide, 8 features and 12 tokens; tokens that repeat; and after the softmax."""
    found, expected, scores, written = [], [], [], []
    for q in range(1, 11):
        x, query, key, (to_query, to_key) = queries_and_keys(draw, q)
        scores.append(query @ key.mT)  # (time, time)
        middle = to_query.mT @ to_key if product == "QK" else to_key.mT @ to_query
        written.append(x @ middle @ x.mT)
        found.append(int(torch.linalg.matrix_rank(scores[-1], rtol=1e-10)))
        expected.append(least(q, 8, 12))
    x, query, key, _ = queries_and_keys(draw, 6)
    twice = query[:4].repeat(3, 1) @ key[:4].repeat(3, 1).mT  # four tokens, three times each
    # Far apart, so that each query finds a key of its own.
    weights = attention_weights(20 * functional.normalize(query), functional.normalize(query), scale=1.0)
    return all_of(
        close(torch.stack(scores), torch.stack(written), ulps=1024),
        exactly(found, expected),
        exactly(int(torch.linalg.matrix_rank(twice, rtol=1e-10)), 4),
        exactly(int(torch.linalg.matrix_rank(weights, rtol=1e-10)), {"T": 12, "q": 6}[after]),
    )


@claim("attention.softmax")
@lie("the weights that a key gets from all queries add up to one", over="s")
@lie("scores are divided by q", power=1.0)
@lie("scores are not divided", power=0.0)
@lie("a constant may be added to all scores of a key", moved="t")
def weights_are_a_softmax_over_the_keys(draw, over="t", power=0.5, moved="s", attend=attention):
    """Ratios and sums of weights, outputs against torch's, a constant added; scores from zero to a million."""
    sizes, q = torch.tensor([0.0, 1e-8, 1.0, 1.0, 3.0, 1e3, 1e6], dtype=torch.float64)[:, None, None], 9
    query, key, value = sizes * draw.normal(7, 5, q), draw.normal(7, 8, q), draw.normal(7, 8, 4)
    weights, shift = attention_weights(query, key), draw.normal(q)
    scores = query @ key.mT * q**-power  # (cases, queries, keys)
    mild = slice(0, 5)
    # A vector added to all keys adds the same to all scores of a query; one added to all queries, to those of a key.
    added = (query, key + shift) if moved == "s" else (query + shift, key)
    return all_of(
        close(weights[mild].log().diff(dim=-1), scores[mild].diff(dim=-1), ulps=512),
        close(weights.sum({"t": -1, "s": -2}[over]), 1.0),
        close(attend(query, key, value), functional.scaled_dot_product_attention(query, key, value, scale=q**-power)),
        close(attend(query, key, value), weights @ value),
        close(attention_weights(*added)[mild], weights[mild], ulps=512),
    )


def at_the_key(value, query, key):
    """The value at the place of the key, t."""
    return value[key]


def at_the_query(value, query, key):
    """The value at the place of the query, i."""
    return value[query]


@claim("attention.output_sum")
@lie("the value is that at the place of the query", printed="003/1", taken=at_the_query)
@lie("values may stay where they are while the keys are put in another order", together=False)
def an_output_is_a_sum_over_keys_and_values(draw, taken=at_the_key, together=True, attend=attention):
    """The sum written out, the other queries changed, and pairs of key and value in another order."""
    query, key, value = draw.normal(6, 5), draw.normal(6, 5), draw.normal(6, 3)
    found = attend(query, key, value)
    written = torch.zeros(6, 3).double()
    for i in range(6):
        shares = torch.stack([query[i] @ key[t] / math.sqrt(5) for t in range(6)]).softmax(0)
        written[i] = sum(shares[t] * taken(value, i, t) for t in range(6))
    others = draw.normal(6, 5) * 100
    alone = [attend(torch.where(torch.arange(6)[:, None] == i, query, others), key, value)[i] for i in range(6)]
    order = torch.tensor([2, 0, 1, 5, 3, 4])
    return all_of(
        close(found, written),
        close(alone, found, detail="the other queries changed"),
        close(attend(query, key[order], value[order] if together else value), found, detail="in another order"),
    )


@claim("attention.soft_lookup")
@lie("the error falls with twice the gap", rate=2.0)
@lie("there is one more key that does not count", others=2.0)
@lie("the value of the key that matches least is found", best=torch.argmin)
def attention_looks_up_the_best_key(draw, rate=1.0, others=1.0, best=torch.argmax, attend=attention):
    """Errors against the bound for one to nine keys, beta from 0.1 to 100, and where all other keys are alike."""
    errors, bounds, kept = [], [], []
    for keys in range(1, 10):
        query, key, value = draw.normal(1, 4), draw.normal(keys, 4), draw.normal(keys, 3)
        if keys > 1:  # all the others alike: there the bound is reached as beta grows
            alike = torch.tensor([2.0] + [1.0] * (keys - 1), dtype=torch.float64)[:, None] * query / query.norm() ** 2
            values = torch.cat([value[:1], value[1:2].expand(keys - 1, 3)])
            kept.append(miss(attend, query, alike, values, 10.0, rate, others, best))
        for beta in (0.1, 1.0, 10.0, 100.0):
            error, bound = miss(attend, query, key, value, beta, rate, others, best)
            errors.append(error)
            bounds.append(bound + 64 * EPS * value.norm(dim=1).max())
    reached = torch.stack([error / bound for error, bound in kept])
    # There the error is the bound over 1 + (T - 1) exp(-10), at most eight times 4.6e-5 away.
    return all_of(at_most(errors, bounds), at_most(reached, 1.0), at_least(reached, 1 - 8 * math.exp(-10)))


def miss(attend, query, key, value, beta, rate, others, best):
    """How far attention is from the value of one key, and the bound, whose gap is that of the two best scores."""
    scores = (query @ key.mT)[0]
    star, (first, *second) = int(best(scores)), scores.sort(descending=True).values.tolist()
    gap = first - second[0] if second else math.inf
    most = (len(key) - others) * math.exp(-rate * beta * gap) * (value - value[star]).norm(dim=1).max()
    return (attend(query, key, value, scale=beta)[0] - value[star]).norm(), most


@claim("attention.scaling")
@lie("the variance is the square of d", power=2.0)
@lie("the variance is the root of d", power=0.5)
@lie("scores are divided by d", root=1.0)
@lie("without a scale the softmax stays as soft", falls=0.0)
@lie("without a scale its derivative falls like 1/d", falls=1.0)
def scores_keep_their_variance(draw, power=1.0, root=0.5, falls=0.5):
    """All pairs of sign vectors up to d = 6, normal ones by the weights of two keys, then sixteen keys as d grows."""
    sums, squares = [], []
    for d in range(1, 7):
        corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * d).view(-1, d)
        products = (corners @ corners.mT).double()
        sums.append(products.sum())
        squares.append(products.square().mean())

    def score(d):
        """Of a normal query and key: the logarithm of its weight over that of a key that is zero."""

        def sample(n):
            keys = torch.stack([draw.normal(n, d), torch.zeros(n, d).double()], dim=1)  # (n, 2, d)
            weights = attention_weights(draw.normal(n, 1, d), keys)[:, 0]
            return weights[:, 0].log() - weights[:, 1].log()

        return sample

    widths = torch.tensor([32, 128, 512])
    scaled, plain = ([softness(draw, int(d), scale) for d in widths] for scale in (None, 1.0))
    return all_of(
        exactly(torch.stack(sums), torch.zeros(6).double()),
        close(torch.stack(squares), [d**power for d in range(1, 7)]),
        *[mean_is(torch.square, score(d), d ** (power - 2 * root), effect=0.08, alpha=ALPHA / 2) for d in (4, 64)],
        slope_is(widths, scaled, 0.0, within=0.02),
        # The two best scores lie near each other with a chance in inverse proportion to their spread. Of 800 queries
        # the mean is off by some 7 %, its slope over a factor 16 by some 0.03.
        slope_is(widths, plain, -falls, within=0.15),
    )


def softness(draw, d, scale, queries=400, keys=16):
    """The mean slope of the weights in their scores, a(1 - a) summed over the keys, in two batches of queries."""
    drawn = ((draw.normal(queries, 1, d), draw.normal(queries, keys, d)) for _ in range(2))
    weights = torch.cat([attention_weights(*pair, scale=scale) for pair in drawn])
    return float((weights * (1 - weights)).sum(-1).mean())
