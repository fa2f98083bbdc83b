"""What formulas of matrix calculus are held against: autograd in either layout, differences, lengths of every kind."""

import inspect
import math

import torch
from torch.autograd.functional import jacobian

from lemmata.judge import all_of, close


def rows(function, x):
    """All derivatives by a vector in the numerator layout: those of one number are a row."""
    return jacobian(function, x).reshape(-1, len(x))


def columns(function, x):
    """All derivatives by a vector in the denominator layout: those of one number are a column."""
    return rows(function, x).mT


def central_differences(function, x, step=6e-6):
    """The derivatives without autograd, (axes of the value, axes of x): off by step^2/6 times the third ones.

    Rounding adds its unit, 2e-16, over the step; the cube root of the unit makes both about equal.
    """
    moves = step * torch.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
    slopes = [(function(x + move) - function(x - move)) / (2 * step) for move in moves]
    return torch.stack(slopes, dim=-1).reshape(slopes[0].shape + x.shape)


def wave(draw, inputs, *outputs):
    """2 + sin(Wx + b), from vectors to vectors or, without outputs, to numbers: smooth, nowhere 0, no symmetry."""
    weight, shift = draw.normal(*outputs, inputs) / math.sqrt(inputs), draw.normal(*outputs)
    return lambda x: 2 + torch.sin(weight @ x + shift)


def up_to_rounding(formula, value):
    """Equal but for rounding: terms of some 100 may cancel, so 1,024 units of the result's size and of 1."""
    return close(formula, value, ulps=1024, scale=1 + float(value.abs().max()))


def at_every_length(draw, sides, judge=up_to_rounding):
    """Both sides agree where all lengths are equal and then, if they do, where each length is another.

    `sides` takes the lengths and yields pairs, a formula and what it must give. A false formula that fits no shapes in
    general can be computed where all lengths are equal, and is wrong there already.
    """
    count = len(inspect.signature(sides).parameters)
    same = all_of(*(judge(*pair) for length in (1, 2, 3, 5) for pair in sides(*[length] * count)))
    if not same.holds:
        return same
    others = [(1 + draw.permutation(6))[:count].tolist() for _ in range(4)]
    return all_of(same, *(judge(*pair) for lengths in others for pair in sides(*lengths)))
