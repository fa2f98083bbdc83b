"""Cross-entropy of logits against torch's, forward and backward.

Torch's gradient is put together from two: that of picking the right class, a matrix of zeros with an entry in each row,
and that of the logarithm of softmax, which reads it. Ours is written where the probabilities stand. On a GPU
torch's own kernels do not mind, and ours calls them: what is measured there is the look at the arguments.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.softmax import cross_entropy

SIZES = {"images": (4096, 1000), "digits": (65_536, 10), "tokens": (1024, 32_000), "smoothed": (4096, 1000)}


class Scored(NamedTuple):
    """Logits that want a gradient, the right classes, and how much of each target is spread over all."""

    logits: Tensor
    y: Tensor
    smoothing: float


@entry(
    "cross_entropy",
    title="Cross-entropy of logits against torch",
    measures="the mean loss and its gradient",
    cases={
        "images": "4,096 x 1,000, float32",
        "digits": "65,536 x 10, float32",
        "tokens": "1,024 x 32,000, float32",
        "smoothed": "4,096 x 1,000, float32, label smoothing 0.1",
    },
    targets={"torch": 1.05},
)
def scored(case: str, device: str) -> Scored:
    """Gaussian logits and uniform classes."""
    generator = torch.Generator().manual_seed(0)
    rows, classes = SIZES[case]
    logits = torch.randn(rows, classes, generator=generator).to(device).requires_grad_()
    y = torch.randint(classes, (rows,), generator=generator).to(device)
    return Scored(logits, y, 0.1 if case == "smoothed" else 0.0)


@ours("lemmata")
def in_one_pass(data: Scored) -> Callable[[], Any]:
    """Our loss."""

    def both() -> Any:
        loss = cross_entropy(data.logits, data.y, data.smoothing)
        return loss, torch.autograd.grad(loss, data.logits)[0]

    return both


@peer("torch")
def from_two(data: Scored) -> Callable[[], Any]:
    """Torch's loss."""

    def both() -> Any:
        loss = functional.cross_entropy(data.logits, data.y, label_smoothing=data.smoothing)
        return loss, torch.autograd.grad(loss, data.logits)[0]

    return both


@limit("exponentials of all logits, once")
def exponentials_alone(data: Scored) -> Callable[[], Any]:
    """The gradient holds the probabilities, and each takes an exponential."""
    logits = data.logits.detach()

    def exponentials() -> Any:
        return logits.exp()

    return exponentials


@agreement(within=1e-4)
def in_numbers(result: Any) -> dict[str, float]:
    """The loss, and the length of the gradient."""
    loss, gradient = result
    return {"loss": float(loss.detach()), "length": float(gradient.double().norm())}
