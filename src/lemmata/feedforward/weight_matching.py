r"""Averaging two trained networks: the barrier between them, and the order of hidden units that takes it away."""

import copy
import math
from collections.abc import Callable

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from lemmata import validate
from lemmata.feedforward.mlp import MLP
from lemmata.marks import system

__all__ = ["interpolate_weights", "loss_barrier", "match_hidden_units"]


@system("weight_matching", title="Weight matching of hidden units", kind="function")
def match_hidden_units(reference: MLP, other: MLP, max_rounds: int = 100) -> MLP:
    r"""The other network with its hidden units in the order in which its weights are most like the reference's.

    $$ \max_{P_1, \dots, P_{L-1}} \sum_{l=1}^{L} \big\langle W_l,\ P_l W_l' P_{l-1}^\top \big\rangle
       + \langle b_l, P_l b_l' \rangle, \qquad P_0 = P_L = I $$

    Hidden units are interchangeable, so two networks trained from different initial weights rarely agree on their
    order, and the mean of their weights is often worse than either. For one hidden layer at a time, with the others as
    they are, the best order is an assignment problem, which is solved exactly; the layers are gone through until none
    improves. For a single hidden layer the answer is the best of all orders, for more a local maximum.

    Shapes:
        two networks of the same layers    returns: a network that computes what `other` computes

    Claims: layers.permutation_symmetry
    Source: S. Ainsworth, J. Hayase and S. Srinivasa, Git Re-Basin: merging models modulo permutation symmetries (2023).
    Differs: layers are taken in their order, not at random, so that the answer is always the same.

    >>> mlp = MLP(4, 2, widths=(5,))
    >>> shuffled = mlp.permuted([torch.tensor([3, 1, 4, 0, 2])])
    >>> torch.equal(match_hidden_units(mlp, shuffled).layers[0].weight, mlp.layers[0].weight)
    True
    """
    validate.count("max_rounds", max_rounds)
    _same_layers(reference, other)
    theirs, ours = _joint_weights(reference), _joint_weights(other)
    orders = [torch.arange(width) for width in reference.config.widths]
    for _ in range(max_rounds):
        improved = [_improve_order(theirs, ours, orders, layer) for layer in range(len(orders))]
        if not any(improved):
            break
    return other.permuted(orders)


def _improve_order(theirs: list[Tensor], ours: list[Tensor], orders: list[Tensor], layer: int) -> bool:
    """Put the units of one hidden layer into the best order; whether that made the weights more alike."""
    before = _reorder_inputs(ours[layer], orders[layer - 1] if layer else None)  # (units, inputs and bias)
    after = ours[layer + 1]
    if layer + 1 < len(orders):
        after = after[orders[layer + 1]]
    alike = theirs[layer] @ before.T + theirs[layer + 1][:, :-1].T @ after[:, :-1]  # (units, units)
    order = torch.as_tensor(linear_sum_assignment(alike.numpy(), maximize=True)[1])
    rows = torch.arange(len(order))
    gain = float(alike[rows, order].sum() - alike[rows, orders[layer]].sum())
    # What may be rounding is no improvement: the rounds would not end.
    better = gain > 1e-12 * len(order) * float(alike.abs().max())
    if better:
        orders[layer] = order
    return better


def _reorder_inputs(weight: Tensor, order: Tensor | None) -> Tensor:
    """The inputs of a layer in another order; its last column is the bias."""
    return weight if order is None else torch.cat([weight[:, order], weight[:, -1:]], dim=1)


def _linear_layers(mlp: MLP) -> list[nn.Linear]:
    return [layer for layer in mlp.layers if isinstance(layer, nn.Linear)]


def _joint_weights(mlp: MLP) -> list[Tensor]:
    """Weights and bias of each layer side by side, in double precision."""
    found = []
    for layer in _linear_layers(mlp):
        weight = layer.weight.detach().double().cpu()
        bias = torch.zeros(len(weight)) if layer.bias is None else layer.bias.detach().double().cpu()
        found.append(validate.floating("weights", torch.cat([weight, bias[:, None]], dim=1)))
    return found


def _same_layers(first: MLP, second: MLP) -> None:
    for name, mlp in (("reference", first), ("other", second)):
        if not isinstance(mlp, MLP):
            raise TypeError(f"{name} must be an MLP, got {type(mlp).__name__}: use one with the same weights")
    shapes = [[tuple(layer.weight.shape) for layer in _linear_layers(mlp)] for mlp in (first, second)]
    kinds = [mlp.config.activation for mlp in (first, second)]
    if shapes[0] != shapes[1] or kinds[0] != kinds[1]:
        found = " and ".join(f"{kind} with weights {sizes}" for kind, sizes in zip(kinds, shapes, strict=True))
        raise ValueError(f"networks must have the same layers, got {found}")


def interpolate_weights(first: nn.Module, second: nn.Module, fraction: float) -> nn.Module:
    r"""A network whose parameters lie on the straight line between those of two networks.

    $$ \theta = (1 - t)\,\theta_1 + t\,\theta_2 $$

    So do its buffers, such as running means; integers, which have no line between them, are those of the nearer
    network.

    >>> middle = interpolate_weights(nn.Linear(2, 1), nn.Linear(2, 1), 0.5)
    >>> middle.weight.shape
    torch.Size([1, 2])
    """
    validate.finite_number("fraction", fraction)
    for name, network in (("first", first), ("second", second)):
        validate.module(name, network)
    between = copy.deepcopy(first)
    own, others = ({**dict(net.named_parameters()), **dict(net.named_buffers())} for net in (between, second))
    if {name: values.shape for name, values in own.items()} != {name: v.shape for name, v in others.items()}:
        raise ValueError("networks must have the same parameters and buffers: build them with the same arguments")
    with torch.no_grad():
        for name, values in own.items():
            other = others[name].to(values)
            if values.is_floating_point() or values.is_complex():
                values.copy_(torch.lerp(values, other, fraction))
            elif fraction > 0.5:
                values.copy_(other)
    return between


def loss_barrier(
    first: nn.Module, second: nn.Module, loss: Callable[[nn.Module], Tensor | float], points: int = 21
) -> float:
    r"""How far the loss rises above the straight line between two networks' losses, on the line between their weights.

    $$ \max_{t \in [0, 1]}\ \ell\big((1 - t)\theta_1 + t\theta_2\big) - (1 - t)\,\ell(\theta_1) - t\,\ell(\theta_2) $$

    `loss` takes a network and gives its loss; the maximum is over `points` values of $t$, 0 and 1 among them.

    Source: J. Frankle et al., Linear mode connectivity and the lottery ticket hypothesis (2020).

    >>> linear, x, y = nn.Linear(2, 1), torch.rand(5, 2), torch.rand(5, 1)
    >>> loss_barrier(linear, nn.Linear(2, 1), lambda model: (model(x) - y).square().mean()) < 1e-6  # it is convex
    True
    """
    validate.count("points", points, least=2)
    fractions = [step / (points - 1) for step in range(points)]
    with torch.no_grad():
        losses = [_loss_value(loss(interpolate_weights(first, second, t))) for t in fractions]
    if not all(map(math.isfinite, losses)):
        raise ValueError("loss must be finite on the way between the networks, got NaN or infinity")
    chord = [(1 - t) * losses[0] + t * losses[-1] for t in fractions]
    return max(0.0, *(found - line for found, line in zip(losses, chord, strict=True)))


def _loss_value(loss: Tensor | float) -> float:
    if isinstance(loss, Tensor) and loss.numel() != 1:
        raise ValueError(f"loss must give one number, got shape {tuple(loss.shape)}: use its mean")
    return float(loss)
