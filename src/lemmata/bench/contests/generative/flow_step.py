"""One training step of a RealNVP flow: the likelihood of a batch and all gradients, at equal architecture.

Everybody has as many affine couplings with a perceptron of two hidden layers, and the same batch. zuko's scale and
shift come from one network, as ours; normflows' too; nflows has a residual network of as many hidden layers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lemmata.bench.registry import agreement, entry, limit, ours, peer
from lemmata.generative.flows.coupling import AffineCoupling
from lemmata.generative.flows.flow import Flow, StandardNormal

COUPLINGS, WIDTH = 8, 64
SIZES = {"plane": (2, 256), "wide": (32, 256)}


class Batch(NamedTuple):
    """What is learnt from, and where."""

    x: Tensor
    device: str


@entry(
    "flow_step",
    title="RealNVP, forward and backward",
    measures="the likelihood of one batch and all gradients, 8 couplings of width 64",
    cases={"plane": "256 points in the plane, float32", "wide": "256 points of 32 features, float32"},
    targets={"zuko": 0.6, "normflows": 0.6, "nflows": 0.6},
)
def points(case: str, device: str) -> Batch:
    """Random points."""
    features, count = SIZES[case]
    return Batch(torch.randn(count, features, generator=torch.Generator().manual_seed(0)).to(device), device)


@ours("lemmata")
def with_ours(batch: Batch) -> Callable[[], float]:
    """Couplings alone, as the others have them."""
    features = batch.x.shape[1]
    choices = {"widths": (WIDTH, WIDTH), "activation": "relu", "device": batch.device}
    layers = [AffineCoupling(features, flipped=bool(k % 2), **choices) for k in range(COUPLINGS)]
    flow = Flow(StandardNormal(features, device=batch.device), layers)
    return _steps_of(flow, flow.log_prob, batch)


@peer("zuko", needs="zuko")
def with_zuko(batch: Batch) -> Callable[[], float]:
    """Its RealNVP with alternating masks."""
    import zuko

    flow = zuko.flows.RealNVP(batch.x.shape[1], transforms=COUPLINGS, hidden_features=(WIDTH, WIDTH)).to(batch.device)
    return _steps_of(flow, lambda x: flow().log_prob(x), batch)


@peer("normflows", needs="normflows")
def with_normflows(batch: Batch) -> Callable[[], float]:
    """Its affine couplings, with the halves exchanged after each."""
    import normflows

    features, layers = batch.x.shape[1], []
    for _ in range(COUPLINGS):
        network = normflows.nets.MLP([features // 2, WIDTH, WIDTH, features], init_zeros=True)
        layers += [normflows.flows.AffineCouplingBlock(network), normflows.flows.Permute(features, mode="swap")]
    base = normflows.distributions.DiagGaussian(features, trainable=False)
    flow = normflows.NormalizingFlow(base, layers).to(batch.device)
    return _steps_of(flow, flow.log_prob, batch)


@peer("nflows", needs="nflows")
def with_nflows(batch: Batch) -> Callable[[], float]:
    """Its affine couplings with residual networks of one block, which has two hidden layers."""
    from nflows.distributions import StandardNormal as Noise
    from nflows.flows import Flow as TheirFlow
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import AffineCouplingTransform, CompositeTransform

    features = batch.x.shape[1]
    masks = [(torch.arange(features) + k) % 2 for k in range(COUPLINGS)]
    make = lambda inputs, outputs: ResidualNet(inputs, outputs, hidden_features=WIDTH, num_blocks=1)  # noqa: E731
    layers = CompositeTransform([AffineCouplingTransform(mask, make) for mask in masks])
    flow = TheirFlow(layers, Noise([features])).to(batch.device)
    return _steps_of(flow, flow.log_prob, batch)


@limit("the matrix products of all perceptrons, forwards and backwards")
def products(batch: Batch) -> Callable[[], None]:
    """Three layers of eight couplings; each product has two more of its size on its way back."""
    passed = batch.x.shape[1] // 2
    sizes = [(passed, WIDTH), (WIDTH, WIDTH), (WIDTH, 2 * passed)]
    pairs = [(torch.randn(len(batch.x), a), torch.randn(a, b)) for a, b in sizes]
    pairs = [(x.to(batch.device), weight.to(batch.device)) for x, weight in pairs]

    def compute() -> None:
        for _ in range(3 * COUPLINGS):
            for x, weight in pairs:
                x @ weight

    return compute


def _steps_of(flow: nn.Module, log_prob: Callable[[Tensor], Any], batch: Batch) -> Callable[[], float]:
    """A step without an optimiser, which is the same for everybody; it returns the nats of a feature."""
    parameters = list(flow.parameters())

    def step() -> float:
        loss = -log_prob(batch.x).mean()
        for value in parameters:
            value.grad = None
        loss.backward()
        return float(loss.detach()) / batch.x.shape[1]

    return step


@agreement(within=1.0)
def in_numbers(nats: float) -> dict[str, float]:
    """Each begins with a law of its own near the noise, so that its nats per feature are near those of noise."""
    return {"nats per feature": nats}
