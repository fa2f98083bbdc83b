"""Our normalisations against torch's modules, forwards and back: they run the same kernels."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.layer_norm import LayerNorm
from lemmata.tricks.weight_norm import weight_normalized

SHAPES = {"batch": (64, 64, 28, 28), "layer": (4096, 768), "weight": (256, 1024)}


class Batch(NamedTuple):
    """What is normalised, and the gradient of what comes out."""

    case: str
    x: Tensor
    upstream: Tensor


@entry(
    "normalization",
    title="Normalisations against torch",
    measures="the outputs and all gradients",
    cases={
        "batch": "batch normalisation, 64 pictures of 64 x 28 x 28, float32",
        "layer": "layer normalisation, 4,096 x 768, float32",
        "weight": "a linear layer with normalised weights, 1,024 to 1,024, 256 examples, float32",
    },
    targets={"torch": 1.05},
)
def batch(case: str, device: str) -> Batch:
    """Gaussian values and gradients."""
    generator = torch.Generator().manual_seed(0)
    x, upstream = (torch.randn(SHAPES[case], generator=generator).to(device) for _ in range(2))
    return Batch(case, x.requires_grad_(), upstream)


def _linear_layer(x: Tensor) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(1024, 1024).to(x.device)


def _both_passes(layer: nn.Module, data: Batch) -> Callable[[], Any]:
    parameters = [data.x, *layer.parameters()]

    def both() -> Any:
        y = layer(data.x)
        return y, torch.autograd.grad(y, parameters, data.upstream)

    return both


@ours("lemmata")
def our_layer(data: Batch) -> Callable[[], Any]:
    """Our modules."""
    if data.case == "weight":
        return _both_passes(weight_normalized(_linear_layer(data.x)), data)
    layer = BatchNorm(64) if data.case == "batch" else LayerNorm(768)
    return _both_passes(layer.to(data.x.device), data)


@peer("torch")
def torchs_layer(data: Batch) -> Callable[[], Any]:
    """Torch's modules."""
    if data.case == "weight":
        return _both_passes(parametrizations.weight_norm(_linear_layer(data.x)), data)
    layer = nn.BatchNorm2d(64) if data.case == "batch" else nn.LayerNorm(768)
    return _both_passes(layer.to(data.x.device), data)


@ours("the formula", cases="batch layer")
def written_out(data: Batch) -> Callable[[], Any]:
    """The readable path, for those who wonder what the kernels save."""
    layer = (BatchNorm(64) if data.case == "batch" else LayerNorm(768)).to(data.x.device)
    parameters = [data.x, *layer.parameters()]

    def both() -> Any:
        y = layer.by_formula(data.x)
        return y, torch.autograd.grad(y, parameters, data.upstream)

    return both


@limit("outputs and gradients written once, or the three products")
def passes_alone(data: Batch) -> Callable[[], Any]:
    """Every output and every gradient is a number that has to be written."""
    x, upstream = data.x.detach(), data.upstream
    if data.case != "weight":
        outputs, gradient = torch.empty_like(x), torch.empty_like(upstream)  # to find new memory takes longer
        return lambda: (torch.mul(x, 2, out=outputs), torch.mul(upstream, 2, out=gradient))
    weight = _linear_layer(x).weight.detach()
    return lambda: (x @ weight.T, upstream @ weight, upstream.T @ x)


@agreement(within=1e-4)
def in_numbers(result: Any) -> dict[str, float]:
    """Lengths of the outputs and of the gradient of the input."""
    y, gradients = result
    return {"outputs": float(y.detach().double().norm()), "gradient": float(gradients[0].double().norm())}
