r"""Attention: every query takes the mean of the values, weighted by how well their keys match it."""

import functools
import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from lemmata import validate
from lemmata.marks import system

__all__ = ["attention", "attention_weights"]

CUDNN_FIRST = [
    SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
]  # fmt: skip


def attention_weights(
    query: Float[Tensor, "... queries key_width"],
    key: Float[Tensor, "... keys key_width"],
    mask: Bool[Tensor, "... #queries #keys"] | None = None,
    causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "... queries keys"]:
    r"""How much each query looks at each key: a softmax over the keys of their scaled products.

    $$ a_{st} = \frac{e^{\beta q_s^\top k_t}}{\sum_r e^{\beta q_s^\top k_r}}, \qquad \beta = \frac{1}{\sqrt{d_k}} $$

    A query looks only where `mask` is true; with `causal` never ahead, where the last query stands at the last key. A
    query that may look nowhere has weights zero. `scale` is $\beta$.

    Shapes:
        query: (..., queries, key_width)    key: (..., keys, key_width)    mask: to be broadcast to (..., queries, keys)
        returns: (..., queries, keys), rows that add up to one

    Claims: attention.softmax, attention.causal_mask, attention.scaling
    Source: Vaswani et al. 2017.

    >>> attention_weights(torch.zeros(2, 3), torch.randn(2, 3), causal=True)
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    scale = _checked_scale(query, key, key, scale)
    scores = query @ key.mT * scale  # (..., queries, keys)
    allowed = _allowed_keys(query, key, mask, causal)
    if allowed is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min  # not minus infinity, whose softmax has no derivative where all are so
    return scores.masked_fill(~allowed, lowest).softmax(-1).masked_fill(~allowed, 0)


@system("attention", title="Scaled dot-product attention", kind="function")
def attention(
    query: Float[Tensor, "... queries key_width"],
    key: Float[Tensor, "... keys key_width"],
    value: Float[Tensor, "... keys value_width"],
    mask: Bool[Tensor, "... #queries #keys"] | None = None,
    causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "... queries value_width"]:
    r"""Each query's weighted mean of the values: `attention_weights(...) @ value`, without keeping the weights.

    $$ \Xi = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V, \qquad
       \xi_s = \sum_t a_{st} v_t $$

    Computed by torch's fused kernels, on GPUs of 2022 and later by cuDNN's where it has one. `dropout` leaves out that
    fraction of the weights, and enlarges the others.

    Shapes:
        query: (..., queries, key_width)    key: (..., keys, key_width)    value: (..., keys, value_width)
        mask, causal, scale: as for `attention_weights`    returns: (..., queries, value_width)

    Claims: attention.mixing, attention.softmax, attention.output_sum, attention.soft_lookup
    Source: Vaswani et al. 2017.
    Differs: torch.nn.functional.scaled_dot_product_attention puts the first query at the first key when causal; here
        the last query stands at the last key, which is the same for equal lengths, and right for a growing cache.

    >>> query, key, value = torch.randn(4, 8), torch.randn(6, 8), torch.eye(6)
    >>> attention(query, key, value).allclose(attention_weights(query, key), atol=1e-6)
    True
    """
    shape, keys, values = query.shape, key.shape, value.shape
    # Mostly everything fits, which is seen at once; `_checked_scale` finds out what does not, or what is broadcast.
    alike = len(shape) == len(keys) == len(values) >= 2 and shape[:-2] == keys[:-2] == values[:-2]
    if not alike or shape[-1] != keys[-1] or keys[-2] != values[-2] or 0 in keys[-2:] or scale is not None:
        scale = _checked_scale(query, key, value, scale)
    if dropout:
        validate.fraction("dropout", dropout)
    aligned = causal and mask is None and bool(shape[-2] == keys[-2])  # which the kernels do without a mask
    allowed = None if aligned else _allowed_keys(query, key, mask, causal)
    attend = _cudnn_first if query.is_cuda and _prefers_cudnn(query) else functional.scaled_dot_product_attention
    found = attend(query, key, value, allowed, dropout, aligned, scale=scale)  # (..., queries, value_width)
    if mask is None or query.is_cpu:
        return found
    # On a GPU a kernel may answer NaN, or the mean of all values, to a query that may look nowhere.
    return torch.where(allowed.any(-1, keepdim=True), found, 0)  # type: ignore[union-attr]


def _allowed_keys(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    """Which query may look at which key; None if all may look everywhere."""
    if mask is None and not causal:
        return None
    queries, keys = query.shape[-2], key.shape[-2]
    if mask is not None:
        shape = mask.shape
        if mask.dtype is not torch.bool:
            raise TypeError(f"mask must be boolean, true where a query may look, got {mask.dtype}: use mask.bool()")
        if len(shape) < 2:
            raise ValueError(f"mask must be (..., queries, keys), got shape {tuple(shape)}")
        if (shape[-2] != 1 and shape[-2] != queries) or (shape[-1] != 1 and shape[-1] != keys):
            raise ValueError(f"mask must be (..., {queries}, {keys}) or have axes of 1, got {tuple(shape)}")
        _check_broadcast("query, key and mask", query, key, mask)
    if not causal or queries == 1:
        return mask
    if queries > keys:
        raise ValueError(f"causal attention needs a key for each query, got {queries} queries and {keys} keys")
    behind = torch.ones(queries, keys, dtype=torch.bool, device=query.device).tril(keys - queries)
    return behind if mask is None else mask & behind


def _checked_scale(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> float:
    """The scale, after a look at the shapes."""
    for name, each in (("query", query), ("key", key), ("value", value)):
        if each.ndim < 2:
            raise ValueError(f"{name} must be (..., positions, width), got shape {tuple(each.shape)}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must have one width, got {query.shape[-1]} and {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"every key needs a value, got {key.shape[-2]} keys and {value.shape[-2]} values")
    _check_broadcast("query, key and value", query, key, value)
    if key.shape[-2] == 0:
        raise ValueError("there must be at least one key to look at, got none")
    if scale is None:
        return 1 / math.sqrt(max(query.shape[-1], 1))
    return float(validate.finite_number("scale", scale))


def _check_broadcast(names: str, *tensors: Tensor) -> None:
    """Refuse tensors whose axes before the last two are neither alike nor of one."""
    sizes: dict[int, int] = {}
    for each in tensors:
        for axis, size in enumerate(each.shape[-3::-1]):  # from the last one: the first ones may be missing
            if size != 1 and sizes.setdefault(axis, size) != size:
                found = ", ".join(str(tuple(one.shape[:-2])) for one in tensors)
                raise ValueError(f"{names} must have the same leading axes (batch, heads) or axes of 1, got {found}")


def _prefers_cudnn(query: Tensor) -> bool:
    """Whether cuDNN's kernel is the faster one: in short formats on Hopper and later, by up to a factor of two."""
    if query.dtype is not torch.bfloat16 and query.dtype is not torch.float16:
        return False
    capability = (
        torch.cuda.get_device_capability if torch.compiler.is_compiling() else _device_capability
    )  # no cache in a graph
    return capability(query.device)[0] >= 9


@functools.cache
def _device_capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)  # asked once: it takes as long as a small kernel


def _cudnn_first(*args: Any, **kwargs: Any) -> Tensor:
    """Torch's function with cuDNN's kernel before the others; who has switched kernels off is obeyed."""
    if torch.compiler.is_compiling():
        with sdpa_kernel(CUDNN_FIRST, set_priority=True):
            return functional.scaled_dot_product_attention(*args, **kwargs)
    order, first = torch._C._get_sdp_priority_order(), int(SDPBackend.CUDNN_ATTENTION)  # type: ignore[arg-type]
    if order[0] == first:  # torch 2.13 has it so
        return functional.scaled_dot_product_attention(*args, **kwargs)
    torch._C._set_sdp_priority_order([first, *(kernel for kernel in order if kernel != first)])
    try:
        return functional.scaled_dot_product_attention(*args, **kwargs)
    finally:
        torch._C._set_sdp_priority_order(order)
