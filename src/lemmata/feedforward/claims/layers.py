"""Layers of units and their composition: shapes, activations, and the order of hidden units, which means nothing."""

import functools
import itertools
import math

import torch

from lemmata.feedforward.claims.drawn_weights import filled
from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.weight_matching import match_hidden_units
from lemmata.foundations.activations import activation
from lemmata.judge import Domain, all_of, claim, close, everywhere, exactly, lie


def _of_outputs(m, n):
    return m


def _of_inputs(m, n):
    return n


@claim("layers.feedforward")
@lie("the bias lives in the space of the inputs", printed="003/1", space=_of_inputs, raises=RuntimeError)
@lie("m n parameters", more=0)
def a_layer_is_an_activation_of_an_affine_map(draw, space=_of_outputs, more=1, network=MLP):
    """The first layer of networks, wider and narrower than their input, against the formula for one point at a time."""
    found, formula, counts, sizes = [], [], [], [(1, 3), (4, 1), (5, 2), (3, 7)]
    for (n, m), name in itertools.product(sizes, ("identity", "sigmoid", "relu", "tanh")):
        model, x = filled(draw, network(n, 2, widths=(m,), activation=name)), draw.normal(10, n)
        weight, bias = model.get_parameter("layers.0.weight"), draw.normal(space(m, n))
        model.get_parameter("layers.0.bias").copy_(bias)  # which also says so where it does not fit
        found.append(model.activations(x)[1].flatten())
        formula.append(torch.stack([activation(name)(weight @ point + bias) for point in x]).flatten())
        counts.append(sum(values.numel() for values in model.layers[0].parameters()))
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=64),
        exactly(counts, [m * (n + more) for (n, m) in sizes for _ in range(4)]),
    )


def _first_to_last(parts):
    return parts


def _last_to_first(parts):
    return parts[::-1]


@claim("layers.composition")
@lie("the first layer is applied last", order=_last_to_first)
@lie("the Jacobians are multiplied the other way", product=_last_to_first)
@lie("the activations end before the last layer", last=-1)
def a_network_is_the_composition_of_its_layers(draw, order=_first_to_last, product=_first_to_last, last=0):
    """Square layers, so that every order has the right shapes: values, activations, and Jacobians block by block."""
    model, x = filled(draw, MLP(7, 7, widths=(7,) * 3, activation="tanh")), draw.normal(7)

    def block(layer, activate, point):
        return activate(point @ layer.weight.T + layer.bias)

    activations = [torch.tanh] * 3 + [torch.positive]
    blocks = [functools.partial(block, layer, a) for layer, a in zip(model.layers, activations, strict=True)]
    steps = [x]
    for apply in order(blocks):
        steps.append(apply(steps[-1]))
    jacobians = [torch.autograd.functional.jacobian(f, at) for f, at in zip(blocks, steps[:-1], strict=True)]
    whole = torch.autograd.functional.jacobian(lambda point: model(point[None])[0], x)
    chained = functools.reduce(lambda total, factor: factor @ total, product(jacobians))
    found = [part[0] for part in model.activations(x[None])]
    return all_of(
        close(model(x[None])[0], steps[-1], ulps=256),
        close(torch.stack(found), torch.stack(steps), ulps=256),
        exactly(len(found) - 1, len(model.layers) + last),
        close(chained, whole, ulps=1024),
    )


@claim("layers.activations")
@lie("the rectifier cuts at -1", floor=-1.0)
@lie("the exponent of the sigmoid is +z", sign=1.0)
@lie("the rectifier is homogeneous for negative factors too", least=-1.0, loose="fewer factors are allowed")
def layers_differ_in_their_activation(draw, floor=0.0, sign=-1.0, least=0.0, network=MLP):
    """Networks of one unit with the weight 1 show their activation; values against the formulas, and scaling."""
    z = torch.cat([10 * draw.normal(200), torch.tensor([0.0, -0.5, 0.5, 1e-9, -30.0, 30.0], dtype=torch.float64)])

    def unit(name):
        model = network(1, 1, widths=(1,), activation=name).double().requires_grad_(False)
        for values in model.parameters():
            values.fill_(1.0 if values.ndim == 2 else 0.0)
        return model(z[:, None])[:, 0]

    relu = activation("relu")
    factors = torch.cat([draw.uniform(50, low=least, high=5.0), torch.tensor([least, 1e-9], dtype=torch.float64)])
    scaled, taken_out = relu(factors[:, None] * z), factors[:, None] * relu(z)
    return all_of(
        exactly(unit("identity"), z),
        close(unit("sigmoid"), 1 / (1 + torch.exp(sign * z)), ulps=64),
        exactly(unit("relu"), torch.where(z > floor, z, floor)),
        exactly(scaled, taken_out),
    )


def _permutation_matrix(draw, size):
    return torch.eye(size, dtype=torch.float64)[draw.permutation(size)]


def _rotation_matrix(draw, size):
    return draw.orthogonal(size)


def _square_entries(m):
    return m * m


@claim("layers.permutation_symmetry")
@lie("it holds for every orthogonal matrix", matrix=_rotation_matrix)
@lie("there are m² equivalent settings of a hidden layer", settings=_square_entries)
@lie("the next layer keeps its weights", follows=0.0)
def hidden_units_are_interchangeable(
    draw, matrix=_permutation_matrix, settings=math.factorial, follows=1.0, network=MLP
):
    """A layer and its permuted copy; all 24 orders of four hidden units, which matching of weights puts back."""
    x, found, formula = draw.normal(30, 3), [], []
    for name in ("relu", "tanh", "sigmoid"):
        weight, bias, mixing = draw.normal(5, 3), draw.normal(5), matrix(draw, 5)
        phi = activation(name)
        found.append(phi(x @ (mixing @ weight).T + mixing @ bias) @ torch.linalg.inv(mixing).T)
        formula.append(phi(x @ weight.T + bias))
    model = filled(draw, network(3, 2, widths=(4,), activation="tanh"))

    def same(order):
        twin = model.permuted([torch.tensor(order)])
        last = twin.get_parameter("layers.1.weight")
        last.copy_(follows * last + (1 - follows) * model.get_parameter("layers.1.weight"))
        back = match_hidden_units(model, twin)
        restored = all(torch.equal(a, b) for a, b in zip(back.parameters(), model.parameters(), strict=True))
        return restored and bool((twin(x) - model(x)).abs().max() < 1e-12)

    orders = Domain.permutations(4)
    twins = [model.permuted([torch.tensor(order)]) for order in orders.cases()]
    weights = {tuple(twin.get_parameter("layers.0.weight").flatten().tolist()) for twin in twins}
    return all_of(
        close(found, formula, ulps=1024),
        everywhere(orders, same),
        exactly(len(weights), settings(4)),
    )
