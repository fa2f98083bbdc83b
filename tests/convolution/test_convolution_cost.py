"""The costs of a convolution: the choice at both ends, and bad input."""

import math

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
    by_hand = 2.5 * (2 * 4 + 6 * 4 + 2 * 6) * 100 * math.log2(100) + 8 * (2 * 6 * 4 * 50)
    assert fft_operations(x, weight) == pytest.approx(by_hand, rel=1e-12)
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


@pytest.mark.parametrize(
    ("shapes", "dtype", "direct", "spectral"),
    [
        # One channel, cut into three blocks of 8: 8 - 3 + 1 = 6 windows each, of 14.
        (
            ((1, 1, 16), (1, 1, 3), (14,)),
            torch.float32,
            10_000 + 2 * 3 * 14 / 6,
            90_000 + 2.5 * 3 * (24 + 24 + 8 + 60 * 8) / 12 + 8 * 12 / 30 + 3 * 4 * 56 / 8,
        ),
        # Each of 6 channels for itself, in one block of 4 x 9.
        (
            ((2, 6, 4, 9), (6, 1, 4, 5), (1, 5)),
            torch.float64,
            10_000 + 2 * 2 * 6 * 20 * 5 / 2.5,
            90_000 + 2.5 * math.log2(36) * (30 * 36 + 60 * 13) / 12 + 8 * 2 * 6 * 18 / 20 + 3 * 8 * 30 * 36 / 8,
        ),
        # Two times 3 channels to 5 in one block of 6 x 10: transforms of 6, 15 and 10 pictures.
        (
            ((2, 3, 6, 10), (5, 3, 4, 6), (3, 5)),
            torch.float32,
            10_000 + 2 * 2 * 15 * 24 * 15 / 90,
            90_000 + 2.5 * math.log2(60) * (31 * 60 + 60 * 16) / 12 + 8 * 2 * 15 * 30 / 30 + 3 * 4 * 31 * 60 / 8,
        ),
    ],
)
def test_expected_times_are_those_written_out(shapes, dtype, direct, spectral):
    assert expected_ratio(*shapes, dtype) == pytest.approx(direct / spectral, rel=1e-12)


def test_double_precision_and_unknown_dtypes_have_rates():
    x, weight, sizes = (1, 1, 64), (1, 1, 40), (25,)
    direct = 10_000 + 2 * 40 * 25 / 2.7
    spectral = 90_000 + 2.5 * 6 * (168 + 24 + 60 * 64) / 12 + 8 * 32 / 20 + 3 * 8 * 192 / 8
    assert expected_ratio(x, weight, sizes, torch.float64) == pytest.approx(direct / spectral, rel=1e-12)
    short, single = (expected_ratio(x, weight, sizes, dtype) for dtype in (torch.bfloat16, torch.float32))
    assert short == pytest.approx(single, rel=0.01)  # but for the memory
    many = expected_ratio((1, 2, 64), (1, 2, 40), sizes, torch.float64)
    spectral = 90_000 + 2.5 * 6 * (64 * 5 + 60 * 64) / 12 + 8 * 2 * 32 / 20 + 3 * 8 * 64 * 5 / 8
    assert many == pytest.approx((10_000 + 2 * 2 * 40 * 25 / 28) / spectral, rel=1e-12)
