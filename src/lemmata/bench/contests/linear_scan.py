"""The linear scan on a processor against the loop that one writes first, and against torch's associative_scan.

The loop is written well: it takes gates and terms apart once, where indexing them in every step would make the
backward pass quadratic in time. `associative_scan` runs eagerly here; compiling it takes longer than all the rest, so
that is an entry of its own. The limit copies as many bytes as a scan must read and write.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_backward, chunked_forward
from lemmata.fast.scan_reference import scan_by_steps

BATCH, TIME, CHANNEL = 4, 4096, 256

Results = tuple[Tensor, ...]  # the states, and with gradients those to gates and terms
Scan = Callable[[Tensor, Tensor], Tensor]


class Recurrence(NamedTuple):
    """Gates, terms, the gradient to the states, and whether gradients are asked for."""

    a: Tensor
    b: Tensor
    grad: Tensor
    training: bool


@entry(
    "scan",
    title="Linear scan",
    measures="all states from gates that vary in time; with gradients to gates and terms in the second case",
    cases={
        "forward": "(4, 4096, 256) float32, forward",
        "training": "(4, 4096, 256) float32, forward and backward",
    },
    targets={"torch loop": 0.1, "torch associative_scan": 1.0},
    devices="cpu",
)
def recurrence(case: str, device: str) -> Recurrence:
    """Gates between 0.9 and 1, so that the memory is long."""
    generator = torch.Generator().manual_seed(0)
    shape = BATCH, TIME, CHANNEL
    a = 0.9 + 0.1 * torch.rand(*shape, generator=generator)
    b, grad = torch.randn(*shape, generator=generator), torch.randn(*shape, generator=generator)
    return Recurrence(a.to(device), b.to(device), grad.to(device), case == "training")


@ours("lemmata")
def by_linear_scan(problem: Recurrence) -> Callable[[], Results]:
    """The path that this machine allows: compiled, unless there is no compiler."""
    return _scan_work(linear_scan, problem)


@ours("lemmata without a compiler")
def by_chunks(problem: Recurrence) -> Callable[[], Results]:
    """Plain torch, many chunks of time at once."""

    def work() -> Results:
        z = chunked_forward(problem.a, problem.b)
        if not problem.training:
            return (z,)
        return (z, *chunked_backward(problem.a, z, None, problem.grad, False)[:2])

    return work


@peer("torch loop")
def by_loop(problem: Recurrence) -> Callable[[], Results]:
    """One step after another."""
    return _scan_work(scan_by_steps, problem)


@peer("torch associative_scan", cases="forward")
def by_associative_scan(problem: Recurrence) -> Callable[[], Results]:
    """Torch's own prefix scan, a prototype, run eagerly."""
    return _scan_work(associative, problem)


@limit("copying as many bytes: 12 for each number forward, 20 more backward")
def copying(problem: Recurrence) -> Callable[[], object]:
    """Half of the bytes are read and half are written, which is not quite a scan's share."""
    copies = 4.0 if problem.training else 1.5
    source = torch.rand(int(copies * problem.a.numel()), device=problem.a.device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@agreement(within=1e-4)
def in_numbers(results: Results) -> dict[str, float]:
    """Length and mean of everything computed, and the last number."""
    found = {}
    for name, result in zip(("states", "to gates", "to terms"), results, strict=False):
        wide = result.detach().double()
        found |= {f"{name}: length": float(wide.norm()), f"{name}: size": float(wide.abs().mean())}
    return found


def associative(a: Tensor, b: Tensor) -> Tensor:
    """All states by torch's associative_scan."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def compose(earlier: tuple[Tensor, Tensor], later: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    return associative_scan(compose, (a, b), dim=1, combine_mode="generic")[1]


def _scan_work(scan: Scan, problem: Recurrence) -> Callable[[], Results]:
    a, b = (x.clone().requires_grad_(problem.training) for x in (problem.a, problem.b))

    def work() -> Results:
        z = scan(a, b)
        return (z, *torch.autograd.grad(z, (a, b), problem.grad)) if problem.training else (z,)

    return work
