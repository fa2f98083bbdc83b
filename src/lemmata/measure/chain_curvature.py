r"""Products with the Hessian of a plain chain of layers, written out: a tangent forwards, its derivative backwards.

Autograd goes through a graph of the gradient; where the layers are known, fewer products of matrices and far fewer
passes through memory do the same. Examples go through in chunks that a processor's cache holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = []  # for HessianOperator, which uses it where it can

CACHED = 1 << 21  # bytes of the largest layer of a chunk
ELEMENTWISE = (
    nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Softplus, nn.Tanh, nn.Sigmoid, nn.Identity, nn.Dropout,
)  # fmt: skip


class Affine:
    """A linear layer, or a convolution in two dimensions: a product that is linear in weights and in inputs."""

    def __init__(self, layer: nn.Linear | nn.Conv2d, weight: Tensor, bias: Tensor | None):
        self.weight, self.bias = _laid_out(weight), bias
        self.how: tuple[Any, ...] = ()
        if isinstance(layer, nn.Conv2d):
            self.how = layer.stride, layer.padding, layer.dilation, layer.groups

    def outputs(self, weight: Tensor, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return functional.conv2d(x, weight, bias, *self.how) if self.how else functional.linear(x, weight, bias)

    def to_inputs(self, delta: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return self._convolution_back(delta, x, weight, 0) if self.how else delta @ weight

    def to_weight(self, delta: Tensor, x: Tensor) -> Tensor:
        return (
            self._convolution_back(delta, x, self.weight, 1) if self.how else delta.flatten(0, -2).mT @ x.flatten(0, -2)
        )

    def _convolution_back(self, delta: Tensor, x: Tensor, weight: Tensor, which: int) -> Tensor:
        stride, padding, dilation, groups = self.how
        wanted = [which == 0, which == 1, False]
        words = (None, stride, padding, dilation, False, [0, 0], groups, wanted)
        return torch.ops.aten.convolution_backward(delta, x, weight, *words)[which]


@dataclass
class _Passed:
    """What one layer keeps of a chunk: inputs, or slopes and curvatures of an activation, or the shape before it."""

    affine: Affine | None = None
    x: Tensor | None = None
    slope: Tensor | None = None
    curvature: Tensor | None = None
    window: Any = None
    shape: torch.Size | None = None
    delta: Tensor | None = None  # the gradient of the loss in what the layer gives


class ChainCurvature:
    """The Hessian of a loss of a chain of layers, on one batch."""

    def __init__(
        self,
        layers: list[Affine | nn.Module],
        loss: Callable[[Tensor, Any], Tensor],
        inputs: Tensor,
        targets: Any,
    ) -> None:
        size = _largest_size(layers, inputs[:1]) * inputs.element_size()
        self.size = max(1, CACHED // size)
        self.chunks: list[list[_Passed]] = []
        found = []
        for part in inputs.split(self.size):
            passed, outputs = _forward_chain(layers, _laid_out(part))
            self.chunks.append(passed)
            found.append(outputs)
        with torch.enable_grad():
            self.end = torch.cat(found).requires_grad_()
            self.slope = torch.autograd.grad(loss(self.end, targets), self.end, create_graph=True)[0]
        for passed, delta in zip(self.chunks, self.slope.detach().split(self.size), strict=True):
            _backward_chain(passed, delta)

    def __call__(self, vectors: list[Tensor]) -> list[Tensor]:
        """The Hessian times a vector, given and returned in the parts that belong to each parameter."""
        vectors = [_laid_out(part) for part in vectors]
        tangents, pushed = [], []
        for passed in self.chunks:
            kept, end = _push_tangents(passed, vectors)
            tangents.append(kept)
            pushed.append(end)
        totals = [torch.zeros_like(part) for part in vectors]
        for passed, kept, delta in zip(self.chunks, tangents, self._curved_tangents(pushed), strict=True):
            _pull_cotangents(passed, kept, delta, vectors, totals)
        return totals

    def form(self, vectors: list[Tensor]) -> Tensor:
        """The quadratic form of a vector, which needs no pass backwards: half the work of a product."""
        vectors = [_laid_out(part) for part in vectors]
        pushed, total = [], self.end.new_zeros((), dtype=torch.float64)
        for passed in self.chunks:
            kept, end = _push_tangents(passed, vectors)
            pushed.append(end)
            total += _bent_gradient(passed, kept, vectors)
        for end, delta in zip(pushed, self._curved_tangents(pushed), strict=True):
            total += (end.double() * delta.double()).sum()
        return total

    def _curved_tangents(self, pushed: list[Tensor]) -> tuple[Tensor, ...]:
        """The Hessian of the loss in the outputs, times their tangents."""
        if not self.slope.requires_grad:
            return tuple(torch.zeros_like(part) for part in pushed)
        along = torch.cat(pushed)
        found = torch.autograd.grad(self.slope, self.end, along, retain_graph=True, allow_unused=True)[0]
        return (torch.zeros_like(along) if found is None else found).split(self.size)


def known_chain(model: nn.Module, parameters: Mapping[str, Tensor]) -> list[Affine | nn.Module] | None:
    """The layers of a chain in which each is known and has parameters of its own, in their order, or nothing."""
    found: list[Affine | nn.Module] = []
    left, order = dict(parameters), []
    if type(model) is not nn.Sequential:
        return None
    for name, layer in _unroll_layers(model, ""):
        kind = type(layer)
        if kind is nn.Linear or (kind is nn.Conv2d and layer.padding_mode == "zeros" and _plain_padding(layer)):
            weight, bias = left.pop(f"{name}.weight", None), left.pop(f"{name}.bias", None)
            if weight is None or (bias is None) != (layer.bias is None):
                return None
            order += [f"{name}.weight"] + ([] if bias is None else [f"{name}.bias"])
            found.append(Affine(layer, weight.detach(), None if bias is None else bias.detach()))
        elif (
            kind in ELEMENTWISE
            or (kind is nn.MaxPool2d and _windows_tile(layer))
            or (kind is nn.Flatten and _flattens_whole(layer))
        ):
            found.append(layer)
        else:
            return None
    hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in model.modules())
    return None if hooked or not found or order != list(parameters) else found


def takes_batches(layers: list[Affine | nn.Module], inputs: Tensor) -> bool:
    """Whether the first axis of the inputs counts examples: what torch also takes without it is not cut apart."""
    flat = any(layer.how if isinstance(layer, Affine) else isinstance(layer, nn.MaxPool2d) for layer in layers)
    return inputs.ndim == 4 if flat else inputs.ndim > 1


def _unroll_layers(model: nn.Sequential, prefix: str) -> list[tuple[str, Any]]:
    layers = []
    for name, layer in model._modules.items():  # named_children would leave out what comes a second time
        inner = (
            _unroll_layers(layer, f"{prefix}{name}.") if type(layer) is nn.Sequential else [(f"{prefix}{name}", layer)]
        )
        layers.extend(inner)
    return layers


def _plain_padding(layer: nn.Conv2d) -> bool:
    return not isinstance(layer.padding, str)


def _flattens_whole(layer: nn.Flatten) -> bool:
    return (layer.start_dim, layer.end_dim) == (1, -1)


def _windows_tile(layer: nn.MaxPool2d) -> bool:
    """Whether the windows lie side by side, so that each input belongs to at most one."""
    kernel, stride = _as_pair(layer.kernel_size), _as_pair(layer.stride)
    plain = _as_pair(layer.padding) == (0, 0) and _as_pair(layer.dilation) == (1, 1)
    return kernel == stride and plain and not layer.ceil_mode and not layer.return_indices


def _as_pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)  # type: ignore[return-value]


def _laid_out(x: Tensor) -> Tensor:
    """Channels last, which is how convolutions and pools on a processor are quick."""
    if x.ndim != 4:
        return x
    x = x.contiguous(memory_format=torch.channels_last)
    # With one channel both orders are the same numbers, and torch would go on with channels first.
    return x.as_strided(x.shape, (x.shape[2] * x.shape[3], 1, x.shape[3], 1)) if x.shape[1] == 1 else x


@torch.no_grad()
def _largest_size(layers: list[Affine | nn.Module], x: Tensor) -> int:
    size = x.numel()
    for layer in layers:
        x = layer.outputs(layer.weight, x, layer.bias) if isinstance(layer, Affine) else layer(x.clone())
        size = max(size, x.numel())
    return size


@torch.no_grad()
def _forward_chain(layers: list[Affine | nn.Module], x: Tensor) -> tuple[list[_Passed], Tensor]:
    passed: list[_Passed] = []
    for layer in layers:
        if isinstance(layer, Affine):
            passed.append(_Passed(affine=layer, x=x))
            x = layer.outputs(layer.weight, x, layer.bias)
        elif isinstance(layer, nn.MaxPool2d):
            window = _as_pair(layer.kernel_size)
            x, mask = _pool_largest(x, window)
            slope = _only_slope(passed)
            if slope is not None:  # both only choose and scale: one pass for two layers
                mask = mask * slope
                passed.pop()
            passed.append(_Passed(slope=mask, window=window))
        elif isinstance(layer, nn.Flatten):
            passed.append(_Passed(shape=x.shape))
            x = x.flatten(1)
        elif not isinstance(layer, nn.Identity | nn.Dropout):
            slope, curvature = _activation_derivatives(layer, x)
            passed.append(_Passed(slope=slope, curvature=curvature))
            x = layer(x.clone())
    return passed, x


def _only_slope(passed: list[_Passed]) -> Tensor | None:
    """The slopes of the last layer, if it is an activation that does not bend."""
    last = passed[-1] if passed else _Passed()
    return last.slope if last.curvature is None and last.window is None else None


def _pool_largest(x: Tensor, window: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The largest of each window, and a one at its place, zeros elsewhere."""
    height, width = (side // step * step for side, step in zip(x.shape[2:], window, strict=True))
    largest, places = functional.max_pool2d(x[:, :, :height, :width], window, return_indices=True)
    mask = torch.zeros(x.shape[0], x.shape[1], height * width, dtype=x.dtype, device=x.device)
    mask.scatter_(2, places.flatten(2), 1.0)
    mask = functional.pad(mask.view(*x.shape[:2], height, width), (0, x.shape[3] - width, 0, x.shape[2] - height))
    return largest, _laid_out(mask)


def _activation_derivatives(layer: nn.Module, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Slope and curvature of an activation at each entry; no curvature where it is zero everywhere."""
    with torch.enable_grad():
        z = x.detach().requires_grad_()
        slope = torch.autograd.grad(layer(z.clone()).sum(), z, create_graph=True)[0]
        curvature = None
        if slope.requires_grad:
            curvature = torch.autograd.grad(slope.sum(), z, allow_unused=True)[0]
    bends = curvature is not None and bool(curvature.any())
    return slope.detach(), curvature if bends else None


@torch.no_grad()
def _backward_chain(passed: list[_Passed], delta: Tensor) -> None:
    first = next(layer for layer in passed if layer.affine is not None)
    for layer in reversed(passed):
        layer.delta = delta
        if layer is first:
            return
        if layer.affine is not None:
            assert layer.x is not None
            delta = layer.affine.to_inputs(delta, layer.x, layer.affine.weight)
        else:
            delta = _through_layer(layer, delta)


def _through_layer(layer: _Passed, delta: Tensor) -> Tensor:
    """A gradient through a layer without parameters."""
    if layer.shape is not None:
        return _laid_out(delta.reshape(layer.shape))
    assert layer.slope is not None
    if layer.window is None:
        return delta * layer.slope
    height, width = (a * b for a, b in zip(delta.shape[2:], layer.window, strict=True))
    spread = functional.interpolate(delta, size=(height, width), mode="nearest")
    over = layer.slope.shape[2] - height, layer.slope.shape[3] - width
    return (functional.pad(spread, (0, over[1], 0, over[0])) if any(over) else spread) * layer.slope


@torch.no_grad()
def _push_tangents(passed: list[_Passed], vectors: list[Tensor]) -> tuple[list[Tensor | None], Tensor]:
    """The tangents of what each layer is given, and of the outputs, along a vector of parameters."""
    kept: list[Tensor | None] = []
    tangent: Tensor | None = None
    for layer, parts in zip(passed, _parameter_parts(passed, vectors), strict=True):
        kept.append(tangent)
        if layer.affine is not None:
            assert layer.x is not None
            moved = layer.affine.outputs(parts[0], layer.x, parts[1])
            tangent = moved if tangent is None else moved.add_(layer.affine.outputs(layer.affine.weight, tangent))
        elif tangent is not None and layer.shape is not None:
            tangent = tangent.flatten(1)
        elif tangent is not None:
            assert layer.slope is not None
            tangent = tangent * layer.slope
            if layer.window is not None:
                tangent = functional.avg_pool2d(tangent, layer.window, divisor_override=1)
    assert tangent is not None  # there is a layer with parameters
    return kept, tangent


@torch.no_grad()
def _pull_cotangents(
    passed: list[_Passed], kept: list[Tensor | None], delta: Tensor, vectors: list[Tensor], totals: list[Tensor]
) -> None:
    """What changes of the gradient along a vector, from the change of it in the outputs; added to the totals."""
    everything = list(
        zip(passed, kept, _parameter_parts(passed, vectors), _parameter_parts(passed, totals), strict=True)
    )
    for layer, tangent, parts, sums in reversed(everything):
        assert layer.delta is not None
        if layer.affine is None:
            delta = _through_layer(layer, delta)
            if layer.curvature is not None and tangent is not None:
                delta = delta + layer.curvature * tangent * layer.delta
            continue
        assert layer.x is not None
        assert sums[0] is not None
        sums[0].add_(layer.affine.to_weight(delta, layer.x))
        if sums[1] is not None:
            sums[1].add_(delta.sum((0, 2, 3)) if layer.affine.how else delta.flatten(0, -2).sum(0))
        if tangent is None:  # nothing before it has parameters
            return
        sums[0].add_(layer.affine.to_weight(layer.delta, tangent))
        into = layer.affine.to_inputs(delta, layer.x, layer.affine.weight)
        delta = into.add_(layer.affine.to_inputs(layer.delta, layer.x, parts[0]))


@torch.no_grad()
def _bent_gradient(passed: list[_Passed], kept: list[Tensor | None], vectors: list[Tensor]) -> Tensor:
    """How the network itself bends along a vector, weighed by the gradients of the loss in each layer."""
    total = passed[-1].delta.new_zeros((), dtype=torch.float64)  # type: ignore[union-attr]
    for layer, tangent, parts in zip(passed, kept, _parameter_parts(passed, vectors), strict=True):
        if tangent is None:
            continue
        assert layer.delta is not None
        if layer.affine is not None:
            total += 2 * (layer.delta * layer.affine.outputs(parts[0], tangent)).sum(dtype=torch.float64)
        elif layer.curvature is not None:
            total += (layer.delta * layer.curvature * tangent.square()).sum(dtype=torch.float64)
    return total


def _parameter_parts(passed: list[_Passed], vectors: list[Tensor]) -> list[tuple[Any, Any]]:
    """Weight and bias of each layer, in the order of the layers; nothing for those without."""
    left, found = iter(vectors), []
    for layer in passed:
        if layer.affine is None:
            found.append((None, None))
        else:
            weight = next(left)
            found.append((weight, None if layer.affine.bias is None else next(left)))
    return found
