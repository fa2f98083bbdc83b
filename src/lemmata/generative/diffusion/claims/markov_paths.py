"""Markov chains and their time reversal, in exact fractions; entropies of a step and of its reversal."""

import itertools
from fractions import Fraction

import torch

from lemmata.bayes.finite_chain import stationary_distribution
from lemmata.generative.diffusion.claims.gaussian_data import TwoBumps, grid, normal_density
from lemmata.generative.diffusion.forward_process import diffuse
from lemmata.generative.diffusion.noise_schedule import DiffusionSteps
from lemmata.judge import all_of, always, at_most, claim, close, exactly, lie

STATES = range(3)


def random_law(draw):
    """Positive probabilities of the states, all different."""
    weights = [int(k) for k in 1 + draw.permutation(9)[: len(STATES)]]
    return [Fraction(k, sum(weights)) for k in weights]


def random_kernel(draw):
    return [random_law(draw) for _ in STATES]


def law_of(paths, *times):
    """The joint law of the states at these times, from the probabilities of all paths."""
    law = {}
    for path, mass in paths.items():
        seen = tuple(path[t] for t in times)
        law[seen] = law.get(seen, 0) + mass
    return law


def given(paths, t, *earlier):
    """The law of the state at time t for each value of the states at other times, {(state, *others): probability}."""
    joint, condition = law_of(paths, t, *earlier), law_of(paths, *earlier)
    return {states: mass / condition[states[1:]] for states, mass in joint.items()}


def machine(draw, sides=5):
    """Where a machine goes from each state with each side of a die: everywhere in the end, not to all states alike."""

    def rolled():
        table = [[int(k) for k in draw.integers(0, 3, sides)] for _ in STATES]
        return [[1, 2, *table[0][2:]], [0, 0, *table[1][2:]], [0, 1, *table[2][2:]]]

    def tells_apart(table):
        sums = [sum(row.count(state) for row in table) for state in STATES]
        return len(set(sums)) > 1 and len({tuple(sorted(row)) for row in table}) > 1

    return draw.until(rolled, tells_apart)


def driven(draw, remember=0, change=0, sides=5):
    """Paths of three steps with their probabilities; the machine may `remember` the state before, or `change` in time.

    The die decides everything, so that no kernel is written down: they are found by counting.
    """
    table, paths, start = machine(draw, sides), {}, random_law(draw)
    for first, dice in itertools.product(STATES, itertools.product(range(sides), repeat=3)):
        path = [first]
        for t, die in enumerate(dice):
            more = remember * (path[-2] if t else 0) + change * t
            path.append((table[path[-1]][die] + more * (die == 0)) % 3)
        paths[tuple(path)] = paths.get(tuple(path), 0) + start[first] / sides**3
    return paths


def the_state_before(t):
    return t - 1


def the_first_state(t):
    return 0


def left_alone(kernel):
    return stationary_distribution(kernel)


def all_alike(kernel):
    return [Fraction(1, len(kernel))] * len(kernel)


@claim("diffusion.markov_chain")
@lie("the law given the state before is that given the first, at every time", printed="001/1", since=the_first_state)
@lie("a machine that remembers one state more", remember=1)
@lie("a machine that changes with the time is homogeneous", change=1)
@lie("all states alike are stationary", stationary=all_alike)
def the_present_is_all_that_counts(draw, since=the_state_before, remember=0, change=0, stationary=left_alone):
    """All paths of machines with three states and a die: conditional laws by counting, and the law that stays."""
    paths = driven(draw, remember, change)
    whole_past = [given(paths, t, *range(t - 1, -1, -1)) for t in (2, 3)]
    one_step = [given(paths, t, since(t)) for t in (1, 2, 3)]
    first = one_step[0]
    kernel = [[first.get((new, old), Fraction(0)) for new in STATES] for old in STATES]
    alone = stationary(kernel)
    moved = [sum(alone[old] * kernel[old][new] for old in STATES) for new in STATES]
    forgets = [law[states] == given(paths, t, t - 1)[states[:2]] for t, law in zip((2, 3), whole_past, strict=True)
               for states in law]  # fmt: skip
    homogeneous = [law[states] == kernel[states[1]][states[0]] for law in one_step for states in law]
    return all_of(
        always(forgets), always(homogeneous), exactly(moved, alone), always([sum(alone) == 1 and min(alone) >= 0])
    )


def by_bayes(kernel, before, after, new, old):
    """The probability of the earlier state given the later one."""
    return kernel[old][new] * before[old] / after[new]


def transposed(kernel, before, after, new, old):
    return kernel[old][new] / sum(row[new] for row in kernel)


def as_if_stationary(kernel, before, after, new, old):
    stays = stationary_distribution(kernel)
    return kernel[old][new] * stays[old] / stays[new]


@claim("diffusion.markov_factorisations")
@lie("the kernel transposed, without Bayes' weights", backward=transposed)
@lie("with the weights of the stationary law in place of those of the time", backward=as_if_stationary)
def paths_forwards_and_backwards(draw, backward=by_bayes, steps=4):
    """All paths of four steps with another kernel each: both products, and what the states after tell of one before."""
    kernels, laws = [random_kernel(draw) for _ in range(steps)], [random_law(draw)]
    for kernel in kernels:
        laws.append([sum((laws[-1][old] * kernel[old][new] for old in STATES), Fraction()) for new in STATES])
    forwards, backwards = {}, {}
    for path in itertools.product(STATES, repeat=steps + 1):
        ahead, back = laws[0][path[0]], laws[-1][path[-1]]
        for t, (old, new) in enumerate(itertools.pairwise(path)):
            ahead *= kernels[t][old][new]
            back *= backward(kernels[t], laws[t], laws[t + 1], new, old)
        forwards[path], backwards[path] = ahead, back
    reversal = given(forwards, 1, 2, 3, 4)  # what the whole future says of a state is what the next one says
    return all_of(
        always([forwards[path] == backwards[path] for path in forwards]),
        always([mass == given(forwards, 1, 2)[states[:2]] for states, mass in reversal.items()]),
        exactly(sum(forwards.values()), Fraction(1)),
    )


def entropies(density, x, width, keep, add):
    """Of data with this density and of its state after a step, and of each given the other, by sums on a grid."""
    kernel = normal_density(x[:, None], keep * x, add**2)  # [new, old]
    joint = kernel * density
    after = joint.sum(1) * width
    backward = joint / after[:, None]

    def mean_log(weights, values, cell):
        return -float(torch.special.xlogy(weights, values).sum() * cell)

    return (
        mean_log(density, density, width), mean_log(after, after, width),
        mean_log(joint, kernel, width**2), mean_log(joint, backward, width**2),
    )  # fmt: skip


@claim("ddpm.entropy_bound")
@lie("of whatever data, also those that a step makes narrower", most=9.0)
@lie("the entropy of the state before is left out", weight=0.0)
def a_step_and_its_reversal(draw, most=1.0, weight=1.0, step=diffuse):
    """Normal data and data of two bumps, on a grid: the chain rule, and the bound where a step makes them wider."""
    x, width = grid(601, reach=14.0)
    found, narrower = [], []
    for rate in (float(draw.uniform(1, low=0.1, high=0.3)), 0.5, 0.9):
        steps, one = DiffusionSteps.from_rates([rate]), torch.ones(1, 1, dtype=torch.float64)
        keep, add = float(step(one, 1, 0 * one, steps)), float(step(0 * one, 1, one, steps))
        laws = [normal_density(x, 0.0, v) for v in (0.2, 0.7 * most, most)] + [TwoBumps([], 0.4).density(x, 0)]
        for density in laws:
            found.append(entropies(density, x, width, keep, add))
        before, after, forward, _ = entropies(normal_density(x, 0.0, 9.0), x, width, keep, add)
        narrower.append((after < before, forward + before - after > forward))
    before, after, forward, backward = torch.tensor(found, dtype=torch.float64).T
    return all_of(
        close(backward, forward + weight * before - after, within=1e-9),
        at_most(backward, forward + 1e-9),
        always([wider and broken for wider, broken in narrower]),
    )
