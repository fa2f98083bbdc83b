r"""How the parameters of a network enter its outputs, operation by operation, and what each adds to a tangent kernel.

The gradient of an output in a weight is a sum over positions of products, cotangent times input. So the product of two
gradients is a product of two small numbers for each pair of positions, and no gradient has to be written down.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = []  # for `ntk`, which asks each operation for its part


ELEMENTWISE = ("scale", "channels")  # a weight and a bias of the normed values: of the last axes, of each channel


@dataclass
class Use:
    """One operation that reads parameters: its input, and where the gradient of its output is found."""

    kind: str
    weight: nn.Parameter | None
    bias: nn.Parameter | None
    x: Tensor
    """As the operation reads it: inputs of a product, tokens, or normalised values."""
    edge: Any
    shape: torch.Size
    """Of the output."""
    how: tuple[Any, ...] = ()
    """Sizes of a convolution's kernel and its stride, padding, dilation and groups."""

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in (self.weight, self.bias) if p is not None]

    def values_for_each(self) -> int:
        """Numbers kept for one example: of the input, and of one cotangent."""
        spread = math.prod(self.how[0]) if self.how else 1
        return (self.x.numel() * spread + math.prod(self.shape)) // max(1, self.shape[0])

    def inputs(self) -> Tensor:
        """(batch, groups, positions, inputs) of the product, patch by patch for a convolution; normed values as is."""
        if self.kind in ELEMENTWISE:
            return self.x
        if self.kind == "tokens":
            return self.x.flatten(1)[:, None]  # (batch, 1, positions), still tokens
        if self.kind == "linear":
            return self.x.reshape(self.x.shape[0], 1, -1, self.x.shape[-1])
        size, stride, padding, dilation, groups = self.how
        patches = functional.unfold(self.x, size, dilation, padding, stride)  # (batch, channels * taps, positions)
        return patches.unflatten(1, (groups, -1)).mT

    def cotangents(self, found: Tensor) -> Tensor:
        """(outputs, batch, groups, positions, values), from gradients of the shape of what the operation gives."""
        if self.kind in ELEMENTWISE:
            return found
        if self.kind != "conv":
            return found.reshape(*found.shape[:2], 1, -1, found.shape[-1])
        return found.flatten(3).unflatten(2, (self.how[4], -1)).mT


class Recorder(TorchFunctionMode):
    """Watches a network run: which operations read its parameters, and which parameters are read in other ways."""

    def __init__(self, parameters: Iterable[nn.Parameter]):
        super().__init__()
        self.known = {id(p): p for p in parameters}
        self.uses: list[Use] = []
        self.others: set[int] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        read = [p for p in _tensors_in((args, kwargs)) if id(p) in self.known]
        if not read:
            return func(*args, **kwargs)
        rule = RULES.get(func)
        use = rule(*args, **kwargs) if rule else None
        found = func(*args, **kwargs)
        if use is None:
            if any(True for _ in _tensors_in(found)):  # a size or a dtype that was asked for is no use
                self.others.update(map(id, read))
            return found
        use.weight, use.bias = (p if id(p) in self.known else None for p in (use.weight, use.bias))
        if {id(p) for p in read} != {id(p) for p in use.parameters()}:
            self.others.update(map(id, read))  # a parameter as an input of an operation, say
        elif found.requires_grad:
            # An edge stays where it is when the output is changed in place, by a relu say.
            use.edge, use.shape = get_gradient_edge(found), found.shape
            self.uses.append(use)
        return found


def edges_into(outputs: Tensor) -> dict[int, int]:
    """How many operations of a graph read each parameter: what was not seen would not be counted otherwise."""
    counts: dict[int, int] = {}
    seen, stack = set(), [outputs.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for follower, _ in node.next_functions:
            variable = getattr(follower, "variable", None)
            if variable is not None:
                counts[id(variable)] = counts.get(id(variable), 0) + 1
            else:
                stack.append(follower)
    return counts


# --- Which operations are known ---


def _linear_use(input: Tensor, weight: Any, bias: Any = None) -> Use | None:
    return Use("linear", weight, bias, input.detach(), None, input.shape) if input.ndim > 1 else None


def _convolution_use(
    input: Tensor,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Use | None:
    """In two dimensions; in one, the other has length one."""
    space = weight.ndim - 2
    if input.ndim != weight.ndim or space > 2:
        return None
    size = tuple(weight.shape[2:])
    stride, dilation = _each_axis(stride, space), _each_axis(dilation, space)
    x = input.detach()
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, size, strict=True)]
        x = functional.pad(x, [side for t in reversed(total) for side in (t // 2, t - t // 2)])
    padding = (0,) * space if isinstance(padding, str) else _each_axis(padding, space)
    if space == 1:
        x, size, stride, padding, dilation = x[:, :, None], (1, *size), (1, *stride), (0, *padding), (1, *dilation)
    return Use("conv", weight, bias, x, None, x.shape, (size, stride, padding, dilation, groups))


def _embedding_use(
    input: Tensor,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Use | None:
    if max_norm is not None or scale_grad_by_freq or input.ndim < 2:
        return None
    x = input.detach()
    if padding_idx is not None:
        x = x.masked_fill(x == padding_idx % weight.shape[0], -1)  # which gets no gradient
    return Use("tokens", weight, None, x, None, input.shape)


def _layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Use | None:
    normed = functional.layer_norm(input.detach(), normalized_shape, eps=eps)
    return Use("scale", weight, bias, normed, None, input.shape)


def _rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Use | None:
    normed = functional.rms_norm(input.detach(), normalized_shape, eps=eps)
    return Use("scale", weight, None, normed, None, input.shape)


def _group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Use | None:
    normed = functional.group_norm(input.detach(), num_groups, eps=eps)
    return Use("channels", weight, bias, normed, None, input.shape)


def _batch_norm(
    input: Tensor,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Use | None:
    if training:
        return None
    normed = functional.batch_norm(input.detach(), running_mean, running_var, eps=eps)
    return Use("channels", weight, bias, normed, None, input.shape)


RULES: dict[Any, Callable[..., Use | None]] = {
    functional.linear: _linear_use,
    functional.conv1d: _convolution_use,
    functional.conv2d: _convolution_use,
    functional.embedding: _embedding_use,
    functional.layer_norm: _layer_norm,
    functional.rms_norm: _rms_norm,
    functional.group_norm: _group_norm,
    functional.batch_norm: _batch_norm,
}


def _each_axis(value: Any, space: int) -> tuple[int, ...]:
    return (value,) * space if isinstance(value, int) else tuple(value) * (space if len(value) < space else 1)


def _tensors_in(value: Any) -> Iterable[Any]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors_in(each)
    elif isinstance(value, dict):
        yield from _tensors_in(list(value.values()))


# --- What an operation adds to the kernel ---


def rows(use: Use, x: Tensor, cotangents: Tensor) -> dict[int, Tensor]:
    """The gradients themselves, (batch, outputs, entries) for weight and bias, where they are small or needed."""
    found = {}
    if use.kind in ELEMENTWISE:
        parts = ((use.weight, cotangents * x), (use.bias, cotangents))
        for parameter, value in parts:
            if parameter is not None:
                value = value.transpose(0, 1)  # (batch, outputs, ...)
                if use.kind == "scale":  # entries stand last, elsewhere second after batch and outputs
                    value = value.reshape(*value.shape[:2], -1, parameter.numel()).sum(2)
                else:
                    value = value.flatten(3).sum(3) if value.ndim > 3 else value
                found[id(parameter)] = value
        return found
    if use.weight is not None:
        if use.kind == "tokens":
            entries = torch.arange(use.weight.shape[0], device=x.device)
            x = (x[..., None] == entries).to(cotangents)  # (batch, 1, positions, tokens)
            value = torch.einsum("bgtp,obgtq->bopq", x, cotangents)
        else:
            value = torch.einsum("bgtp,obgtq->bogqp", x, cotangents)
        found[id(use.weight)] = value.flatten(2)
    if use.bias is not None:
        found[id(use.bias)] = cotangents.sum(3).transpose(0, 1).flatten(2)
    return found


def add_rows(kernel: Tensor, first: Tensor, second: Tensor, form: str) -> None:
    """Products of gradients that are written down, (batch, outputs, entries) each."""
    if form == "full":
        kernel.view(-1, second[..., 0].numel()).addmm_(first.flatten(0, 1), second.flatten(0, 1).mT)
    elif form == "trace":
        kernel.addmm_(first.flatten(1), second.flatten(1).mT)
    else:
        kernel.baddbmm_(first.transpose(0, 1), second.permute(1, 2, 0))


def prefers_rows(use: Use, outputs: int, form: str) -> bool:
    """Whether gradients of a product are cheaper to write down than to go through all pairs of positions."""
    if use.kind in ELEMENTWISE:
        return True
    weight = use.weight if use.weight is not None else use.bias
    assert weight is not None
    values = weight.shape[-1] if use.kind == "tokens" else weight.shape[0]
    entries = max(1, weight.numel() // values)
    positions = math.prod(use.shape[1:]) // values
    if positions == 1:
        return False
    pairs = outputs**2 if form == "full" else outputs
    groups = use.how[4] if use.how else 1
    through = positions**2 * (groups * entries + outputs * values) + pairs * positions * values
    return pairs * values * entries <= through


def add_product(kernel: Tensor, use: Use, one: tuple[Tensor, Tensor], two: tuple[Tensor, Tensor], form: str) -> None:
    """Inputs and cotangents of a product for two blocks: the products of inputs weigh those of cotangents."""
    (x1, d1), (x2, d2) = one, two
    for group in range(d1.shape[2]):
        parts = x1[:, group], d1[:, :, group], x2[:, group], d2[:, :, group]
        if d1.shape[3] == 1:
            _add_single(kernel, use, *parts, form)
        else:
            _add_positions(kernel, use, *parts, form)


def _add_single(kernel: Tensor, use: Use, x1: Tensor, d1: Tensor, x2: Tensor, d2: Tensor, form: str) -> None:
    """One position: (batch, 1, inputs) and (outputs, batch, 1, values)."""
    gram = _gram_of_uses(use, x1, x2).reshape(len(x1), len(x2)).to(kernel)
    d1, d2 = d1.squeeze(2), d2.squeeze(2)  # (outputs, batch, values)
    if form == "full":
        products = d1.transpose(0, 1).flatten(0, 1) @ d2.transpose(0, 1).flatten(0, 1).mT
        kernel.addcmul_(products.view(kernel.shape), gram[:, None, :, None])
    elif form == "trace":
        kernel.addcmul_(d1.transpose(0, 1).flatten(1) @ d2.transpose(0, 1).flatten(1).mT, gram)
    else:
        kernel.addcmul_(d1 @ d2.mT, gram)


def _add_positions(kernel: Tensor, use: Use, x1: Tensor, d1: Tensor, x2: Tensor, d2: Tensor, form: str) -> None:
    """(batch, positions, inputs) and (outputs, batch, positions, values), one example of the first block at a time."""
    for i in range(len(x1)):
        gram = _gram_of_uses(use, x1[i : i + 1], x2)[0].to(d1)  # (positions, batch, positions)
        weighed = torch.einsum("tbs,obsv->obtv", gram, d2)  # summed over the positions of the second block
        if form == "full":
            kernel[i] += torch.einsum("otv,pbtv->obp", d1[:, i], weighed)
        elif form == "trace":
            kernel[i] += torch.einsum("otv,obtv->b", d1[:, i], weighed)
        else:
            kernel[:, i] += torch.einsum("otv,obtv->ob", d1[:, i], weighed)


def _gram_of_uses(use: Use, x1: Tensor, x2: Tensor) -> Tensor:
    """(batch, positions, batch, positions): products of the inputs at each pair of positions, and one for the bias."""
    if use.kind == "tokens":
        return (x1[:, :, None, None] == x2) & (x1 >= 0)[:, :, None, None]
    if use.weight is None:
        return x1.new_ones(*x1.shape[:2], *x2.shape[:2])
    found = (x1.flatten(0, 1) @ x2.flatten(0, 1).mT).view(*x1.shape[:2], *x2.shape[:2])
    return found if use.bias is None else found + 1
