"""WaveNet: what a logit sees, a law that sums to one, generation from queues, and a sound that it learns."""

import itertools

import torch
from torch.nn import functional

from lemmata.convolution.wavenet import WaveNet
from lemmata.data.sound import mu_law
from lemmata.judge import all_of, claim, close, exactly, lie, reaches


class Unshifted(WaveNet):
    """The logits at a step see the sample of this step."""

    def forward(self, x):
        later = torch.cat([x, x[:, :1]], dim=1)
        return super().forward(later)[:, 1:]


class Forgetful(WaveNet):
    """Generation starts with empty queues."""

    def begin(self, x):
        return super().begin(x[:, :0])


def _logit_support(network, x, at):
    """Which samples the logits at one step depend on."""
    embedded = []
    hook = network.embedding.register_forward_hook(lambda *parts: embedded.append(parts[-1]))
    logits = network(x)
    hook.remove()
    (slope,) = torch.autograd.grad(logits[0, at].sum(), embedded)
    return slope[0, : x.shape[1]].abs().sum(-1) > 0  # (time,)


def _no_gate(z):
    return torch.ones_like(z)


def _reference_logits(network, x, gate):
    """From the weights by their names: gated filters, a residual for the next layer, and skips that are added up."""
    state = network.state_dict()
    h = functional.pad(state["embedding.weight"][x].mT, (1, -1))  # (batch, channels, time), one step later
    channels, skips = h.shape[1], torch.zeros(()).double()
    for number, dilation in enumerate([2**level for level in range(network.config.depth)] * network.config.stacks):
        weight, bias, out, constant = (
            state[f"layers.{number}.{name}"] for name in ("gated.weight", "gated.bias", "out.weight", "out.bias")
        )
        past = functional.pad(h, (dilation * (weight.shape[-1] - 1), 0))
        filtered, gates = functional.conv1d(past, weight, bias, dilation=dilation).chunk(2, 1)
        found = functional.conv1d(filtered.tanh() * gate(gates), out, constant)
        h, skips = h + found[:, :channels], skips + found[:, channels:]
    hidden = functional.linear(skips.mT.relu(), state["hidden.weight"], state["hidden.bias"]).relu()
    return functional.linear(hidden, state["head.weight"], state["head.bias"])


def _gain_on_two_sines(draw):
    """The entropy of single samples less the negative log-likelihood that training reaches, in nats."""
    phase = draw.uniform(64, 2, 1, high=6.3)
    waves = torch.sin(torch.tensor([[0.3], [0.17]]) * torch.arange(120) + phase)  # (64, 2, 120)
    codes = mu_law(waves.sum(1).float() / 2) // 4  # 64 levels, for a quick lesson
    law = torch.bincount(codes.flatten(), minlength=64).double() / codes.numel()
    network = WaveNet(levels=64, channels=24, depth=4)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for step in range(110):
        optimizer.zero_grad()
        network.loss(codes[8 * (step % 7) : 8 * (step % 7) + 8]).backward()
        optimizer.step()
    return torch.special.entr(law).sum() - network.loss(codes[56:]).detach()


@claim("conv.wavenet")
@lie("the dilation is the same in all layers", base=1.0)
@lie("a block sees 64 ms at 8 kHz", rate=8000.0)
@lie("the samples are not moved on by one step", network=Unshifted)
@lie("generation need not hear the beginning", network=Forgetful)
@lie("the units have no gates", gate=_no_gate)
def a_wavenet_is_a_law_of_samples_given_those_before(draw, base=2.0, rate=16000.0, gate=torch.sigmoid, network=WaveNet):
    """By torch's functions, gradients, all sequences of four samples, generation computed anew; then training."""
    wide = network(4, 3, 16, dtype=torch.float64)
    past = 1060 - torch.arange(1100)
    seen = _logit_support(wide, draw.integers(0, 4, 1, 1100), 1060)
    field = 1 + sum(base**level for level in range(10))

    small = network(3, 4, 6, depth=3, stacks=2, dtype=torch.float64)
    sequences = torch.tensor(list(itertools.product(range(3), repeat=4)))
    given = small(sequences).detach().log_softmax(-1).gather(2, sequences[..., None])[..., 0]  # (81, time)
    prompt = draw.integers(0, 3, 5, 23)
    anew = small(torch.cat([prompt, prompt[:, :1]], dim=1))[:, -1].detach()
    drawn = [
        method(prompt, 300, generator=torch.Generator().manual_seed(1))
        for method in (small.generate, small.generate_by_definition)
    ]
    checks = all_of(
        exactly(seen, (past >= 1) & (past <= field), detail="samples with a gradient"),
        close(
            small(prompt).detach(), _reference_logits(small, prompt, gate), ulps=1000, detail="logits from the weights"
        ),
        close(1000 * int(seen.sum()) / rate, 64.0, ulps=4, detail="milliseconds"),
        close(given.sum(1).exp().sum(), 1.0, ulps=1000, detail="the probabilities of all sequences"),
        close(small.step(small.begin(prompt)), anew, ulps=1000, detail="the next logits, from queues"),
        exactly(drawn[0], drawn[1], detail="generated from queues, and with everything computed anew"),
    )
    if not checks.holds:
        return checks  # decided without training
    return all_of(checks, reaches(_gain_on_two_sines(draw), 1.0, detail="nats below the entropy of single samples"))
