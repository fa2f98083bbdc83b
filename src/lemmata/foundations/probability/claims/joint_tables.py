"""Rules of probability on tables: sum, product and chain rule, Bayes, independence; against counting samples."""

import itertools
from functools import reduce

import torch

from lemmata.foundations.probability.joint_tables import JointTable, bayes_posterior
from lemmata.judge import Figure, Line, all_of, always, claim, close, exactly, lie

NAMES = "X Y Z"
SIZES = (3, 4, 2)


def counted(draw, total=4096):
    """Labels of X, Y and Z, dependent on each other, and their joint table: a power of two keeps fractions exact."""
    x, noise = draw.integers(0, 3, total), draw.integers(0, 4, total)
    y = torch.where(draw.uniform(total) < 0.5, x, noise)
    z = torch.where(draw.uniform(total) < 0.6, (x + y) % 2, draw.integers(0, 2, total))
    table = torch.zeros(SIZES, dtype=torch.float64).index_put((x, y, z), torch.ones((), dtype=torch.float64), True)
    return (x, y, z), table / total


@claim("probability.sum_rule")
@lie("the conditional probabilities are added without weights", power=0.0)
def summing_a_variable_out_leaves_the_distribution_of_the_others(draw, power=1.0):
    """Marginals of tables against fractions counted among the samples behind them, and the sum over conditionals."""
    (x, _, z), table = counted(draw)
    joint = JointTable(table, NAMES)
    pairs = torch.stack([((x == i) & (z == k)).double().mean() for i in range(3) for k in range(2)]).reshape(3, 2)
    return all_of(
        close((joint.conditional("X", given="Y") * joint.marginal("Y") ** power).sum(-1), joint.marginal("X")),
        exactly(joint.marginal("X"), torch.stack([(x == i).double().mean() for i in range(3)])),
        exactly(joint.marginal("X Z"), pairs),
    )


@claim("probability.product_rule")
@lie("the conditional probability is multiplied by that of the other variable", weight="Y")
def a_conditional_times_the_marginal_of_its_condition_is_the_joint(draw, weight="X"):
    """Conditional tables against fractions counted among the samples that meet the condition, and multiplied back."""
    (x, y, _), table = counted(draw)
    joint = JointTable(table, NAMES)
    given = joint.conditional("Y", given="X", keepdim=True)
    rows = [torch.stack([(y[x == i] == j).double().mean() for j in range(4)]) for i in range(3)]
    return all_of(
        close(given * joint.marginal(weight, keepdim=True), joint.marginal("X Y", keepdim=True)),
        close(joint.conditional("Y", given="X"), torch.stack(rows)),
    )


def everything_before(order, index):
    """The variables that come before."""
    return order[:index]


def only_the_one_before(order, index):
    """The variable just before: a Markov chain."""
    return order[max(index - 1, 0) : index]


def always_the_first_two(order, index):
    """The index of the conditions stands still at t = 3, whatever i is."""
    return order[:2]


def factor(joint, order, index, history):
    """One factor of the chain; a variable is certain, given itself."""
    name, before = order[index], history(order, index)
    return torch.ones(()) if name in before else joint.conditional(name, given=before, keepdim=True)


@claim("probability.chain_rule")
@lie("the condition is x_{1:t-1}, the same for every i", history=always_the_first_two)
@lie("each variable depends on the one before it alone", history=only_the_one_before)
@lie("the last factor is left out", loose="there are no more than four", factors=3)
def every_joint_distribution_is_a_product_of_conditionals(draw, history=everything_before, factors=4):
    """A generic table of four ternary variables, rebuilt from its conditionals in all 24 orders."""
    table = draw.uniform(3, 3, 3, 3)
    table[0, :, 1] = 0.0  # a condition of probability 0 must do no harm
    joint = JointTable(table / table.sum(), "A B C D")
    shipped, built = [], []
    for order in itertools.permutations(joint.variables):
        shipped.append(reduce(torch.mul, joint.factors(order)[:factors]).broadcast_to(3, 3, 3, 3))
        built.append(reduce(torch.mul, [factor(joint, order, index, history) for index in range(4)]))
    return all_of(
        close(torch.stack(built), joint.table.expand(24, 3, 3, 3, 3)),
        close(torch.stack(shipped), joint.table.expand(24, 3, 3, 3, 3)),
    )


@claim("probability.bayes")
@lie("hypothesis and observation change places", exchanged=True)
@lie("the prior is left out", power=0.0)
def the_posterior_is_likelihood_times_prior_over_evidence(draw, exchanged=False, power=1.0):
    """The rule for every observation, against the fractions counted among the samples that show it."""
    (x, y, _), table = counted(draw)
    joint = JointTable(table, NAMES)
    likelihood = joint.conditional("X", given="Y")  # a row for each observation of X, over the hypotheses Y
    prior = joint.marginal("Y") ** power
    posterior = bayes_posterior((prior / prior.sum()).expand(3, 4), likelihood)
    if exchanged:
        posterior = likelihood * joint.marginal("X")[:, None] / joint.marginal("Y")
    rows = torch.stack([torch.stack([(y[x == i] == j).double().mean() for j in range(4)]) for i in range(3)])
    return close(posterior, rows).showing(medical_test(exchanged, power))


def medical_test(exchanged, power, sensitivity=0.95, specificity=0.95):
    """How a positive test moves the probability of being ill."""
    ill = torch.linspace(0.01, 1, 100, dtype=torch.float64)
    prior = torch.stack([ill, 1 - ill], -1) ** power
    positive = torch.tensor([sensitivity, 1 - specificity], dtype=torch.float64).expand_as(prior)
    posterior = bayes_posterior(prior / prior.sum(-1, keepdim=True), positive)[:, 0]
    if exchanged:
        posterior = sensitivity * (prior * positive).sum(-1) / ill
    after = [Line(ill, posterior, "after a positive test"), Line(ill, ill, "before")]
    note = f"sensitivity {sensitivity}, specificity {specificity}"
    return Figure("A medical test", "probability of being ill before", "afterwards", after, note=note)


def exclusive_or():
    """X and Y are fair coins, Z tells whether they differ."""
    table = torch.zeros(2, 2, 2, dtype=torch.float64)
    for x, y in itertools.product(range(2), repeat=2):
        table[x, y, x ^ y] = 0.25
    return JointTable(table, NAMES)


def common_cause():
    """Z chooses one of two coins, which is then tossed twice: heads in 3 of 4, or in 1 of 4."""
    coin = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    return JointTable(torch.einsum("zx,zy->xyz", coin, coin) / 2, NAMES)


@claim("probability.independence")
@lie("variables that are independent remain so given a third", given_in_xor="Z")
@lie("variables that are independent given a third are independent", given_in_cause="")
@lie("one cell that is a product makes X and Y independent", reduce=torch.amin)
def neither_independence_implies_the_other(draw, given_in_xor="", given_in_cause="Z", reduce=torch.amax):
    """Product tables and mixtures of them; two fair coins with their exclusive or; two tosses of a coin from a bag."""
    table = (draw.uniform(20, 3, 1) + 0.1) * (draw.uniform(20, 1, 4) + 0.1)
    products = JointTable(table / table.sum((-1, -2), keepdim=True), "X Y")
    mixture = JointTable((products.table + products.table.roll(1, 0)) / 2, "X Y")
    gaps = (mixture.table - mixture.marginal("X", True) * mixture.marginal("Y", True)).abs()
    return all_of(
        always([exclusive_or().independent("X", "Y", given_in_xor, tolerance=0.0)], detail="exclusive or"),
        always([common_cause().independent("X", "Y", given_in_cause, tolerance=0.0)], detail="common cause"),
        always(products.independent("X", "Y") & ~mixture.independent("X", "Y"), detail="products and mixtures of two"),
        close(mixture.independence_gap("X", "Y"), reduce(gaps, (-1, -2))),
        # What the coin chosen adds to the chance of two equal sides: 5/8 against 1/2, so 1/16 in each cell.
        exactly(common_cause().independence_gap("X", "Y"), torch.tensor(1 / 16, dtype=torch.float64)),
        exactly(exclusive_or().independence_gap("X", "Y", given="Z"), torch.tensor(0.25, dtype=torch.float64)),
    )
