"""Norms of vectors: what makes them norms, where they fail to be, and the constants between them."""

import math

import torch

from lemmata.certified.norms import p_norm
from lemmata.judge import Figure, Line, all_of, always, at_least, at_most, claim, close, exactly, lie

INFINITY = math.inf


@claim("norms.lp")
@lie("the triangle inequality also holds for p = 1/2", loose="every p from 1 on gives a norm", least=0.5)
@lie("the count of entries that are not zero scales with the vector", count_degree=1)
@lie("the p-norm of d equal entries is the largest of them times the 2p-th root of d", growth=0.5)
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
    whole = draw.integers(-1, 2, 200, 6).double()
    counts = (whole != 0).sum(-1).double()
    return all_of(
        *parts,
        # The sum of d powers lies between its largest term and d times that, which equal entries attain.
        *(at_least(p_norm(equal, p), largest, attained=True) for p in (8, 64, 4096)),
        *(at_most(p_norm(equal, p), largest * 4 ** (growth / p), attained=True) for p in (8, 64, 4096)),
        exactly(torch.stack([p_norm(whole, 0), p_norm(3 * whole, 0)]), torch.stack([counts, 3**count_degree * counts])),
        # What the balls do not show is left to the judges' own pictures.
    ).showing(unit_balls(least) if (count_degree, growth) == (0, 1.0) else None)


def unit_balls(least):
    """The vectors of length 1 in the plane, for several p: below 1 the ball is not convex."""
    angle = torch.linspace(0, 2 * math.pi, 121, dtype=torch.float64)
    directions = torch.stack([angle.cos(), angle.sin()], dim=-1)
    marks = []
    for p in (least, 1.5, 2.0, 4.0, INFINITY):
        ball = directions / p_norm(directions, p)[:, None]
        marks.append(Line(ball[:, 0], ball[:, 1], label=f"p = {p:g}"))
    return Figure("Vectors of length 1", "first entry", "second entry", marks)


@claim("norms.chain")
@lie("a vector of d entries is bounded by the square root of d - 1", entries=-1)
@lie("the max-norm is at most nine tenths of the 2-norm, and that of the 1-norm", middle=0.9)
def norms_bound_each_other_by_roots_of_the_dimension(draw, entries=0, middle=1.0):
    """Random vectors of all sizes below the four constants; constant or basis vectors, each of them, exactly there."""
    parts = []
    for d in (1, 2, 10, 100):
        x = draw.normal(1000, d) * 10 ** draw.uniform(1000, 1, low=-200.0, high=200.0)
        constant, basis = draw.signs(5, d) * draw.normal(5, 1), torch.eye(d).double() * draw.normal(d, 1)
        root = math.sqrt(d + entries)
        for p, q, ratio, there in (
            (2, INFINITY, root, constant),
            (INFINITY, 2, middle, basis),
            (2, 1, middle, basis),
            (1, 2, root, constant),
        ):
            lengths = p_norm(there, p)
            parts += [
                at_most(p_norm(x, p), ratio * p_norm(x, q), detail=f"p = {p:g}, q = {q:g}, d = {d}"),
                close(lengths, ratio * p_norm(there, q), scale=lengths),
            ]
    return all_of(*parts)
