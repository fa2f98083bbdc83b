"""Projected gradient ascent on ResNet-18, on a GPU: what lower precision and graphs of kernels save.

Ours attacks the network as one would prepare it for a GPU: compiled, in bfloat16, images channels-last. Everybody's
examples are looked at by the network in float32. Elsewhere than on a GPU the size is small and nothing is compiled,
which only serves to try the entry.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.attacked_digits import (
    Attacked,
    Found,
    bare_passes,
    frozen,
    projected_ascent,
    wrong_answers,
)
from lemmata.bench.workloads.roofline import roofline
from lemmata.convolution.resnet import ResNet
from lemmata.robustness.projected_gradient import pgd

SIZES = {"thousand": 1000, "sixty_four": 64}  # images on a GPU
WIDTHS, ELSEWHERE = {"cuda": 64, "cpu": 4}, 4
SIDE, CLASSES, STEPS, EPS = 32, 10, 10, 8 / 255
STEP = 2.5 * EPS / STEPS


class InBfloat16(nn.Module):
    """A network as a GPU likes it: autocast, channels-last."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            return self.network(x.contiguous(memory_format=torch.channels_last)).float()


@entry(
    "pgd_gpu",
    title="Projected gradient ascent on ResNet-18",
    measures="10 steps in the maximum norm, and a last look at what they found",
    cases={
        "thousand": "on a GPU 1,000 images of 3 x 32 x 32, ResNet-18; else 4 images, a narrow one",
        "sixty_four": "on a GPU 64 images of 3 x 32 x 32, ResNet-18; else 4 images, a narrow one",
    },
    targets={"torch, 1,000 images": 0.42, "torch, 64 images": 0.33, "torchattacks": 0.42, "foolbox": 0.42},
)
def images(case: str, device: str) -> Attacked:
    """A network as it is before it learns, and its own answers: an attack has to change all of them."""
    kind = torch.device(device).type
    count = SIZES[case] if kind == "cuda" else ELSEWHERE
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = frozen(ResNet(classes=CLASSES, width=WIDTHS.get(kind, WIDTHS["cpu"]), small=True)).to(device)
        x = torch.rand(count, 3, SIDE, SIDE).to(device)
    with torch.no_grad():
        return Attacked(network, x, network(x).argmax(1))


@ours("lemmata")
def prepared(task: Attacked) -> Callable[[], Found]:
    """Compiled on a GPU, with graphs of kernels; what is compiled is so before the clock runs, in the warm-up."""
    twin = ResNet(classes=CLASSES, width=task.network.config.width, small=True).to(task.x.device)  # type: ignore
    twin.load_state_dict(task.network.state_dict())
    network: Any = frozen(InBfloat16(twin.to(memory_format=torch.channels_last)))  # type: ignore[call-overload]
    if task.x.device.type == "cuda":
        compiled: Any = torch.compile(network, mode="reduce-overhead")
        network = frozen(compiled)
    return _attack_on(task, network)


@ours("lemmata, float32")
def as_it_comes(task: Attacked) -> Callable[[], Found]:
    """Neither compiled nor in another precision."""
    return _attack_on(task, task.network)


def _attack_on(task: Attacked, network: nn.Module) -> Callable[[], Found]:
    def run() -> Found:
        found = pgd(network, task.x, task.y, EPS, steps=STEPS, step=STEP, random_start=False)
        return Found(task, found.examples)

    return run


@peer("torchattacks", needs="torchattacks", cases="thousand")
def by_torchattacks(task: Attacked) -> Callable[[], Found]:
    """The same steps."""
    import torchattacks

    attack = torchattacks.PGD(task.network, EPS, STEP, STEPS, random_start=False)
    return lambda: Found(task, attack(task.x, task.y))


@peer("foolbox", needs="foolbox", cases="thousand")
def by_foolbox(task: Attacked) -> Callable[[], Found]:
    """The same steps."""
    import foolbox

    model = foolbox.PyTorchModel(task.network, bounds=(0, 1), device=task.x.device)
    attack = foolbox.attacks.LinfPGD(abs_stepsize=STEP, steps=STEPS, random_start=False)
    return lambda: Found(task, attack.run(model, task.x, task.y, epsilon=EPS))


@peer("torch, 1,000 images", cases="thousand")
def by_plain_loop(task: Attacked) -> Callable[[], Found]:
    """The same steps, and nothing else."""
    return lambda: Found(task, projected_ascent(task.network, task.x, task.y, EPS, STEP, STEPS))


@peer("torch, 64 images", cases="sixty_four")
def by_plain_loop_of_few(task: Attacked) -> Callable[[], Found]:
    """The same, where starting kernels takes longer than their work."""
    return by_plain_loop(task)


@limit("the products of all passes at the best rate in bfloat16; the bare passes on a CPU")
def passes_alone(task: Attacked) -> Callable[[], Any]:
    """Forward, and backward to the images: no gradient of a weight is needed."""
    passes = bare_passes(task.network, task.x, task.y, STEPS)
    if task.x.device.type == "cpu":
        return passes
    with FlopCounterMode(display=False) as counter:
        passes()
    return roofline(counter.get_total_flops(), 0, str(task.x.device), torch.bfloat16)


@agreement(within=0.03)
def in_numbers(found: Found) -> dict[str, float]:
    """The fraction answered wrongly; in bfloat16 a few images nearest to a boundary fall on its other side."""
    return {"answered wrongly": float(wrong_answers(found).double().mean())}
