"""The costs of a convolution: the choice at both ends, and bad input."""

import math

import pytest
import scipy.fft
import torch

from lemmata.convolution import convolution_cost, direct_operations, fft_operations, fft_pays
from lemmata.convolution.convolution_cost import (
    CALL,
    _direct_time,
    _spectral_time,
    block_lengths,
    expected_ratio,
    fast_length,
    measured_choice,
)


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
    short, long = (expected_ratio((1, 1, n), (1, 1, 64), (n - 63,), torch.float32) for n in (10**6, 7 * 10**6))
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


def test_short_work_is_tried_until_the_time_is_up(monkeypatch):
    monkeypatch.setattr(convolution_cost, "_quicker", {})
    now, calls = [7.0], []
    monkeypatch.setattr(convolution_cost.time, "perf_counter", lambda: now[0])

    def run():
        calls.append(now[0])
        now[0] += 1 / 256
        return torch.zeros(1)

    measured_choice("sizes", {"one": run, "other": run}, seconds=8 / 256)
    assert len(calls) == 8


@pytest.mark.parametrize(
    ("shapes", "dtype", "direct", "spectral"),
    [
        # One channel, which is filled up to 16, cut into three blocks of 8: 8 - 3 + 1 = 6 windows each, of 14.
        (
            ((1, 1, 16), (1, 1, 3), (14,)),
            torch.float32,
            25_000 + 16 * 2 * 3 * 14 / 125 + 0.05 * 4 * 16 * (16 + 14),
            100_000 + 2.5 * 3 * (24 + 24 + 8 + 60 * 8) / 24 + 0.6 * 4 * 56,
        ),
        # Each of 6 channels for itself, in one block of 4 x 9; all windows are written out.
        (
            ((2, 6, 4, 9), (6, 1, 4, 5), (1, 5)),
            torch.float64,
            25_000 + 2 * 2 * 6 * 20 * 5 / 3.3 + 0.1 * 8 * 2 * 6 * 20 * 5,
            100_000 + 2.5 * math.log2(36) * (30 * 36 + 60 * 13) / 20 + 0.6 * 8 * 30 * 36,
        ),
        # The same in float32: maps of 6 channels take as much as 16, but no output is computed that nobody wants.
        (
            ((2, 6, 4, 9), (6, 1, 4, 5), (1, 5)),
            torch.float32,
            25_000 + 2 * 2 * 6 * 20 * 5 / 40 + 0.05 * 4 * 2 * 16 * (36 + 5),
            100_000 + 2.5 * math.log2(36) * (30 * 36 + 60 * 13) / 24 + 0.6 * 4 * 30 * 36,
        ),
        # Two times 3 channels to 20 in one block of 6 x 10: transforms of 6, 60 and 40 pictures.
        (
            ((2, 3, 6, 10), (20, 3, 4, 6), (3, 5)),
            torch.float32,
            25_000 + 32 / 20 * 2 * 2 * 60 * 24 * 15 / 125 + 0.05 * 4 * 2 * (16 * 60 + 32 * 15),
            100_000 + 2.5 * math.log2(60) * (106 * 60 + 60 * 16) / 24 + 8 * 2 * 60 * 30 / 3 + 0.6 * 4 * 106 * 60,
        ),
        (
            ((1, 2, 64), (1, 2, 40), (25,)),
            torch.float64,
            25_000 + 2 * 2 * 40 * 25 / 45 + 0.1 * 8 * 2 * 40 * 25,
            100_000 + 2.5 * 6 * (64 * 5 + 60 * 64) / 20 + 8 * 2 * 32 / 3 + 0.6 * 8 * 64 * 5,
        ),
    ],
)
def test_expected_times_are_those_written_out(shapes, dtype, direct, spectral):
    x, weight, sizes = shapes
    assert expected_ratio(x, weight, sizes, dtype) == pytest.approx(direct / spectral, rel=1e-12)


def test_new_pages_are_paid_for_from_32_mebibytes_on():
    def extra(x, weight, dtype=torch.float64):
        """The time of both ways beyond that of half the examples, twice, in nanoseconds."""
        half = (x[0] // 2, *x[1:])
        sizes = [n - k + 1 for n, k in zip(x[2:], weight[2:], strict=True)]
        direct = _direct_time(x, weight, sizes, dtype) - 2 * _direct_time(half, weight, sizes, dtype) + CALL
        return direct, _spectral_time(x, weight, dtype) - 2 * _spectral_time(half, weight, dtype)

    # 2^9 + 15 places, 16 taps, 2^9 windows: 8 * 2^13 bytes of windows for each example, so that 2^9 fill 32 MiB.
    x, weight = (2**9, 1, 2**9 + 15), (1, 1, 16)
    assert extra(x, weight)[0] == pytest.approx(0.5 * 2**25)
    assert extra((2**9 - 2, *x[1:]), weight)[0] == pytest.approx(0, abs=1e-3)
    assert extra((2**9, 2, x[2]), (2, 1, 16))[0] == pytest.approx(0.5 * 2**26)  # each channel has windows of its own
    assert extra((2**8, 2, x[2]), (2, 1, 16))[0] == pytest.approx(0, abs=1e-3)
    assert extra(x, weight, torch.float32)[0] == pytest.approx(0, abs=1e-3)  # no windows are written out
    maps = 4 * 16 * 2**10 * (2**9 + 15 + 2**9)  # of one channel, filled up to 16, before and after
    assert extra((2**10, *x[1:]), weight, torch.float32)[0] == pytest.approx(0.25 * maps)
    # Blocks of 512 values, one for each example and channel.
    assert block_lengths((1, 2, 512), (1, 2, 300)) == [512]
    large, small = (extra((n, 2, 512), (1, 2, 300))[1] for n in (2**12, 2**12 - 2))
    kernel = 0.5 * 8 * 2 * 512  # is paid for once, like the channel of each output
    assert large - small == pytest.approx(0.5 * 8 * 512 * 2**12 * 3 + kernel, rel=1e-6)


def test_unknown_dtypes_have_the_rates_of_float32():
    x, weight, sizes = (1, 1, 64), (1, 1, 40), (25,)
    short, single = (expected_ratio(x, weight, sizes, dtype) for dtype in (torch.bfloat16, torch.float32))
    assert short == pytest.approx(single, rel=0.02)  # but for the memory
    with pytest.raises(TypeError, match=r"dtype must be floating point, got torch.int64"):
        fft_pays(x, weight, sizes, torch.int64)
