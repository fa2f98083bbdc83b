"""What the contests of attention share: queries, keys and values, and one call with or without its gradients."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata.bench.registry import Seconds
from lemmata.bench.workloads.roofline import roofline

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Results = tuple[Tensor, ...]  # what was found, and in training the gradients to queries, keys and values


class Heads(NamedTuple):
    """Queries, keys and values, each (batch, heads, time, head_width), and the gradient to what is found."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad: Tensor
    causal: bool
    training: bool


def heads(shape: tuple[int, int, int, int], dtype: torch.dtype, case: str, device: str) -> Heads:
    """Noise of variance one; the case says whether queries look back only, and whether gradients are asked for."""
    generator = torch.Generator(device).manual_seed(0)
    drawn = [torch.randn(shape, generator=generator, device=device).to(dtype) for _ in range(4)]
    return Heads(*drawn, causal="causal" in case, training="training" in case)


def repeat(attend: Attend, problem: Heads) -> Callable[[], Results]:
    """One call, and in training its gradients."""
    given = [each.requires_grad_(problem.training) for each in problem[:3]]

    def work() -> Results:
        found = attend(*given)
        return (found, *torch.autograd.grad(found, given, problem.grad)) if problem.training else (found,)

    return work


def by_kernel(problem: Heads, *kernels: SDPBackend) -> Callable[[], Results]:
    """Torch's function, held to these kernels if there are any."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if not kernels:
            return functional.scaled_dot_product_attention(query, key, value, is_causal=problem.causal)
        with sdpa_kernel([*kernels]):
            return functional.scaled_dot_product_attention(query, key, value, is_causal=problem.causal)

    return repeat(attend, problem)


def least_time(problem: Heads) -> Callable[[], Seconds]:
    """Two products forward and four backward, of the pairs that meet; each input and output through memory once."""
    batch, heads, time, width = problem.query.shape
    pairs = batch * heads * (time * (time + 1) / 2 if problem.causal else time**2)
    tensors = 3 + 1 + (1 + 3 if problem.training else 0)  # queries, keys and values, what is found, and the gradients
    moved = tensors * problem.query.numel() * problem.query.element_size()
    products = 6 if problem.training else 2
    return roofline(products * 2 * pairs * width, moved, str(problem.query.device), problem.query.dtype)


def in_numbers(results: Results) -> dict[str, float]:
    """The length of everything computed, and of its first half in time."""
    found = {}
    for name, result in zip(("found", "to queries", "to keys", "to values"), results, strict=False):
        result = result.detach()
        found[f"{name}: length"] = float(result.norm(dtype=torch.float32))
        found[f"{name}: first half"] = float(result[..., : result.shape[-2] // 2, :].norm(dtype=torch.float32))
    return found
