"""Sizes and counts: agreement with torch's layers, and bad input."""

import itertools

import pytest
import torch
from torch import nn

from lemmata.convolution import output_size, parameter_counts, same_padding, transposed_output_size


def test_transposed_sizes_are_those_of_torch():
    for x, k, s, p, d in itertools.product((1, 2, 5), (1, 3, 4), (1, 2, 3), (0, 1), (1, 2)):
        for o in range(max(s, d)):
            layer = nn.ConvTranspose1d(1, 1, k, s, p, o, dilation=d, device="meta")
            try:
                found = layer(torch.empty(1, 1, x, device="meta")).shape[-1]
            except RuntimeError:  # torch too says that nothing is left
                with pytest.raises(ValueError, match="padding must leave"):
                    transposed_output_size(x, k, s, p, d, o)
            else:
                assert transposed_output_size(x, k, s, p, d, o) == found


def test_what_is_not_said_is_what_torch_takes():
    x = torch.empty(1, 1, 7, device="meta")
    for kernel_size in (1, 3):
        there, back = (layer(1, 1, kernel_size, device="meta")(x) for layer in (nn.Conv1d, nn.ConvTranspose1d))
        sizes = output_size(7, kernel_size), transposed_output_size(7, kernel_size)
        assert sizes == (there.shape[-1], back.shape[-1])


def test_a_transposed_size_is_one_that_gives_the_size():
    for x, k, s, p, d in itertools.product((3, 6), (1, 2, 3), (1, 2, 3), (0, 1), (1, 2)):
        for o in range(s):
            back = (x - 1) * s - 2 * p + d * (k - 1) + o + 1
            if back >= 1 and o < max(s, d):
                assert output_size(transposed_output_size(x, k, s, p, d, o), k, s, p, d) == x


def test_same_padding_keeps_the_size():
    for k, d in itertools.product(range(1, 7), (1, 2, 3)):
        before, after = same_padding(k, d)
        assert 0 <= after - before <= 1
        assert output_size(20 + before + after, k, dilation=d) == 20


def test_counts_without_bias():
    assert parameter_counts(5, 6, 3, (3, 2), 4, bias=False) == (72, 15 * 4 * 18, 15 * 4 * 90)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size must be >= 1, got 0"),
        ({"kernel_size": 0}, "kernel_size must be >= 1, got 0"),
        ({"stride": 0}, "stride must be >= 1, got 0"),
        ({"padding": -1}, "padding must be >= 0, got -1"),
        ({"dilation": 0}, "dilation must be >= 1, got 0"),
        ({"kernel_size": 4, "dilation": 2}, "size 5 with padding 0 must hold the kernel's 7 places"),
    ],
)
def test_bad_sizes_are_named(unchecked, arguments, message):
    with pytest.raises(ValueError, match=message):
        output_size(**{"size": 5, "kernel_size": 3, **arguments})


def test_bad_transposed_sizes_and_counts_are_named(unchecked):
    with pytest.raises(ValueError, match="output_padding must be <= 1, got 2"):
        transposed_output_size(5, 3, stride=2, output_padding=2)
    with pytest.raises(ValueError, match="padding must leave at least one place, got 3, which leaves -3"):
        transposed_output_size(1, 3, padding=3)
    with pytest.raises(TypeError, match="bias must be True or False"):
        parameter_counts(5, 5, 1, (3, 3), 1, bias=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"kernel_size must be two numbers, \(height, width\), got 3"):
        parameter_counts(5, 5, 1, 3, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kernels must be >= 1"):
        parameter_counts(5, 5, 1, (3, 3), 0)
