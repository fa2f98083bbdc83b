"""What the claim about stability does not say: hard matrices with exact answers, the words of verdicts, bad input."""

import math

import pytest
import torch

from lemmata.recurrent.linear_stability import is_stable, steady_state
from lemmata.recurrent.lru import LRU

JORDAN = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
# Whole matrices of determinant one, small enough that products with eighths are not rounded.
BASIS = torch.tensor([[1, 2, 0, 1], [0, 1, -1, 0], [0, 0, 1, 3], [0, 0, 0, 1]]).double()
TURN = BASIS @ BASIS.flip(0, 1)


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


def similar(*blocks):
    """Blocks of four rows together, in a basis of integers, without rounding."""
    inverse = torch.linalg.inv(TURN).round()
    assert torch.equal(inverse @ TURN, torch.eye(4).double())
    assert bool(TURN.tril(-1).any() and TURN.triu(1).any())
    return TURN @ torch.block_diag(*blocks).double() @ inverse


def answer(system):
    found = is_stable(system)
    assert bool(found) == (found.states_bounded is True)
    return found.states_bounded, found.powers_bounded


FORGETS, RINGS, GROWS, UNDECIDED = (True, True), (False, True), (False, False), (None, None)


def shifted(radius, size, coupling, dtype=torch.float64):
    """One eigenvalue, on the diagonal, and a shift above it, turned by reflections: rounded in its every entry."""
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=generator))[0]
    block = radius * torch.eye(size).double() + torch.diag(torch.full((size - 1,), coupling), 1).double()
    return (turn @ block @ turn.mT).to(dtype)


def reviewed():
    matrix = torch.zeros(4, 4)
    matrix[0, 0] = matrix[1, 1] = 1
    matrix[0, 1], matrix[2, 3] = 1e-3, 1e6
    return matrix


ROTATION, SIXTH = double([[0, -1], [1, 0]]), double([[0, -1], [1, 1]])  # by a quarter and by a sixth of a turn
TILTED = double([[0, -1], [1, 1.5]])  # by no fraction of a turn
TURNED_BLOCK = torch.block_diag(ROTATION, ROTATION) + torch.nn.functional.pad(torch.eye(2).double(), (2, 0, 0, 2))


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (reviewed(), GROWS),
        (reviewed().mT, GROWS),
        (double([[1, 1e-8], [0, 1]]), GROWS),
        (double([[1, 5e-324], [0, 1]]), GROWS),
        (double([[1 + 5e-7, 0], [0, 0.5]]), GROWS),
        (double([[1 - 5e-7, 0], [0, 0.5]]), FORGETS),
        (double([[1 - 1e-9]]), FORGETS),
        (double([[1.0]]), RINGS),
        (double([[0.0]]), FORGETS),
        (double([[math.nextafter(1, 2)]]), GROWS),
        (double([[0.5, 1e9], [0, -0.5]]), FORGETS),
        (double([[0.5, 1e9], [1e-9, -0.5]]), GROWS),  # eigenvalues ± sqrt(1.25)
        (double([[0, 2.0**900], [2.0**-900, 0]]), RINGS),
        (double([[0, 2.0**900], [2.0**-901, 0]]), FORGETS),
        (double([[1e300, 1.0], [1.0, 1e-300]]), GROWS),
        (double([[1e-300, 1e-310], [1e-310, 1e-300]]), FORGETS),
        (torch.eye(200).double(), RINGS),
        (torch.ones(50, 50).double().triu() * torch.linspace(0.5, 1, 50).double(), RINGS),  # 1 on the diagonal, once
        (torch.full((40, 40), 1e300, dtype=torch.float64), GROWS),
        (torch.full((40, 40), 1e200, dtype=torch.float64), GROWS),
        (torch.full((40, 40), 5e-324, dtype=torch.float64), FORGETS),
        (torch.full((40, 40), 1e-300, dtype=torch.float64), FORGETS),
        (torch.ones(50, 50).double().triu() - 0.5 * torch.eye(50), FORGETS),
        (torch.ones(50, 50).double().tril() + 1e-9 * torch.eye(50), GROWS),
        (similar(JORDAN, torch.diag(double([0.5, -0.25]))), GROWS),
        (similar(torch.eye(2), torch.diag(double([0.5, -0.25]))), RINGS),
        (similar(torch.eye(2), -JORDAN), GROWS),
        (similar(ROTATION, torch.diag(double([1, -1]))), RINGS),
        (similar(ROTATION, ROTATION), RINGS),
        (similar(TURNED_BLOCK), GROWS),
        (similar(SIXTH, TILTED), RINGS),
        (similar(torch.diag(double([2, 0.5, 1, 0]))), GROWS),  # a pair of reciprocals
        (similar(torch.diag(double([2, 0.5, 0.25, 0]))), GROWS),
        (similar(torch.diag(double([0.75, 0.5, 0, 0]))), FORGETS),
        (torch.tensor([[1j, 1], [0, 1j]]), GROWS),
        (torch.tensor([[1j, 0], [0, 1j]]), RINGS),
        (torch.tensor([[0.5, 0.5j], [0.5j, 0.5]]), FORGETS),  # eigenvalues (1 ± i) / 2
        (torch.tensor([[1, 1j], [1j, 1]]), GROWS),
    ],
)
def test_the_answer_is_that_of_the_numbers_as_they_are_stored(system, expected):
    assert answer(system) == expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("radius", "expected"), [(0.75, FORGETS), (1.25, GROWS)])
def test_turned_matrices_of_every_precision_are_decided(radius, expected, dtype):
    assert answer(shifted(radius, 6, 0.25, dtype)) == expected


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("off", [1e-3, 1e-9, 1e-13])
def test_twelve_states_near_the_circle_are_decided(size, off):
    """The turn moves an eigenvalue of a diagonal matrix by less than 12 x 12 rounding errors of one: 4e-14."""
    assert answer(shifted(1 - off, size, 0.0)) == FORGETS
    assert answer(shifted(1 + off, size, 0.0)) == GROWS


def test_eigenvalues_that_rounding_spreads_widely_are_decided_by_whole_numbers():
    """Double precision sees a radius of 0.98 or so: the powers say that the states are forgotten."""
    matrix = shifted(0.5, 12, 10.0)
    rows = [[int(entry * 2**60) for entry in row] for row in matrix.tolist()]
    assert all(
        entry / 2**60 == kept
        for row, given in zip(rows, matrix.tolist(), strict=True)
        for entry, kept in zip(row, given, strict=True)
    )
    power, shift = rows, 60
    for _ in range(9):  # to the power of 512, without rounding
        columns = list(zip(*power, strict=True))
        power = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in power]
        shift *= 2
    assert max(abs(entry) for row in power for entry in row) * 12 < 2**shift
    assert answer(matrix) == FORGETS


def test_what_is_not_proved_is_undecided_with_the_reason():
    turn = shifted(1.0, 100, 0.0) @ shifted(-1.0, 100, 0.0)
    found = is_stable(turn)
    assert answer(turn) == UNDECIDED
    assert found.reason == (
        "eigenvalue -1 as the largest, on a side of the unit circle that double precision cannot prove: undecided"
    )
    assert answer(0.999 * turn) == FORGETS
    assert answer(1.001 * turn) == GROWS
    with pytest.raises(ValueError, match="A must be stable, but has eigenvalue -1 as the largest, on a side"):
        steady_state(turn, turn, turn[0])


def test_verdicts_say_why():
    assert is_stable(torch.tensor([0.5])).reason == (
        "eigenvalue 0.5 as the largest, inside the unit circle: states are forgotten"
    )
    assert is_stable(torch.tensor([[2.0]])).reason == "eigenvalue 2 outside the unit circle: powers grow exponentially"
    assert "a Jordan block at eigenvalue 1 on the unit circle" in is_stable(JORDAN).reason
    assert "eigenvalue 1 on the unit circle: powers stay bounded, but" in is_stable(torch.eye(2)).reason
    assert "a Jordan block at eigenvalue -1 on" in is_stable(similar(torch.eye(2), -JORDAN)).reason
    assert "a Jordan block at eigenvalue 0+1i on" in is_stable(similar(TURNED_BLOCK)).reason


def test_of_eigenvalues_next_to_the_circle_the_distance_is_told():
    assert is_stable(double([0.5, 1 - 3e-7])).reason == (
        "eigenvalue 1 as the largest, inside the unit circle by 3e-07: states are forgotten"
    )
    assert "eigenvalue 1 outside the unit circle by 2e-16" in is_stable(double([math.nextafter(1, 2)])).reason
    assert (
        "0.6+0.8i outside the unit circle by 2e-17"
        in is_stable(torch.tensor([0.6 + 0.8j], dtype=torch.complex128)).reason
    )
    block = double([[1, 2.0**-60], [2.0**-60, 1]])  # eigenvalues 1 ± 2^-60
    assert "outside the unit circle by less than the rounding of eigenvalues shows" in is_stable(block).reason


def test_vectors_of_eigenvalues_are_judged_by_their_moduli():
    circle = is_stable(torch.tensor([1.0, 0.5]))
    assert (bool(circle), circle.powers_bounded, bool(is_stable(torch.tensor([-0.999])))) == (False, True, True)
    assert [is_stable(torch.tensor([e])).powers_bounded for e in (1.001, 1j, 1.001j)] == [False, True, False]
    assert not is_stable(torch.tensor([[1.1j]])).powers_bounded
    huge = is_stable(torch.tensor([complex(1.7e308, 1.7e308)], dtype=torch.complex128))
    assert (huge.powers_bounded, huge.radius) == (False, math.inf)


@pytest.mark.parametrize(
    ("eigenvalue", "told"),
    [(0.3 + 0.4j, "0.3+0.4i"), (-0.7, "-0.7"), (-1e-9 - 0.5j, "0-0.5i"), (0.3 - 0.0123456789j, "0.3-0.012346i")],
)
def test_reasons_name_the_eigenvalue(eigenvalue, told):
    assert is_stable(torch.tensor([eigenvalue], dtype=torch.complex128)).reason.split()[1] == told


def test_a_linear_recurrent_unit_is_stable():
    assert is_stable(LRU(2, 30).eigenvalues.detach())
    assert is_stable(LRU(2, 30).eigenvalues.detach()).radius < 1


def test_single_precision_steady_states():
    found = steady_state(torch.tensor([[0.5]]), torch.ones(1, 2), torch.tensor([1.0, 2.0]))
    assert found.dtype is torch.float32
    assert found.tolist() == [6.0]


def test_states_that_fade_slowly_have_a_steady_state():
    found = steady_state(double([[1 - 2.0**-30]]), double([[1]]), double([1]))
    assert found.tolist() == [2.0**30]


@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"or a vector of eigenvalues, got shape \(1, 2, 2\)"):
        is_stable(JORDAN[None])
    with pytest.raises(ValueError, match=r"or a vector of eigenvalues, got shape \(0,\)"):
        is_stable(torch.zeros(0))
    with pytest.raises(ValueError, match=r"system must be a square matrix, got shape \(1, 2\)"):
        is_stable(JORDAN[:1])
    with pytest.raises(ValueError, match="system must be finite"):
        is_stable(JORDAN * float("nan"))
    with pytest.raises(ValueError, match="A must be stable, but has a Jordan block"):
        steady_state(JORDAN, torch.ones(2, 1), torch.ones(1))
    with pytest.raises(ValueError, match="x must have 1 entry, got 2"):
        steady_state(JORDAN / 2, torch.ones(2, 1), torch.ones(2))
    with pytest.raises(ValueError, match="B must have a row for each of the 2 states"):
        steady_state(JORDAN / 2, torch.ones(1, 1), torch.ones(1))
