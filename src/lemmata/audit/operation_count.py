r"""What one example costs: floating-point operations, and what is kept for its gradient."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from lemmata.audit.subject import Subject
from lemmata.audit.watching import plain_attention

__all__ = []  # for probes

MOST_BYTES = 2**30  # that a probe keeps for gradients at once


class _Count(TorchDispatchMode):
    """Adds up the operations of every product by torch's own table, as its FlopCounterMode does."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import the compiler, for seconds, to keep it out of here

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        formula = flop_registry.get(getattr(func, "overloadpacket", func))
        if formula is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=output)
        return output


def floating_operations(subject: Subject, inputs: Iterable[Tensor]) -> int:
    """The operations of a batch forwards, by torch's table: those of products, where a multiplication and an addition
    are two.
    """
    with torch.no_grad(), plain_attention(), _Count() as count:
        subject.network(*inputs)
    return count.total


def kept_bytes(subject: Subject, inputs: Iterable[Tensor]) -> int:
    """Bytes that a batch keeps between its way forwards and the gradient, without the parameters."""
    own = {values.untyped_storage().data_ptr() for values in subject.model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(values: Tensor) -> Tensor:
        place = values.untyped_storage().data_ptr()
        if place not in own:
            kept[place] = values  # held, so that no other one is given its place
        return values

    with torch.enable_grad(), plain_attention(), saved_tensors_hooks(keep, lambda values: values):
        outputs = subject.network(*inputs)
    total = sum(values.untyped_storage().nbytes() for values in kept.values())
    del outputs
    return total


def affordable(subject: Subject, number: int, least: int = 8) -> int:
    """How many examples, of so many, may be kept with all that their gradients need."""
    few = subject.some(2)  # by copy: a part of a tensor would keep the whole
    each = kept_bytes(subject, few.tensors) / len(few)
    return min(number, max(least, int(MOST_BYTES / max(each, 1.0))))
