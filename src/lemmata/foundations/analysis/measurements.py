r"""What a measurement on a function found: the value, whether it is certified, and the points that show it."""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Measured"]


def invisible(values: Tensor) -> Tensor:
    """The fraction of values that may be rounding of the function itself: half of the digits of their dtype.

    How many digits a function loses on its way is known to itself alone; a sum of many terms loses some, a difference
    of large ones many. What is smaller than this says nothing about it.
    """
    return torch.finfo(values.dtype).eps ** 0.5 * values.detach().abs()


@dataclass(frozen=True, eq=False)
class Measured:
    r"""A property of a function on a region, with what it rests on.

    `value` is the constant (or the answer) and `certified` whether it is proved: then `value` bounds the property on
    the safe side, and `reason` says why. Otherwise it is an estimate: the extreme of what was seen, shown by
    `witness`, the points that anybody can put into the definition; no number of samples makes it a proof. `seen` is
    what the witness shows, so the truth lies between `seen` and a certified `value`.

    >>> from lemmata.foundations import QuadraticFunction, smoothness
    >>> import torch
    >>> found = smoothness(QuadraticFunction(torch.diag(torch.tensor([-5.0, 1.0]).double())))
    >>> print(found)
    smoothness constant 5 (certified: the largest |eigenvalue| of its matrix)
    """

    quantity: str
    value: float | bool
    certified: bool
    reason: str
    witness: tuple[Tensor, ...] = ()
    seen: float = float("nan")

    def __bool__(self) -> bool:
        if not isinstance(self.value, bool):
            raise TypeError(f"the {self.quantity} is a number, not an answer: compare its .value")
        return self.value

    def __str__(self) -> str:
        shown = {True: "yes", False: "no"}.get(self.value) if isinstance(self.value, bool) else f"{self.value:.6g}"
        ground = f"certified: {self.reason}" if self.certified else f"an estimate, not a proof: {self.reason}"
        return f"{self.quantity} {shown} ({ground})"
