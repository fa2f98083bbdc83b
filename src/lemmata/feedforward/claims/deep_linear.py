"""Deep linear networks: one affine map however deep, limited in rank, and a loss that is not convex."""

import functools
import operator

import torch

from lemmata.feedforward.claims.drawn_weights import filled
from lemmata.feedforward.deep_linear import DeepLinear
from lemmata.judge import all_of, always, at_most, claim, close, lie, reaches


def _last_first(factors):
    """W_L ... W_1 of the factors W_1, ..., W_L."""
    return functools.reduce(lambda total, factor: factor @ total, factors)


def _first_first(factors):
    return functools.reduce(operator.matmul, factors)


class Rectified(DeepLinear):
    """ReLUs between the layers."""

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


@claim("linear.composition")
@lie("with ReLUs between them the layers are still one affine map", network=Rectified)
@lie("the matrices are multiplied the other way", product=_first_first)
@lie("the biases are added as they are", carried=0.0)
@lie("the rank is one less than the narrowest layer", more=-1)
def affine_layers_are_one_affine_map(draw, network=DeepLinear, product=_last_first, carried=1.0, more=0):
    """Four square layers against the product of their matrices; and layers of other widths, which bound the rank."""
    x, found, formula, collapsed = draw.normal(20, 5), [], [], []
    for _ in range(4):
        deep = filled(draw, network(5, 5, widths=(5, 5, 5)))
        weights, biases = [[getattr(layer, name) for layer in deep.layers] for name in ("weight", "bias")]
        after = [_last_first([torch.eye(5, dtype=torch.float64), *weights[k + 1 :]]) for k in range(4)]
        bias = sum(carried * factor @ b + (1 - carried) * b for factor, b in zip(after, biases, strict=True))
        found.append(deep(x))
        formula.append(x @ product(weights).T + bias)
        collapsed.append(deep.collapse()(x))
    ranks, widths = [], [(2,), (8, 1, 8), (3, 9), (9, 9), (4, 2, 3)]
    for hidden in widths:
        values = torch.linalg.svdvals(filled(draw, network(6, 7, hidden)).collapse().weight)
        ranks.append(int((values > 1e-9 * values[0]).sum()))  # rounding leaves some 1e-16 of the others
    return all_of(
        close(found, formula, ulps=1024, scale=20.0),
        close(collapsed, found, ulps=1024, scale=20.0),
        at_most(ranks, [min(6, *hidden, 7) + more for hidden in widths], attained=True),
    )


def planted_map():
    """A matrix of five rows with the singular values 3, 2, 1, 0.5 and 0.25."""
    k = torch.arange(5, dtype=torch.float64)
    cosines = torch.cos(torch.pi * (k[:, None] + 0.5) * k / 5)  # with orthogonal columns
    left = cosines / cosines.norm(dim=0)
    return left @ torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5, 0.25], dtype=torch.float64)) @ left.flip(1).T


def factors(width, scale=1.0):
    network = DeepLinear(5, 5, widths=(8, width), bias=False, dtype=torch.float64)
    with torch.no_grad():
        for weight in network.parameters():
            weight *= scale
    return network


def learn_planted_map(network, generator, steps):
    inputs, target = torch.eye(5, dtype=torch.float64), planted_map()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * (network(inputs) - target.T).square().sum()).backward()
        optimizer.step()


def _distance_to_planted(network):
    return float((network.collapse().weight.detach() - planted_map()).norm())


def _halfway_network(network):
    """Halfway to a network that computes the same: its first eight hidden units moved on by one."""
    halfway = factors(8)
    halfway.load_state_dict(network.state_dict())
    with torch.no_grad():
        first, second = (halfway.get_parameter(f"layers.{k}.weight") for k in (0, 1))
        first.copy_((first + first.roll(1, 0)) / 2)
        second.copy_((second + second.roll(1, 1)) / 2)
    return halfway


@claim("linear.network")
@lie("with one unit between the layers it reaches the best map of rank 3", kept=3)
@lie("the loss is convex in the factors", convexity=operator.le)
@lie(
    "from zero it finds them too", scale=0.0, regime="small weights grow, if slowly", loose="larger weights do as well"
)
def a_deep_linear_network_learns_the_best_map_of_its_rank(draw, kept=1, convexity=operator.gt, scale=1.0):
    """Three layers learn a matrix of rank 5; through one unit they learn its best approximation of rank 1; from zero
    they learn nothing."""
    wide, narrow = (draw.trained(factors, learn_planted_map, width=width, scale=scale, steps=600) for width in (8, 1))
    still = draw.trained(factors, learn_planted_map, width=8, scale=0.0, steps=600)
    tail = float(torch.linalg.svdvals(planted_map())[kept:].norm())
    ends = _distance_to_planted(wide) ** 2  # both ends compute the same
    return all_of(
        reaches(_distance_to_planted(wide) / float(planted_map().norm()), 1e-4, at_most=True, detail="relative error"),
        close(_distance_to_planted(narrow), tail, within=0.01 * tail),
        close(_distance_to_planted(still), float(planted_map().norm())),
        always([convexity(_distance_to_planted(_halfway_network(wide)) ** 2, ends)]),
    )
