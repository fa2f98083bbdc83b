"""Bases of activations: orthonormal, as large as needed, with the known directions kept; precisions; bad input."""

import pytest
import torch

from lemmata.continual import activation_basis
from lemmata.continual.activation_subspace import project_away


def low_rank(n=40, features=12, rank=4, dtype=torch.float64):
    torch.manual_seed(0)
    return (torch.randn(n, rank, dtype=torch.float64) @ torch.randn(rank, features, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_at_full_energy_the_span_is_found_and_nothing_is_left_outside(dtype):
    x = low_rank(dtype=dtype)
    basis = activation_basis(x, 1.0)
    eps = torch.finfo(dtype).eps
    assert basis.shape == (12, 4)
    assert basis.dtype == dtype
    assert torch.allclose(basis.T @ basis, torch.eye(4, dtype=dtype), atol=20 * eps)
    assert float(project_away(x, basis).norm() / x.norm()) < 50 * eps


@pytest.mark.parametrize("energy", [0.3, 0.8, 0.95, 0.999])
def test_it_holds_the_energy_and_one_direction_less_would_not(energy):
    torch.manual_seed(1)
    x = torch.randn(50, 10, dtype=torch.float64)
    basis = activation_basis(x, energy)
    sizes = torch.linalg.svdvals(x).square()
    held = (x @ basis).square().sum() / x.square().sum()
    assert float(held) >= energy - 1e-12
    assert float(sizes[: basis.shape[1] - 1].sum() / sizes.sum()) < energy


def test_known_directions_are_kept_and_new_ones_are_added():
    torch.manual_seed(2)
    first, second = low_rank(rank=3), low_rank(rank=5)[:, torch.randperm(12)]
    known = activation_basis(first, 1.0)
    both = activation_basis(second, 1.0, known)
    assert both.shape == (12, 8)
    assert float(project_away(known.T, both).norm()) < 1e-12
    assert float(project_away(second, both).norm()) < 1e-11
    assert torch.allclose(both.T @ both, torch.eye(8).double(), atol=1e-12)
    assert activation_basis(first, 1.0, known).shape == (12, 3)  # nothing is new


def test_activations_that_are_silent_need_no_direction():
    assert activation_basis(torch.zeros(5, 3), 0.9).shape == (3, 0)
    assert activation_basis(torch.randn(5, 3), 0.0).shape == (3, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: activation_basis(torch.ones(3, 2), 1.5), "energy must be"),
        (lambda: activation_basis(torch.ones(0, 2)), "activations must"),
        (lambda: activation_basis(torch.ones(3, 2), 0.9, torch.eye(3)), r"basis must be \(2, directions\)|basis"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
