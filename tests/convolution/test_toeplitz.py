"""Matrices of convolutions: any layer of torch, gradients, and bad input."""

import pytest
import torch
from torch import nn

from lemmata.convolution import convolution_matrix, toeplitz_matrix


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("kind", [nn.Conv1d, nn.Conv2d, nn.Conv3d])
def test_the_matrix_is_that_of_torchs_layer(kind, mode):
    torch.manual_seed(0)
    axes = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}[kind]
    space = [5, 4, 6][:axes]
    for settings in ({}, {"stride": 2, "padding": 2}, {"dilation": 2, "padding": "same", "groups": 2}):
        layer = kind(2, 4, 3 if "padding" in settings else 2, padding_mode=mode, bias=False, **settings).double()
        given = {"padding_mode": mode, **settings}
        matrix = convolution_matrix(layer.weight, space, **given).to_dense()
        x = torch.randn(3, 2, *space, dtype=torch.float64)
        torch.testing.assert_close(x.flatten(1) @ matrix.mT, layer(x).flatten(1), rtol=0, atol=1e-12)


def test_a_matrix_has_as_few_entries_as_windows_have_taps():
    matrix = convolution_matrix(torch.ones(2, 3, 3, 3), 6, padding=1)
    assert matrix.is_sparse
    assert matrix.shape == (72, 108)
    assert matrix._nnz() == 2 * 3 * 16**2  # 16 = 3 * 6 - 2 pairs of place and tap lie inside on each axis


def test_gradients_reach_the_kernel():
    weight = torch.randn(2, 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: convolution_matrix(w, 4, padding=1).to_dense(), weight)
    h = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: toeplitz_matrix(h, 4), h)


def test_bad_input_is_named(unchecked):
    with pytest.raises(ValueError, match="h must have one axis"):
        toeplitz_matrix(torch.zeros(2, 2), 3)
    with pytest.raises(ValueError, match="n must be >= 1, got 0"):
        toeplitz_matrix(torch.zeros(2), 0)
    with pytest.raises(ValueError, match="weight must be"):
        convolution_matrix(torch.zeros(3, 3), 5)
    with pytest.raises(ValueError, match="must hold the kernel's 3 places"):
        convolution_matrix(torch.zeros(1, 1, 3), 2)
