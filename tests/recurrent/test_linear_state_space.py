"""What the claim about linear state spaces does not say: bad input, dtypes, gradients, no steps at all."""

import pytest
import torch

from lemmata.recurrent.linear_state_space import convolved_states, evolve, response_kernel

A, B = torch.tensor([[0.5, 0.1], [0.0, 0.9]]), torch.tensor([[1.0], [2.0]])


def test_no_steps_leave_the_first_state():
    z0 = torch.ones(3, 2)
    assert evolve(A, B, torch.zeros(3, 0, 1), z0).equal(z0[:, None])
    assert convolved_states(A, B, torch.zeros(0, 1)).equal(torch.zeros(1, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_and_leading_axes_are_kept(dtype):
    x = torch.ones(2, 3, 5, 1, dtype=dtype)
    for states in (evolve(A.to(dtype), B.to(dtype), x), convolved_states(A.to(dtype), B.to(dtype), x)):
        assert states.shape == (2, 3, 6, 2)
        assert states.dtype is dtype


def test_gradients_are_exact():
    values = [t.double().requires_grad_() for t in (A, B, torch.ones(4, 1), torch.ones(2))]
    assert torch.autograd.gradcheck(evolve, values)
    assert torch.autograd.gradcheck(convolved_states, values[:3])


@pytest.mark.usefixtures("unchecked")
def test_bad_arguments_are_named():
    x = torch.zeros(5, 1)
    for run in (evolve, convolved_states):
        with pytest.raises(ValueError, match=r"A must be square, got shape \(1, 2\)"):
            run(A[:1], B, x)
        with pytest.raises(ValueError, match="A must be finite, found 1 infinite value"):
            run(torch.tensor([[float("inf")]]), B[:1], x)
        with pytest.raises(ValueError, match="B must have a row for each of the 2 states, got 1"):
            run(A, B[:1], x)
        with pytest.raises(ValueError, match=r"x must be a \(..., time, 1\) tensor, got shape \(5, 2\)"):
            run(A, B, torch.zeros(5, 2))
        with pytest.raises(ValueError, match="x must be finite, found 5 NaN values"):
            run(A, B, x * float("nan"))
    with pytest.raises(ValueError, match=r"z0 must have the shape \(2,\), got \(3,\)"):
        evolve(A, B, x, torch.zeros(3))
    with pytest.raises(ValueError, match="steps must be >= 1, got 0"):
        response_kernel(A, B, 0)
