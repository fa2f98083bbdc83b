"""Neural autoregression: what each output may depend on, exactly; probabilities that add up; digits that are learnt."""

import itertools

import torch
from torch.func import jacrev, vmap

from lemmata.convolution.wavenet import WaveNet
from lemmata.data.registry import load
from lemmata.generative.autoregressive.masked_network import MADE
from lemmata.generative.autoregressive.pixel_network import PixelNetwork
from lemmata.judge import all_of, claim, close, exactly, law_is, lie, reaches


def binary_vectors(size):
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=size)), dtype=torch.float64)


def binary_digits(part):
    """Ink or none, (images, 64)."""
    return (load("digits").parts[part].x.flatten(1) > 0.5).float()


def independent_pixels():
    """The nats of a test image, if each pixel is ink as often as in training, counted with one image more of each."""
    train, test = binary_digits("train"), binary_digits("test")
    rate = (train.sum(0) + 1) / (len(train) + 2)
    return -float((test * rate.log() + (1 - test) * (1 - rate).log()).sum(1).mean())


def digit_network():
    return MADE(64, widths=(256,))


def learn_digits(network, generator):
    train, epochs = binary_digits("train"), 60
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - epoch / epochs)
        for rows in torch.randperm(len(train), generator=generator).split(64):
            optimizer.zero_grad()
            network.loss(train[rows]).backward()
            optimizer.step()


def trained_network(draw):
    return draw.trained(digit_network, learn_digits)


def untrained_network(draw):
    return digit_network()


class Unmasked(MADE):
    """All weights are kept."""

    def get_buffer(self, target):
        return torch.ones_like(super().get_buffer(target))


class SeesItself(MADE):
    """Outputs see hidden units of their own degree: 'before or at' instead of 'before'."""

    def get_buffer(self, target):
        mask = super().get_buffer(target)
        if target != f"mask{len(self.layers) - 1}":
            return mask
        place = self.order.argsort(1)  # (orders, inputs)
        degrees = torch.arange(mask.shape[-1]) % max(self.inputs - 1, 1)
        return (place[:, :, None] >= degrees).to(mask)


def sees(dependence, order):
    """What each output depends on, and what it may: all inputs that come before it."""
    place = order.argsort(-1)
    return dependence, place[..., :, None] > place[..., None, :]


def jacobians(network, x):
    """Where the derivative of any logit is not zero, (orders, inputs, inputs)."""
    return (vmap(jacrev(lambda one: network(one[None])[0]))(x) != 0).any(0)


def sound_dependence(network, x):
    """Which logits of a WaveNet change with which sample, (time, time)."""
    changed = x.repeat(x.shape[1], 1)
    changed.diagonal().add_(1).remainder_(network.config.levels)
    return ((network(changed) - network(x)).abs().amax(-1) > 1e-12).mT


@claim("ar.neural")
@lie("no weight is masked", network=Unmasked)
@lie("each output sees its own input too", network=SeesItself)
@lie("it need not be trained", trained=untrained_network)
@lie("twice as many nats are won", nats=10.0)
def each_from_those_before_it(draw, nats=5.0, network=MADE, trained=trained_network):
    """Dependence of MADE, a pixel network and WaveNet; sums over all binary vectors; and the nats of test digits."""
    torch.manual_seed(draw.seed)
    evidence = []
    for size, widths, orders in ((1, (3,), 1), (2, (1,), 2), (6, (20, 30), 3)):
        made = network(size, widths=widths, orders=orders, activation="tanh", dtype=torch.float64)
        evidence.append(exactly(*sees(jacobians(made, draw.normal(5, size)), made.order)))
        evidence.append(close(made.log_prob(binary_vectors(size)).exp().sum(), 1.0, detail="sum of probabilities"))
    pixels, sound = PixelNetwork(16, depth=3).double(), WaveNet(levels=8, channels=8, depth=3).double()
    image = jacobians(lambda x: pixels(x.view(-1, 3, 3)).flatten(1), draw.normal(5, 9))
    evidence.append(exactly(*sees(image, torch.arange(9))))
    evidence.append(exactly(*sees(sound_dependence(sound, draw.integers(0, 8, 1, 7)), torch.arange(7))))
    learnt = -float(trained(draw).log_prob(binary_digits("test")).mean().detach())
    return all_of(*evidence, reaches(independent_pixels() - learnt, nats, detail="nats below independent pixels"))


class AllAtOnce(MADE):
    """All coordinates drawn from the logits of one pass, before any of them is known."""

    def sample(self, n, *, generator=None):
        logits = self(torch.zeros(n, self.inputs, dtype=torch.float64))[:, 0]
        return (torch.rand(n, self.inputs, generator=generator, dtype=torch.float64) < logits.sigmoid()).double()


def counted(network, work):
    """How often the network is evaluated."""
    calls = []
    handle = network.register_forward_hook(lambda *_: calls.append(1))
    work()
    handle.remove()
    return len(calls)


def dependent_network(draw, network):
    """Four coordinates of which the later ones depend strongly on the first."""
    made = network(4, widths=(16,), dtype=torch.float64)
    with torch.no_grad():
        for layer in made.layers:
            layer.weight.copy_(2 * draw.normal(*layer.weight.shape))
    return made


def far_from_independent(made):
    """Whether one pass with nothing known gives another law than all passes, by 0.1 at one point of its steps."""
    x = binary_vectors(4)
    alone = torch.distributions.Bernoulli(logits=made(torch.zeros(1, 4).double())[0, 0]).log_prob(x).sum(1)
    return bool((alone.exp().cumsum(0) - made.log_prob(x).exp().cumsum(0)).abs().max() > 0.1)


@claim("ar.properties")
@lie("all coordinates are drawn in one pass", network=AllAtOnce)
@lie("a likelihood takes one pass a coordinate", one=64)
@lie("sampling takes one pass", each=1 / 64)
@lie("the mean of the conditionals", reduce=torch.mean)
def one_pass_to_judge_and_many_to_draw(draw, one=1, each=1.0, reduce=torch.sum, network=MADE):
    """Evaluations counted at 64 coordinates; conditionals one by one; and the law of all 16 vectors that are drawn."""
    torch.manual_seed(draw.seed)
    large, x = network(64, widths=(80,), dtype=torch.float64), draw.integers(0, 2, 3, 64).double()
    conditionals = []
    for place in range(64):
        later = draw.integers(0, 2, 3, 64).double()
        known = torch.cat([x[:, :place], later[:, place:]], 1)  # what comes later may be anything
        chance = large(known)[:, 0, place].sigmoid()
        conditionals.append(torch.where(x[:, place] == 1, chance, 1 - chance).log())
    small = draw.until(lambda: dependent_network(draw, network), far_from_independent)
    steps = small.log_prob(binary_vectors(4)).exp().detach().cumsum(0)
    powers = torch.tensor([8.0, 4.0, 2.0, 1.0]).double()
    return all_of(
        exactly(counted(large, lambda: large.log_prob(x)), one),
        exactly(counted(large, lambda: large.sample(2, generator=draw.generator)), round(64 * each)),
        close(large.log_prob(x), reduce(torch.stack(conditionals), 0), ulps=1000),
        law_is(
            lambda n: small.sample(n, generator=draw.generator) @ powers,
            lambda value: torch.where(value < 0, 0.0, steps[value.floor().clamp(0, 15).long()]),
            effect=0.05,
        ),
    )
