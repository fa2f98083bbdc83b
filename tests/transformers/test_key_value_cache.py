"""The cache of keys and values: what it gives back, its memory, reordered rows, forgotten positions, bad input."""

import pytest
import torch

from lemmata.transformers import FixedCache, KeyValueCache


def drawn(time, batch=2, dtype=torch.float64):
    return [torch.randn(batch, 3, time, 4, dtype=torch.float64).to(dtype) for _ in range(2)]


def filled(*lengths, max_length=9):
    """A cache after some parts, and all that it was given."""
    cache, parts = KeyValueCache(max_length), [drawn(length) for length in lengths]
    for part in parts:
        cache.append(*part)
    return cache, [torch.cat(each, 2) for each in zip(*parts, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_everything_so_far_comes_back(dtype):
    cache, parts = KeyValueCache(9), []
    for length in (3, 1, 4, 1):
        assert cache.start == len(cache) == sum(len(part[0][0, 0]) for part in parts)
        parts.append(drawn(length, dtype=dtype))
        found = cache.append(*parts[-1])
        for mine, given in zip(found, zip(*parts, strict=True), strict=True):
            assert torch.equal(mine, torch.cat(given, 2))
            assert mine.dtype == dtype
    assert len(cache) == 9


def test_memory_is_taken_once():
    cache, _ = filled(2, 3)
    before = [each.data_ptr() for each in cache.buffers()]
    cache.append(*drawn(4))
    assert [each.data_ptr() for each in cache.buffers()] == before
    assert [each.shape for each in cache.buffers()] == [(2, 3, 9, 4)] * 2


@pytest.mark.parametrize("rows", [[1, 0], [1, 1], [0, 0], [1], [0, 1, 1, 0]])
def test_rows_are_kept_in_another_order(rows):
    cache, given = filled(2, 3)
    cache.reorder(torch.tensor(rows))
    more = drawn(1, batch=len(rows))
    for mine, old, new in zip(cache.append(*more), given, more, strict=True):
        assert torch.equal(mine, torch.cat([old[rows], new], 2))


def test_an_empty_cache_has_nothing_to_reorder():
    cache = KeyValueCache(4)
    cache.reorder(torch.tensor([1, 0]))
    assert len(cache) == 0
    with pytest.raises(ValueError, match="the cache has taken no memory yet: append to it first"):
        cache.buffers()


def test_what_is_cropped_is_written_over():
    cache, given = filled(2, 3)
    cache.crop(5)
    cache.crop(3)
    more = drawn(2)
    for mine, old, new in zip(cache.append(*more), given, more, strict=True):
        assert torch.equal(mine, torch.cat([old[:, :, :3], new], 2))
    cache.crop(0)
    assert len(cache) == 0


def test_a_fixed_cache_writes_where_it_is_told_and_gives_all():
    cache, given = filled(2, 3)
    cache.buffers()[0][:, :, 5:] = float("nan")
    start = torch.tensor([5])
    fixed, expected = FixedCache(cache, start), [torch.nn.functional.pad(each, (0, 0, 0, 4)) for each in given]
    assert all(torch.equal(mine, wanted) for mine, wanted in zip(cache.buffers(), expected, strict=True))
    for place in (5, 6):
        start.fill_(place)
        more = drawn(1)
        for mine, wanted, new in zip(fixed.append(*more), expected, more, strict=True):
            wanted[:, :, place : place + 1] = new
            assert torch.equal(mine, wanted)
    assert fixed.start is start


def test_bad_input_is_named(unchecked):
    for wrong, error, message in ((0, ValueError, "max_length must be >= 1, got 0"), (2.0, TypeError, "got float")):
        with pytest.raises(error, match=message):
            KeyValueCache(wrong)
    cache, _ = filled(2, 3, max_length=5)
    with pytest.raises(ValueError, match="the cache holds 5 positions, got 6: ask for a larger max_length"):
        cache.append(*drawn(1))
    cache.crop(4)
    with pytest.raises(ValueError, match="the cache is that of 2 sequences, got 3"):
        cache.append(*drawn(1, batch=3))
    with pytest.raises(ValueError, match="length must be <= 4, got 5"):
        cache.crop(5)
    with pytest.raises(ValueError, match="length must be >= 0, got -1"):
        cache.crop(-1)
    assert len(cache) == 4
