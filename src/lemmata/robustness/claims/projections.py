"""Projections onto norm balls: the nearest point, not a point of some length."""

import math

import torch

from lemmata.judge import all_of, at_most, claim, close, exactly, lie
from lemmata.robustness.norm_ball import project_ball


def shortened(z, eps):
    return project_ball(z, eps, norm=2)


def clipped(z, eps):
    return project_ball(z, eps, norm=math.inf)


def onto_the_sphere(z, eps):
    return eps * z / z.norm(dim=1, keepdim=True).clamp(min=1e-300)  # zero, where it is not defined, stays


def rescaled(z, eps):
    return eps * z / z.abs().amax(1, keepdim=True).clamp(min=1e-300)


def points_and_others(draw, norm, eps):
    """Points far outside, near the edge and inside, zero among them, (60, 5); others of the ball for each of them."""
    z = draw.normal(60, 5) * torch.tensor([1e-3, 0.1, 0.5, 1.0, 10.0, 1e6]).double().repeat(10)[:, None]
    z[0] = 0.0
    others = draw.normal(60, 200, 5)
    others = eps * others / torch.linalg.vector_norm(others, ord=norm, dim=-1, keepdim=True)
    others[:, ::2] *= draw.uniform(60, 100, 1)
    return z, others


def cosines(z, found, others):
    """Of the angle at `found` between z and other points: where one is above 0, going there leads nearer to z."""
    left, ways = (z - found)[:, None], others - found[:, None]
    return (left * ways).sum(-1) / (left.norm(dim=-1) * ways.norm(dim=-1)).clamp(min=1e-300)


@claim("attack.pgd_projection_l2")
@lie("onto the sphere: points inside are pushed outwards", project=onto_the_sphere)
@lie("each coordinate is clipped", project=clipped)
@lie("the larger of both factors", factor=torch.maximum)
@lie("points within a radius and a tenth are left alone", radius=1.1)
def shortened_to_the_radius(draw, project=shortened, factor=torch.minimum, radius=1.0):
    """Points inside, outside and at zero, against the formula, and the angles towards all other points of the ball."""
    eps = float(draw.uniform(1, low=0.5, high=2.0))
    z, others = points_and_others(draw, 2, eps)
    found, length = project(z, eps), z.norm(dim=1)
    inside = length <= eps
    return all_of(
        close(found, factor(torch.ones_like(length), radius * eps / length.clamp(min=1e-300))[:, None] * z),
        at_most(found.norm(dim=1), eps, attained=True),
        exactly(found[inside], z[inside]),
        at_most(cosines(z, found, others), 1e-7),
    )


@claim("attack.pgd_projection_linf")
@lie("divided by the largest coordinate", printed="001/1", project=rescaled)
@lie("divided by the length where that is above the radius", project=shortened)
@lie("clipped at a tenth more than the radius", radius=1.1)
def clipped_coordinates(draw, project=clipped, radius=1.0):
    """Points inside, outside and at zero, against the formula, angles to other points of the cube, and one by hand."""
    eps = float(draw.uniform(1, low=0.5, high=2.0))
    z, others = points_and_others(draw, math.inf, eps)
    found = project(z, eps)
    return all_of(
        close(found, torch.where(z.abs() > radius * eps, radius * eps * z.sign(), z)),
        at_most(found.abs(), eps, attained=True),
        at_most(cosines(z, found, others), 1e-7),
        exactly(project(torch.tensor([[2.0, 0.5]]), 1.0), torch.tensor([[1.0, 0.5]])),
    )
