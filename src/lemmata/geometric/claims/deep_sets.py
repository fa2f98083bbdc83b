"""Deep Sets: the formula, functions that have its form, and how many latent features it takes."""

import itertools
import math

import torch

from lemmata.geometric.claims.drawn_networks import pointwise
from lemmata.geometric.deep_sets import DeepSets, EquivariantDeepSets
from lemmata.judge import all_of, claim, close, exactly, lie


def moments(x):
    """The powers of numbers whose sums their mean and variance are made of: (..., 1) to (..., 3)."""
    return torch.cat([x**0, x, x**2], -1)


def variance(sums):
    count, first, second = sums.split(1, -1)
    return second / count - (first / count) ** 2


def aggregate(sums):
    return sums.sum(-1, keepdim=True)


def by_itself(phi):
    return phi


def with_its_place(phi):
    """Each element's feature, changed a little by the place at which it stands."""
    return lambda x: phi(x) * torch.linspace(1.0, 2.0, x.shape[-2], dtype=x.dtype)[:, None]


@claim("sets.deep_sets")
@lie("the sum alone, read out by another sum, is the variance", read_out=aggregate)
@lie("phi may know the place of its element", encode=with_its_place)
@lie("the mean in place of the sum", join="mean")
def each_alone_then_all_together(draw, read_out=variance, encode=by_itself, join="sum", network=DeepSets):
    """Sets of one to twenty elements against one element after another; all orders; the variance and the maximum."""
    found, formula, spread, exact = [], [], [], []
    for size in (1, 2, 3, 7, 20):
        x, phi, rho = draw.normal(4, size, 3), pointwise(draw, 3, 8), pointwise(draw, 8, 2)
        features = torch.stack([phi(x[:, place]) for place in draw.permutation(size)])  # (size, 4, 8)
        found += [network(encode(phi), rho, join)(x), network(encode(phi), rho, "max")(x)]
        formula += [rho(features.sum(0)), rho(features.amax(0))]
        spread.append(network(moments, read_out)(x[..., :1]))
        exact.append(x[..., 0].var(-1, correction=0)[:, None])
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=1024),
        # Sums read out by a sum would be additive: the variance of a pair would follow from those of its elements.
        close(torch.cat(spread), torch.cat(exact), ulps=256, scale=10.0),
    )


def powers(first, count):
    """So many powers of a number, the first of them the given one: (..., 1) to (..., count)."""
    return lambda x: x ** torch.arange(first, first + count)


def zeros(sums):
    """The numbers of which these are the power sums, in order: Newton's identities, then the zeros of a polynomial."""
    size, symmetric = sums.shape[-1], [torch.ones_like(sums[..., 0])]
    for k in range(1, size + 1):
        terms = [(-1) ** (i - 1) * symmetric[k - i] * sums[..., i - 1] for i in range(1, k + 1)]
        symmetric.append(torch.stack(terms).sum(0) / k)
    companion = torch.ones(size - 1, dtype=sums.dtype).diag(-1).repeat(*sums.shape[:-1], 1, 1)
    companion[..., 0, :] = torch.stack([(-1) ** (k - 1) * symmetric[k] for k in range(1, size + 1)], -1)
    return torch.linalg.eigvals(companion).real.sort().values


def met(phi, value, low, high):
    """A number between two others at which phi has a value that lies between its values there."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if phi(middle) < value else (low, middle)
    return low


def same_sums(phi, top):
    """Two pairs, the greater of one `top` and of the other 1, whose sums of phi are the same: (2, 2, 1)."""
    grid = torch.linspace(0, top, 501, dtype=torch.float64)[:, None]
    heights, one, top = phi(grid), torch.ones(1, dtype=torch.float64), grid[-1]
    ends, half = (grid[heights.argmin()], grid[heights.argmax()]), (phi(one) - phi(top)) / 2
    middle = (heights.min() + heights.max()) / 2
    pairs = (met(phi, middle - half, *ends), one), (met(phi, middle + half, *ends), top)
    return torch.stack([torch.stack(pair) for pair in pairs])


def multisets(size, numbers):
    """All multisets of so many of the numbers from 0 on: (multisets, size, 1)."""
    found = itertools.combinations_with_replacement(range(numbers), size)
    return torch.tensor(list(found), dtype=torch.float64)[..., None]


def codes(network, phi, sets):
    return torch.cat([network(phi, torch.nn.Identity())(each) for each in sets])


@claim("sets.deep_sets.universality")
@lie("one power sum fewer than elements tells multisets apart", short=1, loose="more of them do too")
@lie("the powers begin with the zeroth", first=0, loose="higher powers tell whole numbers apart too")
@lie("the base M tells M copies of an element from one of the next", more=0, loose="a greater base does too")
def power_sums_tell_multisets_apart(draw, short=0, first=1, more=1, network=DeepSets):
    """All multisets of up to four of twelve whole numbers, real numbers found again, and pairs that no phi parts."""
    distinct, counts, found, sets = [], [], [], []
    for size in range(2, 5):
        every = multisets(size, 12)
        distinct.append(len(codes(network, powers(first, size - short), [every]).unique(dim=0)))
        counts.append(math.comb(12 + size - 1, size))
        x = (torch.arange(size) + draw.uniform(20, size, high=0.5)) / size  # at least 1 / (2 size) apart
        found.append(network(powers(1, size), zeros)(x[..., None]).flatten())
        sets.append(x.flatten())
    most = 3
    digits = codes(network, lambda x: (most + more) ** x, [multisets(size, 8) for size in range(most + 1)])
    pairs = [(phi, same_sums(phi, 0.99)) for phi in (pointwise(draw, 1, 1) for _ in range(20))]
    met_codes = torch.stack([network(phi, torch.nn.Identity())(pair).flatten() for phi, pair in pairs])  # (20, 2)
    return all_of(
        exactly(distinct, counts),
        # Zeros this far apart are moved at most a thousand times as much as the coefficients.
        close(torch.cat(found), torch.cat(sets), ulps=64, condition=1e4),
        exactly(len(digits.unique()), sum(math.comb(8 + size - 1, size) for size in range(most + 1))),
        close(met_codes[:, 0], met_codes[:, 1], ulps=256),
    )


def beside(rho):
    return rho


def unseen(rho):
    """The same without the element itself, of three features, which is set to zero."""
    return lambda x: rho(torch.cat([0 * x[..., :3], x[..., 3:]], -1))


def less_the_mean(x):
    element, count, total = x.unbind(-1)
    return (element - total / count)[..., None]


def is_greatest(x):
    return (x[..., :1] == x[..., 1:]).double()


@claim("sets.deep_sets.equivariant")
@lie("rho sees the sum alone", sees=unseen)
@lie("the sum is that of the others", own=0.0)
def each_element_beside_the_sum(draw, sees=beside, own=1.0, network=EquivariantDeepSets):
    """Sets of one to twenty elements against the formula for each; the distance from the mean, the greatest marked."""
    found, formula, centred, exact = [], [], [], []
    for size in (1, 2, 5, 20):
        x, phi, rho = draw.normal(size, 3), pointwise(draw, 3, 8), pointwise(draw, 3 + 8, 2)
        found.append(network(phi, sees(rho))(x))
        features = torch.stack([phi(element) for element in x])  # (size, 8)
        for place in range(size):
            total = features.sum(0) + (own - 1) * features[place]
            formula.append(rho(torch.cat([x[place], total]))[None])
        centred.append(network(lambda y: torch.cat([y**0, y], -1), less_the_mean)(x[:, :1]))
        exact.append(x[:, :1] - x[:, :1].mean())
    marks = network(torch.nn.Identity(), is_greatest, "max")(x[:, :1])[:, 0]
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=1024),
        close(torch.cat(centred), torch.cat(exact), ulps=256),
        exactly(marks, torch.nn.functional.one_hot(x[:, 0].argmax(), 20).double()),
    )
