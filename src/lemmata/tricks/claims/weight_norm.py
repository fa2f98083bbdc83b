"""Weight normalisation: lengths and directions, its kinship with batch normalisation, and its gradients."""

import torch
from torch import nn

from lemmata.judge import all_of, claim, close, lie
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.weight_norm import weight_norm_gradients, weight_normalized


def _weight_norm_layer(draw, inputs, outputs):
    """A linear layer with drawn lengths, some of them negative, and drawn directions."""
    layer = weight_normalized(nn.Linear(inputs, outputs, bias=False, dtype=torch.float64))
    length, direction = (layer.get_parameter(f"parametrizations.weight.original{k}") for k in (0, 1))
    with torch.no_grad():
        length.copy_(draw.signs(outputs, 1) * draw.uniform(outputs, 1, low=0.5, high=3.0))
        direction.copy_(10.0 ** draw.uniform(outputs, 1, low=-3, high=3) * draw.normal(outputs, inputs))
    return layer, length, direction


def _whitened_data(x):
    return (len(x) ** 0.5) * torch.linalg.qr(x - x.mean(0)).Q


def _centred_data(x):
    return x - x.mean(0)


@claim("norm.weight")
@lie("the direction is divided by the sum of absolute values", p=1.0)
@lie("the length is γ, whatever its sign", size=torch.clone)
@lie("it is batch normalisation of correlated inputs too", data=_centred_data)
def length_and_direction_are_decoupled(draw, p=2.0, size=torch.abs, data=_whitened_data):
    """The layer's weights against the formula and its lengths; on whitened inputs against batch normalisation."""
    layer, length, direction = _weight_norm_layer(draw, 6, 9)
    weight = layer.weight.detach()
    x = data(draw.normal(200, 6) @ draw.normal(6, 6))
    batch = BatchNorm(9, eps=1e-30, dtype=torch.float64)
    with torch.no_grad():
        batch.get_parameter("weight").copy_(length[:, 0])
    unit = batch(x @ direction.T)
    return all_of(
        close(weight, length * direction / torch.linalg.vector_norm(direction, ord=p, dim=1, keepdim=True), ulps=16),
        close(weight.norm(dim=1), size(length[:, 0]), ulps=16),
        close(layer(x), unit, ulps=4096, scale=10.0),
    )


@claim("norm.weight.gradient")
@lie("the direction is added", sign=1.0)
@lie("the length of v does not count", power=0.0)
@lie("the length of v stays", growth=0.0)
def gradients_are_orthogonal_to_the_direction(draw, sign=-1.0, power=1.0, growth=1.0, gradients=weight_norm_gradients):
    """Automatic differentiation of a loss through the layer against both formulas, and along ten steps of descent."""
    layer, length, direction = _weight_norm_layer(draw, 5, 7)
    x, target = draw.normal(30, 5), draw.normal(30, 7)
    found, formula, own, right_angles, squares, predicted = [], [], [], [], [], []
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
    for _ in range(10):
        w, v, g = layer.weight, direction.detach().clone(), length.detach().clone()
        loss = (torch.tanh(x @ w.T) - target).square().mean()
        up, by_v, by_g = torch.autograd.grad(loss, (w, direction, length))
        direction.grad, length.grad, at = by_v, by_g, w.detach()
        norm = v.norm(dim=1, keepdim=True)
        along = (up * at).sum(1, keepdim=True) * at / at.square().sum(1, keepdim=True)
        # In units of 1/|v|, so that short and long directions count alike.
        found.append(torch.cat([norm * by_v, by_g], dim=1))
        to_length = (up * v).sum(1, keepdim=True) / norm
        formula.append(torch.cat([norm * g / norm**power * (up + sign * along), to_length], dim=1))
        ours = gradients(up, g, v)
        own.append(torch.cat([norm * ours.direction, ours.length], dim=1))
        right_angles.append((by_v * v).sum(1))
        optimizer.step()
        squares.append((direction.detach().square().sum(1) - v.square().sum(1)) / norm[:, 0] ** 2)
        predicted.append(growth * 0.05**2 * by_v.square().sum(1) / norm[:, 0] ** 2)
    return all_of(
        close(found, formula, ulps=4096, scale=3.0),
        close(own, found, ulps=4096, scale=3.0),
        close(torch.stack(right_angles), 0.0, ulps=4096, scale=3.0),
        close(squares, predicted, ulps=64, scale=1.0 + torch.stack(predicted)),
    )
