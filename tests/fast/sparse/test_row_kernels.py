"""A GPU's kernels are asked before all others."""

import pytest
import torch

from lemmata.fast.sparse import compiled, paths, reference
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.neighbour_extreme import row_extremes
from lemmata.fast.sparse.neighbour_sum import row_sums
from lemmata.fast.sparse.rows import rows_of


def pattern(rows=37, columns=29, entries=900):
    """Entries at random, 600 of them in one row; the last row and column have none."""
    generator = torch.Generator().manual_seed(0)
    r, c = (torch.randint(size - 1, (entries,), generator=generator) for size in (rows, columns))
    r[:600] = 5
    return rows_of(r, c, rows), rows_of(c, r, columns)


class StandIn:
    """Takes the place of a GPU's kernels: the same arguments, computed on the processor, and it says that it did."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        work = {
            "sums": reference.gathered_sums,
            "dots": reference.gathered_dots,
            "extremes": reference.gathered_extremes,
            "attention": compiled.compiled_attention,
            "attention_back": compiled.compiled_attention_back,
        }[name]

        def told(*arguments):
            self.called.append(name)
            return work(*arguments)

        return told


def test_kernels_are_asked_first_where_there_are_any(monkeypatch):
    if compiled.why_not_compiled(torch.float64):
        pytest.skip(compiled.why_not_compiled(torch.float64))
    rows, turned = pattern()
    stand_in = StandIn()
    monkeypatch.setattr(paths, "_gpu_kernels", lambda *values: stand_in)
    x = torch.randn(29, 6, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(900, dtype=torch.float64, requires_grad=True)
    to, source = (torch.randn(number, 2, dtype=torch.float64, requires_grad=True) for number in (37, 29))
    row_sums(x, rows, turned, weights).sum().backward()
    assert stand_in.called == ["sums", "sums", "dots"]
    row_attention(to, source, x.view(29, 2, 3), rows, turned).sum().backward()
    assert stand_in.called[3:] == ["attention", "attention_back"]
    row_extremes(x, rows, turned)
    assert stand_in.called[5:] == ["extremes"]
