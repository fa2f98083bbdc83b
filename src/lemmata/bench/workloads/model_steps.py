"""What the contests of whole models share: a pass forward, or forward and backward, of models of equal weights."""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

Results = tuple[Tensor, ...]  # the logits, or the loss and a gradient


class Step(NamedTuple):
    """Our model, what it reads, what its logits (..., classes) should have said, and what is asked for."""

    model: nn.Module
    x: Tensor
    mask: Tensor | None
    targets: Tensor
    training: bool
    compiled: bool


def step(model: nn.Module, x: Tensor, targets: Tensor, case: str, device: str, mask: Tensor | None = None) -> Step:
    """On a GPU in bfloat16, elsewhere in float32; the words of the case say what is asked for."""
    model.to(device, torch.float32 if device == "cpu" else torch.bfloat16).train("training" in case)
    x = x.to(device, None if not x.is_floating_point() else next(model.parameters()).dtype)
    mask = None if mask is None else mask.to(device)
    return Step(model, x, mask, targets.to(device), "training" in case, "compiled" in case)


def theirs(kind: str, step: Step, **words: Any) -> nn.Module:
    """Hugging Face's model of this class with the weights of ours, and with torch's fused attention."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    first = next(step.model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        step.model.save_pretrained(folder)  # type: ignore[operator]
        words |= {"attn_implementation": "sdpa", "dtype": first.dtype}
        model = getattr(transformers, kind).from_pretrained(folder, **words)
    return model.to(first.device).train(step.training)


def repeat(
    model: nn.Module, logits_of: Callable[[nn.Module], Tensor], watched: Tensor, step: Step, compiled: bool
) -> Callable[[], Results]:
    """Forward without gradients, or forward and backward; `watched` is the parameter whose gradient is compared."""
    called: Any = torch.compile(model) if compiled else model

    def forward() -> Results:
        with torch.inference_mode():
            return (logits_of(called),)

    def train() -> Results:
        model.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(logits_of(called).flatten(0, -2), step.targets.flatten())
        loss.backward()
        assert watched.grad is not None
        return loss.detach(), watched.grad

    return train if step.training else forward


def products(
    step: Step, width: int, hidden: int, depth: int, tokens: int, outputs: tuple[int, int], answered: int | None = None
) -> Callable[[], Tensor]:
    """The products with the matrices of the blocks, and of `outputs` = (rows, classes); backward twice as many.

    `answered` is the number of tokens for which the last block must answer, all unless told.
    """
    first = next(step.model.parameters())
    place: dict[str, Any] = {"device": first.device, "dtype": first.dtype}
    sizes = []
    for rows in [*[tokens] * (depth - 1), tokens if answered is None else answered]:
        sizes += [(tokens, width, 3 * width), (rows, width, width), (rows, width, hidden), (rows, hidden, width)]
    sizes += [(outputs[0], width, outputs[1])]
    pairs = [(torch.rand(rows, into, **place), torch.rand(into, out, **place)) for rows, into, out in sizes]

    def work() -> Tensor:
        for _ in range(3 if step.training else 1):
            for x, weights in pairs:
                found = x @ weights
        return found

    return work


def in_numbers(results: Results) -> dict[str, float]:
    """Lengths of the logits or the gradient, and of their mean over all rows, which tells what the blocks have done."""
    *loss, rows = (each.float() for each in results)
    rows = rows.flatten(0, -2)  # (tokens or pictures, classes), or (positions, width)
    found = {"length": float(rows.norm()), "length of the mean": float(rows.mean(0).norm())}
    return found | ({"loss": float(loss[0])} if loss else {})
