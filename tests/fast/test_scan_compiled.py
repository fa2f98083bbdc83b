"""How the compiled scan divides its work among kernels, blocks and threads."""

import pytest
import torch

from lemmata.fast import scan_compiled

# Sizes, and for three threads: the kernel, how many channels a block has, how many blocks, and threads worth starting.
DIVIDED = {
    (3, 17, 9): ("columns", 16, 3, 3),
    (5, 18, 2): ("rows", 4, 4, 3),  # five sequences side by side, twice
    (2, 19, 3): ("rows", 4, 2, 3),
    (1, 20, 300): ("columns", 112, 3, 3),
    (1, 2, 1600): ("columns", 256, 7, 3),
    (5, 2, 4): ("columns", 16, 5, 3),
    (1, 4, 4): ("columns", 16, 1, 2),
    (1, 1, 1): ("rows", 4, 1, 1),
}


@pytest.mark.parametrize(("shape", "expected"), DIVIDED.items())
def test_neighbouring_channels_go_in_blocks_of_whole_cache_lines_and_others_in_fours(monkeypatch, shape, expected):
    told = []

    class Library:
        def __getattr__(self, name):
            return lambda task, first, last: told.append((name.removeprefix("forward_"), task._obj.width))

    def share(work, blocks, threads):
        work(0, blocks)
        told.append((*told.pop(), blocks, threads))

    monkeypatch.setattr(scan_compiled, "_scan_library", lambda dtype: (Library(), ""))
    monkeypatch.setattr(scan_compiled, "even_bounds", lambda blocks, threads: (blocks, threads))
    monkeypatch.setattr(scan_compiled, "share_work", lambda work, bounds: share(work, *bounds))
    monkeypatch.setattr(scan_compiled, "WORTH_A_THREAD", 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    scan_compiled.compiled_forward(torch.ones(shape), torch.ones(shape), None, False, torch.ones(shape))
    assert told == [expected]
