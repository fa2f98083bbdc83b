"""Sums, maxima and attention over neighbours on a GPU against the readable path in double precision on the processor.

One row has 10,000 entries and is taken in pieces, as is one column; others have none, a few, or just as many as a
program takes.
"""

import pytest
import torch

from lemmata.fast.sparse import reference
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.neighbour_extreme import row_extremes
from lemmata.fast.sparse.neighbour_sum import entry_dots, row_sums
from lemmata.fast.sparse.paths import sparse_path
from lemmata.fast.sparse.reference import WIDER
from lemmata.fast.sparse.rows import Rows, rows_of
from lemmata.geometric.gat import GATConvolution
from lemmata.geometric.gcn import GCNConvolution
from lemmata.geometric.graph import Graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
NODES = 700


def skewed():
    """Entries of 700 rows and columns: rows of 0, 1, 255, 256, 257 and 10,000 entries, a column of 3,000."""
    generator = torch.Generator().manual_seed(0)
    some = torch.randint(6, NODES - 1, (4000,), generator=generator)
    sizes = torch.tensor([0, 1, 255, 256, 257, 10_000])
    r = torch.cat([torch.arange(6).repeat_interleave(sizes), some])
    c = torch.randint(NODES - 1, (len(r),), generator=generator)
    c[-3000:] = 9
    order = torch.randperm(len(r), generator=generator)
    return rows_of(r[order], c[order], NODES), rows_of(c[order], r[order], NODES)


def on_gpu(rows):
    return Rows(*(part.cuda() for part in rows))


def compared(work, reference_work, leaves, dtype):
    """Results and gradients on the GPU twice, to the bit the same, and within rounding of double precision.

    A sum of n products, each rounded, and the sum of their sizes s is within (n + 2) eps s in any order; here n is the
    length of the longest row. Halves are added up in single precision, and what is stored is rounded once more.
    """
    rows, turned = skewed()
    here = [leaf.to(dtype) for leaf in leaves]
    exact_leaves = [leaf.double().requires_grad_() for leaf in here]
    exact = reference_work(*exact_leaves, rows, turned)
    grad = torch.randn(exact.shape, dtype=torch.float64).to(dtype)
    results = [exact.detach(), *torch.autograd.grad(exact, exact_leaves, grad.double())]
    runs = []
    for _ in range(2):
        mine = [leaf.cuda().requires_grad_() for leaf in here]
        y = work(*mine, on_gpu(rows), on_gpu(turned))
        runs.append([y.detach(), *torch.autograd.grad(y, mine, grad.cuda())])
    wide = torch.finfo(WIDER.get(dtype, dtype)).eps
    for one, again, right in zip(*runs, results, strict=True):
        assert one.dtype is dtype
        assert torch.equal(one, again)
        allowed = 10_000 * wide * right.abs().max() + torch.finfo(dtype).eps * right.abs()
        assert ((one.double().cpu() - right).abs() <= allowed).all()


# Each size and number is a kernel to compile, half a second each: not all pairs of them.
@pytest.mark.parametrize(
    ("dtype", "features"),
    [
        *((torch.float32, features) for features in (1, 10, 64, 200)),
        (torch.float64, 10),
        (torch.bfloat16, 64),
        (torch.float16, 10),
    ],
)
def test_sums_and_inner_products(dtype, features):
    rows, _ = skewed()
    x, a, weights = torch.randn(NODES, features), torch.randn(NODES, features), torch.randn(len(rows.columns))
    assert sparse_path(x.cuda()) == "triton"

    def summed(x, weights, rows, turned):
        return row_sums(x, rows, turned, weights)

    compared(summed, lambda x, w, rows, turned: reference.gathered_sums(x, w, rows), [x, weights], dtype)
    compared(
        lambda x, rows, turned: row_sums(x, rows, turned),
        lambda x, rows, turned: reference.gathered_sums(x, None, rows),
        [x],
        dtype,
    )
    compared(
        entry_dots, lambda a, x, rows, turned: (a[row_of(rows)] * x[rows.columns]).sum(1)[back(rows)], [a, x], dtype
    )


def row_of(rows):
    return rows.row_of_each()


def back(rows):
    """From the order of the rows to that of the list."""
    return rows.entries.argsort()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("dtype", "features"), [(torch.float32, 1), (torch.float32, 130), (torch.float64, 10), (torch.bfloat16, 64)]
)
def test_extremes_take_the_first_of_equals_and_what_is_not_a_number(dtype, features, largest):
    rows, turned = skewed()
    there = on_gpu(rows), on_gpu(turned)
    x = torch.randn(NODES, features).mul(3).round().to(dtype)  # many are equal
    x[11, 0], x[12], x[13] = torch.nan, -torch.inf, torch.inf
    sign = 1.0 if largest else -1.0
    at = torch.ops.lemmata.row_extremes(x.cuda(), sign, *there[0])
    assert torch.equal(at.cpu(), reference.gathered_extremes(x, sign, rows))
    found, expected = row_extremes(x.cuda(), *there, largest), row_extremes(x, rows, turned, largest)
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    # Halves would lose count of the rows that one column wins.
    plain = torch.randn(NODES, features, device="cuda", dtype=WIDER.get(dtype, dtype), requires_grad=True)
    row_extremes(plain, *there, largest).sum().backward()
    winners = reference.gathered_extremes(plain.detach().cpu(), sign, rows)
    expected = torch.zeros(NODES, features).scatter_add(0, winners.clamp(min=0), (winners >= 0).float())
    assert plain.grad is not None
    assert torch.equal(plain.grad.float().cpu(), expected)


@pytest.mark.parametrize(
    ("dtype", "shape", "with_more"),
    [
        (torch.float32, (4, 16), False),
        (torch.float32, (8, 8), True),
        (torch.float32, (1, 64), False),
        (torch.float32, (16, 64), True),
        (torch.float32, (1, 1), False),
        (torch.float64, (3, 5), True),
        (torch.bfloat16, (4, 16), True),
    ],
)
def test_attention_and_its_gradients(dtype, shape, with_more):
    rows, _ = skewed()
    heads, width = shape
    leaves = [torch.randn(NODES, heads), torch.randn(NODES, heads), torch.randn(NODES, heads, width)]
    leaves += [torch.randn(len(rows.columns), heads)] if with_more else []

    def attend(to, source, values, *rest):
        *more, rows, turned = rest
        return row_attention(to, source, values, rows, turned, *more, slope=0.3)

    def gathered(to, source, values, *rest):
        *more, rows, _ = rest
        return reference.gathered_attention(to, source, more[0] if more else None, values, 0.3, rows)[0]

    compared(attend, gathered, leaves, dtype)


def test_heads_too_wide_for_a_tile_take_the_readable_path():
    rows, turned = skewed()
    to, source, values = torch.randn(NODES, 40), torch.randn(NODES, 40), torch.randn(NODES, 40, 40)
    exact = reference.gathered_attention(to.double(), source.double(), None, values.double(), 0.2, rows)[0]
    found = row_attention(to.cuda(), source.cuda(), values.cuda(), on_gpu(rows), on_gpu(turned))
    torch.testing.assert_close(found.double().cpu(), exact, rtol=1e-3, atol=1e-3)


def test_scores_of_minus_infinity_leave_entries_out():
    rows, turned = skewed()
    to, source, values = torch.zeros(NODES, 2), torch.randn(NODES, 2), torch.randn(NODES, 2, 4)
    more = torch.zeros(len(rows.columns), 2)
    more[rows.entries[rows.pointers[5] : rows.pointers[5] + 3000]] = -torch.inf  # more than ten pieces of the long row
    exact = reference.gathered_attention(*(t.double() for t in (to, source, more, values)), 0.2, rows)[0]
    parts = (to.cuda(), source.cuda(), values.cuda(), on_gpu(rows), on_gpu(turned), more.cuda())
    torch.testing.assert_close(row_attention(*parts).double().cpu(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("number", "columns"), [(4, 0), (0, 4), (3, 5)])
def test_an_empty_pattern(number, columns):
    none = torch.zeros(0, dtype=torch.int64, device="cuda")
    rows, turned = rows_of(none, none, number), rows_of(none, none, columns)
    x = torch.ones(columns, 6, device="cuda", requires_grad=True)
    to = torch.ones(number, 2, device="cuda", requires_grad=True)
    y = row_sums(x, rows, turned)
    z = row_attention(to, x[:, :2], x.view(columns, 2, 3), rows, turned)
    m = row_extremes(x, rows, turned)
    assert [tuple(found.shape) for found in (y, z, m)] == [(number, 6), (number, 2, 3), (number, 6)]
    assert not any(found.any() for found in (y, z, m))
    dx, d_to = torch.autograd.grad(y.sum() + z.sum() + m.sum(), (x, to), materialize_grads=True)
    assert not any(found.any() for found in (dx, d_to))
    assert entry_dots(torch.ones(number, 6, device="cuda"), x, rows, turned).shape == (0,)


def launches(work):
    """Names and counts of the kernels that a call launches, after two calls that prepare what is kept."""
    work(), work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as seen:
        work()
        torch.cuda.synchronize()
    kernels = [event for event in seen.events() or [] if event.device_type.name == "CUDA"]
    return [event.name for event in kernels if not event.name.startswith(("Memcpy", "Memset"))]


def test_a_small_graph_takes_few_launches():
    edges = torch.randint(30, (2, 100), generator=torch.Generator().manual_seed(0))
    graph = Graph(edges, 30).undirected().to("cuda")
    x = torch.randn(30, 64, device="cuda")
    rows, turned = graph.incoming, graph.outgoing
    to, values = torch.randn(30, 4, device="cuda"), x.view(30, 4, 16)
    assert launches(lambda: row_sums(x, rows, turned)) == ["sum_rows"]
    assert launches(lambda: row_attention(to, to, values, rows, turned)) == ["attend_rows"]
    assert launches(lambda: torch.ops.lemmata.row_extremes(x, 1.0, *rows)) == ["extremes_of_rows"]
    with torch.no_grad():
        gcn, gat = GCNConvolution(64, 64, device="cuda"), GATConvolution(64, 16, 4, device="cuda")
        assert len(launches(lambda: gcn(x, graph))) <= 4  # the linear map, perhaps in two parts, the sum and the bias
        assert len(launches(lambda: gat(x, graph))) <= 12


def test_long_rows_are_cut_once_for_each_pattern():
    rows, turned = (on_gpu(one) for one in skewed())
    x = torch.randn(NODES, 8, device="cuda")
    assert launches(lambda: row_sums(x, rows, turned)) == ["sum_rows"] * 3
