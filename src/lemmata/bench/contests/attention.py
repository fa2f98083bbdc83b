"""Scaled dot-product attention on a processor: ours against torch's kernels, and the readable way.

Ours calls torch's function too; what is measured is that the looks it takes at its arguments cost nothing.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from lemmata.bench.registry import Seconds, agreement, entry, limit, ours, peer
from lemmata.bench.workloads import attention_heads
from lemmata.bench.workloads.attention_heads import Heads, Results
from lemmata.transformers.dot_product_attention import attention, attention_weights

SHAPE = (2, 4, 512, 64)


@entry(
    "attention",
    title="Attention",
    measures="one call; in training also the gradients to queries, keys and values",
    cases={
        "full": "(2, 4, 512, 64) float32",
        "causal": "(2, 4, 512, 64) float32, looking back only",
        "causal_training": "(2, 4, 512, 64) float32, looking back only, forward and backward",
    },
    targets={"torch as it comes": 1.02, "torch, math": 1.0},
    devices="cpu",
)
def problem(case: str, device: str) -> Heads:
    """Noise of variance one."""
    return attention_heads.heads(SHAPE, torch.float32, case, device)


@ours("lemmata")
def ours_as_it_comes(problem: Heads) -> Callable[[], Results]:
    """The fused way."""
    return attention_heads.repeat(lambda q, k, v: attention(q, k, v, causal=problem.causal), problem)


@ours("lemmata, weights kept")
def ours_with_weights(problem: Heads) -> Callable[[], Results]:
    """The readable way, in which the weights can be looked at."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attention_weights(query, key, causal=problem.causal) @ value

    return attention_heads.repeat(attend, problem)


@peer("torch as it comes")
def torch_as_it_comes(problem: Heads) -> Callable[[], Results]:
    """The kernel that torch chooses."""
    return attention_heads.by_kernel(problem)


@peer("torch, math")
def torch_math(problem: Heads) -> Callable[[], Results]:
    """Torch's own readable way."""
    return attention_heads.by_kernel(problem, SDPBackend.MATH)


@limit("the matrix products at the best rate, or inputs and outputs through memory")
def products(problem: Heads) -> Callable[[], Seconds]:
    """No softmax, no scale, and no scores in memory."""
    return attention_heads.least_time(problem)


@agreement(within=1e-4)
def in_numbers(results: Results) -> dict[str, float]:
    """The length of everything computed."""
    return attention_heads.in_numbers(results)
