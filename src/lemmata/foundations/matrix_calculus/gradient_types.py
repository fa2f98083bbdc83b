r"""Type-checking of gradients: which shape a claimed derivative must have, and what is wrong with the one at hand."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.foundations.matrix_calculus.derivative_rows import KINDS
from lemmata.foundations.matrix_calculus.jacobians import LAYOUTS
from lemmata.foundations.matrix_calculus.tensor_chain import jacobian_tensor
from lemmata.marks import system

__all__ = ["GradientType", "type_check_gradient"]


@dataclass(frozen=True)
class GradientType:
    """What `type_check_gradient` found: the shape that is expected, and a verdict with its reason.

    `verdict` is "right", "transposed", "wrong shape" or "wrong values", or "" where nothing was claimed.
    """

    kind: str
    layout: str
    expected: tuple[int, ...]
    verdict: str
    reason: str

    def __bool__(self) -> bool:
        return self.verdict in ("right", "")

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}" if self.verdict else self.reason


@system("type_check_gradient", title="Type check of a gradient", kind="function")
def type_check_gradient(
    function: Callable[[Tensor], Tensor],
    x: Float[Tensor, "..."],
    claimed: Float[Tensor, "..."] | None = None,
    layout: str = "denominator",
    tolerance: int | float | None = None,
) -> GradientType:
    r"""Say which shape the derivative of a function has in a layout, and what is wrong with a claimed one.

    | | numerator | denominator |
    |---|---|---|
    | scalar by vector (n,) | row (1, n) | column (n,), or (n, 1) |
    | scalar by matrix (m, n) | (n, m) | (m, n) |
    | vector (m,) by vector (n,) | (m, n) | (n, m) |
    | anything else | axes of the value, then of x | axes of x, then of the value |

    A tensor of shape (n,) lies neither way, so it passes for the derivative of a scalar in both layouts. Values are
    compared with autograd, to `tolerance` times the largest entry (by default the square root of the rounding unit).

    Shapes:
        function: from the shape of x to any shape, x: any shape, claimed: the derivative in question
        returns: the expected shape, a verdict and its reason; true if nothing is wrong

    Claims: matcalc.layout

    >>> a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> print(type_check_gradient(lambda x: a @ x, torch.ones(3), a))
    transposed: the denominator layout wants (3, 2), got the numerator layout (2, 3): transpose it or name its layout
    >>> print(type_check_gradient(lambda x: x @ x, torch.ones(3), torch.ones(3)))
    wrong values: the shape (3,) is right, but it is 0.5 times the derivative
    """
    validate.floating("x", x)
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be 'numerator' or 'denominator', got {layout!r}")
    tensor = jacobian_tensor(function, x.detach())
    outputs = tensor.ndim - x.ndim
    kind = f"{_kind(outputs)} by {_kind(x.ndim)}"
    expected = _arranged(tensor, outputs, layout)
    if claimed is None:
        return GradientType(
            kind, layout, tuple(expected.shape), "", f"{kind}: {tuple(expected.shape)} in {layout} layout"
        )
    validate.floating("claimed", claimed)
    relative = torch.finfo(x.dtype).eps ** 0.5 if tolerance is None else validate.positive("tolerance", tolerance)
    other = LAYOUTS[layout == LAYOUTS[0]]
    swapped = _arranged(tensor, outputs, other)
    claimed, shape = _oriented(claimed, expected), tuple(claimed.shape)
    verdict, reason = _judged(claimed, expected, swapped, relative)
    words = {
        "right": f"{kind} in the {layout} layout: shape {tuple(expected.shape)}",
        "transposed": f"the {layout} layout wants {tuple(expected.shape)}, got the {other} layout {shape}: "
        "transpose it or name its layout",
        "wrong shape": f"{kind} in the {layout} layout: shape {tuple(expected.shape)}, got {shape}",
        "wrong values": f"the shape {tuple(expected.shape)} is right, but {reason}",
    }
    return GradientType(kind, layout, tuple(expected.shape), verdict, words[verdict])


def _kind(axes: int) -> str:
    return KINDS[axes] if axes < len(KINDS) else f"tensor with {axes} axes"


def _arranged(tensor: Tensor, outputs: int, layout: str) -> Tensor:
    """All partial derivatives, (axes of the value, axes of x), in the shape that a layout gives them."""
    if layout == "denominator":
        return tensor.permute([*range(outputs, tensor.ndim), *range(outputs)])
    if outputs == 0 and tensor.ndim == 1:
        return tensor[None, :]
    return tensor.mT if outputs == 0 and tensor.ndim == 2 else tensor


def _oriented(claimed: Tensor, expected: Tensor) -> Tensor:
    """A vector lies neither way, and a column (n, 1) is a vector (n,) in the denominator layout."""
    if claimed.ndim == 1 and expected.shape == (1, len(claimed)):
        return claimed[None, :]
    if expected.ndim == 1 and claimed.shape == (len(expected), 1):
        return claimed[:, 0]
    return claimed


def _judged(claimed: Tensor, expected: Tensor, swapped: Tensor, relative: int | float) -> tuple[str, str]:
    allowed = relative * expected.abs().max()
    if claimed.shape == expected.shape and (claimed - expected).abs().max() <= allowed:
        return "right", ""
    if claimed.shape == swapped.shape and (claimed - swapped).abs().max() <= allowed:
        return "transposed", ""
    if claimed.shape != expected.shape:
        return "wrong shape", ""
    factor = (claimed * expected).sum() / expected.square().sum().clamp(min=torch.finfo(expected.dtype).tiny)
    if (claimed - factor * expected).abs().max() <= allowed * factor.abs():
        return "wrong values", f"it is {factor.item():.4g} times the derivative"
    worst = int((claimed - expected).abs().argmax())
    where = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), expected.shape))
    found, right = (t.flatten()[worst].item() for t in (claimed, expected))
    return "wrong values", f"entry {where} is {found:.4g} and must be {right:.4g}"
