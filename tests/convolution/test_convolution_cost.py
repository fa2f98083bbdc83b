"""The costs of a convolution: the choice at both ends, and bad input."""

import pytest
import scipy.fft
import torch

from lemmata.convolution import convolution_cost, direct_operations, fft_operations, fft_pays
from lemmata.convolution.convolution_cost import block_lengths, expected_ratio, fast_length, measured_choice


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


def test_blocks_hold_the_kernel_and_are_no_longer_than_the_signal():
    for size in (5, 100, 5000, 100_000):
        for reach in {1, 3, 60, 2000} & set(range(size + 1)):
            (length,) = block_lengths((1, 1, size), (1, 1, reach))
            assert reach <= length <= fast_length(size)
    assert block_lengths((1, 1, 100_000), (1, 1, 50)) == [512]
    assert block_lengths((64, 64, 32, 32), (64, 64, 3, 3)) == [32, 32]
    assert block_lengths((1, 1, 100), (1, 1, 60)) == [100]  # more than half of a block of 64 would be thrown away


def test_a_long_signal_costs_in_proportion_to_its_length():
    short, long = (expected_ratio((1, 1, n), (1, 1, 64), (n - 63,), torch.float32) for n in (10**6, 10**7))
    assert long == pytest.approx(short, rel=0.1)


def test_the_quicker_is_found_and_remembered(monkeypatch):
    monkeypatch.setattr(convolution_cost, "_quicker", {})
    now, calls = [0.0], {"slow": 0, "quick": 0}
    monkeypatch.setattr(convolution_cost.time, "perf_counter", lambda: now[0])

    def way(name, seconds):
        def run():
            calls[name] += 1
            now[0] += seconds if calls[name] > 1 else 100 * seconds  # the first time counts for nobody
            return torch.zeros(1)

        return run

    ways = {"slow": way("slow", 3.0), "quick": way("quick", 2.0)}
    assert [measured_choice("sizes", ways) for _ in range(3)] == ["quick"] * 3
    assert calls == {"slow": 3, "quick": 3}
    assert measured_choice("others", ways) == "quick"
    assert calls == {"slow": 6, "quick": 6}
