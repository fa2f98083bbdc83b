"""The linear scan on a GPU against torch's and JAX's associative scans, and against the speed of memory.

The limit copies as many bytes as the scan must read and write at least, with torch's own copy. One repeat is many
calls in a row, as in training: the machine that launches them works ahead, and what is measured is the GPU. Elsewhere
than on a GPU the sizes are small; that only serves to try the entry.
"""

import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.fast.scan import linear_scan
from lemmata.fast.scan_chunked import chunked_backward, chunked_forward
from lemmata.fast.scan_reference import scan_by_steps

CALLS = 20
SMALL = (2, 8, 64)  # where there is no GPU
SHAPES = {"many": (8, 1536, 16384), "few": (1, 32, 1 << 20), "lambda": (1, 512, 131072), "short": (8, 1536, 256)}

Results = tuple[Tensor, ...]  # the states, and in training the gradients to gates and terms


class Recurrence(NamedTuple):
    """Gates, terms and the gradient to the states, in the order of memory that the case asks for."""

    a: Tensor
    b: Tensor
    grad: Tensor
    time_last: bool
    training: bool

    @property
    def bytes(self) -> int:
        """What must be read and written: gates, terms and states; backward gates, states and three gradients."""
        full = self.b.numel() * self.b.element_size()
        gates = 0 if self.a.ndim == 2 else full
        return 2 * full + gates + (3 * full + 2 * gates if self.training else 0)


@entry(
    "scan_gpu",
    title="Linear scan on a GPU",
    measures="20 calls in a row: all states; in training also the gradients to gates and terms",
    cases={
        "many": "(8, 1536, 16384) float32, time last",
        "many_major": "(8, 16384, 1536) float32, channels last",
        "many_training": "(8, 1536, 16384) float32, time last, forward and backward",
        "many_major_training": "(8, 16384, 1536) float32, channels last, forward and backward",
        "few": "(1, 32, 1048576) float32, time last",
        "few_major": "(1, 1048576, 32) float32, channels last",
        "lambda": "(1, 512, 131072) complex64, constant gates, time last",
        "lambda_major": "(1, 131072, 512) complex64, constant gates, channels last",
        "short_major": "(8, 256, 1536) float32, channels last",
    },
    targets={"torch associative_scan": 1.0, "jax associative_scan": 1.0, "torch loop": 0.1},
    devices="cuda",
)
def recurrence(case: str, device: str) -> Recurrence:
    """Gates near one, so that the memory is long; where they are constant, on a circle of radius 0.999."""
    kind, *more = case.split("_")
    batch, channel, time = SHAPES[kind] if device != "cpu" else SMALL
    shape = (batch, time, channel) if "major" in more else (batch, channel, time)
    place: dict[str, Any] = {"device": device, "generator": torch.Generator(device).manual_seed(0)}
    if kind == "lambda":
        angle = 3 * torch.rand(batch, channel, **place)
        a, dtype = torch.polar(torch.full_like(angle, 0.999), angle), torch.complex64
    else:
        a, dtype = 0.99 + 0.01 * torch.rand(*shape, **place), torch.float32
    b, grad = (torch.randn(*shape, dtype=dtype, **place) for _ in range(2))
    return Recurrence(a, b, grad, "major" not in more, "training" in more)


@ours("lemmata")
def by_linear_scan(problem: Recurrence) -> Callable[[], Results]:
    """As it comes."""
    return _repeated_calls(functools.partial(linear_scan, time_last=problem.time_last), problem)


@ours("lemmata without kernels")
def by_chunks(problem: Recurrence) -> Callable[[], Results]:
    """Plain torch, many chunks of time at once."""
    a, b, grad = (x.mT if problem.time_last and x.ndim == 3 else x for x in (problem.a, problem.b, problem.grad))

    def once() -> Results:
        z = chunked_forward(a, b)
        return (z, *chunked_backward(a, z, None, grad, False)[:2]) if problem.training else (z,)

    return lambda: _last_result(once)


@ours("lemmata by way of time last", cases="many_major few_major lambda_major")
def by_transposing(problem: Recurrence) -> Callable[[], Results]:
    """What a kernel for the other order of memory would cost: transposed there and back."""

    def scan(a: Tensor, b: Tensor) -> Tensor:
        rows = a if a.ndim == 2 else a.mT.contiguous()
        return linear_scan(rows, b.mT.contiguous(), time_last=True).mT.contiguous()

    return _repeated_calls(scan, problem)


@peer("torch associative_scan", needs="triton", cases="many")
def by_associative_scan(problem: Recurrence) -> Callable[[], Results]:
    """Torch's prototype, compiled for this one shape: for a second one it fails."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def compose(earlier: tuple[Tensor, Tensor], later: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    def scan(a: Tensor, b: Tensor) -> Tensor:
        return associative_scan(compose, (a, b), dim=2, combine_mode="pointwise")[1]

    return _repeated_calls(torch.compile(scan), problem)


@peer("jax associative_scan", needs="jax")
def by_jax(problem: Recurrence) -> Callable[[], Results]:
    """The same in JAX, compiled; its gradient by JAX too."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or it takes the memory of all others
    import jax

    axis = 2 if problem.time_last else 1

    def compose(earlier: Any, later: Any) -> Any:
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    def scan(a: Any, b: Any) -> Any:
        gates = a if a.ndim == 3 else jax.numpy.broadcast_to(jax.numpy.expand_dims(a, axis), b.shape)
        return jax.lax.associative_scan(compose, (gates, b), axis=axis)[1]

    def work(a: Any, b: Any, grad: Any) -> Any:
        if not problem.training:
            return (scan(a, b),)
        z, pull = jax.vjp(scan, a, b)
        return (z, *pull(grad))

    compiled = jax.jit(work)
    given = [jax.numpy.from_dlpack(x.contiguous()) for x in (problem.a, problem.b, problem.grad)]

    def calls() -> Results:
        for _ in range(CALLS):
            found = compiled(*given)
        jax.block_until_ready(found)
        return tuple(torch.from_dlpack(x) for x in found)

    return calls


@peer("torch loop", cases="short_major")
def by_loop(problem: Recurrence) -> Callable[[], Results]:
    """One step after another."""
    return _repeated_calls(scan_by_steps, problem)


@limit("copying as many bytes as must be read and written")
def copying(problem: Recurrence) -> Callable[[], object]:
    """Half of the bytes are read and half are written, which is not quite a scan's share."""
    source = torch.rand(problem.bytes // 8, device=problem.b.device)
    target = torch.empty_like(source)
    return lambda: [target.copy_(source) for _ in range(CALLS)]


@agreement(within=1e-4)
def in_numbers(results: Results) -> dict[str, float]:
    """Length and mean size of everything computed."""
    found = {}
    for name, result in zip(("states", "to gates", "to terms"), results, strict=False):
        sizes = result.detach().abs()
        found |= {f"{name}: length": float(sizes.norm(dtype=torch.float64)), f"{name}: size": float(sizes.mean())}
    return found


def _repeated_calls(scan: Callable[[Tensor, Tensor], Tensor], problem: Recurrence) -> Callable[[], Results]:
    a, b = (x.requires_grad_(problem.training) for x in (problem.a, problem.b))

    def once() -> Results:
        z = scan(a, b)
        return (z, *torch.autograd.grad(z, (a, b), problem.grad)) if problem.training else (z,)

    return lambda: _last_result(once)


def _last_result(work: Callable[[], Results]) -> Results:
    """The results of the last of all calls; those before are let go at once."""
    for _ in range(CALLS - 1):
        work()
    return work()
