"""Scaled dot-product attention on a GPU: ours, which chooses a kernel, against each of torch's kernels."""

from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend

from lemmata.bench.registry import Seconds, agreement, entry, limit, ours, peer
from lemmata.bench.workloads import attention_heads
from lemmata.bench.workloads.attention_heads import Heads, Results
from lemmata.transformers.dot_product_attention import attention

SHAPES = {"long": (4, 16, 8192, 128), "short": (16, 12, 1024, 64)}


@entry(
    "attention_gpu",
    title="Attention on a GPU",
    measures="one call; in training also the gradients to queries, keys and values",
    cases={
        "long_causal": "(4, 16, 8192, 128) bfloat16, looking back only",
        "long_causal_training": "(4, 16, 8192, 128) bfloat16, looking back only, forward and backward",
        "long": "(4, 16, 8192, 128) bfloat16",
        "short_causal": "(16, 12, 1024, 64) bfloat16, looking back only",
        "short_causal_training": "(16, 12, 1024, 64) bfloat16, looking back only, forward and backward",
    },
    targets={"torch as it comes": 1.02, "torch, cuDNN": 1.02, "torch, flash": 1.02, "torch, memory-efficient": 1.02},
    devices="cuda",
)
def problem(case: str, device: str) -> Heads:
    """Noise of variance one."""
    return attention_heads.heads(SHAPES[case.split("_")[0]], torch.bfloat16, case, device)


@ours("lemmata")
def ours_as_it_comes(problem: Heads) -> Callable[[], Results]:
    """The kernel that is chosen for the device."""
    return attention_heads.repeat(lambda q, k, v: attention(q, k, v, causal=problem.causal), problem)


@peer("torch as it comes")
def torch_as_it_comes(problem: Heads) -> Callable[[], Results]:
    """The kernel that torch chooses."""
    return attention_heads.by_kernel(problem)


@peer("torch, cuDNN")
def torch_cudnn(problem: Heads) -> Callable[[], Results]:
    """Written by the maker of the GPU."""
    return attention_heads.by_kernel(problem, SDPBackend.CUDNN_ATTENTION)


@peer("torch, flash")
def torch_flash(problem: Heads) -> Callable[[], Results]:
    """Dao 2023."""
    return attention_heads.by_kernel(problem, SDPBackend.FLASH_ATTENTION)


@peer("torch, memory-efficient")
def torch_efficient(problem: Heads) -> Callable[[], Results]:
    """Rabe and Staats 2021."""
    return attention_heads.by_kernel(problem, SDPBackend.EFFICIENT_ATTENTION)


@limit("the matrix products at the best rate, or inputs and outputs through memory")
def products(problem: Heads) -> Callable[[], Seconds]:
    """No softmax, no scale, and no scores in memory."""
    return attention_heads.least_time(problem)


@agreement(within=0.01)
def in_numbers(results: Results) -> dict[str, float]:
    """The length of everything computed."""
    return attention_heads.in_numbers(results)
