r"""Targets as classes: brought into the form torch wants where their meaning is plain, and refused where it is not."""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

__all__: list[str] = []

IGNORED = -100  # torch's own mark of places that a loss leaves out


def read_as_classes(targets: Tensor, outputs: Tensor, loss: Any) -> tuple[Tensor, str]:
    """Class labels that are kept as a column or as real numbers, with a word for what they were; others as they are.

    >>> import torch
    >>> read_as_classes(torch.tensor([[0.0], [2.0]]), torch.zeros(2, 3), None)
    (tensor([0, 2]), 'a column of float32')
    """
    classes = outputs.shape[1] if outputs.ndim > 1 else 1
    if callable(loss) or classes < 2 or loss not in (None, "cross_entropy", "nll"):
        return targets, ""
    column = targets.ndim == outputs.ndim and targets.shape[1] == 1
    flat = targets[:, 0] if column else targets
    if flat.ndim != outputs.ndim - 1 or flat.shape[1:] != outputs.shape[2:]:
        return targets, ""
    # Numbers far beyond the classes are measurements, which no classifier is asked for.
    plain = (flat == flat.long()) & (flat >= 0) & (flat <= classes)
    if flat.is_floating_point() and not bool(plain.all()):
        return targets, ""
    kind = str(targets.dtype)[6:]
    return flat.long(), f"a column of {kind}" if column else kind if targets.is_floating_point() else ""


def out_of_range(targets: Tensor, classes: int, loss: Any) -> Tensor:
    """Which labels name no class, other than the one that the loss leaves out by its own word."""
    ignored = getattr(loss, "ignore_index", IGNORED)
    return ((targets < 0) | (targets >= classes)) & (targets != ignored)


def why_unusable(task: str, targets: Tensor, outputs: Tensor, loss: Any, ask: Callable[..., Any]) -> str:
    """Why no loss of these targets can be had, in words; empty if it can. `ask(loss, outputs, targets)` calls a loss.

    Asked before anything else: on a GPU a label that names no class ends the whole process.
    """
    low, high = targets.min().item(), targets.max().item()
    if callable(loss) and task != "classes" and not targets.is_floating_point():
        wrong = (targets == low) | (targets == high)
        if not _loss_takes_labels(loss, targets, wrong, outputs, ask, (IndexError,)):
            shape = f"(batch, {outputs[0].numel()})"
            return f"the loss refuses labels from {low:g} to {high:g} with outputs {shape}: it takes them for classes"
    if task == "binary":
        return "" if low >= 0 and high <= 1 else f"the labels run from {low:g} to {high:g}, not from 0 to 1"
    if task != "classes" or targets.shape == (len(targets), *outputs.shape[1:]):  # shares of classes
        return ""
    if targets.is_floating_point():
        return f"the labels are real numbers from {low:g} to {high:g}, not classes"
    classes = outputs.shape[1]
    wrong = out_of_range(targets, classes, loss)
    if not bool(wrong.any()) or (callable(loss) and _loss_takes_labels(loss, targets, wrong, outputs, ask)):
        return ""
    stand = "one output stands for class 0 alone"
    if classes > 1:
        stand = f"{classes} outputs stand for the classes 0 to {classes - 1}"
    return f"the labels run from {low:g} to {high:g}, but {stand}"


def _loss_takes_labels(
    loss: Callable[..., Any],
    targets: Tensor,
    wrong: Tensor,
    outputs: Tensor,
    ask: Callable[..., Any],
    refusals: tuple[type[Exception], ...] = (IndexError, RuntimeError, ValueError),
) -> bool:
    """Whether a loss of one's own takes them all the same, say as places to leave out; asked on the CPU."""
    own = copy.deepcopy(loss).cpu() if isinstance(loss, nn.Module) else loss
    rows = targets[wrong.flatten(1).any(1) if wrong.ndim > 1 else wrong][:256].cpu()
    try:
        ask(own, outputs.new_zeros(len(rows), *outputs.shape[1:], device="cpu").float(), rows)
    except refusals:
        return False
    except Exception:  # something else is wrong, which the probes will meet
        return True
    return True
