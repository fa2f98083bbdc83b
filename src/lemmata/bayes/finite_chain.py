r"""Markov chains on few states, in exact fractions: what they leave alone, and whether that is all they lead to."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd

from lemmata.marks import system

__all__ = [
    "barker", "probability_flow", "is_balanced", "is_irreducible", "metropolis", "metropolis_matrix", "period",
    "stationary_distribution",
]  # fmt: skip

Matrix = Sequence[Sequence[Fraction]]


def metropolis(ratio: Fraction) -> Fraction:
    """The acceptance min(1, ratio).

    >>> metropolis(Fraction(3, 2)), metropolis(Fraction(2, 3))
    (Fraction(1, 1), Fraction(2, 3))
    """
    return min(Fraction(1), ratio)


def barker(ratio: Fraction) -> Fraction:
    """Barker's acceptance ratio / (1 + ratio): balanced too, and never as large as Metropolis'.

    >>> barker(Fraction(1))
    Fraction(1, 2)
    """
    return ratio / (1 + ratio)


@system("metropolis_matrix", title="Metropolis-Hastings on few states", kind="function")
def metropolis_matrix(
    target: Sequence[Fraction], proposals: Matrix, acceptance: Callable[[Fraction], Fraction] = metropolis
) -> list[list[Fraction]]:
    r"""The transition matrix of Metropolis and Hastings' chain, row by row: $P_{ij}$ is the move from $i$ to $j$.

    $$ P_{ij}=q_{ij}\,\alpha\Bigl(\frac{p_j\,q_{ji}}{p_i\,q_{ij}}\Bigr)\quad(i\ne j),\qquad
       P_{ii}=1-\sum_{j\ne i}P_{ij} $$

    `target` may be any positive weights: only their ratios matter. What is rejected stays, on the diagonal.

    Claims: mcmc.metropolis_hastings, mcmc.mh.one_sided

    >>> half = Fraction(1, 2)
    >>> metropolis_matrix([Fraction(1), Fraction(3)], [[half, half], [half, half]])
    [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 6), Fraction(5, 6)]]
    """
    _stochastic_size("proposals", proposals)
    if len(target) != len(proposals):
        raise ValueError(f"target must have one weight for each of {len(proposals)} states, got {len(target)}")
    if any(weight <= 0 for weight in target):
        raise ValueError(f"target must have positive weights, got {min(target)}")
    rows = []
    for i, row in enumerate(proposals):
        moves = [Fraction(0)] * len(row)
        for j, forward in enumerate(row):
            if i != j and forward > 0:
                ratio = Fraction(target[j]) * proposals[j][i] / (Fraction(target[i]) * forward)
                moves[j] = forward * acceptance(ratio)
        moves[i] = Fraction(1) - sum(moves)
        rows.append(moves)
    return rows


@system("stationary_distribution", title="Stationary distribution of a finite chain", kind="function")
def stationary_distribution(transition: Matrix) -> list[Fraction]:
    r"""The one distribution that a chain leaves alone, $\pi P=\pi$, by elimination in fractions.

    ValueError where there are several, as of a chain that cannot come from one part of its states to another and back.

    Claims: mcmc.chain, mcmc.metropolis_hastings

    >>> stationary_distribution([[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]])
    [Fraction(1, 3), Fraction(2, 3)]
    """
    n = _stochastic_size("transition", transition)
    # The columns of P - I are equations; they are dependent, and any solution has a sum that is not 0.
    rows = [[Fraction(transition[i][j]) - (i == j) for i in range(n)] for j in range(n)]
    pivots: list[int] = []
    for column in range(n):
        below = next((r for r in range(len(pivots), n) if rows[r][column]), None)
        if below is None:
            continue
        top = len(pivots)
        rows[top], rows[below] = rows[below], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for r in range(n):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    free = [column for column in range(n) if column not in pivots]
    if len(free) > 1:
        raise ValueError(f"transition leaves more than one distribution alone: its states fall into {len(free)} parts")
    weights = [Fraction(0)] * n
    weights[free[0]] = Fraction(1)
    for row, column in zip(rows, pivots, strict=False):
        weights[column] = -row[free[0]]
    return [weight / sum(weights) for weight in weights]


def probability_flow(transition: Matrix, distribution: Sequence[Fraction]) -> list[list[Fraction]]:
    r"""The mass $\pi_iP_{ij}$ that moves from each state to each other one in a step.

    >>> probability_flow([[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]], [Fraction(1, 3), Fraction(2, 3)])
    [[Fraction(0, 1), Fraction(1, 3)], [Fraction(2, 3), Fraction(0, 1)]]
    """
    return [[mass * move for move in row] for mass, row in zip(distribution, transition, strict=True)]


def is_balanced(transition: Matrix, distribution: Sequence[Fraction]) -> bool:
    r"""Detailed balance: as much mass moves from $i$ to $j$ as back, for every pair.

    Claims: mcmc.detailed_balance

    >>> third = Fraction(1, 3)
    >>> round_and_round = [[Fraction((i + 1) % 3 == j) for j in range(3)] for i in range(3)]
    >>> is_balanced(round_and_round, [third] * 3), stationary_distribution(round_and_round) == [third] * 3
    (False, True)
    """
    _stochastic_size("transition", transition)
    moved = probability_flow(transition, distribution)
    return all(moved[i][j] == moved[j][i] for i in range(len(moved)) for j in range(i))


def is_irreducible(transition: Matrix) -> bool:
    """Every state leads to every other one, in however many steps.

    >>> is_irreducible([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]])
    False
    """
    n = _stochastic_size("transition", transition)
    return all(len(_state_distances(transition, start)) == n for start in range(n))


def period(transition: Matrix) -> int:
    """The greatest common divisor of the lengths of all ways from a state back to it; 1 for chains that converge.

    >>> period([[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]])
    2
    """
    if not is_irreducible(transition):
        raise ValueError("transition must be irreducible: its parts may have a period each")
    steps, divisor = _state_distances(transition, 0), 0
    for i, row in enumerate(transition):
        for j, move in enumerate(row):
            if move:
                divisor = gcd(divisor, steps[i] + 1 - steps[j])
    return divisor


def _state_distances(transition: Matrix, start: int) -> dict[int, int]:
    """The least number of steps to each state that can be reached."""
    steps, border = {start: 0}, [start]
    for state in border:
        for other, move in enumerate(transition[state]):
            if move and other not in steps:
                steps[other] = steps[state] + 1
                border.append(other)
    return steps


def _stochastic_size(name: str, matrix: Matrix) -> int:
    """The number of states; ValueError unless every row is a distribution over them."""
    for i, row in enumerate(matrix):
        if len(row) != len(matrix):
            raise ValueError(f"{name} must have as many columns as rows, {len(matrix)}, got {len(row)} in row {i}")
        if min(row) < 0 or sum(row) != 1:
            raise ValueError(
                f"{name} must have rows of fractions >= 0 that sum to 1, got the sum {sum(row)} in row {i}"
            )
    if not matrix:
        raise ValueError(f"{name} must have at least one state, got none")
    return len(matrix)
