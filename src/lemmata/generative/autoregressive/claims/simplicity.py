"""Eight clouds on a ring, learnt eight times over: by likelihood, and by a game; one distance to the data for both."""

import torch

from lemmata.data.examples import Examples
from lemmata.generative.adversarial.claims.ring_networks import ring
from lemmata.generative.adversarial.gan import GAN
from lemmata.generative.adversarial.two_player import TwoPlayer
from lemmata.generative.autoregressive.masked_network import MADE
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.measure.sample_distances import energy_distance

BITS, EDGE = 5, 1.6  # of each coordinate, which is read from -EDGE to EDGE
STEPS, BATCH, REPETITIONS = 300, 128, 8


def as_bits(points):
    """Each coordinate in one of 32 cells, as bits, the coarsest first and both coordinates in turn, (n, 10)."""
    cell = ((points / EDGE + 1) / 2 * 2**BITS).long().clamp(0, 2**BITS - 1)
    places = torch.arange(BITS - 1, -1, -1)
    return (cell[:, None] >> places[:, None] & 1).flatten(1).float()


def as_points(bits, generator):
    """A point anywhere in the cell of these bits."""
    cell = (bits.view(-1, BITS, 2) * 2.0 ** torch.arange(BITS - 1, -1, -1)[:, None]).sum(1)
    return ((cell + torch.rand(cell.shape, generator=generator)) / 2**BITS * 2 - 1) * EDGE


def likelihood_network(repetition):
    torch.manual_seed(torch.initial_seed() + 1000 * repetition)
    return MADE(2 * BITS, widths=(64,))


def game_network(repetition):
    torch.manual_seed(torch.initial_seed() + 1000 * repetition)
    return GAN((2,), latent=8, widths=(32, 32))


def learn_by_likelihood(model, generator, repetition):
    generator.manual_seed(generator.initial_seed() + repetition)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model.loss(as_bits(ring(BATCH, generator))).backward()
        optimizer.step()


def learn_by_game(model, generator, repetition):
    generator.manual_seed(generator.initial_seed() + repetition)
    torch.manual_seed(generator.initial_seed() % 2**32)  # of the noise
    learner = TwoPlayer(model, *model.players(5e-3))
    for step in range(STEPS):
        learner.step(Examples(x=ring(BATCH, generator)), step / STEPS)


def by_likelihood(draw, repetition):
    model = draw.trained(likelihood_network, learn_by_likelihood, repetition=repetition)
    return as_points(model.sample(1500, generator=draw.generator), draw.generator)


def by_game(draw, repetition):
    model = draw.trained(game_network, learn_by_game, repetition=repetition)
    return model.sample(1500, generator=draw.generator)


def distances(draw, learnt):
    """To fresh points of the data, of eight trainings."""
    found = [energy_distance(learnt(draw, k), ring(1500, draw.generator), unbiased=True) for k in range(REPETITIONS)]
    return torch.stack(found).detach().double()


@claim("ar.simplicity")
@lie("a game is as sure", unsure=by_likelihood)
@lie("a likelihood varies as much", sure=by_game)
@lie("the game varies a thousand times as much", times=1000.0)
def one_number_to_lower(draw, times=2.0, sure=by_likelihood, unsure=by_game):
    """The energy distances of eight trainings of either kind: how much they vary, and the worst of them."""
    steady, varied = distances(draw, sure), distances(draw, unsure)
    return all_of(
        reaches(varied.std() / steady.std(), times, detail="deviation of the game's distances, over the likelihood's"),
        reaches(varied.amax() / steady.amax(), 2.0, detail="the game's worst, over the likelihood's"),
        reaches(steady.amax(), 0.03, at_most=True, detail="the likelihood's worst"),
    )
