"""What the claim about diagonalisation does not say: bad input, gradients, speed of the impulse response."""

import functools
import time

import pytest
import torch

from lemmata.recurrent.diagonalisation import diagonalise, impulse_response
from lemmata.recurrent.eigenvalue_ring import eigenvalues_on_ring
from lemmata.recurrent.linear_state_space import evolve, response_kernel

A = torch.tensor([[0.5, 1.0], [0.0, 0.9]])

NEARLY_DEPENDENT = torch.tensor([[1.0, 1e9], [0.0, 2.0]])  # two eigenvalues, hence two eigenvectors


def test_a_larger_limit_takes_eigenvectors_that_are_nearly_dependent():
    found = diagonalise(NEARLY_DEPENDENT, limit=1e10)
    assert 1e9 < found.condition < 4e9
    lost = found.condition * torch.finfo(torch.float64).eps * 1e9
    torch.testing.assert_close(found.matrix.real, NEARLY_DEPENDENT.double(), rtol=0, atol=4 * lost)


def test_single_precision_matrices_are_diagonalised_in_double():
    found = diagonalise(A, torch.ones(2, 1))
    assert found.eigenvalues.dtype is found.basis.dtype is found.inputs.dtype is torch.complex128
    assert found.evolve(torch.zeros(1, 0, 1)).shape == (1, 1, 2)


def test_matrix_states_and_answers_come_back_from_the_basis():
    torch.manual_seed(0)
    A, B, x = torch.randn(6, 6).double() / 6**0.5, torch.randn(6, 2).double(), torch.randn(3, 40, 2).double()
    found, states = diagonalise(A, B), evolve(A, B, x)
    close = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-8 * float(states.abs().max()))
    close(found.matrix, A.to(found.basis.dtype))
    close(found.states(found.coordinates(states)), states.to(found.basis.dtype))
    close(found.states(found.evolve(x)), states.to(found.basis.dtype))
    close(diagonalise(A).inputs, torch.linalg.inv(found.basis))
    read = torch.randn(6).double()
    answer = impulse_response(found.eigenvalues, 30, (read.to(found.basis.dtype) @ found.basis) * found.inputs[:, 0])
    close(answer, response_kernel(A, B, 30)[..., 0] @ read)
    assert (answer.dtype, impulse_response(torch.ones(1), 1).dtype) == (torch.float64, torch.float32)
    assert impulse_response(torch.tensor([[0.5], [1.0]]), 3).tolist() == [[1.0, 0.5, 0.25], [1.0, 1.0, 1.0]]


def test_impulse_responses_take_batches_and_zero_eigenvalues():
    assert impulse_response(torch.zeros(1), 3).tolist() == [1.0, 0.0, 0.0]
    assert impulse_response(torch.full((4, 2, 3), 0.5), 5).shape == (4, 2, 5)
    apart = impulse_response(torch.tensor([0.5, 2.0])[:, None], 3)
    assert apart.tolist() == [[1.0, 0.5, 0.25], [1.0, 2.0, 4.0]]
    assert impulse_response(torch.tensor([0.5, 2.0]), 2, torch.tensor([2.0, -1.0])).tolist() == [1.0, -1.0]


def test_impulse_responses_are_quick_enough_to_be_dragged():
    eigenvalues = eigenvalues_on_ring(64)
    impulse_response(eigenvalues, 500)
    started = time.process_time()
    for _ in range(5):
        impulse_response(eigenvalues, 500)
    assert time.process_time() - started < 5 * 0.01


def test_impulse_responses_have_gradients():
    eigenvalues = eigenvalues_on_ring(3).requires_grad_()
    assert torch.autograd.gradcheck(lambda e: impulse_response(e, 6), (eigenvalues,))


@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="the eigenvectors of A must be independent, got a condition"):
        diagonalise(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match=r"as far as double precision tells they are not; .*, raise limit, or"):
        diagonalise(NEARLY_DEPENDENT)
    with pytest.raises(ValueError, match=r"condition .* > 1\.0e\+00"):
        diagonalise(A, limit=1.0)
    with pytest.raises(ValueError, match="limit must be > 0, got -1"):
        diagonalise(A, limit=-1.0)
    with pytest.raises(ValueError, match=r"A must be square, got shape \(1, 2\)"):
        diagonalise(A[:1])
    with pytest.raises(ValueError, match="B must have a row for each of the 2 states, got 1"):
        diagonalise(A, torch.ones(1, 1))
    with pytest.raises(ValueError, match="A must be finite"):
        diagonalise(A * float("nan"))
    with pytest.raises(ValueError, match=r"x must be \(batch, time, 2\), got shape \(3, 2\)"):
        diagonalise(A).evolve(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        impulse_response(torch.ones(1), 0)
    with pytest.raises(ValueError, match="got a single number"):
        impulse_response(torch.tensor(1.0), 3)
