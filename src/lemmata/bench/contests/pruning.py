"""Magnitude pruning against torch.nn.utils.prune: the choice of weights, and a step of a pruned network.

A step misses its target: torch multiplies by the mask, by which an infinite weight becomes NaN, and we choose between
weight and zero, so that what is masked is zero whatever stood there; on CPUs a choice takes longer than a product.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import prune as torch_prune

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.mlp import MLP
from lemmata.tricks.pruning import masks_of, prune

SIZES = {"choice": (512, (1024, 1024, 1024)), "step": (512, (1024, 1024))}


class Network(NamedTuple):
    """A network, a batch of which it makes outputs, and what is measured."""

    case: str
    model: MLP
    x: Tensor


@entry(
    "pruning",
    title="Pruning against torch.nn.utils.prune",
    measures="the masks from a network that has none; a pass forward and backward with masks",
    cases={
        "choice": "the smallest half of 2.6 million weights, all layers together, float32",
        "step": "forward and backward, 1.6 million weights of which half are left, 256 examples, float32",
    },
    targets={"torch.nn.utils.prune": 1.05},
)
def network(case: str, device: str) -> Network:
    """A perceptron with its initial weights, the same for all."""
    torch.manual_seed(0)
    inputs, widths = SIZES[case]
    return Network(case, MLP(inputs, 10, widths=widths).to(device), torch.randn(256, inputs, device=device))


def _fresh_network(data: Network) -> MLP:
    """The same network without masks; building it anew is a part of every contestant's time."""
    twin = MLP(data.model.inputs, 10, widths=data.model.config.widths, device="meta").to_empty(device=data.x.device)
    twin.load_state_dict(data.model.state_dict())
    return twin


def _pruned_positions(model: MLP) -> list[tuple[nn.Module, str]]:
    return [(layer, "weight") for layer in model.layers]


def _training_step(model: nn.Module, x: Tensor) -> Callable[[], Any]:
    def step() -> Any:
        y = model(x)
        torch.autograd.grad(y.sum(), list(model.parameters()))
        return y

    return step


@ours("lemmata")
def our_masks(data: Network) -> Callable[[], Any]:
    """Our parametrisation."""
    if data.case == "step":
        return _training_step(prune(_fresh_network(data), 0.5), data.x)
    return lambda: masks_of(prune(_fresh_network(data), 0.5)).values()


@peer("torch.nn.utils.prune")
def torchs_masks(data: Network) -> Callable[[], Any]:
    """Torch's hooks."""

    def pruned() -> MLP:
        model = _fresh_network(data)
        torch_prune.global_unstructured(_pruned_positions(model), torch_prune.L1Unstructured, amount=0.5)
        return model

    if data.case == "step":
        return _training_step(pruned(), data.x)
    return lambda: [layer.weight_mask for layer in pruned().layers]


@limit("the network without masks: built, or run forward and backward")
def without_masks(data: Network) -> Callable[[], Any]:
    """Choosing and multiplying is what the others do besides."""
    return _training_step(_fresh_network(data), data.x) if data.case == "step" else lambda: _fresh_network(data)


@agreement(within=1e-4)
def in_numbers(found: Any) -> dict[str, float]:
    """How many weights are left, and the sum of the outputs' squares."""
    if isinstance(found, Tensor):
        return {"squares": float(found.detach().double().square().sum())}
    return {"left": float(sum(mask.sum() for mask in found))}
