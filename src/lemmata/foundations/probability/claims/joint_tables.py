"""Rules of probability on tables: sum, product and chain rule, Bayes, independence; against counting samples."""

import functools
import itertools

import torch

from lemmata.judge import Figure, Line, all_of, claim, close, exactly, lie


def labels(draw, total=4096):
    """Labels of X, Y and Z in 3, 4 and 2 classes, dependent on each other; a power of two keeps fractions exact."""
    x, noise = draw.integers(0, 3, total), draw.integers(0, 4, total)
    y = torch.where(draw.uniform(total) < 0.5, x, noise)
    return x, y, torch.where(draw.uniform(total) < 0.6, (x + y) % 2, draw.integers(0, 2, total))


def counted(sizes, *named):
    """The fraction of each combination of labels among samples: one axis for each label, of its number of classes."""
    one = torch.ones((), dtype=torch.float64)
    return torch.zeros(sizes, dtype=torch.float64).index_put(named, one, accumulate=True) / len(named[0])


def counted_given(condition, classes, size, label):
    """The fractions among those samples alone that meet each condition: a row for each, (classes, size)."""
    return torch.stack([counted((size,), label[condition == value]) for value in range(classes)])


@claim("probability.sum_rule")
@lie("the conditional probabilities are added without weights", power=0.0)
def summing_a_variable_out_leaves_the_distribution_of_the_others(draw, power=1.0):
    """Fractions counted cell by cell, condition by condition and for the others alone, among the same samples."""
    x, y, z = labels(draw)
    joint = counted((3, 4, 2), x, y, z)
    over_conditions = counted_given(y, 4, 3, x) * counted((4,), y)[:, None] ** power
    return all_of(
        close(over_conditions.sum(0), counted((3,), x)),
        exactly(joint.sum((1, 2)), counted((3,), x)),
        exactly(joint.sum(1), counted((3, 2), x, z)),
    )


@claim("probability.product_rule")
@lie("the conditional probability is multiplied by that of the other variable", weight="Y")
def a_conditional_times_the_marginal_of_its_condition_is_the_joint(draw, weight="X"):
    """Fractions among the samples that meet a condition times its own, against those of all pairs."""
    x, y, _ = labels(draw)
    weights = {"X": counted((3,), x)[:, None], "Y": counted((4,), y)}
    return close(counted_given(x, 3, 4, y) * weights[weight], counted((3, 4), x, y))


def everything_before(order, index):
    """The variables that come before."""
    return order[:index]


def only_the_one_before(order, index):
    """The variable just before: a Markov chain."""
    return order[max(index - 1, 0) : index]


def always_the_first_two(order, index):
    """The index of the conditions stands still at t = 3, whatever i is."""
    return order[:2]


def conditional(table, of, given):
    """One axis of a table given others: slices that sum to 1, or to 0 where the condition has probability 0."""
    if of in given:
        return torch.ones(())  # a variable is certain, given itself
    rest = [axis for axis in range(table.ndim) if axis not in (of, *given)]
    slices = table.sum(rest, keepdim=True) if rest else table
    return torch.nn.functional.normalize(slices, p=1.0, dim=of, eps=1e-300)


@claim("probability.chain_rule")
@lie("the condition is x_{1:t-1}, the same for every i", history=always_the_first_two)
@lie("each variable depends on the one before it alone", history=only_the_one_before)
@lie("the last factor is left out", loose="there are no more than four", factors=3)
def every_joint_distribution_is_a_product_of_conditionals(draw, history=everything_before, factors=4):
    """A generic table of four ternary variables, rebuilt from its conditionals in all 24 orders."""
    table = draw.uniform(3, 3, 3, 3)
    table[0, :, 1] = 0.0  # a condition of probability 0 must do no harm
    table = table / table.sum()
    products = []
    for order in itertools.permutations(range(4)):
        chain = [conditional(table, order[index], history(order, index)) for index in range(factors)]
        products.append(functools.reduce(torch.mul, chain).broadcast_to(3, 3, 3, 3))
    return close(torch.stack(products), table.expand(24, 3, 3, 3, 3))


def rule(likelihood, prior):
    """Bayes's: likelihood times prior, normalised over the hypotheses, which are the last axis."""
    joint = likelihood * prior
    return joint / joint.sum(-1, keepdim=True)


@claim("probability.bayes")
@lie("hypothesis and observation change places", exchanged=True)
@lie("the prior is left out", power=0.0)
def the_posterior_is_likelihood_times_prior_over_evidence(draw, exchanged=False, power=1.0):
    """The rule for every observation, against the fractions counted among the samples that show it."""
    x, y, _ = labels(draw)
    likelihood = counted_given(y, 4, 3, x).mT  # a row for each observation of X, over the hypotheses Y
    evidence, prior = counted((3,), x)[:, None], counted((4,), y)
    posterior = likelihood * evidence / prior if exchanged else likelihood * prior / evidence
    found = torch.stack([posterior, posterior if exchanged else rule(likelihood, prior**power)])
    seen = counted_given(x, 3, 4, y)
    return close(found, torch.stack([seen, seen])).showing(medical_test(exchanged, power))


def medical_test(exchanged, power, sensitivity=0.95, specificity=0.95):
    """How a positive test moves the probability of being ill."""
    ill = torch.linspace(0.01, 1, 100, dtype=torch.float64)
    prior = torch.stack([ill, 1 - ill], -1) ** power
    positive = torch.tensor([sensitivity, 1 - specificity], dtype=torch.float64)
    posterior = sensitivity * (prior * positive).sum(-1) / ill if exchanged else rule(positive, prior)[:, 0]
    after = [Line(ill, posterior, "after a positive test"), Line(ill, ill, "before")]
    note = f"sensitivity {sensitivity}, specificity {specificity}"
    return Figure("A medical test", "probability of being ill before", "afterwards", after, note=note)


def exclusive_or():
    """X and Y are fair coins, Z tells whether they differ."""
    table = torch.zeros(2, 2, 2, dtype=torch.float64)
    for x, y in itertools.product(range(2), repeat=2):
        table[x, y, x ^ y] = 0.25
    return table


def common_cause():
    """Z chooses one of two coins, which is then tossed twice: heads in 3 of 4, or in 1 of 4."""
    coin = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    return torch.einsum("zx,zy->xyz", coin, coin) / 2


def gaps(table):
    """How far each cell of tables (..., X, Y) is from the product of its margins."""
    return (table - table.sum(-1, keepdim=True) * table.sum(-2, keepdim=True)).abs()


def gap(table, given):
    """The largest distance from independence of X and Y in a table of X, Y and Z, or with a condition given each Z."""
    pairs = table.movedim(-1, 0) / table.sum((0, 1))[:, None, None] if given == "Z" else table.sum(-1)
    return float(gaps(pairs).max())


@claim("probability.independence")
@lie("variables that are independent remain so given a third", given_in_xor="Z")
@lie("variables that are independent given a third are independent", given_in_cause="")
@lie("one cell that is a product makes X and Y independent", reduce=torch.amin)
def neither_independence_implies_the_other(draw, given_in_xor="", given_in_cause="Z", reduce=torch.amax):
    """Tables against their rank, which is 1 if all rows are alike; coins with their exclusive or; coins from a bag."""
    products = (draw.uniform(20, 3, 1) + 0.1) * (draw.uniform(20, 1, 4) + 0.1)
    products = products / products.sum((-1, -2), keepdim=True)
    # Moved around four cells, mass changes no margin and leaves the eight other cells products.
    around = torch.tensor([[1.0, -1.0, 0, 0], [-1.0, 1.0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    tables = torch.cat([products, products + products[:, :2, :2].amin((-1, -2), keepdim=True) / 2 * around])
    alone = torch.linalg.svdvals(tables)[:, 1] < 1e-12  # rounding of probabilities, far below the mass moved
    return all_of(
        exactly([gap(exclusive_or(), given_in_xor), gap(common_cause(), given_in_cause)], [0.0, 0.0]),
        # Knowing that coins differ, one tells the other; the coin chosen makes equal sides 5/8 against 1/2 likely.
        exactly([gap(exclusive_or(), "Z"), gap(common_cause(), "")], [1 / 4, 1 / 16]),
        exactly(reduce(gaps(tables), (-1, -2)) < 1e-12, alone),
        exactly(int(alone.sum()), 20),
    )
