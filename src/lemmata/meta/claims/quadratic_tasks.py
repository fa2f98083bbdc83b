"""Tasks whose losses are polynomials of the parameters, so that every optimum and derivative is known."""

from typing import NamedTuple

import torch
from torch import nn
from torch.func import grad

from lemmata.data.examples import Examples


class Point(nn.Module):
    """A model that is nothing but its parameters: the output is they themselves, whatever the input."""

    def __init__(self, start):
        super().__init__()
        self.where = nn.Parameter(start.clone())

    def forward(self, x):
        return self.where.expand(len(x), -1)


class Losses(NamedTuple):
    """For each task the curvature, the minimum and the cubic part of a loss."""

    curvature: torch.Tensor  # (tasks, d, d)
    minimum: torch.Tensor  # (tasks, d)
    cubic: torch.Tensor  # (tasks, d)

    def of(self, task, where):
        away = where - self.minimum[task]
        return away @ self.curvature[task] @ away / 2 + (self.cubic[task] * away**3).sum() / 6

    def gradient(self, task, where):
        away = where - self.minimum[task]
        return self.curvature[task] @ away + self.cubic[task] * away**2 / 2

    def hessian(self, task, where):
        return self.curvature[task] + torch.diag(self.cubic[task] * (where - self.minimum[task]))

    @property
    def rows(self):
        """As targets: one row of numbers for each task."""
        return torch.cat([self.curvature.flatten(1), self.minimum, self.cubic], 1)[:, None]  # (tasks, 1, numbers)


def drawn_losses(draw, tasks, d, cubic=0.0):
    """Curvatures between a half and about three, minima two apart."""
    turns = torch.stack([draw.orthogonal(d) for _ in range(tasks)])
    sizes = draw.uniform(tasks, d, low=0.5, high=3.0)
    curvature = turns @ torch.diag_embed(sizes) @ turns.mT
    return Losses((curvature + curvature.mT) / 2, 2 * draw.normal(tasks, d), cubic * draw.normal(tasks, d))


def loss_of_rows(output, y):
    """The mean over rows of the loss that each row of numbers describes, at the point beside it."""
    d = output.shape[1]
    curvature, minimum, cubic = y[:, : d * d].reshape(-1, d, d), y[:, d * d : d * d + d], y[:, d * d + d :]
    away = output - minimum  # (rows, d)
    return ((away[:, None] @ curvature @ away[:, :, None])[:, 0, 0] / 2 + (cubic * away**3).sum(1) / 6).mean()


def tasks_of(support, query):
    """A batch of tasks with one row each to learn from, and one to be judged by."""
    nothing = torch.zeros(len(support.minimum), 1, 1, dtype=torch.float64)
    return Examples(x=nothing, y=support.rows, query_x=nothing, query_y=query.rows)


def walked(losses, task, start, steps, lr):
    """The points of gradient descent on one task's loss, from the start on."""
    points = [start]
    for _ in range(steps):
        points.append(points[-1] - lr * losses.gradient(task, points[-1]))
    return points


def gradient_of(learner, batch):
    """The gradient of a learner's loss in the parameters of a `Point`."""
    learner.zero_grad()
    learner.loss(batch).backward()
    return learner.model.where.grad.clone()


def flat_gradient(loss, parameters):
    """The gradient of a function of parameters by name, as one vector."""
    return torch.cat([part.flatten() for part in grad(loss)(parameters).values()])
