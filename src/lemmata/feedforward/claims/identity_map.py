"""How hard the identity is to learn for plain layers, and how easy for residual ones."""

import torch

from lemmata.feedforward.mlp import MLP
from lemmata.feedforward.residual import ResidualMLP
from lemmata.judge import all_of, claim, lie, reaches


def residual_stack(depth):
    return ResidualMLP(8, 8, width=16, depth=depth)


def plain_stack(depth):
    return MLP(8, 8, widths=(16,) * depth)


def learn_identity(network, generator):
    """Four hundred steps, each on 64 new points."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(400):
        x = torch.randn(64, 8, generator=generator)
        optimizer.zero_grad()
        ((network(x) - x).square().sum(1).mean() / 2).backward()
        optimizer.step()


def _fit_error(draw, stack, depth):
    network, x = draw.trained(stack, learn_identity, depth=depth), draw.normal(2000, 8).float()
    with torch.no_grad():
        return float((network(x) - x).square().sum(1).mean() / 2)


@claim("residual.identity_map")
@lie("plain layers learn it as well", stack=plain_stack)
@lie("a plain net learns it the better the deeper it is", depths=(20, 1))
def residual_layers_learn_the_identity(draw, stack=residual_stack, depths=(1, 20)):
    """Points of eight normal coordinates, width 16, rectified units, nets of one and of twenty hidden layers."""
    shallow, deep = (_fit_error(draw, plain_stack, depth) for depth in depths)
    most = max(shallow, deep)
    changes = {depth: _fit_error(draw, stack, depth) for depth in (1, 20)}
    return all_of(
        reaches(deep, 1.4 * shallow, detail="error of the deeper plain net, against 1.4 times that of the other"),
        reaches(
            changes[20], 0.05 * most, at_most=True, detail="twenty residual layers, against a plain net's twentieth"
        ),
        reaches(changes[20], changes[1], at_most=True, detail="twenty residual layers, against one"),
    )
