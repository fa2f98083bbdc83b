"""Norms of vectors: what makes them norms, where they fail to be, and the constants between them."""

import math

import torch

from lemmata.foundations.norms import norm_ratio_bound, p_norm
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie

INFINITY = math.inf


@claim("norms.lp")
@lie("the triangle inequality also holds for p = 1/2", least=0.5)
@lie("the count of entries that are not zero scales with the vector", count_degree=1)
@lie("the 64-norm of d equal entries exceeds the largest by less than the 128th root of d tells", growth=0.5)
def p_norms_are_norms_from_one_on(draw, least=1.0, count_degree=0, growth=1.0):
    """Torch's norms, the laws of a norm on random vectors, the distance to the limit, and whole-number counts."""
    basis = torch.eye(4).double()
    x, y = (torch.cat([draw.normal(1000, 4), corners]) for corners in (basis, basis.flip(0)))
    factors = draw.normal(len(x))
    parts = []
    for p in (least, 1.5, 2.0, 4.0, INFINITY):
        sizes = p_norm(x, p)
        parts += [
            at_most(p_norm(x + y, p), sizes + p_norm(y, p), detail=f"p = {p:g}"),
            close(p_norm(factors[:, None] * x, p), factors.abs() * sizes),
            close(sizes, torch.linalg.vector_norm(x, p, dim=-1)),
            always(sizes > 0),
        ]
    equal = torch.cat([x, draw.normal(5, 1).expand(5, 4)])
    largest = p_norm(equal, INFINITY)
    whole = draw.integers(-1, 2, 200, 6)
    counts = (whole != 0).sum(-1)
    return all_of(
        *parts,
        # The sum of d powers lies between its largest term and d times that, which equal entries attain.
        at_least(p_norm(equal, 64), largest, attained=True),
        at_most(p_norm(equal, 64), largest * 4 ** (growth / 64), attained=True),
        exactly(p_norm(whole.double(), 0), counts),
        exactly(p_norm(3 * whole.double(), 0), 3**count_degree * counts),
        # Powers of two round nothing, so that no power of an entry may overflow or vanish on the way.
        exactly(p_norm(x * 2.0**600, 3), 2.0**600 * p_norm(x, 3)),
        exactly(p_norm(x * 2.0**-600, 3), 2.0**-600 * p_norm(x, 3)),
        exactly(p_norm(torch.zeros(2, 3).double(), 3), torch.zeros(2)),
        exactly(p_norm(x.T, 1.5, dim=0), p_norm(x, 1.5)),
        close(p_norm(x[:1000].reshape(10, 100, 4)).flatten(), p_norm(x[:1000], 2)),
    ).showing(unit_balls())


def unit_balls():
    """The vectors of length 1 in the plane, for several p: below 1 the ball is not convex."""
    angle = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    directions = torch.stack([angle.cos(), angle.sin()], dim=-1)
    marks = []
    for p in (0.5, 1.0, 1.5, 2.0, 4.0, INFINITY):
        ball = directions / p_norm(directions, p)[:, None]
        marks.append(Line(ball[:, 0], ball[:, 1], label=f"p = {p:g}"))
    return Figure("Vectors of length 1", "first entry", "second entry", marks)


@claim("norms.chain")
@lie("a vector of d entries is bounded by the square root of d - 1", entries=-1)
@lie("the square root of d + 1 is the best constant", entries=1)
@lie("the 2-norm is at most nine tenths of the 1-norm", middle=0.9)
def norms_bound_each_other_by_roots_of_the_dimension(draw, entries=0, middle=1.0):
    """Random, constant and basis vectors against all four constants, each of which one of them attains."""
    parts = []
    for d in (1, 2, 10, 100):
        x = torch.cat([draw.normal(1000, d), torch.ones(1, d).double(), torch.eye(d).double()])
        root = math.sqrt(d + entries)
        for p, q, constant in ((2, INFINITY, root), (INFINITY, 2, 1.0), (2, 1, middle), (1, 2, root)):
            parts += [
                at_most(p_norm(x, p), constant * p_norm(x, q), attained=True, detail=f"p = {p:g}, q = {q:g}, d = {d}"),
                close(norm_ratio_bound(p, q, d), constant, scale=math.sqrt(d)),
            ]
    return all_of(*parts)
