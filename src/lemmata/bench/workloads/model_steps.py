"""What the contests of whole models share: a pass forward, or forward and backward, of models of equal weights."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lemmata.bench.registry import Seconds
from lemmata.bench.workloads.roofline import roofline

Results = tuple[Tensor, ...]  # the logits, or the loss and a gradient


class Side(NamedTuple):
    """How ours or theirs is called, and the parameter whose gradient is compared."""

    watched: str
    words: Mapping[str, Any] = {}
    logits: str = ""  # the field of the output that holds them, if it is not the output itself


class Step(NamedTuple):
    """Our model, what it reads, what its logits (..., classes) should have said, and what is asked for."""

    model: nn.Module
    x: Tensor
    targets: Tensor
    ours: Side
    theirs: Side
    kind: str  # Hugging Face's class
    operations: float  # of the matrix products of a forward pass
    training: bool
    compiled: bool


def dressed(model: nn.Module, case: str, device: str, *given: Tensor) -> list[Tensor]:
    """Model and inputs on the device, in bfloat16 on a GPU and in float32 elsewhere; the inputs are returned."""
    model.to(device, torch.float32 if device == "cpu" else torch.bfloat16).train("training" in case)
    dtype = next(model.parameters()).dtype
    return [each.to(device, dtype if each.is_floating_point() else None) for each in given]


def hugging_faces(kind: str, model: nn.Module, **words: Any) -> nn.Module:
    """Hugging Face's model of this class with the weights of ours, and with torch's fused attention."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    first = next(model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)  # type: ignore[operator]
        words |= {"attn_implementation": "sdpa", "dtype": first.dtype}
        made = getattr(transformers, kind).from_pretrained(folder, **words)
    return made.to(first.device).train(model.training)


def repeat(model: nn.Module, side: Side, step: Step, compiled: bool) -> Callable[[], Results]:
    """Forward without gradients, or forward and backward."""
    called: Any = torch.compile(model) if compiled else model
    watched = model.get_parameter(side.watched)

    def logits() -> Tensor:
        found = called(step.x, **side.words)
        return getattr(found, side.logits) if side.logits else found

    def forward() -> Results:
        with torch.inference_mode():
            return (logits(),)

    def train() -> Results:
        model.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(logits().flatten(0, -2), step.targets.flatten())
        loss.backward()
        assert watched.grad is not None
        return loss.detach(), watched.grad

    return train if step.training else forward


def least_time(step: Step, device: str) -> Callable[[], Seconds]:
    """All matrix products at the best rate, backward twice as many; parameters read, logits or gradients written."""
    first = next(step.model.parameters())
    weights = sum(each.numel() for each in step.model.parameters()) * first.element_size()
    passes = 3 if step.training else 1
    return roofline(passes * step.operations, (2 if step.training else 1) * weights, device, first.dtype)


def block_operations(
    batch: int, time: int, width: int, hidden: int, pairs: float, answered: int | None = None
) -> float:
    """Additions and multiplications of one block, forward.

    `pairs` are the queries and keys that meet, in all texts together; `answered` is the number of positions of each
    text for which the block must answer, all unless told: it needs keys and values of all.
    """
    rows = batch * (time if answered is None else answered)
    products = 2 * batch * time * width * 2 * width  # keys and values
    products += 2 * rows * width * (2 * width + 2 * hidden)  # queries, the map that joins the heads, the network
    return products + 2 * 2 * pairs * width  # the scores of all heads, and the means of the values


def in_numbers(results: Sequence[Tensor]) -> dict[str, float]:
    """Lengths of the logits or the gradient, and of their mean over all rows, which tells what the blocks have done."""
    *loss, rows = (each.float() for each in results)
    rows = rows.flatten(0, -2)  # (tokens or images, classes), or (positions, width)
    found = {"length": float(rows.norm()), "length of the mean": float(rows.mean(0).norm())}
    return found | ({"loss": float(loss[0])} if loss else {})
