"""Eight clouds on a ring, learnt by one small adversarial network: in turn, and against a critic that stands still."""

import math

import torch

from lemmata.data.examples import Examples
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.judge import all_of, claim, exactly, lie, reaches
from lemmata.measure.covered_modes import mode_coverage

DEVIATION = 0.1  # of each cloud
LR, BATCH, STEPS = 2e-3, 256, 2000


def centres():
    angle = torch.arange(8) * (math.pi / 4)
    return torch.stack([angle.cos(), angle.sin()], 1)  # (8, 2)


def ring(n, generator):
    chosen = torch.randint(0, 8, (n,), generator=generator)
    return centres()[chosen] + DEVIATION * torch.randn(n, 2, generator=generator)


def ring_network():
    return GAN((2,), latent=8, widths=(64, 64))


def learn_in_turn(model, generator):
    torch.manual_seed(generator.initial_seed() % 2**32)  # of the noise
    learner = TwoPlayer(model, *model.players(LR), schedule="linear")
    for step in range(STEPS):
        learner.step(Examples(x=ring(BATCH, generator)), step / STEPS)


def learn_against_a_frozen_critic(model, generator):
    """The critic alone for 200 steps, then the decoder alone for 600."""
    torch.manual_seed(generator.initial_seed() % 2**32)
    decoder, critic = model.players(LR)
    for player, steps in ((critic, 200), (decoder, 600)):
        optimizer = player.optimizer(player.parameters, lr=LR)
        for _ in range(steps):
            optimizer.zero_grad()
            player.loss(model, Examples(x=ring(BATCH, generator))).backward(inputs=player.parameters)
            optimizer.step()


def in_turn(draw):
    return draw.trained(ring_network, learn_in_turn)


def against_a_frozen_critic(draw):
    return draw.trained(ring_network, learn_against_a_frozen_critic)


def sectors(points):
    """In how many of the eight sectors lies at least every hundredth point, wherever on its ray."""
    angle = torch.atan2(points[:, 1], points[:, 0])
    sector = (angle / (math.pi / 4)).round().long() % 8
    return int((torch.bincount(sector, minlength=8) >= len(points) / 100).sum())


def one_sidedness(points):
    """The length of the mean direction: 1 on one ray from the middle, 0 all around."""
    return float(torch.nn.functional.normalize(points, dim=1).mean(0).norm())


def untrained(draw):
    torch.manual_seed(int(draw.integers(0, 2**31, 1)))
    return ring_network()


@claim("gan.mode_collapse")
@lie("so it is in play by turns", trained=in_turn)
def the_best_answer_to_a_frozen_critic_is_one_point(draw, trained=against_a_frozen_critic):
    """Where on the ring a decoder's examples lie, and where those of the data."""
    samples, data = trained(draw).sample(4000, generator=draw.generator), ring(4000, draw.generator)
    return all_of(
        reaches(one_sidedness(samples), 0.6, detail="length of the mean direction"),
        reaches(one_sidedness(data), 0.1, at_most=True, detail="that of the data"),
        reaches(sectors(data) - sectors(samples), 1, detail="sectors of eight that are missed"),
    )


@claim("gan.system")
@lie("against a frozen critic", trained=against_a_frozen_critic)
@lie("without training", trained=untrained)
@lie("a good discriminator tells all of them apart in the end", unsure=0.0)
def a_small_network_learns_eight_clouds(draw, trained=in_turn, unsure=0.5):
    """Eight clouds on a ring: which of them are hit, mean and deviation, and what the critic says of both kinds."""
    model = trained(draw)
    samples, data = model.sample(4000, generator=draw.generator), ring(4000, draw.generator)
    with torch.no_grad():
        real, fake = model(data).sigmoid().mean(), model(samples).sigmoid().mean()
    return all_of(
        exactly(
            mode_coverage(samples, centres(), radius=3 * DEVIATION, fewest=40).modes, 8, detail="clouds that are hit"
        ),
        reaches(samples.mean(0).norm(), 0.3, at_most=True, detail="distance of the mean from that of the data"),
        reaches(
            (samples.std(0) / data.std(0)).log().abs().max(),
            0.25,
            at_most=True,
            detail="ratio of the deviations, its logarithm",
        ),
        reaches((real - unsure).abs(), 0.15, at_most=True, detail="what the critic says of real examples, from a half"),
        reaches((fake - unsure).abs(), 0.15, at_most=True, detail="of generated ones"),
    )
