"""The costs of a convolution: the choice at both ends, and bad input."""

import pytest
import scipy.fft
import torch

from lemmata.convolution import direct_operations, fft_operations, fft_pays
from lemmata.convolution.convolution_cost import fast_length


def test_kernels_of_ordinary_networks_are_written_out():
    assert not fft_pays((32, 64, 56, 56), (64, 64, 3, 3), (54, 54))
    assert not fft_pays((1, 1, 1024), (1, 1, 1), (1024,))
    assert fft_pays((1, 1, 2**17), (1, 1, 2**16), (2**16 + 1,))


def test_operations_grow_with_every_size():
    x, weight = (2, 4, 100), (6, 4, 20)
    assert direct_operations(x, weight, (81,)) == 2 * 2 * 6 * 4 * 20 * 81
    assert fft_operations((4, 4, 100), weight) > fft_operations(x, weight)
    assert fft_operations(x, (6, 4, 40)) == fft_operations(x, weight)


def test_bad_shapes_are_named(unchecked):
    with pytest.raises(ValueError, match="x and weight must have two axes more than sizes"):
        direct_operations((1, 1, 5), (1, 1, 3), (3, 3))
    with pytest.raises(ValueError, match="sizes must be >= 1, got 0"):
        direct_operations((1, 1, 5), (1, 1, 3), (0,))


def test_fast_lengths_are_those_of_scipy():
    assert [fast_length(n) for n in range(1, 500)] == [scipy.fft.next_fast_len(n, real=True) for n in range(1, 500)]


def test_torch_has_less_of_a_head_start_in_double_precision():
    shapes = (8, 16, 32, 32), (16, 16, 9, 9), (24, 24)
    assert fft_pays(*shapes, torch.float64)
    assert not fft_pays(*shapes, torch.float32)
