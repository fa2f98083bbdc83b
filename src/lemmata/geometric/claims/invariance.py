"""Functions of sets: what order means to them, and which sums it cannot change."""

import math

import torch

from lemmata.feedforward.mlp import MLP
from lemmata.geometric.claims.drawn_networks import drawn, orders, pointwise
from lemmata.geometric.deep_sets import DeepSets, EquivariantDeepSets, pool_elements
from lemmata.judge import Domain, Figure, Line, Points, all_of, always, claim, close, count_is, everywhere, exactly, lie


def deep_sets(draw, size, reduce="sum"):
    """One value for a set of any number of elements with `size` features."""
    return DeepSets(pointwise(draw, size, 8), pointwise(draw, 8, 1), reduce)


def concatenated(draw, size, reduce="sum"):
    """A network of `size` elements with as many features, written one after another."""
    return drawn(draw, MLP(size * size, 1, widths=(32,), activation="tanh"))


def takes(model, x):
    try:
        return model(x).shape == (len(x), 1)
    except ValueError:
        return False


def different(values):
    """How many values there are; those that differ by rounding alone count once."""
    return 1 + int((values.flatten().sort().values.diff() > 1e-9).sum())


def one(elements):
    return 1


@claim("sets.problem")
@lie("a network of the concatenated elements has one value for all orders", values=one)
@lie("a network of the concatenated elements is a function of sets", function=concatenated)
def a_network_of_the_concatenation_is_no_function_of_sets(draw, values=math.factorial, function=deep_sets):
    """All 120 orders of five elements, and sets of one to nine."""
    x, model, plain = draw.normal(5, 5)[orders(5)], function(draw, 5), concatenated(draw, 5)  # x: (120, 5, 5)
    return all_of(
        exactly(different(plain(x)), values(5)),
        always([takes(plain, draw.normal(2, size, 5)) == (size == 5) for size in range(1, 10)]),
        exactly(different(model(x)), 1),
        always([takes(model, draw.normal(2, size, 5)) for size in range(1, 10)]),
    )


def elements(matrix, x):
    return matrix @ x


def features(matrix, x):
    return x @ matrix


@claim("sets.invariance")
@lie("the features may be permuted too", acts=features)
@lie("a network of the concatenated elements is order-invariant", function=concatenated)
def order_does_not_matter(draw, acts=elements, function=deep_sets):
    """Every permutation of up to five elements, as a matrix and as an order, for sums, means and maxima."""
    found, alike = [], []
    for size in range(2, 6):
        for reduce in ("sum", "mean", "max"):
            # As many features as elements, so that the matrices fit on either side.
            x, model, order = draw.normal(size, size), function(draw, size, reduce), orders(size)
            matrices = torch.eye(size, dtype=x.dtype)[order]  # (size!, size, size)
            found += [model(acts(matrices, x)), model(x[order])]
            alike += 2 * [model(x[None]).expand_as(found[-1])]
    return close(torch.cat(found), torch.cat(alike), ulps=1024)


def equivariant_deep_sets(draw):
    return EquivariantDeepSets(pointwise(draw, 3, 8), pointwise(draw, 3 + 8, 2))


class FromConcatenation(torch.nn.Module):
    """Results of five elements from a network of all five, written one after another."""

    def __init__(self, draw):
        super().__init__()
        self.network = drawn(draw, MLP(5 * 3, 5 * 2, widths=(32,), activation="tanh"))

    def forward(self, x):
        return self.network(x).unflatten(-1, (5, 2))


def transposed(matrix):
    return matrix.mT


def itself(matrix):
    return matrix


def _turned_round(plain, put_back):
    """The first result of each element, and what is put back after the first three changed places in a circle."""
    places, cycle = range(1, 6), orders(5).tolist().index([1, 2, 0, 3, 4])
    marks = [
        Points(places, plain[:, 0], "of the set"),
        Line(places, put_back[cycle, :, 0], "turned round and put back"),
    ]
    return Figure("Results when elements 1, 2, 3 change places in a circle", "element", "first result", marks)


@claim("sets.equivariance")
@lie("the results are put back by the matrix itself", printed="003/1", back=itself)
@lie("the matrix need not be transposed to undo it", printed="000/2", back=itself)
@lie("without the transpose it holds for swaps of two elements alone", involutions=11)
@lie("any network with a result for each element has it", function=FromConcatenation)
def results_follow_their_elements(draw, back=transposed, involutions=26, function=equivariant_deep_sets):
    """All 120 orders of five elements: a swap cannot tell a matrix from its transpose, a cycle of three can."""
    x, model = draw.normal(5, 3), function(draw)
    matrices = torch.eye(5, dtype=x.dtype)[orders(5)]  # (120, 5, 5)
    moved, plain = model(matrices @ x), model(x[None])  # (120, 5, 2), (1, 5, 2)

    def put_back_by_itself(order):
        matrix = torch.eye(5, dtype=x.dtype)[list(order)]
        return bool((matrix @ model((matrix @ x)[None]) - plain).abs().max() < 1e-9)

    return all_of(
        close(moved, matrices @ plain, ulps=1024),
        close(back(matrices) @ moved, plain.expand_as(moved), ulps=1024),
        count_is(Domain.permutations(5), put_back_by_itself, involutions),
    ).showing(_turned_round(plain[0], back(matrices) @ moved))


def differences(x, axis):
    """The first less all the others."""
    return 2 * x.select(axis, 0) - x.sum(axis)


@claim("sets.sum_invariant")
@lie("so has the alternating sum", ratio=-1.0)
@lie("so has the first less all the others", product=differences)
def sums_do_not_know_the_order(draw, ratio=1.0, product=torch.prod, pool=pool_elements):
    """Whole numbers in every order of two to six of them, without rounding."""

    def same(x):
        weights = ratio ** torch.arange(x.shape[1], dtype=x.dtype)[:, None]  # (elements, 1)
        joined = [pool(x * weights, reduce="sum"), pool(x, reduce="mean"), pool(x, reduce="max"), product(x, 1)]
        return (torch.cat(joined, 1) == torch.cat([values[:1] for values in joined], 1)).all(1)

    rows = {size: draw.integers(-20, 20, size, 4).double() for size in range(2, 7)}
    return all_of(
        *(
            everywhere(Domain.permutations(size), lambda order, x=x: same(x[order]), vectorised=True)
            for size, x in rows.items()
        )
    )
