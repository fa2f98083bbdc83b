"""The critic of a Wasserstein network: what it measures where its slope is at most one, and what holds it there."""

import torch
from scipy.stats import wasserstein_distance
from torch import nn

from lemmata.data.examples import Examples
from lemmata.generative.adversarial.slope_penalty import gradient_norms
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.generative.adversarial.wgan import WGAN
from lemmata.judge import all_of, always, at_most, claim, close, lie


class LinearCritic(nn.Module):
    """Images to w.x, whose slope is w everywhere; it keeps the places at which it was last asked."""

    def __init__(self, weight):
        super().__init__()
        self.weight, self.asked = nn.Parameter(weight), weight

    def forward(self, x):
        self.asked = x.detach()
        return (x * self.weight).flatten(1).sum(1)


def slopes_between(critic, real, fake, generator, shape):
    """The gradient at mixtures with mixing numbers of this shape."""
    part = torch.rand(shape, generator=generator, dtype=real.dtype)
    between = (part * real + (1 - part) * fake).requires_grad_()
    return torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]


class OverChannelsAlone(WGAN):
    def penalty(self, real, fake, *, generator=None):
        slopes = slopes_between(self, real, fake, generator, (len(real), 1, 1, 1))
        return (slopes.norm(dim=1) - 1).square().mean()


class OverTheBatch(WGAN):
    def penalty(self, real, fake, *, generator=None):
        return (slopes_between(self, real, fake, generator, (len(real), 1, 1, 1)).norm() - 1).square()


class MixedByPixel(WGAN):
    def penalty(self, real, fake, *, generator=None):
        return (slopes_between(self, real, fake, generator, real.shape).flatten(1).norm(dim=1) - 1).square().mean()


class WithoutSecondGraph(WGAN):
    def penalty(self, real, fake, *, generator=None):
        return super().penalty(real, fake, generator=generator).detach()


class ClippedOnce(WGAN):
    def players(self, lr=1e-3, critic_lr=None):
        return super(WGAN, self).players(lr, critic_lr)


def as_it_is(value):
    return value


class TableCritic(nn.Module):
    """A function on the integers from 0, by its values; through a score, if the notes have one."""

    def __init__(self, values, score):
        super().__init__()
        self.values, self.score = values, score

    def forward(self, x):
        return self.score(self.values[x[:, 0].long()])


def distances(draw, model, score):
    """What critics of slope at most 1 say of two samples of integers below 8, and W1; the last of them attains it."""
    found, true = [], []
    for fake in (draw.integers(0, 8, 40), torch.zeros(40, dtype=torch.int64)):
        real = draw.integers(0, 8, 60)
        ahead = [torch.bincount(each, minlength=8).cumsum(0) / len(each) for each in (fake, real)]
        steepest = (ahead[0] - ahead[1]).sign()[:7]  # Kantorovich's potential rises where the decoder's examples lag
        tables = [draw.uniform(7, low=-1.0, high=1.0) for _ in range(10)] + [steepest.double()]
        for steps in tables:
            table = torch.cat([torch.zeros(1).double(), steps.cumsum(0)])
            critic = TableCritic(table - table.min() + 1e-9, score)
            judge = model((1,), latent=1, critic=critic, dtype=torch.float64)
            found.append(judge.distance(real[:, None].double(), fake[:, None].double()))
            true.append(wasserstein_distance(real, fake))
    return torch.stack(found), torch.tensor(true, dtype=torch.float64)


@claim("wasserstein.wgan")
@lie("the logarithm of the critic", printed="004/1", score=torch.log)
@lie("the norm over channels alone", model=OverChannelsAlone)
@lie("one norm of the whole batch", model=OverTheBatch)
@lie("one mixing number a pixel", model=MixedByPixel)
@lie("no gradient through the gradient", model=WithoutSecondGraph)
@lie("weights are clipped but once", model=ClippedOnce)
@lie("the slope wanted is 0.99", target=0.99)
def a_slope_of_one_measures_the_distance(draw, model=WGAN, score=as_it_is, target=1.0):
    """Loss and gradient of a linear critic of images in closed form; critics on a line; clipped and spectral ones."""
    weight, real, weigh = draw.normal(2, 3, 3), draw.normal(10, 2, 3, 3), 10.0
    critic = LinearCritic(weight.clone())
    judge = model((2, 3, 3), latent=4, widths=(8,), critic=critic, penalty_weight=weigh, dtype=torch.float64)
    fake = judge.sample(10, generator=torch.Generator().manual_seed(3))
    loss = judge.critic_loss(real, generator=torch.Generator().manual_seed(3))
    part = (critic.asked - fake) / (real - fake)  # of the way; the penalty is what was asked last
    (slope,) = torch.autograd.grad(loss, critic.weight)
    apart, long = real.mean(0) - fake.mean(0), weight.norm()
    said, true = distances(draw, model, score)
    clipped = model((2,), latent=2, widths=(8,), constraint="clipping", largest_weight=0.05, dtype=torch.float64)
    learner = TwoPlayer(clipped, *clipped.players(lr=0.1))
    for _ in range(3):
        learner.step(Examples(x=draw.normal(20, 2)), 0.0)
    level = model((2,), latent=2, widths=(8, 8), constraint="spectral", dtype=torch.float64)
    for _ in range(100):  # of the power iteration that finds the norms
        level(draw.normal(1, 2))
    steepness = gradient_norms(level.eval(), 3 * draw.normal(50, 2), 3 * draw.normal(50, 2))
    return all_of(
        close(loss, weigh * (long - target) ** 2 - (weight * apart).sum(), ulps=1e4, detail="loss"),
        close(slope, 2 * weigh * (long - target) * weight / long - apart, ulps=1e4, detail="its gradient"),
        close(part, part[:, :1, :1, :1].expand_as(part), ulps=1e6, detail="part of the way, by pixel"),
        always([bool(part.min() >= 0), bool(part.max() <= 1), bool(part.std() > 0.05)]),
        at_most(said, true, attained=True, ulps=1e4, detail="what critics say of two samples"),
        at_most(torch.stack([each.abs().max() for each in clipped.critic.parameters()]), 0.05, attained=True),
        at_most(steepness, 1.0, ulps=1e8, detail="slopes under spectral normalisation"),
    )
