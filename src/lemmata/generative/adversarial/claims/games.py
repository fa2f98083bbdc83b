"""Games of which every step is known: two players on a bilinear value, and a coin against a table of two logits."""

import functools
import itertools
import math

import torch
from torch import nn

from lemmata.data.examples import Examples
from lemmata.generative.adversarial.gan_losses import discriminator_loss
from lemmata.generative.adversarial.two_player import Player, TwoPlayer
from lemmata.judge import all_of, at_most, claim, close, exactly, lie
from lemmata.optim.extragradient import Extragradient

NOTHING = Examples(x=torch.zeros(1, 1))  # a game has no data


class Bilinear(nn.Module):
    """The value of the first player's place against the second's, through a matrix."""

    def __init__(self, matrix, first, second):
        super().__init__()
        self.matrix, self.first, self.second = matrix, nn.Parameter(first.clone()), nn.Parameter(second.clone())

    def forward(self):
        return self.first @ self.matrix @ self.second

    def places(self):
        return torch.cat([self.first, self.second]).detach().clone()


def played(matrix, first, second, lr, play, steps, kind=TwoPlayer):
    """Where both players are before and after each step, (steps + 1, places)."""
    game = Bilinear(matrix, first, second)
    sgd = {"lr": lr, "optimizer": torch.optim.SGD}
    lower = Player([game.first], lambda system, batch: system(), **sgd)
    upper = Player([game.second], lambda system, batch: -system(), **sgd)
    learner, found = kind(game, lower, upper, play=play), [game.places()]
    for _ in range(steps):
        learner.step(NOTHING, 0.0)
        found.append(game.places())
    return torch.stack(found)


def drawn_game(draw, size=3):
    return draw.normal(size, size), draw.normal(size), draw.normal(size)


# --- Who minimises, and who maximises ---


def minimax(value):
    """Of a table (first, second): where the worst for each first is least, and the second's best answer there."""
    first = int(value.amax(1).argmin())
    return first, int(value[first].argmax())


def roles_exchanged(value):
    """The table's second player minimises what the first makes of it."""
    second = int(value.amax(0).argmin())
    return int(value[:, second].argmax()), second


def both_minimise(value):
    return divmod(int(value.argmin()), value.shape[1])


def as_generated(logits):
    return logits


def as_real(logits):
    return -logits


@claim("gan.saddle")
@lie("φ is the generator and θ the discriminator", printed="001/1", solve=roles_exchanged)
@lie("both minimise", solve=both_minimise)
@lie("the discriminator takes every example for real", told=as_real)
def the_generator_minimises_the_best_answer(draw, solve=minimax, told=as_generated):
    """All coins with chances in tenths against all pairs of probabilities in twentieths, in a table."""
    heads = int(draw.integers(2, 9, 1))
    coins = [torch.tensor([10 - k, k]) for k in range(11)]
    answers = torch.tensor(list(itertools.product(range(1, 20), repeat=2))).double() / 20  # probability of being real
    logits = torch.special.logit(answers)
    real = coins[heads]
    table = torch.stack([
        torch.stack([
            -discriminator_loss(a.repeat_interleave(real), told(a.repeat_interleave(fake))) for a in logits
        ])
        for fake in coins
    ])  # (coins, answers)  # fmt: skip
    coin, answer = solve(table)
    return all_of(
        exactly(coin, heads, detail="tails of ten, of the coin that is found"),
        close(answers[answer], 0.5, detail="what the discriminator says then"),
        close(table[coin, answer], -math.log(2), detail="value there"),
    )


# --- One step ---


def at_the_new_place(old, new):
    return new


def at_the_old_place(old, new):
    return old


@claim("gan.alternating")
@lie("both step from where they stand", place=at_the_old_place)
@lie("a step nearly as long", length=0.99)
@lie("the discriminator descends too", ascent=-1.0)
def the_second_player_sees_the_first_ones_step(draw, place=at_the_new_place, length=1.0, ascent=1.0):
    """Each step of random bilinear games of three dimensions against the rule; and that from (1, 1), to the digit."""
    lr, one = 0.1, torch.ones(1, dtype=torch.float64)
    found, ruled = [], []
    for _ in range(5):
        matrix, first, second = drawn_game(draw)
        path = played(matrix, first, second, lr, "alternating", steps=4)
        for before, after in itertools.pairwise(path):
            old, answer = before.split(3)
            new = old - length * lr * matrix @ answer
            ruled.append(torch.cat([new, answer + ascent * length * lr * matrix.T @ place(old, new)]))
            found.append(after)
    corner = played(one[:, None], one, one, lr, "alternating", steps=1)[1]
    return all_of(
        close(torch.stack(found), torch.stack(ruled), detail="places after each step"),
        close(corner, [0.9, 1.0 + 0.1 * float(place(torch.tensor(1.0), torch.tensor(0.9)))], ulps=4e9),
    )


# --- What becomes of θφ ---


def one_step_matrix(lr, play):
    """The linear map of one step on θφ, from what it makes of the two unit vectors."""
    unit, none = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    columns = [played(unit[:, None], *start, lr, play, steps=1)[1] for start in ((unit, none), (none, unit))]
    return torch.stack(columns, 1)


@claim("gan.gda_bilinear")
@lie("simultaneous steps contract if they are small enough", growth=-1.0)
@lie("extragradient steps contract by 1 − η² alone", fourth=0.0)
@lie("alternating steps contract", kept=0.999)
@lie("alternating steps are bounded up to η = 2.1", most=2.1, loose="shorter steps are bounded too")
def only_looking_ahead_contracts(draw, growth=1.0, fourth=1.0, kept=1.0, most=2.0):
    """The map of one step at small and large rates, norms over 60 steps, and the ellipse that alternation keeps."""
    one, times = torch.ones(1, 1, dtype=torch.float64), torch.arange(61, dtype=torch.float64)
    rates, norms, found, ended, moduli, orbits = [], [], [], [], [], []
    for lr in (0.02, 0.3, 0.9):
        for play, square in (("simultaneous", 1 + growth * lr**2), ("extragradient", 1 - lr**2 + fourth * lr**4)):
            step = one_step_matrix(lr, play)
            found.append(step.mT @ step)
            rates.append(square * torch.eye(2, dtype=torch.float64))
            first, second = draw.normal(2, 1)
            norms.append(played(one, first, second, lr, play, steps=60).norm(dim=1))
            ended.append(norms[-1][0] * square ** (times / 2))
    for lr in (0.02, 1.0, (1 - 1e-4) * most):
        moduli.append(torch.linalg.eigvals(one_step_matrix(lr, "alternating")).abs())
        first, second = draw.normal(2, 1)
        theta, phi = played(one, first, second, lr, "alternating", steps=60).T
        orbits.append((theta**2 + phi**2 - lr * theta * phi) / (theta[0] ** 2 + phi[0] ** 2))
    orbits = torch.stack(orbits)
    return all_of(
        close(torch.stack(found), torch.stack(rates), detail="the matrix of a step, times its transpose"),
        close(torch.stack(norms), torch.stack(ended), ulps=1e4, detail="norms over 60 steps"),
        close(torch.stack(moduli), kept, within=1e-9, detail="moduli of alternating steps"),
        close(orbits, kept * orbits[:, :1].expand(3, 61), ulps=1e6, detail="the ellipse that alternation keeps"),
    )


def ahead_of_both(old, ahead):
    return ahead, ahead


def ahead_of_itself_alone(old, ahead):
    """For each player: the other where it stands, itself one step ahead."""
    return (ahead[0], old[1]), (old[0], ahead[1])


@claim("gan.extragradient")
@lie("each player looks ahead of itself alone", printed="000/1", look=ahead_of_itself_alone)
@lie("the same in the other notes", printed="001/2", look=ahead_of_itself_alone)
@lie("a look ahead by nearly as much", ahead=0.99)
@lie("a simultaneous step does as well", play="simultaneous")
def both_gradients_one_step_ahead(draw, look=ahead_of_both, ahead=1.0, play="extragradient"):
    """Steps of the learner, and of the optimiser, on random bilinear games against the rule; and where they lead."""
    matrix = draw.orthogonal(3) @ torch.diag(draw.uniform(3, low=0.8, high=2.0)) @ draw.orthogonal(3)
    first, second = draw.normal(3), draw.normal(3)
    lr, ruled = 0.3, [torch.cat([first, second])]
    for _ in range(300):
        old = tuple(ruled[-1].split(3))
        reached = (old[0] - ahead * lr * matrix @ old[1], old[1] + ahead * lr * matrix.T @ old[0])
        of_first, of_second = look(old, reached)
        ruled.append(torch.cat([old[0] - lr * matrix @ of_first[1], old[1] + lr * matrix.T @ of_second[0]]))
    path = played(matrix, first, second, lr, play, steps=300)
    game = Bilinear(matrix, first, second)
    optimizer = Extragradient([{"params": [game.first]}, {"params": [game.second], "maximize": True}], lr=lr)
    optimizer.step(functools.partial(with_gradients, game, optimizer))
    return all_of(
        close(path[1:20], torch.stack(ruled[1:20]), ulps=1e4, detail="places after each of the first steps"),
        close(game.places(), ruled[1], ulps=1e4, detail="the optimiser's first step"),
        at_most(torch.stack([path[-1], ruled[-1]]).norm(dim=1), 1e-3 * path[0].norm(), detail="after 300 steps"),
    )


def with_gradients(game, optimizer):
    optimizer.zero_grad()
    value = game()
    value.backward()
    return value
