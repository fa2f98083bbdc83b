"""Every way to compute a scan: states and gradients as the loop's, halves rounded once, pieces few and whole."""

import contextlib
import itertools
from unittest.mock import patch

import pytest
import torch

from lemmata.fast import scan_compiled, scan_paths
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_backward, chunked_forward
from lemmata.fast.scan_reference import scan_by_steps

REAL, COMPLEX = torch.float64, torch.complex128
SIZES = ((2, 19, 3), (5, 18, 2), (3, 17, 9), (1, 20, 300), (1, 1, 1))  # batch, time, channel


def as_steps(tensors, time_last):
    """Time and channel exchanged where time is last."""
    return [x.mT if time_last and x.ndim == 3 else x for x in tensors]


def with_gradients(z, leaves, weight):
    """States, and the gradients of their weighed sum."""
    return [z.detach(), *torch.autograd.grad(z, leaves, weight, retain_graph=True)]


class StandIn:
    """Takes the place of a GPU's kernels: the same tensors in the same layouts, computed by plain torch."""

    @staticmethod
    def forward(a, b, z0, reverse, time_last):
        assert all(x.is_contiguous() and not x.is_conj() for x in (a, b, b if z0 is None else z0))
        a, b = as_steps((a, b), time_last)
        z = chunked_forward(a, b, z0, reverse)
        return z.mT if time_last else z

    @staticmethod
    def backward(a, z, z0, grad, reverse, time_last):
        assert all(x.is_contiguous() and not x.is_conj() for x in (a, z, z if z0 is None else z0, grad))
        a, z, grad = as_steps((a, z, grad), time_last)
        da, db, dz0 = chunked_backward(a, z, z0, grad, reverse)
        return *as_steps((da, db), time_last), dz0


WAYS = {
    "as it comes": (),
    "three threads": (
        patch.object(scan_compiled, "WORTH_A_THREAD", 1),
        patch.object(torch, "get_num_threads", lambda: 3),
    ),
    "no compiler, small pieces": (patch.multiple(scan_paths, why_not_compiled=lambda dtype: "switched off", PIECE=80),),
    "kernels": (patch.object(scan_paths, "_gpu_kernels", lambda b: StandIn),),
}
CASES = list(enumerate(itertools.product((REAL, COMPLEX), (False, True), ("varying", "for each sequence", "for all"))))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("index", "case"), CASES)
def test_states_and_gradients_are_those_of_the_loop(way, index, case):
    dtype, reverse, kind = case
    torch.manual_seed(index)
    (batch, time, channel), time_last = SIZES[index % len(SIZES)], index % 2 == 0
    shape = (batch, channel, time) if time_last else (batch, time, channel)
    gates = {"varying": shape, "for each sequence": (batch, channel), "for all": (channel,)}[kind]
    a, b = 0.6 * torch.randn(gates, dtype=dtype), torch.randn(shape, dtype=dtype)
    weight = torch.randn(shape if index % 4 else (1, 1, 1), dtype=dtype).expand(shape)
    z0 = torch.randn(channel, batch, dtype=dtype).mT if index % 4 < 2 else None  # with gaps between channels
    leaves = [x.requires_grad_() for x in (a, b, z0) if x is not None]
    given = [x.conj() for x in leaves] if index % 2 else leaves  # conjugated when they are read
    a, b, z0 = [*given, None][:3]
    gates, terms = as_steps((a, b), time_last)
    loop = scan_by_steps(gates.expand(batch, channel) if gates.ndim == 1 else gates, terms, z0, reverse)
    expected = with_gradients(loop.mT if time_last else loop, leaves, weight)
    with contextlib.ExitStack() as stack:
        for change in WAYS[way]:
            stack.enter_context(change)
        found = with_gradients(linear_scan(a, b, z0, reverse, time_last=time_last), leaves, weight)
    assert found[0].is_contiguous()  # as b is
    for mine, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, exact, rtol=1e-11, atol=1e-11)  # a few hundred roundings of numbers near 1


@pytest.mark.parametrize(("time_last", "constant", "started"), [*itertools.product((False, True), repeat=3)])
def test_the_backward_pass_of_halves_is_told_the_rounded_states(monkeypatch, time_last, constant, started):
    monkeypatch.setattr(scan_paths, "PIECE", 30)
    shape = (3, 6, 9) if time_last else (3, 9, 6)
    a, b, z0 = torch.rand((3, 6) if constant else shape), torch.randn(shape), torch.randn(3, 6)
    half = [x.bfloat16().requires_grad_() for x in ((a, b, z0) if started else (a, b))]
    wide = [x.detach().float() for x in half]
    weight = torch.randn(shape).bfloat16()
    found = with_gradients(linear_scan(*half, time_last=time_last), half, weight)
    gates, states, grad = as_steps((wide[0], found[0].float(), weight.float()), time_last)
    da, db, dz0 = scan_paths.backward(gates, states, wide[2] if started else None, grad, False)
    expected = [linear_scan(*wide, time_last=time_last), *as_steps((da, db), time_last), dz0]
    for mine, exact in zip(found, expected, strict=False):
        assert torch.equal(mine, exact.bfloat16())


@pytest.mark.parametrize(("shape", "fewest"), [((5, 4, 2), 3), ((3, 5, 9), 9), ((2, 50, 3), 6), ((4, 7, 3), 4)])
def test_each_number_is_in_one_piece_and_the_pieces_are_few(monkeypatch, shape, fewest):
    monkeypatch.setattr(scan_paths, "PIECE", 21)  # or one channel of one sequence
    b = torch.zeros(shape)
    sizes = [scan_paths._cut_piece(b, piece).add_(1).numel() for piece in scan_paths._scan_pieces(b)]
    assert bool((b == 1).all())
    assert len(sizes) == fewest
    assert max(sizes) <= max(21, shape[1])
