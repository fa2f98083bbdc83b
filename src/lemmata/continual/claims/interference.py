"""What a step for one task does to another: gradients, curvature, and what stays where it was."""

import torch
from torch import nn
from torch.func import functional_call, grad
from torch.nn import functional

from lemmata.continual.transfer_metrics import gradient_cosine
from lemmata.judge import all_of, always, claim, close, lie, slope_is
from lemmata.measure.curvature_products import HessianOperator


def two_quadratics(draw, cosine, d=6):
    """A task's gradient and curvature at a point, and another's gradient at a given angle to the first."""
    turn = draw.orthogonal(d)
    curvature = turn @ torch.diag(draw.uniform(d, low=0.5, high=3.0)) @ turn.T
    first = draw.unit(d) * float(draw.uniform(1, low=0.5, high=2.0))
    across = draw.normal(d)
    across = across - (across @ first) / (first @ first) * first
    second = cosine * first / first.norm() + (1 - cosine**2) ** 0.5 * across / across.norm()
    return first, second * float(draw.uniform(1, low=0.5, high=2.0)), curvature


@claim("continual.transfer")
@lie(
    "whatever the length of the step",
    reach=1.5,
    regime="up to a reach of one every step does",
    loose="shorter steps do as well",
)
@lie("aligned gradients interfere", changes=torch.gt)
@lie("orthogonal gradients interfere to first order", order=1.0)
def aligned_gradients_help(draw, reach=0.5, changes=torch.lt, order=2.0, cosine=gradient_cosine):
    """A hundred pairs of quadratic tasks, half of them opposed; and orthogonal ones at ever smaller steps."""
    cases = []
    for k in range(100):
        first, second, curvature = two_quadratics(draw, (-1) ** k * float(draw.uniform(1, low=0.05, high=1.0)))
        bent = second @ curvature @ second
        step = reach * 2 * (first @ second).abs() / bent  # the change of a quadratic is zero where reach is one
        change = -step * (first @ second) + step**2 / 2 * bent
        cases.append(bool(changes(cosine(first, second) * change, 0)))
    first, second, curvature = two_quadratics(draw, 0.0)
    steps = torch.tensor([0.5**k for k in range(1, 8)], dtype=torch.float64)
    remainder = -steps * (first @ second) + steps**2 / 2 * (second @ curvature @ second)
    return all_of(
        always(cases),
        close(cosine(first, second), torch.zeros((), dtype=torch.float64), scale=1.0),
        slope_is(steps, remainder, order, within=0.02),
    )


def digits_network(draw):
    """A small network, and a batch of each of two tasks."""
    network = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    with torch.no_grad():
        for part in network.parameters():
            part.copy_(0.7 * draw.normal(*part.shape))
    return network, [(draw.normal(20, 8), draw.integers(0, 3, 20)) for _ in range(2)]


@claim("continual.first_order_transfer")
@lie("the other sign", sign=-1.0)
@lie("the whole of the curvature term", half=1.0)
@lie("exact to the third order without it", half=0.0)
def a_step_for_one_task_seen_by_another(draw, sign=1.0, half=0.5, curvature=HessianOperator):
    """A network and two tasks of its own: what is left after both terms falls with the cube of the step."""
    network, ((x_a, y_a), (x_b, y_b)) = digits_network(draw)
    theta = {name: part.detach() for name, part in network.named_parameters()}

    def loss(values, x, y):
        return functional.cross_entropy(functional_call(network, values, (x,)), y)

    to_a, to_b = grad(loss)(theta, x_a, y_a), grad(loss)(theta, x_b, y_b)
    first, second = (torch.cat([part.flatten() for part in each.values()]) for each in (to_a, to_b))
    bent = second @ curvature(network, functional.cross_entropy, (x_a, y_a))(second)
    steps = torch.tensor([0.1 / 2**k for k in range(6)], dtype=torch.float64)
    moved = [{name: theta[name] - step * to_b[name] for name in theta} for step in steps]
    changes = torch.stack([loss(values, x_a, y_a) - loss(theta, x_a, y_a) for values in moved])
    rest = changes - (-sign * steps * (first @ second) + half * steps**2 * bent)
    return slope_is(steps, rest.abs(), 3.0, within=0.35)
