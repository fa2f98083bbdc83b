"""What the claim about stability does not say: the words of the verdict, bad input, dtypes."""

import pytest
import torch

from lemmata.recurrent.linear_stability import is_stable, steady_state
from lemmata.recurrent.lru import LRU

JORDAN = torch.tensor([[1.0, 1.0], [0.0, 1.0]])


def test_verdicts_say_why():
    assert is_stable(torch.tensor([0.5])).reason == (
        "eigenvalue 0.5 as the largest, inside the unit circle: states are forgotten"
    )
    assert is_stable(torch.tensor([[2.0]])).reason == "eigenvalue 2 outside the unit circle: powers grow exponentially"
    assert "a Jordan block at eigenvalue 1 on the unit circle" in is_stable(JORDAN).reason
    assert "eigenvalue 1 on the unit circle: powers stay bounded, but" in is_stable(torch.eye(2)).reason


def test_vectors_of_eigenvalues_are_judged_by_their_moduli():
    circle = is_stable(torch.tensor([1.0, 0.5]))
    assert (bool(circle), circle.powers_bounded, bool(is_stable(torch.tensor([-0.999])))) == (False, True, True)
    assert [is_stable(torch.tensor([e])).powers_bounded for e in (1.001, 1j, 1.001j)] == [False, True, False]
    assert not is_stable(torch.tensor([[1.1j]])).powers_bounded


@pytest.mark.parametrize(
    ("eigenvalue", "told"),
    [(0.3 + 0.4j, "0.3+0.4i"), (-0.7, "-0.7"), (-1e-9 - 0.5j, "0-0.5i"), (0.3 - 0.0123456789j, "0.3-0.012346i")],
)
def test_reasons_name_the_eigenvalue(eigenvalue, told):
    assert is_stable(torch.tensor([eigenvalue], dtype=torch.complex128)).reason.split()[1] == told


def test_a_linear_recurrent_unit_is_stable():
    assert is_stable(LRU(2, 30).eigenvalues.detach())
    assert is_stable(LRU(2, 30).eigenvalues.detach()).radius < 1


def test_a_vector_is_taken_as_it_is():
    assert is_stable(torch.tensor([1 - 1e-9], dtype=torch.float64))
    assert not is_stable(torch.tensor([[1 - 1e-9]], dtype=torch.float64))
    assert is_stable(torch.tensor([[1 - 1e-9]], dtype=torch.float64), tolerance=1e-12)


def test_single_precision_steady_states():
    found = steady_state(torch.tensor([[0.5]]), torch.ones(1, 2), torch.tensor([1.0, 2.0]))
    assert found.dtype is torch.float32
    assert found.tolist() == [6.0]


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
    with pytest.raises(ValueError, match="tolerance must be > 0, got 0"):
        is_stable(JORDAN, tolerance=0.0)
    with pytest.raises(ValueError, match="A must be stable, but has a Jordan block"):
        steady_state(JORDAN, torch.ones(2, 1), torch.ones(1))
    with pytest.raises(ValueError, match="x must have 1 entry, got 2"):
        steady_state(JORDAN / 2, torch.ones(2, 1), torch.ones(2))
    with pytest.raises(ValueError, match="B must have a row for each of the 2 states"):
        steady_state(JORDAN / 2, torch.ones(1, 1), torch.ones(1))
