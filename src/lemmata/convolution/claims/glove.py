"""GloVe: its loss entry by entry, exact fits, log-ratios, and entries of a table that were never seen."""

import torch

from lemmata.convolution.glove import GloVe
from lemmata.judge import all_of, at_most, claim, close, exactly, lie

SIZE, RANK = 14, 2


def fitted(draw, model, pairs, counts):
    """The model at a minimum of its loss, from vectors of order one."""
    with torch.no_grad():
        for values in model.parameters():
            values.copy_(0.5 * draw.normal(*values.shape))
    optimizer = torch.optim.LBFGS(
        model.parameters(), max_iter=200, tolerance_grad=1e-9, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        value = model.loss(pairs, counts)
        value.backward()
        return value

    optimizer.step(loss)
    return model.requires_grad_(False)


def raw(counts):
    return counts / counts.max()


@claim("embed.glove")
@lie("seldom met pairs count in proportion", exponent=1.0)
@lie("nothing bounds the weight of frequent pairs", most=100.0)
@lie("words that never met are entries, too", met=False, raises=ValueError)
@lie("one dimension less will do", fewer=1)
@lie("the vectors give ratios of raw counts", scale=raw)
@lie("a word is its row's vector alone", columns=0.0)
def products_are_logarithms_of_counts(
    draw, exponent=0.75, most=1.0, met=True, fewer=0, scale=torch.log, columns=1.0, model=GloVe
):
    """The loss of single entries; counts of a planted rank with a fifth kept aside; any counts, in full dimension."""
    pairs = torch.cartesian_prod(torch.arange(SIZE), torch.arange(SIZE))
    counts = draw.uniform(len(pairs), low=0.0, high=7.0).exp()
    counts[0] *= met
    full = fitted(draw, model(SIZE, SIZE, maximum=1.0, dtype=torch.float64), pairs, counts)
    table = full(torch.arange(SIZE))  # (word, context)
    ratios = scale(counts.view(SIZE, SIZE))[:-1] - scale(counts.view(SIZE, SIZE))[1:]

    drawn = model(SIZE, 3, maximum=30.0, dtype=torch.float64).requires_grad_(False)
    x, y = drawn.given.weight, drawn.predicted.weight
    errors = x @ y.T + drawn.given_bias[:, None] + drawn.predicted_bias - counts.log().view(SIZE, SIZE)
    weights = (counts / 30).pow(exponent).clamp(max=most)
    losses = [drawn.loss(*entry) for entry in zip(pairs.split(1), counts.split(1), strict=True)]

    planted = draw.normal(SIZE, RANK) @ draw.normal(RANK, SIZE) + draw.normal(SIZE, 1) + draw.normal(SIZE) + 4
    seen = torch.ones(SIZE, SIZE, dtype=torch.bool)
    seen[torch.arange(SIZE).repeat(3), (torch.arange(SIZE) + torch.tensor([[0], [3], [7]])).flatten() % SIZE] = False
    low = model(SIZE, RANK - fewer, maximum=1.0, dtype=torch.float64)
    low = fitted(draw, low, pairs[seen.flatten()], planted[seen].exp())
    return all_of(
        close(torch.stack(losses), weights * errors.flatten().square(), ulps=256),
        at_most(full.loss(pairs, counts), 1e-10, detail="J in full dimension"),
        close(table[:-1] - table[1:], ratios, within=1e-4, detail="differences of vectors"),
        close(low(torch.arange(SIZE))[~seen], planted[~seen], within=1e-4, detail="entries never seen"),
        exactly(drawn.embed(torch.arange(SIZE)), x + columns * y),
    )
