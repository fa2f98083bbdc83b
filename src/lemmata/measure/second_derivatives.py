"""Whether a gradient can be differentiated once more: torch leaves out, without a word, what cannot be."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

__all__ = []  # for what goes back through a gradient

ENDS = ("torch::autograd::Error", "torch::autograd::NotImplemented")  # where a derivative would raise, if it were asked


def differentiable_again(gradient: Iterable[Tensor]) -> None:
    """Refuse gradients through an operation that has one derivative only.

    Such an operation leaves a node in the graph from which no way leads on; `torch.autograd.grad` with `allow_unused`
    never comes to it and gives zeros, as for what does not depend on the parameters.
    """
    waiting: list[Any] = [part.grad_fn for part in gradient]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() in ENDS:
            raise RuntimeError(
                "model must be differentiable twice, found an operation with one derivative: use DifferencedHessian"
            )
        waiting.extend(following for following, _ in node.next_functions)
