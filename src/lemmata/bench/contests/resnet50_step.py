"""A training step of ResNet-50, ours against torchvision's with the same weights.

Both keep their pictures channels-last. On a GPU they compute in bfloat16 under autocast, on large pictures; elsewhere
in float32 on small ones, which only serves to try the entry.
"""

import contextlib
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.convolution.resnet import ResNet

LARGE, SMALL = (128, 224), (2, 64)  # pictures, and the side of each in pixels
SIDE = {"cuda": 8192, "cpu": 1024}  # of the matrices whose product shows the machine's speed


class Step(NamedTuple):
    """Pictures, their classes, weights for whoever takes them, and whether networks are compiled in this case."""

    x: Tensor
    y: Tensor
    network: nn.Module
    compiled: bool


Result = tuple[Tensor, list[Tensor]]


@entry(
    "resnet50_step",
    title="ResNet-50 against torchvision",
    measures="the loss and all gradients, with batch statistics",
    cases={
        "eager": "on a GPU 128 pictures of 224 x 224 in bfloat16, else 2 of 64 x 64 in float32; channels-last",
        "compiled": "the same, ours under torch.compile",
    },
    targets={"torchvision": 1.0, "torchvision, not compiled": 0.83},
)
def step(case: str, device: str) -> Step:
    """Gaussian pictures, and a network as it is before it learns."""
    torch.manual_seed(0)
    count, side = SMALL if device == "cpu" else LARGE
    network = _in_memory_order(ResNet(depth=50, device=device), torch.channels_last)
    x = torch.randn(count, 3, side, side).to(device, memory_format=torch.channels_last)
    return Step(x, torch.randint(1000, (count,)).to(device), network, case == "compiled")


@ours("lemmata")
def by_resnet(problem: Step) -> Callable[[], Result]:
    """Ours, compiled where the case says so."""
    return _both_passes(problem.network, problem, problem.compiled)


@ours("lemmata, channels first")
def by_resnet_channels_first(problem: Step) -> Callable[[], Result]:
    """Ours in torch's usual order of memory, not compiled: what the other order saves."""
    plain = torch.contiguous_format
    network = _in_memory_order(copy.deepcopy(problem.network), plain)
    return _both_passes(network, problem._replace(x=problem.x.contiguous(memory_format=plain)), compiled=False)


@peer("torchvision", needs="torchvision", cases="eager")
def by_torchvision(problem: Step) -> Callable[[], Result]:
    """Torchvision's, as it comes."""
    return _both_passes(_peer_network(problem), problem, compiled=False)


@peer("torchvision, not compiled", needs="torchvision", cases="compiled")
def by_torchvision_eager(problem: Step) -> Callable[[], Result]:
    """What compiling ours saves, to somebody who uses torchvision's as it comes."""
    return _both_passes(_peer_network(problem), problem, compiled=False)


@peer("torchvision, compiled", needs="torchvision", cases="compiled")
def by_torchvision_compiled(problem: Step) -> Callable[[], Result]:
    """Torchvision's under torch.compile, too."""
    return _both_passes(_peer_network(problem), problem, compiled=True)


def _peer_network(problem: Step) -> nn.Module:
    from torchvision.models import resnet50

    network = resnet50(weights=None)
    network.load_state_dict(problem.network.state_dict())
    return _in_memory_order(network.to(problem.x.device), torch.channels_last)


def _in_memory_order(network: nn.Module, order: torch.memory_format) -> nn.Module:
    return network.to(memory_format=order)  # type: ignore[call-overload] - torch's stubs lack it


def _both_passes(network: nn.Module, problem: Step, compiled: bool) -> Callable[[], Result]:
    """The loss and the gradients of all parameters; what is compiled is so before the clock runs, in the warm-up."""
    parameters = list(network.parameters())
    called: Any = torch.compile(network) if compiled else network

    def both() -> Result:
        gpu = problem.x.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if gpu else contextlib.nullcontext():
            loss = cross_entropy(called(problem.x), problem.y)
        return loss.detach(), list(torch.autograd.grad(loss, parameters))

    return both


@limit("as many multiplications, in products of large matrices")
def products_alone(problem: Step) -> Callable[[], Any]:
    """No memory-bound layers and no small channels: what the machine could do at best."""
    x, y = torch.empty_like(problem.x, device="meta"), torch.empty_like(problem.y, device="meta")
    with FlopCounterMode(display=False) as counter:
        cross_entropy(ResNet(depth=50, device="meta")(x), y).backward()
    kind = problem.x.device.type
    side, dtype = SIDE[kind], torch.bfloat16 if kind == "cuda" else torch.float32
    rows = max(1, round(counter.get_total_flops() / (2 * side * side)))
    left, right = (torch.randn(n, side, device=problem.x.device, dtype=dtype) for n in (rows, side))
    return lambda: left @ right


@agreement(within=0.05)
def in_numbers(result: Result) -> dict[str, float]:
    """The loss, and the length of the last layer's gradient; in bfloat16 a compiled network rounds elsewhere."""
    loss, gradients = result
    return {"loss": float(loss), "gradient": float(gradients[-2].double().norm())}
