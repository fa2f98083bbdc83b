"""The linear scan: steps that compose associatively, the rounds and the work this takes, and its roundings."""

import math

import sympy
import torch
from torch import Tensor

from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_forward
from lemmata.fast.scan_reference import compose_steps, scan_by_doubling, scan_by_halving, scan_by_steps
from lemmata.judge import all_of, at_most, claim, close, exactly, lie, symbolic

LENGTHS = range(1, 67)
LONG = 1025


def the_other_order(later, earlier):
    """The earlier step applied after the later one."""
    (a2, b2), (a1, b1) = later, earlier
    return a2 * a1, a1 * b2 + b1


def not_associative(later, earlier):
    """The gate of the earlier step weighs its own term."""
    (a2, b2), (a1, b1) = later, earlier
    return a2 * a1, a1 * b1 + b2


def by_division(a, b, z0):
    """Division by the running product of the gates: correct on paper, until the product underflows."""
    product = a.cumprod(1)
    z = product * (z0[:, None] + (b / product).cumsum(1))
    return torch.where(z.isfinite(), z, 0.0)  # a wrong number rather than none, which would decide nothing


def gates_one_step_late(a, b, z0):
    """Each state is weighed by the gate of the step before."""
    return linear_scan(a.roll(1, 1), b, z0)


@claim("rnn.scan")
@lie("the composition applies the earlier step last", compose=the_other_order)
@lie("the earlier step's gate weighs its own term", compose=not_associative)
@lie("each state is weighed by the gate of the step before", scan=gates_one_step_late)
@lie("dividing by the running product of the gates computes the same", scan=by_division)
@lie("every round reaches four times as far", base=4.0)
@lie("the work too is logarithmic in the length", loose="a larger bound holds as well", power=0.0)
@lie(
    "the error of rounding does not grow with the number of steps",
    regime="the bound is for every order of computation; the worst case that is tried comes to half of it",
    growth=0.0,
)
def all_prefixes_in_logarithmically_many_rounds(
    draw, scan=linear_scan, compose=compose_steps, base=2.0, power=1.0, growth=1.0
):
    """Symbolic associativity; every order against a triangular solve; rounds and work counted; roundings bounded."""
    first, second, third = [sympy.symbols(f"a{index} b{index}") for index in (1, 2, 3)]
    z = sympy.Symbol("z")
    left, right = compose(compose(third, second), first), compose(third, compose(second, first))
    a, b, z0 = draw.normal(2, LENGTHS[-1], 3), draw.normal(2, LENGTHS[-1], 3), draw.normal(2, 3)
    found, counted = [], []
    for length in LENGTHS:
        gates, terms = a[:, :length], b[:, :length]
        doubled, rounds, work = count(scan_by_doubling, (gates, terms), compose)
        halved, more_rounds, less_work = count(scan_by_halving, (gates, terms), compose)
        states = [products * z0[:, None] + sums for products, sums in (doubled, halved)]
        found.append(torch.stack([*states, *(path(gates, terms, z0) for path in in_order(scan))]))
        counted.append([rounds, work, more_rounds, less_work])
    solved = torch.cat([solution(a, b, z0)[:, :length] for length in LENGTHS], 1)
    size = 2 * LENGTHS[-1] * scan_by_steps(a.abs(), b.abs(), z0.abs())  # roundings times what they can act on
    scale = torch.cat([size[:, :length] for length in LENGTHS], 1)
    rounds, work, more_rounds, less_work = torch.tensor(counted).T
    needed = torch.tensor([math.ceil(math.log(length, base) - 1e-9) for length in LENGTHS])
    most = torch.tensor([*LENGTHS]).double() ** power
    return all_of(
        symbolic(applied(left, z), applied(right, z)),
        symbolic(applied(compose(second, first), z), applied(second, applied(first, z))),
        close(torch.cat(found, 2), solved.expand(5, -1, -1, -1), scale=scale, ulps=1),
        exactly(rounds, needed),
        at_most(work, most * needed),
        at_most(more_rounds, (2 * needed - 1).clamp(min=0), attained=True),
        at_most(less_work, 2 * most - 1),
        *(at_most(error, bound) for error, bound in roundings(draw, scan, growth)),
    )


def in_order(scan):
    """The ways to compute the scan that go forwards in time: the one that is claimed, in chunks, and step by step."""
    return scan, chunked_forward, scan_by_steps


def applied(step, z):
    """The map that a pair stands for."""
    return step[0] * z + step[1]


def count(prefixes, steps, compose) -> tuple[tuple[Tensor, Tensor], int, int]:
    """All prefixes, in how many rounds, and by how many compositions of single pairs."""
    sizes = []

    def counting(later, earlier):
        sizes.append(later[0].shape[1])
        return compose(later, earlier)

    return prefixes(steps, counting), len(sizes), sum(sizes)


def solution(a, b, z0) -> Tensor:
    """The states as the solution of the triangular system z_t - a_t z_{t-1} = b_t."""
    system = torch.eye(a.shape[1], dtype=a.dtype) - torch.diag_embed(a.mT[..., 1:], offset=-1)
    right = torch.cat([b[:, :1] + a[:, :1] * z0[:, None], b[:, 1:]], 1)
    return torch.linalg.solve_triangular(system, right.mT[..., None], upper=False)[..., 0].mT


def roundings(draw, scan, growth: float) -> list[tuple[Tensor, Tensor]]:
    r"""Errors of single precision against double on extreme gates, and their bounds, for real and complex numbers.

    A term $b_s$ reaches $z_t$ through at most $T$ products and $T$ sums, whatever their order, so that for real numbers
    $|\hat z_t - z_t| \le 2Tu/(1 - 2Tu) \cdot (|a| \text{ scan } |b|)_t$, where $u$ is half an ulp of one. For complex
    ones each part of $ab + c$ takes three roundings, and the two parts together at most $3\sqrt2\,u$ of $|a||b| + |c|$.
    What underflows is lost once a step, and weighed by the gates and the state that follow.
    """
    special = [0.0, 1.0, -1.0, 1e-30, -1e-30, 1e-38, 1 - 2.0**-23, -(1 - 2.0**-23), 0.999, 0.5]
    mixed = torch.tensor(special)[draw.integers(0, len(special), 2, LONG, 3)]
    a = torch.cat([torch.tensor(special).expand(2, LONG, -1), mixed, draw.uniform(2, LONG, 4).float()], 2)
    b, z0 = draw.uniform(*a.shape).float(), draw.normal(2, a.shape[2]).float()
    b[..., 1], z0[:, 1] = 0.98 * 2.0**-24, 1.0  # with the gate 1, each sum is rounded down by nearly half an ulp
    phases = torch.polar(torch.ones(a.shape[2]), 7 * draw.uniform(a.shape[2]).float())
    found = []
    for gates, per_step in ((a, 2.0), (a * phases, 3 * math.sqrt(2))):
        terms, start = b.to(gates), z0.to(gates)
        wide = torch.complex128 if gates.is_complex() else torch.float64
        exact = scan_by_steps(gates.to(wide), terms.to(wide), start.to(wide))
        unit, least = torch.finfo(gates.dtype).eps / 2, 2.0**-149
        size, weight = torch.cat([b, torch.ones_like(b)], 2), torch.cat([z0.abs(), torch.zeros_like(z0)], 1)
        sums = scan_by_steps(gates.abs().double().repeat(1, 1, 2), size.double(), weight.double())
        total, lost = sums.chunk(2, 2)
        share = per_step * LONG**growth * unit
        bound = share / (1 - share) * total + least * (1 + total.amax()) * lost
        errors = torch.stack([(path(gates, terms, start).to(wide) - exact).abs() for path in in_order(scan)])
        found.append((errors, bound.expand_as(errors)))
    return found
