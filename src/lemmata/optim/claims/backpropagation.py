"""Backpropagation: the recurrence of the deltas, gradients from them, and what they cost."""

import itertools

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata.figure import Figure, Line, Points
from lemmata.judge import all_of, at_least, at_most, claim, close, lie
from lemmata.optim.backpropagation import backpropagate, forward_mode

ACTIVATIONS = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softplus": nn.Softplus, "relu": nn.ReLU}


def _drawn_network(draw, sizes, names):
    """A chain of layers, each followed by one of the activations, with normal weights that keep the signal's size."""
    chosen = [ACTIVATIONS[draw.choice(names)] for _ in sizes[1:]]
    parts = [(nn.Linear(a, b).double(), phi()) for (a, b), phi in zip(itertools.pairwise(sizes), chosen, strict=True)]
    network = nn.Sequential(*itertools.chain(*parts)).requires_grad_(False)
    for values in network.parameters():
        values.copy_(draw.normal(*values.shape) * (values.shape[-1] ** -0.5 if values.ndim == 2 else 0.5))
    return network


def _mixed_loss(draw, size):
    """A loss that is neither linear nor the same in all outputs."""
    target = draw.normal(size)
    return lambda outputs: (outputs - target).square().sum() / 2 + (outputs * target).sin().sum()


def _autograd_jacobian(function, at):
    return torch.autograd.functional.jacobian(function, at)


def transposed(jacobian):
    return jacobian.mT


def as_it_is(jacobian):
    return jacobian


@claim("backprop.delta_recurrence")
@lie("the Jacobian is not transposed", turned=as_it_is)
@lie("the delta after the next is used", after=2)
@lie("the recurrence begins with twice the gradient of the loss", first=2.0)
def deltas_follow_from_those_of_the_next_layer(draw, turned=transposed, after=1, first=1.0, sweep=backpropagate):
    """Networks with layers of one width, in which every order fits, against Jacobians, autograd and differences."""
    deltas, recurrence, gradients, slopes, differences = [], [], [], [], []
    for width, depth, name in itertools.product((1, 2, 9), (1, 3, 6), ("tanh", "relu")):
        network, x, loss = (
            _drawn_network(draw, [width] * (depth + 1), [name]),
            draw.normal(1, width),
            _mixed_loss(draw, width),
        )
        found = sweep(network, x, loss)
        own = [delta[0] for delta in found.deltas]
        beyond = [*own, own[-1]]
        for number, layer in enumerate(network):
            h, rest = found.hidden[number][0], network[number:]
            recurrence.append(turned(_autograd_jacobian(layer, h)) @ beyond[number + after])
            gradients.append(_autograd_jacobian(lambda h, rest=rest, loss=loss: loss(rest(h)), h))
            if name == "tanh":  # differences across the kink of a rectifier are no derivatives
                along, step = draw.unit(width), 1e-5
                up, down = (loss(rest(h + sign * step * along)) for sign in (1, -1))
                differences.append((up - down) / (2 * step))
                slopes.append(own[number] @ along)
        deltas.extend(own)
        recurrence.append(first * _autograd_jacobian(loss, found.hidden[-1][0]))
        gradients.append(_autograd_jacobian(loss, found.hidden[-1][0]))
    # A central difference errs by a sixth of the third derivative times 1e-10, and by rounding over 1e-5: both 1e-9.
    return all_of(
        close(torch.cat(deltas), torch.cat(gradients), ulps=256),
        close(torch.cat(deltas), torch.cat(recurrence), ulps=256),
        close(slopes, differences, within=1e-7),
    )


@claim("backprop.param_gradient")
@lie("the delta of the layer before is used", later=-1)
@lie("the delta of the layer after is used", later=1)
@lie("the gradient is half of it", factor=0.5)
def gradients_follow_from_the_delta_of_their_layer(draw, later=0, factor=1.0, sweep=backpropagate):
    """Jacobians of each affine layer in all its parameters, contracted with its delta."""
    found, formula, autograd = [], [], []
    for width, depth in itertools.product((1, 3, 5), (2, 4)):
        network, x = _drawn_network(draw, [width] * (depth + 1), ("tanh", "relu")), draw.normal(1, width)
        loss = _mixed_loss(draw, width)
        swept = sweep(network, x, loss)
        for number in range(0, len(network), 2):
            names = [f"{number}.weight", f"{number}.bias"]
            values = {name: network.get_parameter(name).clone().requires_grad_() for name in names}
            h = swept.hidden[number][0]
            parts = torch.autograd.functional.jacobian(
                lambda weight, bias, h=h: weight @ h + bias, tuple(values.values())
            )
            jacobian = torch.cat([part.flatten(1) for part in parts], 1)  # (width, parameters of the layer)
            formula.append(factor * jacobian.mT @ swept.deltas[number + 1 + later][0])
            found.append(torch.cat([swept.gradients[name].flatten() for name in names]))
            whole = loss(torch.func.functional_call(network, values, (x[0],)))
            autograd.append(torch.cat([g.flatten() for g in torch.autograd.grad(whole, list(values.values()))]))
    return all_of(
        close(torch.cat(found), torch.cat(autograd), ulps=256),
        close(torch.cat(found), torch.cat(formula), ulps=256),
    )


@claim("backprop.ridge_layer")
@lie("the slope of the activation is counted twice", printed="001/1", power=2)
@lie("the slope is left out", power=0)
@lie("the gradient in the bias has a factor 2", constant=2.0)
def a_ridge_layer_passes_one_slope(draw, power=1, constant=1.0, sweep=backpropagate):
    """Layers of all shapes within networks: their own Jacobians, and the gradients of a loss behind them."""
    jacobians, by_slope, gradients, by_delta, one = [], [], [], [], torch.ones(1).double()
    for name, (n, m) in itertools.product(("tanh", "sigmoid", "softplus"), [(1, 4), (10, 3), (3, 10), (7, 7)]):
        network, x, loss = _drawn_network(draw, [n, m, m], [name]), draw.normal(1, n), _mixed_loss(draw, m)
        weight, bias, phi = network[0].weight, network[0].bias, network[1]
        swept, z = sweep(network, x, loss), weight @ x[0] + bias
        slope = torch.diagonal(_autograd_jacobian(phi, z))
        inputs, units = torch.cat([x[0], one]), range(m)  # a bias is the weight of a constant
        parts = torch.autograd.functional.jacobian(lambda w, b, x=x, phi=phi: phi(w @ x[0] + b), (weight, bias))
        jacobians += [torch.cat([parts[0][i, i], parts[1][i, i, None]]) for i in units]
        by_slope += [slope[i] * inputs for i in units]
        gradients += [torch.cat([swept.gradients["0.weight"][i], swept.gradients["0.bias"][i, None]]) for i in units]
        by_delta += [swept.deltas[2][0, i] * slope[i] ** power * torch.cat([x[0], constant * one]) for i in units]
    return all_of(
        close(torch.cat(jacobians), torch.cat(by_slope), ulps=64),
        close(torch.cat(gradients), torch.cat(by_delta), ulps=64),
    )


@claim("backprop.linear_time")
@lie("two passes are enough", passes=2.0, loose="a bound, which wide networks come within 0.2 % of")
@lie("forward mode, a tangent for each parameter, costs no more", gradient=forward_mode)
@lie(
    "forward mode costs a whole pass for each parameter", share=1.0, loose="a bound, which two wide layers nearly meet"
)
def a_gradient_costs_three_passes(draw, passes=3.0, gradient=backpropagate, share=0.25, tangents=forward_mode):
    """Multiply-adds of networks of 2 to 64 layers and up to four million parameters, as torch counts them too; small
    ones against autograd."""
    found, autograd = [], []
    for sizes in ([1, 1, 1], [3, 5, 2, 4], [6] * 6):
        network, x, loss = (
            _drawn_network(draw, sizes, list(ACTIVATIONS)),
            draw.normal(3, sizes[0]),
            _mixed_loss(draw, sizes[-1]),
        )
        found += [values.flatten() for values in gradient(network, x, loss).gradients.values()]
        whole = loss(network.requires_grad_()(x))
        autograd += [values.flatten() for values in torch.autograd.grad(whole, list(network.parameters()))]
    parameters, costs, products, forward, tangent = [], [], [], [], []
    with torch.device("meta"):  # only shapes, for the operations are counted and not timed
        for width, depth in [(4, 2), (4, 8), (32, 2), (32, 8), (256, 2), (256, 64)]:
            layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.Tanh())]
            network, x = nn.Sequential(*layers), torch.empty(32, width)
            with FlopCounterMode(display=False) as flops:  # torch's own count, of products alone
                counted = gradient(network, x, torch.sum)
            parameters.append(depth * (width + 1) * width)
            costs.append(counted.multiply_adds / 32)
            products.append(flops.get_total_flops() / (2 * 32 * depth * width**2))
            forward.append(depth * width * (width + 2))  # products, a bias and an activation for each unit
            tangent.append(tangents(network, x, torch.sum).multiply_adds / 32)
    bound = [passes * once for once in forward]
    marks = [
        Points(parameters, costs, "gradient"),
        Points(parameters, tangent, "forward mode"),
        Line(parameters, forward, "one pass forwards"),
        Line(parameters, bound, "bound"),
    ]
    figure = Figure("multiply-adds for one example", "parameters", "multiply-adds", marks, x_log=True, y_log=True)
    return all_of(
        close(torch.cat(found), torch.cat(autograd), ulps=256),
        at_most(costs, bound).showing(figure),
        at_most(products, passes),
        at_least(tangent, [share * count * once for count, once in zip(parameters, forward, strict=True)]),
    )
