"""The costs of a convolution: the choice at both ends, and bad input."""

import pytest

from lemmata.convolution import direct_operations, fft_operations, fft_pays


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
