"""The linear scan: steps that compose associatively, the rounds and the work this takes, gradients and roundings."""

import contextlib
import itertools
import math
from unittest.mock import patch

import sympy
import torch
from torch import Tensor

from lemmata.fast import scan_compiled, scan_paths
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_backward, chunked_forward
from lemmata.fast.scan_reference import compose_steps, scan_by_doubling, scan_by_halving, scan_by_steps
from lemmata.judge import (
    Evidence,
    Figure,
    Heat,
    all_of,
    always,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    lie,
    symbolic,
)

LENGTHS = range(1, 67)
LONG = 1025
SIZES = ((2, 19, 3), (5, 18, 2), (3, 17, 9), (1, 20, 300), (1, 1, 1))  # batch, time, channel


def the_other_order(later, earlier):
    """The earlier step applied after the later one."""
    (a2, b2), (a1, b1) = later, earlier
    return a2 * a1, a1 * b2 + b1


def not_associative(later, earlier):
    """The gate of the earlier step weighs its own term."""
    (a2, b2), (a1, b1) = later, earlier
    return a2 * a1, a1 * b1 + b2


def in_time_order(a, b, reverse, time_last):
    """Gates and terms as (batch, time, channel), in the order in which the recurrence meets them."""
    b = b.mT if time_last else b
    a = a.mT if time_last and a.ndim == 3 else a.expand(b.shape[0], 1, b.shape[2]) if a.ndim == 1 else a
    a = (a[:, None] if a.ndim == 2 else a).expand_as(b)
    return (a.flip(1), b.flip(1)) if reverse else (a, b)


def by_division(a, b, z0=None, reverse=False, *, time_last=False):
    """Division by the running product of the gates: correct on paper, until the product underflows."""
    a, b = in_time_order(a, b, reverse, time_last)
    product = a.cumprod(1)
    start = 0 if z0 is None else z0[:, None]
    z = product * (start + (b / product).cumsum(1))
    z = torch.where(z.isfinite(), z, 0.0)  # a wrong number rather than none, which would decide nothing
    z = z.flip(1) if reverse else z
    return z.mT if time_last else z


def gates_one_step_late(a, b, z0=None, reverse=False, *, time_last=False):
    """Each state is weighed by the gate of the step before."""
    a, b = in_time_order(a, b, reverse, time_last)
    z = linear_scan(a.roll(1, 1), b, z0)
    z = z.flip(1) if reverse else z
    return z.mT if time_last else z


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
    """Symbolic associativity; every path against a triangular solve; rounds and work counted; gradients; roundings."""
    parts = composing_is_associative(compose)
    for part in (
        lambda: paths_agree(draw, scan, compose, base, power),
        lambda: roundings(draw, scan, growth),
        lambda: every_way_agrees(draw, scan),
        lambda: second_derivatives_agree(draw, scan),
        lambda: halves_are_rounded_once(draw, scan),
        lambda: products_of_gates_may_overflow(draw),
        pieces_are_as_large_as_may_be,
        work_is_divided,
        lambda: the_path_is_told_and_nothing_is_scanned(scan),
    ):
        if all(evidence.holds for evidence in parts):  # what is wrong already need not be wrong twice
            parts += part()
    return all_of(*parts).showing(reach_of_each_round())


def composing_is_associative(compose) -> list[Evidence]:
    """As an operation on pairs, and as the composition of the maps they stand for."""
    steps = [sympy.symbols(f"a{index} b{index}") for index in (1, 2, 3)]
    first, second, third = steps
    left, right = compose(compose(third, second), first), compose(third, compose(second, first))
    z = sympy.Symbol("z")
    composed = compose(second, first)
    one_by_one = second[0] * (first[0] * z + first[1]) + second[1]
    return [
        symbolic(left[0], right[0]),
        symbolic(left[1], right[1]),
        symbolic(composed[0] * z + composed[1], one_by_one),
    ]


def paths_agree(draw, scan, compose, base: float, power: float) -> list[Evidence]:
    """For every length, against the solution of the triangular system z_t - a_t z_{t-1} = b_t; rounds and work."""
    a, b, z0 = draw.normal(2, LENGTHS[-1], 3), draw.normal(2, LENGTHS[-1], 3), draw.normal(2, 3)
    system = torch.eye(LENGTHS[-1], dtype=a.dtype) - torch.diag_embed(a.mT[..., 1:], offset=-1)
    right = torch.cat([b[:, :1] + a[:, :1] * z0[:, None], b[:, 1:]], 1)
    solved = torch.linalg.solve_triangular(system, right.mT[..., None], upper=False)[..., 0].mT
    found, counted = {name: [] for name in ("scan", "chunked", "doubling", "halving")}, []
    for length in LENGTHS:
        gates, terms = a[:, :length], b[:, :length]
        found["scan"].append(scan(gates, terms, z0))
        found["chunked"].append(chunked_forward(gates, terms, z0))
        for name, prefixes in (("doubling", scan_by_doubling), ("halving", scan_by_halving)):
            (products, states), rounds, work = count(prefixes, (gates, terms), compose)
            found[name].append(products * z0[:, None] + states)
            counted += [rounds, work]
    loop = scan_by_steps(a, b, z0)  # its first steps are those of a shorter sequence
    size = 2 * LENGTHS[-1] * scan_by_steps(a.abs(), b.abs(), z0.abs())  # roundings times what they can act on
    parts = [close(loop, solved, scale=size, ulps=1, detail="one step after another")]
    for name, states in found.items():
        expected, scale = (torch.cat([x[:, :length] for length in LENGTHS], 1) for x in (loop, size))
        parts.append(close(torch.cat(states, 1), expected, scale=scale, ulps=1, detail=name))
    return parts + rounds_and_work(torch.tensor(counted).view(-1, 4).T, base, power)


def rounds_and_work(counted: Tensor, base: float, power: float) -> list[Evidence]:
    """Calls of the composition, and how many pairs they compose in all, for every length."""
    rounds, work, more_rounds, less_work = counted
    lengths = torch.tensor([*LENGTHS])
    needed = torch.tensor([math.ceil(math.log(length, base) - 1e-9) if length > 1 else 0 for length in LENGTHS])
    most = lengths.double() ** power
    return [
        exactly(rounds, needed),
        exactly(work, lengths * needed - (2**needed - 1)),  # round r leaves the first 2^r prefixes alone
        at_most(work, most * needed),
        at_most(more_rounds, (2 * needed - 1).clamp(min=0), attained=True),
        at_most(less_work, 2 * most - 1),
        at_least(less_work, lengths - 1, attained=True),
    ]


def count(prefixes, steps, compose) -> tuple[tuple[Tensor, Tensor], int, int]:
    """All prefixes, in how many rounds, and by how many compositions of single pairs."""
    sizes = []

    def counting(later, earlier):
        sizes.append(later[0].shape[1])
        return compose(later, earlier)

    return prefixes(steps, counting), len(sizes), sum(sizes)


def by_steps(a, b, z0, reverse, time_last) -> Tensor:
    """The loop, asked as the scan is."""
    a, b = a.mT if time_last and a.ndim == 3 else a, b.mT if time_last else b
    z = scan_by_steps(a.expand(b.shape[0], b.shape[2]) if a.ndim == 1 else a, b, z0, reverse)
    return z.mT if time_last else z


class StandIn:
    """Takes the place of a GPU's kernels: the same tensors in the same layouts, computed by plain torch."""

    @staticmethod
    def forward(a, b, z0, reverse, time_last):
        """All states, from tensors as they lie in memory."""
        assert all(x.is_contiguous() and not x.is_conj() for x in (a, b, b if z0 is None else z0))
        a, b = as_steps((a, b), time_last)
        z = chunked_forward(a, b, z0, reverse)
        return z.mT if time_last else z

    @staticmethod
    def backward(a, z, z0, grad, reverse, time_last):
        """Gradients to a, b and z0."""
        assert all(x.is_contiguous() and not x.is_conj() for x in (a, z, z if z0 is None else z0, grad))
        a, z, grad = as_steps((a, z, grad), time_last)
        da, db, dz0 = chunked_backward(a, z, z0, grad, reverse)
        return *as_steps((da, db), time_last), dz0


def as_steps(tensors, time_last) -> list[Tensor]:
    """Time and channel exchanged where time is last."""
    return [x.mT if time_last and x.ndim == 3 else x for x in tensors]


WAYS = {
    "as it comes": (),
    "three threads": (
        patch.object(scan_compiled, "WORTH_A_THREAD", 1),
        patch.object(torch, "get_num_threads", lambda: 3),
    ),
    "no compiler, small pieces": (patch.multiple(scan_paths, why_not_compiled=lambda dtype: "switched off", PIECE=80),),
    "kernels": (patch.object(scan_paths, "_kernels", lambda b: StandIn),),
}


def every_way_agrees(draw, scan) -> list[Evidence]:
    """States and gradients against the loop: every kind of gate, direction, layout, number, and way to compute."""
    parts, in_order = [], []
    choices = itertools.product((False, True), (False, True), ("varying", "for each sequence", "for all"))
    for index, (is_complex, reverse, kind) in enumerate(choices):
        (batch, time, channel), time_last = SIZES[index % len(SIZES)], index % 2 == 0
        number = (lambda *s: torch.complex(draw.normal(*s), draw.normal(*s))) if is_complex else draw.normal
        shape = (batch, channel, time) if time_last else (batch, time, channel)
        a = 0.6 * number(*{"varying": shape, "for each sequence": (batch, channel), "for all": (channel,)}[kind])
        b, weight = number(*shape), number(*(shape if index % 4 else (1, 1, 1))).expand(shape)
        z0 = number(channel, batch).mT if index % 4 < 2 else None  # with gaps between channels
        leaves = [x.requires_grad_() for x in (a, b, z0) if x is not None]
        given = [x.conj() for x in leaves] if index % 2 else leaves  # conjugated when they are read
        a, b, z0 = [*given, None][:3]
        expected = with_gradients(by_steps(a, b, z0, reverse, time_last), leaves, weight)
        for way, changes in WAYS.items():
            with contextlib.ExitStack() as stack:
                for change in changes:
                    stack.enter_context(change)
                found = with_gradients(scan(a, b, z0, reverse, time_last=time_last), leaves, weight)
            in_order.append(found[0].is_contiguous())  # as b is
            detail = f"{way}: {kind}, {tuple(shape)}"
            parts += [close(m, e, condition=100.0, detail=detail) for m, e in zip(found, expected, strict=True)]
    return [*parts, always(in_order)]


def with_gradients(z: Tensor, leaves: list[Tensor], weight: Tensor) -> list[Tensor]:
    """States, and the gradients of their weighed sum."""
    return [z.detach(), *torch.autograd.grad(z, leaves, weight, retain_graph=True)]


def second_derivatives_agree(draw, scan) -> list[Evidence]:
    """The gradient of the squared length of all gradients, against autograd through the loop."""
    parts = []
    for is_complex, reverse, constant in itertools.product((False, True), repeat=3):
        number = (lambda *s: torch.complex(draw.normal(*s), draw.normal(*s))) if is_complex else draw.normal
        a = 0.6 * (number(2, 3) if constant else number(2, 5, 3))
        inputs, weight = (a, number(2, 5, 3), number(2, 3)), number(2, 5, 3)
        found = [curvature(path, inputs, weight, reverse) for path in (scan, scan_by_steps)]
        parts += [close(mine, loop, condition=1000.0) for mine, loop in zip(*found, strict=True)]
    return parts


def curvature(path, inputs, weight, reverse) -> tuple[Tensor, ...]:
    """Second derivatives, all of them weighed by the first ones."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    first = torch.autograd.grad(path(*leaves, reverse), leaves, weight, create_graph=True)
    return torch.autograd.grad(torch.stack([x.abs().square().sum() for x in first]).sum(), leaves)


def halves_are_rounded_once(draw, scan) -> list[Evidence]:
    """Half precision against single precision, rounded at the end; the backward pass is told the rounded states."""
    parts = []
    for time_last, constant, started in itertools.product((False, True), repeat=3):
        shape = (3, 6, 9) if time_last else (3, 9, 6)
        a, b, z0 = draw.uniform(*((3, 6) if constant else shape)), draw.normal(*shape), draw.normal(3, 6)
        half = [x.bfloat16().requires_grad_() for x in ((a, b, z0) if started else (a, b))]
        wide = [x.detach().float() for x in half]
        weight = draw.normal(*shape).bfloat16()
        with patch.object(scan_paths, "PIECE", 30):
            found = with_gradients(scan(*half, time_last=time_last), half, weight)
        gates, states, grad = as_steps((wide[0], found[0].float(), weight.float()), time_last)
        da, db, dz0 = scan_paths.backward(gates, states, wide[2] if started else None, grad, False)
        expected = [scan(*wide, time_last=time_last), *as_steps((da, db), time_last), dz0]
        parts += [exactly(m, e.bfloat16()) for m, e in zip(found, expected, strict=False)]
    return parts


def pieces_are_as_large_as_may_be() -> list[Evidence]:
    """Pieces of 21 numbers, or of one channel of one sequence: each number is in one of them, and they are few."""
    parts = []
    for shape, fewest in {(5, 4, 2): 3, (3, 5, 9): 9, (2, 50, 3): 6, (4, 7, 3): 4}.items():
        b = torch.zeros(shape)
        with patch.object(scan_paths, "PIECE", 21):
            sizes = [scan_paths._cut(b, piece).add_(1).numel() for piece in scan_paths._pieces(b)]
        parts += [always(b == 1), exactly(len(sizes), fewest), at_most(max(sizes), max(21, shape[1]))]
    return parts


# Sizes, and for three threads: the kernel, how many channels a block has, how many blocks, and threads worth starting.
DIVIDED = {
    (3, 17, 9): ("columns", 16, 3, 3),
    (5, 18, 2): ("rows", 4, 4, 3),  # five sequences side by side, twice
    (2, 19, 3): ("rows", 4, 2, 3),
    (1, 20, 300): ("columns", 112, 3, 3),
    (1, 2, 1600): ("columns", 256, 7, 3),
    (5, 2, 4): ("columns", 16, 5, 3),
    (1, 4, 4): ("columns", 16, 1, 2),
    (1, 1, 1): ("rows", 4, 1, 1),
}


def work_is_divided() -> list[Evidence]:
    """Channels that are neighbours go in blocks of whole cache lines, one for each thread at least; others in fours."""
    told = []

    class Library:
        def __getattr__(self, name):
            return lambda task, first, last: told.append((name.removeprefix("forward_"), task._obj.width))

    def share(work, blocks, threads):
        work(0, blocks)
        told.append((*told.pop(), blocks, threads))

    library = {"_library": lambda dtype: (Library(), ""), "_share": share, "WORTH_A_THREAD": 8}
    with patch.multiple(scan_compiled, **library), patch.object(torch, "get_num_threads", lambda: 3):
        for shape in DIVIDED:
            scan_compiled.compiled_forward(torch.ones(shape), torch.ones(shape), None, False, torch.ones(shape))
    return [exactly(told, [*DIVIDED.values()])]


def products_of_gates_may_overflow(draw) -> list[Evidence]:
    """Gates whose product is infinite, on a state that is zero: chunks must not see the product."""
    a, b = draw.normal(2, 23, 3), draw.normal(2, 23, 3)
    a[..., 0], b[..., 0] = 1e200, 0.0
    parts = []
    for reverse in (False, True):
        b[:, 0 if reverse else -1, 0] = 1.5  # where the scan ends
        parts.append(close(chunked_forward(a, b, None, reverse), scan_by_steps(a, b, None, reverse), condition=100.0))
        b[..., 0] = 0.0
    return parts


def the_path_is_told_and_nothing_is_scanned(scan) -> list[Evidence]:
    """Which way is taken, where there is a compiler, none, or another device; and sequences without a step."""
    b, paths = torch.ones(2, 0, 3, dtype=torch.float64), []
    for problem in ("", "none here"):
        with patch.object(scan_paths, "why_not_compiled", lambda dtype, problem=problem: problem):
            paths += [scan_paths.scan_path(b), scan_paths.scan_path(b.to("meta"))]
    leaves = [x.requires_grad_() for x in (torch.ones(2, 3), b, torch.ones(2, 3))]
    z, *gradients = with_gradients(scan(*leaves), leaves, b)
    elsewhere = "chunked: no kernels for meta"
    return [
        exactly(paths, ["compiled", elsewhere, "chunked: none here", elsewhere]),
        exactly([tuple(z.shape), *(bool(x.any()) for x in gradients)], [(2, 0, 3), False, False, False]),
    ]


def roundings(draw, scan, growth: float) -> list[Evidence]:
    r"""Single precision against double, on extreme gates.

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
    parts = []
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
        for name, path in (("scan", scan), ("chunked", chunked_forward), ("steps", scan_by_steps)):
            error = (path(gates, terms, start).to(wide) - exact).abs()
            parts.append(at_most(error, bound, detail=f"{name}, {gates.dtype}".replace("torch.", "")))
        if not gates.is_complex():
            parts.append(at_least((error / bound)[:, -1, 1], 0.45, detail="nearly half of the bound"))
    return parts


def reach_of_each_round(length: int = 32) -> Figure:
    """How many steps each prefix spans after every round of doubling."""
    spans = [torch.ones(length)]

    def recording(later, earlier):
        joined = compose_steps(later, earlier)
        spans.append(torch.cat([spans[-1][: length - joined[1].shape[1]], joined[1].flatten()]))
        return joined

    scan_by_doubling((torch.ones(1, length, 1), torch.ones(1, length, 1)), recording)
    heat = Heat(torch.stack(spans).tolist(), label="steps composed")
    note = "After the last round all reach back to 1."
    return Figure("Prefixes grow by doubling", "time", "round", [heat], note=note)
