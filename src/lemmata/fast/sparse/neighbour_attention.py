r"""Attention over the entries of each row: scores, softmax and the weighted sum in one operator."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lemmata import validate
from lemmata.fast.sparse.arguments import STEEPEST, check_one_device, check_pair, check_tensor
from lemmata.fast.sparse.paths import attention, attention_back
from lemmata.fast.sparse.reference import WIDER, gathered_attention
from lemmata.fast.sparse.rows import PATTERN, Rows

__all__ = ["row_attention"]


def row_attention(
    to: Float[Tensor, "rows heads"],
    source: Float[Tensor, "columns heads"],
    values: Float[Tensor, "columns heads width"],
    rows: Rows,
    transposed: Rows,
    more: Float[Tensor, "entries heads"] | None = None,
    slope: float = 0.2,
) -> Float[Tensor, "rows heads width"]:
    r"""What each row gets from its columns by attention, one softmax for each row and head.

    $$ s_e = \mathrm{leaky}(t_r + u_c + m_e), \qquad q_e = \frac{\exp s_e}{\sum_{e' \in r} \exp s_{e'}}, \qquad
       y_r = \sum_{e = (r, c)} q_e\, v_c $$

    Nothing with a row for every entry is kept: the way back finds the shares again from two numbers of each row and
    head. A row without entries gets zero. Half precision is computed in single precision. Gradients of gradients work
    too, and torch.func, by the readable path.

    >>> from lemmata.fast.sparse.rows import rows_of
    >>> r, c = torch.tensor([0, 0]), torch.tensor([0, 1])
    >>> scores, values = torch.zeros(2, 1), torch.tensor([[[2.0]], [[4.0]]])
    >>> row_attention(scores[:1], scores, values, rows_of(r, c, 1), rows_of(c, r, 2))
    tensor([[[3.]]])
    """
    check_pair(rows, transposed)
    for name, given in (("to", to), ("source", source), ("values", values), ("more", more)):
        if given is not None or name != "more":
            check_tensor(name, given, rows)  # type: ignore[arg-type]
            if not given.is_floating_point():  # type: ignore[union-attr]
                raise TypeError(f"{name} must be floating point, got {given.dtype}: use {name}.float()")  # type: ignore[union-attr]
    validate.number("slope", slope, least=-STEEPEST, most=STEEPEST)
    heads = values.shape[1] if values.ndim == 3 else -1
    wanted = {"to": (rows.number, heads), "source": (transposed.number, heads), "more": (len(rows.columns), heads)}
    if values.ndim != 3 or len(values) != transposed.number:
        raise ValueError(f"values must be ({transposed.number}, heads, width), got shape {tuple(values.shape)}")
    for name, given in (("to", to), ("source", source), ("more", more)):
        if given is not None and given.shape != wanted[name]:
            raise ValueError(f"{name} must have shape {wanted[name]}, got {tuple(given.shape)}")
    dtype = values.dtype
    for given in (to, source, more):
        dtype = dtype if given is None else torch.promote_types(dtype, given.dtype)
    wide = WIDER.get(dtype, dtype)
    scores = to.to(wide), source.to(wide), None if more is None else more.to(wide)
    if torch._C._are_functorch_transforms_active():
        y, _ = gathered_attention(*scores, values.to(wide), float(slope), rows)
    else:
        y = _RowAttention.apply(*scores, values.to(wide), float(slope), *rows, *transposed)
    return y.to(values.dtype)


class _RowAttention(torch.autograd.Function):
    """Attention, and what comes back to scores and values. By torch.library it would take longer."""

    @staticmethod
    def forward(
        ctx: Any, to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, *pattern: Tensor
    ) -> Tensor:
        y, softmax = torch.ops.lemmata.row_attention(to, source, more, values, slope, *pattern[:3])
        ctx.slope = slope
        ctx.save_for_backward(to, source, more, values, *pattern, softmax, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        to, source, more, values, *rest = ctx.saved_tensors
        pattern, (softmax, y) = rest[:6], rest[6:]
        if torch.is_grad_enabled():  # somebody wants the gradient of this gradient
            # Of aliases: scores and values may come from one another, and each has a gradient of its own.
            given = [None if value is None else value.view_as(value) for value in (to, source, more, values)]
            again, _ = gathered_attention(*given, ctx.slope, Rows(*pattern[:3]))  # type: ignore[arg-type]
            wanted = [value for value in given if value is not None and value.requires_grad]
            made = iter(torch.autograd.grad(again, wanted, grad, create_graph=True, materialize_grads=True))
            found = [next(made) if value is not None and value.requires_grad else None for value in given]
        else:
            arguments = (to, source, more, values, ctx.slope, *pattern, softmax, y, grad)
            found = list(torch.ops.lemmata.row_attention_backward(*arguments))
        d_to, d_source, d_more, d_values = found
        return (d_to, d_source, None if more is None else d_more, d_values, *[None] * 7)


# --- The operators that torch.compile sees ---

GIVEN = f"Tensor to, Tensor source, Tensor? more, Tensor values, float slope, {PATTERN}"
_library = torch.library.Library("lemmata", "FRAGMENT")
_library.define(f"row_attention({GIVEN}) -> (Tensor, Tensor)")
TURNED = "Tensor t_pointers, Tensor t_columns, Tensor t_entries"
MADE = "Tensor softmax, Tensor y, Tensor grad"
_library.define(f"row_attention_backward({GIVEN}, {TURNED}, {MADE}) -> (Tensor, Tensor, Tensor, Tensor)")


def _attention_forward(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, *pattern: Tensor
) -> tuple[Tensor, Tensor]:
    return attention(to, source, more, values, slope, Rows(*pattern))


def _attention_backward(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, *rest: Tensor
) -> tuple[Tensor, ...]:
    rows, transposed = Rows(*rest[:3]), Rows(*rest[3:6])
    return attention_back(to, source, more, values, slope, rows, transposed, *rest[6:])


_library.impl("row_attention", _attention_forward, "CompositeExplicitAutograd")
_library.impl("row_attention_backward", _attention_backward, "CompositeExplicitAutograd")


@torch.library.register_fake("lemmata::row_attention", lib=_library)
def _(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, *pattern: Tensor
) -> tuple[Tensor, Tensor]:
    check_one_device(to, source, more, values, *pattern)
    rows, (_, heads, width) = pattern[0].shape[0] - 1, values.shape
    return values.new_empty(rows, heads, width), values.new_empty(rows, 2, heads)


@torch.library.register_fake("lemmata::row_attention_backward", lib=_library)
def _(
    to: Tensor, source: Tensor, more: Tensor | None, values: Tensor, slope: float, *rest: Tensor
) -> tuple[Tensor, ...]:
    check_one_device(to, source, more, values, *rest)
    d = values.new_empty(rest[1].shape[0], values.shape[1])
    return to.new_empty(to.shape), source.new_empty(source.shape), d, values.new_empty(values.shape)
