"""Residual layers: the identity without weights, projections between widths, and depths that plain layers lack."""

import torch
from torch.nn import functional

from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.residual import ResidualLayer, ResidualMLP
from lemmata.foundations.activations import activation
from lemmata.judge import all_of, claim, close, exactly, lie, reaches

NAMES = ("sigmoid", "tanh", "relu", "softplus")


def _fill_layer(draw, layer, empty=False):
    """The layer with drawn weights, or with none but those of its projection."""
    with torch.no_grad():
        for values in layer.linear.parameters():
            values.copy_(0.0 * values if empty else draw.normal(*values.shape))
    return layer.requires_grad_(False)


class Unshifted(ResidualLayer):
    """x + phi(Wx + b)."""

    def forward(self, x):
        return x + activation(self.activation)(self.linear(x))


@claim("residual.layer")
@lie("phi(0) is not subtracted", subtracted=0.0)
@lie("the input is not added", skip=0.0)
@lie("x + phi(Wx + b) is the identity without weights", layer=Unshifted)
def a_residual_layer_without_weights_is_the_identity(draw, skip=1.0, subtracted=1.0, layer=ResidualLayer):
    """Drawn weights against the formula; no weights against the input, from tiny to huge."""
    x = draw.normal(40, 6) * 10.0 ** draw.uniform(40, 1, low=-3, high=3)
    found, formula, still = [], [], []
    for name in NAMES:
        phi, unit = activation(name), _fill_layer(draw, layer(6, activation=name, dtype=torch.float64))
        found.append(unit(x))
        z = x @ unit.linear.weight.T + unit.linear.bias
        formula.append(skip * x + (phi(z) - subtracted * phi(torch.zeros_like(z))))
        still.append(_fill_layer(draw, unit, empty=True)(x))
    size = torch.stack(formula).abs() + x.abs() + 1
    return all_of(
        close(found, formula, ulps=256, scale=size.amax(-1, keepdim=True)),
        exactly(torch.stack(still[:3]), x.expand(3, -1, -1)),  # the value log 2 of softplus at 0 is rounded
        close(still[3], x, ulps=4, scale=x.abs() + 1),
    )


def _projected_input(layer, x):
    return x @ layer.projection.weight.T


def _as_it_is(layer, x):
    return x


@claim("residual.projection")
@lie("the input is added as it is", skip=_as_it_is, raises=RuntimeError)
@lie("phi(0) is not subtracted", subtracted=0.0)
def a_projection_joins_layers_of_different_width(draw, skip=_projected_input, subtracted=1.0, layer=ResidualLayer):
    """Wider, narrower, and one unit; the identity as projection gives the layer without one."""
    found, formula, still, linear, plain, with_identity = [], [], [], [], [], []
    for name, inputs, outputs in zip(NAMES, (5, 7, 1, 6), (7, 2, 3, 1), strict=True):
        x, phi = draw.normal(20, inputs), activation(name)
        unit = _fill_layer(draw, layer(inputs, outputs, activation=name, dtype=torch.float64))
        z = x @ unit.linear.weight.T + unit.linear.bias
        found.append(unit(x).flatten())
        formula.append((skip(unit, x) + (phi(z) - subtracted * phi(torch.zeros_like(z)))).flatten())
        still.append(_fill_layer(draw, unit, empty=True)(x).flatten())
        linear.append(_projected_input(unit, x).flatten())
        square = _fill_layer(draw, layer(inputs, activation=name, projection=True, dtype=torch.float64))
        without = layer(inputs, activation=name, dtype=torch.float64)
        without.linear.load_state_dict(square.linear.state_dict())
        square.get_parameter("projection.weight").copy_(torch.eye(inputs))
        plain.append(without(x).flatten())
        with_identity.append(square(x).flatten())
    return all_of(
        close(torch.cat(found), torch.cat(formula), ulps=256, scale=10.0),
        close(torch.cat(still), torch.cat(linear), ulps=64, scale=10.0),
        close(torch.cat(with_identity), torch.cat(plain), ulps=64, scale=10.0),
    )


def residual_stack(depth):
    return ResidualMLP(2, 2, width=16, depth=depth)


def plain_stack(depth):
    return MLP(2, 2, widths=(16,) * depth)


def quarters():
    """Points of a square, and whether they lie in its first or third quarter."""
    side = torch.linspace(-0.875, 0.875, 8)
    x = torch.cartesian_prod(side, side)
    return x, (x.prod(1) > 0).long()


def learn_quarters(network, generator, steps):
    x, y = quarters()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()


def _trained_loss(draw, stack, depth=100, steps=40):
    """Of the examples it was trained on: whether it can be optimised is what is asked."""
    network = draw.trained(stack, learn_quarters, depth=depth, steps=steps)
    x, y = quarters()
    with torch.no_grad():
        return float(functional.cross_entropy(network(x), y))


def _both_jacobians(draw, layer, identity):
    """Of the layer by autograd, and as the formula has them, at points of three scales."""
    found, formula = [], []
    for name in ("sigmoid", "tanh", "softplus"):
        unit = _fill_layer(draw, layer(5, activation=name, dtype=torch.float64))
        for x in (draw.normal(5), 100 * draw.normal(5), torch.zeros(5, dtype=torch.float64)):
            slope = activation(name).derivative(unit.linear(x))
            found.append(torch.autograd.functional.jacobian(unit, x))
            formula.append(identity * torch.eye(5, dtype=torch.float64) + slope[:, None] * unit.linear.weight)
    return found, formula


@claim("residual.depth")
@lie("the Jacobian is that of a plain layer", identity=0.0)
@lie("a hundred plain layers train as well", stack=plain_stack)
def a_hundred_residual_layers_can_be_trained(draw, identity=1.0, stack=residual_stack, layer=ResidualLayer):
    """Jacobians by autograd; then a hundred layers of width 16, forty steps of Adam on 64 points of the plane."""
    jacobians = close(*_both_jacobians(draw, layer, identity), ulps=1024, scale=5.0)
    if not jacobians.holds:
        return jacobians  # decided without training
    return all_of(
        jacobians,
        reaches(_trained_loss(draw, stack), 0.01, at_most=True, detail="loss with residual layers"),
        reaches(_trained_loss(draw, plain_stack), 0.1, detail="loss with plain layers; log 2 = 0.69 without learning"),
    )
