"""A RealNVP flow trained on two moons, and what becomes of it without turns, or without the determinant."""

import torch
from torch import nn
from torch.distributions import MultivariateNormal

from lemmata.data.planar import moons
from lemmata.generative.flows.affine import ActNorm
from lemmata.generative.flows.claims.densities import grid
from lemmata.generative.flows.coupling import AffineCoupling
from lemmata.generative.flows.flow import Flow, StandardNormal
from lemmata.generative.flows.real_nvp import RealNVP
from lemmata.judge import all_of, claim, close, exactly, lie, reaches
from lemmata.measure.sample_distances import energy_distance

COUPLINGS = 8


def plane_flow(alternate):
    if alternate:
        return RealNVP(2, couplings=COUPLINGS)
    return Flow(StandardNormal(2), [*(AffineCoupling(2) for _ in range(COUPLINGS)), ActNorm(2)])


def many_moons():
    return moons(n=4000, test=4000)


def learn_moons(flow, generator, volume, steps=600, lr=5e-3):
    x = many_moons().train.x
    flow.standardize(x)
    optimizer = torch.optim.Adam(flow.parameters(), lr=lr)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / 50) * (1 - step / steps)
        batch = x[torch.randint(len(x), (256,), generator=generator)]
        z, log_det = flow.pulled_back(batch)
        loss = flow.loss(batch) if volume == 1 else -(flow.base.log_prob(z) + volume * log_det).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def networks_asked(flow, draws):
    """How often each coupling's network is called while samples are drawn."""
    asked = []
    hooks = [part.register_forward_hook(lambda *_: asked.append(1)) for part in flow.modules() if is_network(part)]
    draws(flow)
    for hook in hooks:
        hook.remove()
    return len(asked) / len(hooks)


def is_network(part):
    return isinstance(part, nn.Module) and type(part).__name__ == "MLP"


def moved_by_other(flow, generator):
    """Of each feature of a sample, whether it depends on the other feature's noise."""
    z = torch.randn(500, 2, generator=generator).double()
    found = []
    for feature in (0, 1):
        other = z.clone()
        other[:, 1 - feature] += 1.0
        found.append(bool((flow.decode(other) != flow.decode(z))[:, feature].any()))
    return found


@claim("flow.system")
@lie("without alternating masks", alternate=False)
@lie("trained without the determinant", volume=0.0)
@lie("a sample takes a pass for each feature", passes=2.0)
def two_moons_are_learnt(draw, alternate=True, volume=1.0, passes=1.0):
    """Held-out likelihood beside the best Gaussian, mass on a grid, samples beside data, and who moves what."""
    flow = draw.trained(plane_flow, learn_moons, alternate=alternate, volume=volume).double().requires_grad_(False)
    data = many_moons()
    train, test = data.train.x.double(), data.test.x.double()
    gaussian = MultivariateNormal(train.mean(0), torch.cov(train.mT))
    gained = flow.log_prob(test).mean() - gaussian.log_prob(test).mean()
    points, area = grid(test.amin(0) - 2, test.amax(0) + 2, 400)
    drawn = (flow.sample(4000), gaussian.sample((4000,)))
    far, farther = (energy_distance(sample, test, unbiased=True) for sample in drawn)
    return all_of(
        exactly(moved_by_other(flow, draw.generator), [True, True], detail="each feature depends on the other's noise"),
        reaches(gained, 0.6, detail="nats per point by which the best Gaussian is beaten"),
        close(float(area * flow.log_prob(points).exp().sum()), 1.0, within=0.02, detail="mass on a grid"),
        reaches(far / farther, 0.8, at_most=True, detail="energy distance of the samples, to that of the Gaussian's"),
        close(networks_asked(flow, lambda f: f.sample(100)), passes, detail="times each network is asked for samples"),
    )
