"""Sums over neighbours and attention on a GPU: as on the processor, in all numbers, to the bit the same twice."""

import pytest
import torch

from lemmata.fast.sparse import compiled, paths, reference
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.neighbour_sum import entry_dots, row_sums
from lemmata.fast.sparse.paths import sparse_path
from lemmata.fast.sparse.rows import Rows, rows_of

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
# Sums of 700 products of numbers below 5 in blocks, and one rounding of the result.
WITHIN = {torch.float64: 1e-11, torch.float32: 2e-3, torch.bfloat16: 1.0, torch.float16: 0.2}


def pattern(rows=37, columns=29, entries=900):
    """Entries at random, 600 of them in one row; the last row and column have none."""
    generator = torch.Generator().manual_seed(0)
    r, c = (torch.randint(size - 1, (entries,), generator=generator) for size in (rows, columns))
    r[:600] = 5
    return rows_of(r, c, rows), rows_of(c, r, columns)


def there(*parts):
    """On the GPU, as leaves of their own."""
    moved = [part.detach().to("cuda") for part in parts]
    return [part.requires_grad_() if part.is_floating_point() else part for part in moved]


def both(work, leaves, rows, turned):
    """Results and gradients on the GPU twice, and on the processor in double precision."""
    found = []
    for device in ("cuda", "cuda", "cpu"):
        mine = there(*leaves) if device == "cuda" else [leaf.detach().double().requires_grad_() for leaf in leaves]
        patterns = [Rows(*(part.to(device) for part in one)) for one in (rows, turned)]
        y = work(*mine, *patterns)
        torch.manual_seed(0)
        grad = torch.randn(y.shape, dtype=torch.float64).to(y)
        found.append([y, *torch.autograd.grad(y, mine, grad)])
    return found


@on_gpu
@pytest.mark.parametrize("features", [1, 10, 64, 200])
@pytest.mark.parametrize("dtype", WITHIN)
def test_sums_and_inner_products_are_those_of_the_processor(dtype, features):
    rows, turned = pattern()
    x, a, weights = (torch.randn(*shape).to(dtype) for shape in ((29, features), (37, features), (900,)))
    works = {
        lambda x, rows, turned: row_sums(x, rows, turned): [x],
        lambda x, w, rows, turned: row_sums(x, rows, turned, w): [x, weights],
        lambda a, x, rows, turned: entry_dots(a, x, rows, turned): [a, x],
    }
    assert sparse_path(x.cuda()) == "triton"
    for work, leaves in works.items():
        for one, again, exact in zip(*both(work, leaves, rows, turned), strict=True):
            assert one.dtype is dtype
            assert torch.equal(one, again)
            assert (one.double().cpu() - exact).abs().max() < WITHIN[dtype] * max(1.0, features**0.5 / 8)


@on_gpu
@pytest.mark.parametrize("shape", [(8, 8), (4, 16), (1, 64), (3, 5), (1, 1), (16, 64), (40, 40)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_attention_is_that_of_the_processor(dtype, shape):
    rows, turned = pattern()
    sizes = (37, shape[0]), (29, shape[0]), (29, *shape), (900, shape[0])
    leaves = [torch.randn(*size).to(dtype) for size in sizes]

    def attend(to, source, values, more, rows, turned):
        return row_attention(to, source, values, rows, turned, more, slope=0.3)

    twice = shape != (40, 40)  # for which there is no kernel: torch adds up in any order
    for one, again, exact in zip(*both(attend, leaves, rows, turned), strict=True):
        assert torch.equal(one, again) or not twice
        assert (one.double().cpu() - exact).abs().max() < WITHIN[dtype] * max(1.0, shape[1] ** 0.5 / 4)


@on_gpu
def test_one_launch_for_a_sum_whatever_the_graph():
    rows, turned = (Rows(*(part.cuda() for part in one)) for one in pattern())
    x = torch.randn(29, 64, device="cuda")
    row_sums(x, rows, turned)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        row_sums(x, rows, turned)
    assert sum(event.count for event in seen.key_averages() if "sum_rows" in event.key) == 1


@on_gpu
def test_nothing_at_all_on_a_gpu():
    none = torch.zeros(0, dtype=torch.int64, device="cuda")
    for number, columns in ((4, 0), (0, 4), (3, 5)):
        rows, turned = rows_of(none, none, number), rows_of(none, none, columns)
        x = torch.ones(columns, 6, device="cuda", requires_grad=True)
        y = row_sums(x, rows, turned)
        z = row_attention(torch.ones(number, 2, device="cuda"), x[:, :2], x.view(columns, 2, 3), rows, turned)
        assert not y.any()
        assert not z.any()
        assert torch.autograd.grad(y.sum() + z.sum(), x)[0].shape == x.shape


class StandIn:
    """Takes the place of a GPU's kernels: the same arguments, computed on the processor, and it says that it did."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        work = {
            "sums": reference.gathered_sums,
            "dots": reference.gathered_dots,
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
    monkeypatch.setattr(paths, "_kernels", lambda *values: stand_in)
    x = torch.randn(29, 6, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(900, dtype=torch.float64, requires_grad=True)
    to, source = (torch.randn(number, 2, dtype=torch.float64, requires_grad=True) for number in (37, 29))
    row_sums(x, rows, turned, weights).sum().backward()
    assert stand_in.called == ["sums", "sums", "dots"]
    row_attention(to, source, x.view(29, 2, 3), rows, turned).sum().backward()
    assert stand_in.called[3:] == ["attention", "attention_back"]
