"""Spectra of kernels: flat and single ones, labels, scale, drift, what is refused."""

import pytest
import torch
from torch import nn

from lemmata.kernel import kernel_drift, ntk, tangent_spectrum


def kernel(n=6):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x @ x.mT


def test_a_flat_spectrum_has_full_rank_and_a_single_direction_rank_one():
    assert tangent_spectrum(3 * torch.eye(7)).effective_rank == pytest.approx(7)
    vector = torch.arange(1.0, 6.0)
    found = tangent_spectrum(torch.outer(vector, vector), vector)
    assert found.effective_rank == pytest.approx(1, abs=1e-4)
    assert found.alignment == pytest.approx(1, abs=1e-6)
    assert found.condition == float("inf")


def test_the_scale_changes_nothing_but_eigenvalues():
    y = torch.arange(6).double()
    one, other = tangent_spectrum(kernel(), y), tangent_spectrum(1e-30 * kernel(), -5 * y)
    assert other.effective_rank == pytest.approx(one.effective_rank)
    assert other.alignment == pytest.approx(one.alignment)
    assert torch.allclose(one.eigenvalues, torch.linalg.eigvalsh(kernel()).flip(0), atol=1e-12)
    assert float(one.energy.sum()) == pytest.approx(1)


def test_the_kernel_of_a_network_with_its_labels():
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2).double(), torch.randn(5, 3).double()
    found = tangent_spectrum(ntk(model, x), torch.randn(5, 2).double())
    assert len(found.eigenvalues) == 10
    assert found.effective_rank < 8.001  # as many parameters


def test_drift_is_relative():
    assert kernel_drift(kernel(), kernel()) == 0
    assert kernel_drift(kernel(), 3 * kernel()) == pytest.approx(2)


def test_bad_input_is_answered_in_a_sentence():
    with pytest.raises(ValueError, match="positive semidefinite"):
        tangent_spectrum(-torch.eye(2))
    with pytest.raises(ValueError, match="symmetric"):
        tangent_spectrum(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="y must hold 2 labels"):
        tangent_spectrum(torch.eye(2), torch.ones(3))
    with pytest.raises(ValueError, match="finite"):
        tangent_spectrum(torch.eye(2) * torch.nan)
    with pytest.raises(ValueError, match="before must not be zero"):
        kernel_drift(torch.zeros(2, 2), torch.eye(2))
    with pytest.raises(ValueError, match="after must be"):
        kernel_drift(torch.eye(2), torch.eye(3))
