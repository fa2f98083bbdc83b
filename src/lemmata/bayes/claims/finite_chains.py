"""Chains on few states in exact fractions, and Metropolis and Hastings' acceptance on finite and continuous ones."""

import math
from fractions import Fraction

import torch
from scipy import special

from lemmata.bayes.finite_chain import (
    barker,
    is_balanced,
    is_irreducible,
    metropolis,
    metropolis_matrix,
    period,
    probability_flow,
    stationary_distribution,
)
from lemmata.bayes.metropolis_hastings import MetropolisHastings
from lemmata.bayes.transition import PointState, acceptance_of, normal
from lemmata.judge import (
    all_of,
    always,
    at_least,
    at_most,
    claim,
    close,
    exactly,
    law_is,
    lie,
    mean_is,
)
from lemmata.measure.effective_samples import effective_sample_size

STATES = 5


def weights(draw, n=STATES):
    """Different integers as weights of states, so that no two are equally probable."""
    return [Fraction(int(k)) for k in (draw.permutation(4 * n)[:n] + 1)]


def distribution(given):
    return [weight / sum(given) for weight in given]


def proposals(draw, n=STATES):
    """A random matrix of positive moves, none as probable as its way back."""
    return [distribution(weights(draw, n)) for _ in range(n)]


def symmetric_proposals(draw, n=STATES):
    """Random moves that are as probable as their way back."""
    moves = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i):
            moves[i][j] = moves[j][i] = Fraction(int(draw.integers(1, 9, 1)), 10 * n)
    for i in range(n):
        moves[i][i] = Fraction(1) - sum(moves[i])
    return moves


def transposed(matrix):
    return [list(column) for column in zip(*matrix, strict=True)]


def read_by_rows(matrix):
    """Row i holds the moves from i."""
    return matrix


def move_to_another(states):
    """A proposal among the states 0, 1, ..., each as probable from everywhere."""

    def propose(position, generator):
        further = torch.randint(1, states, position.shape, generator=generator)
        return (position + further) % states, position.new_zeros(len(position))

    return propose


def every_state(visited, moved):
    """Each transition counts the state it ends in, a stay too."""
    return torch.ones_like(moved)


def moves_alone(visited, moved):
    """Rejections are not counted."""
    return moved


@claim("mcmc.chain")
@lie("the matrix is read column by column", read=transposed)
@lie("rejected proposals are left out of the averages", counted=moves_alone)
@lie("the logarithm of the weights counts twice", power=2)
def time_averages_tend_to_the_stationary_distribution(draw, read=read_by_rows, counted=every_state, power=1):
    """A chain made for random weights leaves them alone, as fractions; fractions of time in its most probable state,
    among many short runs from the target of a chain that knows the weights up to a factor, against its probability."""
    target, n = weights(draw), STATES
    matrix = read(metropolis_matrix(target, proposals(draw)))
    mass = distribution(target)
    kept = [sum(mass[i] * matrix[i][j] for i in range(n)) for j in range(n)]
    probability = torch.tensor([float(each) for each in mass], dtype=torch.float64)
    best = int(probability.argmax())
    unnormalised = power * (probability.log() + draw.uniform(1, low=-50.0, high=50.0))
    kernel = MetropolisHastings(lambda x: unnormalised[x[:, 0].long()], move_to_another(n))

    def time_there(chains):
        start = torch.multinomial(probability, chains, replacement=True, generator=draw.generator)
        state = kernel.init(start[:, None].double())
        visits = total = torch.zeros(chains, dtype=torch.float64)
        for _ in range(4):
            state, transition = kernel.step(state, draw.generator)
            weight = counted(state.position, transition.accepted).double()
            visits, total = visits + weight * (state.position[:, 0] == best), total + weight
        return visits / total.clamp(min=1)

    return all_of(
        exactly(kept, mass),
        exactly(stationary_distribution(metropolis_matrix(target, proposals(draw))), mass),
        mean_is(lambda fraction: fraction, time_there, probability[best], effect=0.03, bounds=(0.0, 1.0)),
    )


def at_the_state_left(mass, matrix):
    return probability_flow(matrix, mass)


def at_the_state_entered(mass, matrix):
    return [[mass[j] * matrix[i][j] for j in range(len(mass))] for i in range(len(mass))]


@claim("mcmc.detailed_balance")
@lie("the mass is that of the state which is entered", printed="000/1", weighed=at_the_state_entered)
@lie("unique although the states fall into two parts", raises=ValueError, parts=2)
@lie("what is stationary is balanced", cycle=Fraction(0))
def balance_leaves_a_distribution_alone(draw, weighed=at_the_state_left, parts=1, cycle=Fraction(1, 2)):
    """Random balanced chains in fractions; a walk around three states, which is balanced only if it goes either way
    alike; the identity, balanced for all; and the swap of two states, balanced and never at rest."""
    flows, backward, kept, masses, unique = [], [], [], [], []
    for n in (2, 3, 5):
        mass = distribution(weights(draw, n))
        matrix = metropolis_matrix(mass, proposals(draw, n))
        moved = weighed(mass, matrix)
        flows.append(moved)
        backward.append(transposed(moved))
        kept.append([sum(column) for column in transposed(probability_flow(matrix, mass))])
        blocks = [[matrix[i % n][j % n] * (i // n == j // n) for j in range(parts * n)] for i in range(parts * n)]
        unique.append([parts * each for each in stationary_distribution(blocks)[:n]])
        masses.append(mass)
    third = [Fraction(1, 3)] * 3
    around = [[cycle * ((i + 1) % 3 == j) + (1 - cycle) * ((i - 1) % 3 == j) for j in range(3)] for i in range(3)]
    identity = [[Fraction(i == j) for j in range(3)] for i in range(3)]
    swap = [[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]]
    return all_of(
        exactly(flows, backward),
        exactly(kept, masses),
        exactly(unique, masses),
        exactly(stationary_distribution(around), third),
        always([is_balanced(around, third)], detail="the walk around three states"),
        always([is_balanced(identity, mass) for mass in (third, distribution(weights(draw, 3)))]),
        always([not is_irreducible(identity), is_irreducible(swap), is_balanced(swap, [Fraction(1, 2)] * 2)]),
        exactly(period(swap), 2),
    )


class Multiplied:
    """A proposal that multiplies by e^(σz): from θ the density of θ' falls like 1/θ'."""

    def __call__(self, position, generator):
        factor = (1.5 * normal(position, generator)).exp()
        return position * factor, factor.log().sum(1)


class OfTheReverseMove(MetropolisHastings):
    """The printed ratio: that of the move from θ' to θ."""

    def acceptance(self, state, proposed, log_ratio):
        return acceptance_of(state.log_density - proposed.log_density - log_ratio)


class WithoutProposals(MetropolisHastings):
    """The ratio of the target's densities alone."""

    def acceptance(self, state, proposed, log_ratio):
        return super().acceptance(state, proposed, torch.zeros_like(log_ratio))


class UntilAccepted(MetropolisHastings):
    """Proposes again where it rejected, instead of staying."""

    def step(self, state, generator):
        now, transition = super().step(state, generator)
        for _ in range(12):
            again, further = super().step(state, generator)
            wanted = further.accepted & ~transition.accepted
            position = torch.where(wanted[:, None], again.position, now.position)
            now = PointState(position, torch.where(wanted, again.log_density, now.log_density))
            transition = transition._replace(accepted=transition.accepted | wanted)
        return now, transition


def of_the_reverse_move(ratio):
    return min(Fraction(1), 1 / ratio)


def stationary_everywhere(draw, acceptance):
    """The stationary distributions of chains for random weights, with the weights, of random proposals."""
    found, wanted = [], []
    for n in (2, 3, STATES):
        target = weights(draw, n)
        found.append(stationary_distribution(metropolis_matrix(target, proposals(draw, n), acceptance)))
        wanted.append(distribution(target))
    return found, wanted


@claim("mcmc.metropolis_hastings")
@lie("the ratio of the move back, on few states", printed="000/1", acceptance=of_the_reverse_move)
@lie("the ratio of the move back, on the half line", kernel=OfTheReverseMove)
@lie("the proposals' densities are left out", kernel=WithoutProposals)
@lie("a rejected chain proposes again instead of staying", kernel=UntilAccepted)
def the_target_is_left_alone(draw, acceptance=metropolis, kernel=MetropolisHastings):
    """On up to five states, random asymmetric proposals, as fractions. On the half line three transitions of chains
    that start in a Gamma distribution, with proposals that multiply, against its distribution function."""
    found, wanted = stationary_everywhere(draw, acceptance)
    chain = kernel(lambda x: 2 * x[:, 0].log() - x[:, 0], Multiplied())

    def moved(chains):
        start = -draw.uniform(chains, 3, low=1e-300).log().sum(1, keepdim=True)  # Gamma with shape 3
        state = chain.init(start)
        for _ in range(3):
            state, _ = chain.step(state, draw.generator)
        return state.position[:, 0]

    return all_of(
        exactly(found, wanted),
        law_is(moved, lambda x: torch.from_numpy(special.gammainc(3.0, x.numpy())), effect=0.015),
    )


class RatioOfLogs(MetropolisHastings):
    """Divides logarithms instead of subtracting them."""

    def acceptance(self, state, proposed, log_ratio):
        return (proposed.log_density / state.log_density).clamp(0.0, 1.0).nan_to_num(0.0)


@claim("mcmc.mh.symmetric")
@lie("logarithms are divided instead of subtracted", kernel=RatioOfLogs)
@lie("so it is for proposals that are not symmetric", moves=proposals)
def a_factor_of_the_density_changes_nothing(draw, kernel=MetropolisHastings, moves=symmetric_proposals):
    """A random walk with the same random numbers and the density times 1e-30, 1 and 1e30; and on five states the
    matrix of moves that are accepted by the ratio of the weights alone, as fractions."""
    shape = draw.covariance(3)
    accepted, ends = [], []
    start = draw.normal(40, 3)
    for factor in (1.0, 1e-30, 1e30):
        generator = torch.Generator().manual_seed(draw.seed)
        constant = math.log(factor)
        chain = kernel(lambda x, c=constant: c - (x @ shape * x).sum(1).sqrt(), step=1.5)
        state, took = chain.init(start), []
        for _ in range(50):
            state, transition = chain.step(state, generator)
            took.append(transition.accepted)
        accepted.append(torch.stack(took))
        ends.append(state.position)
    target, matrix = weights(draw), moves(draw)
    alone = [[q * min(1, target[j] / target[i]) for j, q in enumerate(row)] for i, row in enumerate(matrix)]
    found = metropolis_matrix(target, matrix)
    return all_of(
        exactly(accepted[1], accepted[0]),
        exactly(accepted[2], accepted[0]),
        close(torch.stack(ends[1:]), torch.stack([ends[0]] * 2)),
        always(accepted[0].any(0) & ~accepted[0].all(0), detail="every chain accepts and rejects"),
        exactly([found[i][:i] + found[i][i + 1 :] for i in range(STATES)], off_diagonal(alone)),
    )


def off_diagonal(matrix):
    return [row[:i] + row[i + 1 :] for i, row in enumerate(matrix)]


def everything(ratio):
    return Fraction(1)


@claim("mcmc.mh.one_sided")
@lie("Barker's acceptance is one-sided, too", acceptance=barker)
@lie("whatever is one-sided is balanced", acceptance=everything)
@lie("another balanced acceptance may be larger", factor=Fraction(21, 20))
def one_of_two_moves_is_always_accepted(draw, acceptance=metropolis, factor=Fraction(1)):
    """The acceptances of every pair of five states, read from the chain's matrix; the one way to keep balance under
    any other is to multiply both by a number up to 1, as Barker's does."""
    target, moves = weights(draw), proposals(draw)
    mass = distribution(target)
    matrix, other = metropolis_matrix(target, moves, acceptance), metropolis_matrix(target, moves, barker)
    pairs = [(i, j) for i in range(STATES) for j in range(i)]
    taken = [[chain[i][j] / moves[i][j] for i, j in pairs] for chain in (matrix, other)]
    back = [[chain[j][i] / moves[j][i] for i, j in pairs] for chain in (matrix, other)]
    ratios = [[b / a for a, b in zip(*sides, strict=True)] for sides in zip(taken, back, strict=True)]
    largest = [[factor / max(1, ratio), factor * ratio / max(1, ratio)] for ratio in ratios[1]]
    return all_of(
        exactly([max(pair) for pair in zip(taken[0], back[0], strict=True)], [Fraction(1)] * len(pairs)),
        always([is_balanced(matrix, mass), is_balanced(other, mass)]),
        exactly([list(pair) for pair in zip(taken[0], back[0], strict=True)], largest),  # balance fixes the ratio
        always([a < b for a, b in zip(taken[1] + back[1], taken[0] + back[0], strict=True)], detail="Barker's is less"),
    )


@claim("mcmc.mh.burn_in")
@lie("the narrower the proposal, the better", best=0)
@lie("the wider the proposal, the better", best=2)
def proposals_can_be_too_narrow_and_too_wide(draw, best=1):
    """64 random walks on a 20-dimensional Gaussian with a tenth, once and ten times the usual step: acceptance,
    effective draws of chains at rest, and how far chains still are that started far away."""
    d, chains = 20, 64
    acceptance, size, distance = [], [], []
    for scale in (0.1, 1.0, 10.0):
        kernel = MetropolisHastings(lambda x: -0.5 * x.square().sum(1), step=scale * 2.38 / d**0.5)
        state, values, took = kernel.init(torch.cat([draw.normal(chains, d), 10 + draw.normal(chains, d)])), [], []
        for _ in range(600):
            state, transition = kernel.step(state, draw.generator)
            values.append(state.position)
            took.append(transition.acceptance[:chains].mean())
        acceptance.append(torch.stack(took).mean())
        first = torch.stack(values, dim=1)[:chains, :, 0]  # (chains, draws)
        size.append(effective_sample_size(first))
        distance.append(state.position[chains:].square().mean())
    others = [k for k in range(3) if k != best]
    return all_of(
        at_most(torch.stack(acceptance).diff(), -0.1),
        at_most(abs(acceptance[best] - 0.3), 0.2, detail="between 0.1 and 0.5"),
        at_least(size[best], 3 * max(size[k] for k in others), detail="effective draws, three times those of the rest"),
        at_most(distance[best], 2.0, detail="mean square, 101 at the start and 1 at rest"),
        at_least([distance[k] for k in others], 5.0, detail="mean square of the others"),
    )
