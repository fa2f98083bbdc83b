"""What a training loop costs beyond the mathematics: ours against a loop by hand and against Lightning.

The first network is so small that a step takes about a fifth of a millisecond: whatever a loop does around it shows;
the second is LeNet-5. All train the same network from the same weights with AdamW in batches of 64, each in its own
order, and evaluate it on the training set at the end. Lightning runs at its leanest: no logger, bar, summary or
checkpoints.
"""

import copy
import logging
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.bench.workloads.bare_loops import bare_loop
from lemmata.convolution.lenet import LeNet5
from lemmata.data.registry import load
from lemmata.train.loop import fit
from lemmata.train.options import Options

BATCH = 64


class Task(NamedTuple):
    """A network with its first weights, and what it learns."""

    network: nn.Module
    x: Tensor
    y: Tensor
    device: str
    epochs: int
    lr: float

    @property
    def steps(self) -> int:
        return self.epochs * -(-len(self.x) // BATCH)

    @property
    def options(self) -> Options:
        return Options(epochs=self.epochs, batch_size=BATCH, lr=self.lr, device=self.device)

    def by_hand(self, fused: bool | None) -> tuple[nn.Module, "Task"]:
        return bare_loop(self.network, self.x, self.y, self.epochs, BATCH, self.lr, fused=fused), self


Learnt = tuple[nn.Module, Task]


@entry(
    "training_loop",
    title="The cost of the training loop",
    measures="ten epochs of AdamW and one evaluation",
    cases={"digits": "digits: 1,438 images of 64 pixels, MLP 64-128-10, batch 64, 230 steps"},
    targets={"bare loop": 1.15, "Lightning": 1.0},
)
def small_task(case: str, device: str) -> Task:
    """Digits and a perceptron of two layers."""
    digits = load(case).train
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    return Task(network.to(device), digits.x.to(device), digits.y.to(device), device, epochs=10, lr=1e-3)


@entry(
    "lenet_epoch",
    title="LeNet-5 through the training loop",
    measures="five epochs of AdamW",
    cases={"fashion": "2,000 images of 28 x 28, LeNet-5 with relu, batch 64, 160 steps"},
    targets={"bare loop": 1.05},
)
def clothing(case: str, device: str) -> Task:
    """Clothing and a LeNet-5."""
    found = load(case).train
    torch.manual_seed(0)
    network = LeNet5(activation="relu", padding=2, device=device)
    return Task(network, found.x[:, None].to(device), found.y.to(device), device, epochs=5, lr=3e-3)


@ours("lemmata")
def by_fit(task: Task) -> Callable[[], Learnt]:
    """Our loop as it comes, without a folder."""
    words: dict[str, Any] = {"options": task.options, "progress": False}
    return lambda: (fit(copy.deepcopy(task.network), (task.x, task.y), **words).system, task)


@ours("lemmata with run folder", cases="digits")
def by_fit_with_folder(task: Task) -> Callable[[], Learnt]:
    """Our loop with log, checkpoints and result on the disk."""

    def train() -> Learnt:
        with tempfile.TemporaryDirectory() as folder:
            words: dict[str, Any] = {"options": task.options, "out": f"{folder}/run", "progress": False}
            return fit(copy.deepcopy(task.network), (task.x, task.y), **words).system, task

    return train


@peer("bare loop")
def by_hand(task: Task) -> Callable[[], Learnt]:
    """What one writes in ten lines."""
    return lambda: task.by_hand(fused=None)


@peer("bare loop, fused optimiser")
def by_hand_fused(task: Task) -> Callable[[], Learnt]:
    """The same with the option that our loop sets by itself: what is left is the loop alone."""
    return lambda: task.by_hand(fused=True)


@peer("Lightning", needs="lightning", cases="digits")
def by_lightning(task: Task) -> Callable[[], Learnt]:
    """Lightning's Trainer with everything optional switched off."""
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")

    class Module(lightning.LightningModule):
        def __init__(self, network: nn.Module):
            super().__init__()
            self.network = network

        def training_step(self, batch: Any, index: int) -> Tensor:
            x, y = batch
            return cross_entropy(self.network(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.network.parameters(), task.lr, weight_decay=0.0)

    def train() -> Learnt:
        accelerator = "gpu" if task.device.startswith("cuda") else task.device
        trainer = lightning.Trainer(
            max_epochs=task.epochs, accelerator=accelerator, devices=1, **dict.fromkeys(off, False),
        )  # fmt: skip
        module = Module(copy.deepcopy(task.network))
        everything = TensorDataset(task.x, task.y)
        trainer.fit(module, DataLoader(everything, batch_size=BATCH, shuffle=True))
        with torch.no_grad():
            cross_entropy(module.network.to(task.x.device)(task.x), task.y).item()
        return module.network, task

    return train


@limit("forward and backward passes on one batch, as many as there are steps")
def passes_alone(task: Task) -> Callable[[], None]:
    """No order, no optimiser, no look at the loss."""
    network, x, y = copy.deepcopy(task.network), task.x[:BATCH], task.y[:BATCH]

    def compute() -> None:
        for _ in range(task.steps):
            cross_entropy(network(x), y).backward()
            network.zero_grad()

    return compute


@agreement(within=0.1)
def what_was_learnt(learnt: Learnt) -> dict[str, float]:
    """The loss on the training set, or the accuracy, as orders of the batches differ: LeNet-5 has not converged."""
    network, task = learnt
    with torch.no_grad():
        logits = network.to(task.x.device)(task.x)
    if isinstance(network, LeNet5):
        return {"accuracy": (logits.argmax(1) == task.y).double().mean().item()}
    return {"loss": float(cross_entropy(logits, task.y))}
