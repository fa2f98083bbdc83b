"""What noise in the weights costs: a training step of `StochasticNetwork` beside that of the plain network.

No package on the index computes a certificate for a network of one's own, so the peers are the plain network and what
one writes by hand. A local draw multiplies the squares of the inputs by variances as well, and pulls both products
back: that is twice the products of a plain step, and whole draws make as many random numbers as there are weights. So
a step cannot cost nearly what a plain one does; two and a half times is what is asked.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.feedforward.mlp import MLP
from lemmata.generalization.stochastic_network import StochasticNetwork

Results = dict[str, Tensor]


class StochasticTask(NamedTuple):
    """A network, its inputs and their classes."""

    network: MLP
    x: Tensor
    y: Tensor


@entry(
    "stochastic_step",
    title="A step with noise in the weights",
    measures="loss and gradients of one batch",
    cases={"mlp": "64 images of 784 pixels, two hidden layers of 512 units, float32"},
    targets={"plain network": 2.5, "weights drawn by hand": 1.5},
)
def classifier(case: str, device: str) -> StochasticTask:
    """Noise to learn, and random classes."""
    del case
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = MLP(784, 10, (512, 512)).to(device)
        return StochasticTask(network, torch.randn(64, 784).to(device), torch.randint(10, (64,)).to(device))


def _stochastic_copy(task: StochasticTask) -> StochasticNetwork:
    """Its own weights, with next to no noise, so that all entrants compute the same."""
    own = MLP(784, 10, (512, 512)).to(task.x.device)
    own.load_state_dict(task.network.state_dict())
    return StochasticNetwork(own, variance=1e-14)


def _step_of(network: nn.Module, task: StochasticTask, local: dict[str, bool]) -> Callable[[], Results]:
    def step() -> Results:
        network.zero_grad()
        loss = functional.cross_entropy(network(task.x, **local), task.y)
        loss.backward()
        return {"loss": loss.detach(), "gradient": _first_gradient(network)}

    return step


def _first_gradient(network: nn.Module) -> Tensor:
    found = next(p.grad for name, p in network.named_parameters() if name.endswith("layers.0.weight"))
    assert found is not None
    return found.norm()


@ours("lemmata")
def with_ours(task: StochasticTask) -> Callable[[], Results]:
    """Outputs are drawn: the local way."""
    return _step_of(_stochastic_copy(task), task, {})


@ours("lemmata, whole draws")
def with_whole_draws(task: StochasticTask) -> Callable[[], Results]:
    """Weights are drawn, one network for the batch."""
    return _step_of(_stochastic_copy(task), task, {"local": False})


@peer("plain network")
def plain(task: StochasticTask) -> Callable[[], Results]:
    """No noise at all."""
    return _step_of(task.network, task, {})


@peer("weights drawn by hand")
def by_hand(task: StochasticTask) -> Callable[[], Results]:
    """A loop over the parameters, as one writes it."""
    network = task.network
    log_stds = {name: torch.full_like(p, -16.0, requires_grad=True) for name, p in network.named_parameters()}

    def step() -> Results:
        network.zero_grad()
        for log_std in log_stds.values():
            log_std.grad = None
        drawn = {n: p + log_stds[n].exp() * torch.randn_like(p) for n, p in network.named_parameters()}
        loss = functional.cross_entropy(functional_call(network, drawn, (task.x,)), task.y)
        loss.backward()
        return {"loss": loss.detach(), "gradient": _first_gradient(network)}

    return step


@limit("the matrix products of the plain step")
def products(task: StochasticTask) -> Callable[[], None]:
    """Three for each layer but the first, which has two."""
    weights = [layer.weight.detach() for layer in task.network.layers]  # type: ignore[union-attr]
    sizes = [torch.randn(64, w.shape[1], device=w.device) for w in weights]

    def compute() -> None:
        for k, (x, w) in enumerate(zip(sizes, weights, strict=True)):
            out = x @ w.T
            _ = out.T @ x
            if k:
                _ = out @ w

    return compute


@agreement(within=1e-3)
def in_numbers(results: Results) -> dict[str, float]:
    """The loss, and the length of a gradient."""
    return {name: float(value) for name, value in results.items()}
