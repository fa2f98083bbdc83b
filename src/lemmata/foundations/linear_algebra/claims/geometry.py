"""Lengths, angles and planes: the cosine theorem, the cosine, Cauchy and Schwarz, and hyperplanes."""

import math

import sympy
import torch
from torch.nn.functional import cosine_similarity

from lemmata.certified.norms import p_norm
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, symbolic


def squared_distances(x, y):
    """All squared distances between two sets of points, each from its difference."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square()


@claim("geometry.cosine_theorem")
@lie("the inner product is added", factor=-2)
def squared_lengths_of_differences_follow_from_inner_products(draw, factor=2):
    """In symbols for two dimensions; in numbers with two inner products, tiny and huge."""
    x, y = (sympy.Matrix(sympy.symbols(f"{name}:2", real=True)) for name in "xy")
    parts = [symbolic(sympy.expand((x - y).dot(x - y)), x.dot(x) + y.dot(y) - factor * x.dot(y), points=4)]
    for d, size in ((1, 1.0), (3, 2.0**-400), (50, 2.0**400)):
        x, y = size * draw.normal(100, d), size * draw.normal(10, d)
        lengths = (x * x).sum(-1)[:, None] + (y * y).sum(-1)
        metric = draw.covariance(d)  # another inner product, x^T M y
        root = torch.linalg.cholesky(metric)
        forms = torch.einsum("bi,ij,bj->b", x, metric, x)[:, None] + torch.einsum("bi,ij,bj->b", y, metric, y)
        parts += [
            close(squared_distances(x, y), lengths - factor * x @ y.T, scale=lengths),
            close(squared_distances(x @ root, y @ root), forms - factor * x @ metric @ y.T, scale=forms),
        ]
    return all_of(*parts)


@claim("geometry.cosine_angle")
@lie("the squares of the lengths are divided out", power=2.0)
@lie(
    "no rescaling changes the cosine, a negative one included",
    regime="no positive factor changes it",
    loose="no positive factor changes it",
    rescaled=-2.5,
)
def the_cosine_is_the_inner_product_of_directions(draw, power=1.0, rescaled=2.5):
    """In the plane against the difference of polar angles; elsewhere its formula, its range and rescaled vectors."""
    first, second = (draw.uniform(1000, low=-math.pi, high=math.pi) for _ in range(2))
    x, y = (
        (0.5 + draw.uniform(1000))[:, None] * torch.stack([angle.cos(), angle.sin()], dim=-1)
        for angle in (first, second)
    )
    between = (first - second).abs()
    between = torch.minimum(between, 2 * math.pi - between)
    u, v = draw.normal(1000, 5), draw.normal(1000, 5)
    # Tiny and huge vectors have the same angles.
    tiny, huge = 2.0**-300 * u, 2.0**300 * v
    formula = (tiny * huge).sum(-1) / (p_norm(tiny) * p_norm(huge)) ** power
    return all_of(
        close(cosine_similarity(u, v, dim=-1), formula, scale=1.0),
        close(cosine_similarity(x, y, dim=-1), between.cos(), scale=1.0),
        close(cosine_similarity(rescaled * u, v, dim=-1), cosine_similarity(u, v, dim=-1), scale=1.0),
        at_most(cosine_similarity(torch.cat([u, u]), torch.cat([v, u / 3]), dim=-1), 1.0, attained=True),
        at_least(cosine_similarity(torch.cat([u, u]), torch.cat([v, -u / 3]), dim=-1), -1.0, attained=True),
    )


@claim("geometry.cauchy_schwarz")
@lie("half the product of the lengths bounds the inner product", factor=0.5)
@lie("equality holds for vectors that are not quite dependent", apart=0.1)
def lengths_bound_the_inner_product(draw, factor=1.0, apart=0.0):
    """Random pairs and dependent ones; what is missing to equality is the sum of squared 2 x 2 determinants."""
    parts = []
    for d in (1, 5, 50):
        u, w = draw.normal(300, d), draw.normal(300, d)
        v = torch.cat([draw.normal(250, d), draw.normal(50, 1) * u[250:]])
        multiples = draw.normal(300, 1)
        multiples[0] = 0.0  # the zero vector is a multiple of every other
        dependent = multiples * u + apart * w
        inner, bound, reached = (u * v).sum(-1), p_norm(u) * p_norm(v), p_norm(u) * p_norm(dependent)
        areas = (u[:, :, None] * v[:, None, :] - v[:, :, None] * u[:, None, :]).square().sum((-2, -1)) / 2
        parts += [
            at_most(inner.abs(), factor * bound, attained=True),
            close((u * dependent).sum(-1).abs(), reached, scale=reached),
            close(bound**2 - inner**2, areas, scale=bound**2),
            always((inner.abs() < bound)[:250]) if d > 1 else close(inner.abs(), bound),
        ]
    return all_of(*parts)


@claim("geometry.hyperplane")
@lie("the distance from the origin is |b| for a normal of any length", power=0.0)
@lie("points a tenth off the plane satisfy its equation", away=0.1)
def a_plane_is_what_is_orthogonal_to_its_normal(draw, power=1.0, away=0.0):
    """Points built from a point and directions orthogonal to the normal; the nearest of them to the origin."""
    parts = []
    for d, length in ((2, 2.0**-400), (3, 3.0), (7, 2.0**400)):
        w, p = length * draw.unit(d), draw.normal(d)
        offset, normal = w @ p, w / p_norm(w)
        hesse = offset / p_norm(w) ** power
        # An orthonormal basis of the directions of the plane; what it leaves of p is nearest to the origin.
        along = torch.linalg.qr(torch.cat([w[:, None] / length, draw.normal(d, d - 1)], dim=1)).Q[:, 1:]
        on = p + draw.normal(100, d - 1) @ along.T + away * w / length
        nearest = p - along @ torch.linalg.lstsq(along, p[:, None]).solution[:, 0]
        sizes = p_norm(on) + p_norm(p)
        parts += [
            close((on - p) @ w, torch.zeros(100).double(), scale=sizes * length),
            close(on @ w, offset.expand(100), scale=sizes * length),
            close(on @ normal, hesse.expand(100), scale=sizes),
            close(hesse.abs(), p_norm(nearest), scale=p_norm(p)),
        ]
    return all_of(*parts)
