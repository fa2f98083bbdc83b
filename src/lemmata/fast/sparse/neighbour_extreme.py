r"""The largest or smallest of each feature over the entries of each row."""

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.arguments import check_one_device, check_pair, check_tensor
from lemmata.fast.sparse.paths import extremes
from lemmata.fast.sparse.reference import WIDER, gathered_extremes
from lemmata.fast.sparse.rows import PATTERN, Rows, check_rows

__all__ = ["row_extremes"]


def row_extremes(
    x: Float[Tensor, "columns features"], rows: Rows, transposed: Rows, largest: bool = True
) -> Float[Tensor, "rows features"]:
    r"""For each row and feature the largest value among its columns: $y_{rf} = \max_{(r, c)} x_{cf}$; or the smallest.

    `transposed` is the same pattern by columns. The gradient goes to the column that won, the first of equals, as with
    `torch.max`. A row without entries gets zero.

    >>> from lemmata.fast.sparse.rows import rows_of
    >>> r, c = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 0])
    >>> row_extremes(torch.tensor([[1.0], [2.0], [4.0]]), rows_of(r, c, 3), rows_of(c, r, 3))
    tensor([[4.],
            [1.],
            [0.]])
    """
    check_pair(rows, transposed)
    check_tensor("x", x, rows)
    check_rows("x", x, transposed.number)
    validate.flag("largest", largest)
    if not len(x):
        return x.new_zeros(rows.number, x.shape[1])
    sign = 1.0 if largest else -1.0
    if torch._C._are_functorch_transforms_active():
        at = gathered_extremes(x.detach(), sign, rows)  # (rows, features), -1 where there is none
    else:
        at = torch.ops.lemmata.row_extremes(x, sign, *rows)
    # Torch's own gather brings the gradients, also those of gradients. One column may win in many rows: halves are wide
    # enough for what it takes, not for adding up what comes back.
    wide = x.to(WIDER.get(x.dtype, x.dtype))
    return wide.gather(0, at.clamp(min=0)).masked_fill(at < 0, 0).to(x.dtype)


# --- The operator that torch.compile sees; which column won has no gradient ---

_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(f"row_extremes(Tensor x, float sign, {PATTERN}) -> Tensor")


def _extreme_rows(x: Tensor, sign: float, *pattern: Tensor) -> Tensor:
    return extremes(x, sign, Rows(*pattern))


_library.impl("row_extremes", _extreme_rows, "CompositeExplicitAutograd")


@torch.library.register_fake("lemmata::row_extremes", lib=_library)
def _(x: Tensor, sign: float, *pattern: Tensor) -> Tensor:
    check_one_device(x, *pattern)
    return pattern[1].new_empty(pattern[0].shape[0] - 1, x.shape[1])
