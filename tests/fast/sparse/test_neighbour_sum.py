"""Sums over the entries of rows against a dense matrix: every path, size and number; gradients, also second ones."""

import itertools

import pytest
import torch

from cases import for_each
from lemmata.fast.sparse import compiled, neighbour_sum, paths
from lemmata.fast.sparse.neighbour_sum import entry_dots, row_sums
from lemmata.fast.sparse.paths import sparse_path
from lemmata.fast.sparse.rows import Rows, rows_of
from lemmata.fast.threads import share_work

SIZES = [(6, 9, 40), (1, 1, 1), (5, 3, 0), (0, 4, 0), (4, 0, 0), (30, 2, 7)]  # rows, columns, entries


def pattern(rows, columns, entries):
    """Entries at random: some twice, some rows and columns without any."""
    generator = torch.Generator().manual_seed(entries)
    r, c = (torch.randint(max(size, 1), (entries,), generator=generator) for size in (rows, columns))
    return r, c, rows_of(r, c, rows), rows_of(c, r, columns)


def dense(r, c, rows, columns, weights):
    return weights.new_zeros(rows, columns).index_put((r, c), weights, accumulate=True)


@for_each(("size", "features", "weighted"), itertools.product(SIZES, [0, 1, 7, 10, 16, 64, 83], [False, True]))
def test_it_is_the_product_with_the_dense_matrix_and_so_are_its_gradients(way, size, features, weighted):
    rows, columns, entries = size
    r, c, by_row, by_column = pattern(*size)
    x = torch.randn(columns, features, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(entries, dtype=torch.float64, requires_grad=weighted)
    grad = torch.randn(rows, features, dtype=torch.float64)
    used = weights if weighted else torch.ones_like(weights)
    leaves = [x, weights] if weighted else [x]
    found = row_sums(x, by_row, by_column, weights if weighted else None)
    expected = dense(r, c, rows, columns, used) @ x
    for mine, exact in zip(
        [found, *torch.autograd.grad(found, leaves, grad)],
        [expected, *torch.autograd.grad(expected, leaves, grad)],
        strict=True,
    ):
        torch.testing.assert_close(mine, exact, rtol=1e-13, atol=1e-12)  # some hundred products of numbers near 1


def test_inner_products_of_entries_stand_in_the_order_of_the_list(way):
    r, c, by_row, by_column = pattern(6, 9, 40)
    a, b = (torch.randn(n, 21, dtype=torch.float64, requires_grad=True) for n in (6, 9))
    found, expected = entry_dots(a, b, by_row, by_column), (a[r] * b[c]).sum(1)
    grad = torch.randn(40, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-12)
    for mine, exact in zip(*(torch.autograd.grad(y, (a, b), grad) for y in (found, expected)), strict=True):
        torch.testing.assert_close(mine, exact, rtol=1e-13, atol=1e-12)


def test_first_and_second_derivatives(way):
    _, _, by_row, by_column = pattern(4, 3, 7)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: row_sums(x, by_row, by_column, w), (x, weights))
    assert torch.autograd.gradgradcheck(lambda x, w: row_sums(x, by_row, by_column, w), (x, weights))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_added_up_in_single_precision_and_rounded_once(way, dtype):
    _, _, by_row, by_column = pattern(1, 300, 1000)
    x, weights = torch.rand(300, 5).to(dtype).requires_grad_(), torch.rand(1000).to(dtype).requires_grad_()
    found = row_sums(x, by_row, by_column, weights)
    exact = row_sums(x.double(), by_row, by_column, weights.double())
    half, single = torch.finfo(dtype).eps / 2, 1000 * torch.finfo(torch.float32).eps
    assert found.dtype is dtype
    assert ((found - exact).abs() <= (half + single) * exact).all()  # all terms are positive
    dx, dw = torch.autograd.grad(found.sum(), (x, weights))
    assert (dx.dtype, dw.dtype) == (dtype, dtype)


def test_gradients_that_nobody_asks_for_are_not_computed(monkeypatch):
    _, _, by_row, by_column = pattern(6, 9, 40)
    computed = []
    for kind, name in (("sums", "checked_sums"), ("dots", "dots")):
        work = getattr(neighbour_sum, name)
        monkeypatch.setattr(neighbour_sum, name, lambda *given, k=kind, f=work: (computed.append(k), f(*given))[1])
    x, weights = torch.randn(9, 4, requires_grad=True), torch.randn(40, requires_grad=True)
    for given, expected in (
        ((x, weights), ["sums", "sums", "dots"]),
        ((x, weights.detach()), ["sums", "sums"]),
        ((x.detach(), weights), ["sums", "dots"]),
        ((x, None), ["sums", "sums"]),
    ):
        computed.clear()
        row_sums(given[0], by_row, by_column, given[1]).sum().backward()
        assert computed == expected


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    _, _, by_row, by_column = pattern(50, 40, 900)
    x, weights = torch.randn(40, 33), torch.randn(900)
    alone = row_sums(x, by_row, by_column, weights)
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    for threads in (2, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert torch.equal(row_sums(x, by_row, by_column, weights), alone)


def test_rows_are_shared_by_the_number_of_their_entries():
    r = torch.tensor([0] * 90 + [1, 2, 3] * 30)
    assert compiled._fair_bounds(rows_of(r, r, 5), 2) == [0, 1, 5]
    even = torch.arange(6).repeat_interleave(10)
    assert compiled._fair_bounds(rows_of(even, even, 6), 3) == [0, 2, 4, 6]


@pytest.mark.parametrize(("worth", "expected"), [(40 * 4, []), (40 * 4 // 2, [[0, 3, 6]] * 3), (1, [[0, 2, 4, 6]] * 4)])
def test_threads_are_asked_when_there_is_work_for_them(monkeypatch, worth, expected):
    if compiled.why_not_compiled(torch.float32):
        pytest.skip(compiled.why_not_compiled(torch.float32))
    r = torch.arange(6).repeat_interleave(7)[:40]
    by_row, given = rows_of(r, r, 6), []

    def shared(work, bounds):
        given.append(bounds)
        share_work(work, bounds)

    monkeypatch.setattr(compiled, "WORTH_A_THREAD", worth)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(compiled, "share_work", shared)
    x = torch.randn(6, 2, 2)
    y, softmax = compiled.compiled_attention(x[..., 0], x[..., 1], None, x, 0.2, by_row)
    compiled.compiled_attention_back(x[..., 0], x[..., 1], None, x, 0.2, by_row, by_row, softmax, y, x)
    row_sums(x.flatten(1), by_row, by_row)
    # Attention and its way back read entries times heads times width, the sums entries times features: 40 * 4 each.
    # Between them gradients are added up over entries times heads, 40 * 2. Work for one thread is not handed over.
    assert given == expected


def test_views_with_gaps_and_other_strides_are_read_rightly(way):
    _, _, by_row, by_column = pattern(6, 9, 40)
    x, weights = torch.randn(5, 9).mT, torch.randn(40, 2)[:, 1]
    expected = row_sums(x.contiguous(), by_row, by_column, weights.contiguous())
    assert torch.equal(row_sums(x, by_row, by_column, weights), expected)
    x.requires_grad_()
    row_sums(x, by_row, by_column, weights).sum().backward()  # whose gradient has no strides at all
    assert x.grad is not None


def test_compiled_by_torch_and_on_the_meta_device():
    _, _, by_row, by_column = pattern(6, 9, 40)
    x, weights = torch.randn(9, 4, requires_grad=True), torch.randn(40, requires_grad=True)

    def layer(x, weights):
        return row_sums(2 * x, by_row, by_column, weights).relu()

    whole = torch.compile(layer, backend="aot_eager", fullgraph=True)
    found = [torch.autograd.grad(f(x, weights).sum(), (x, weights)) for f in (layer, whole)]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    far, far_weights = x.to("meta"), weights.to("meta")
    there = [Rows(*(part.to("meta") for part in rows)) for rows in (by_row, by_column)]
    assert row_sums(far, *there, far_weights).shape == (6, 4)
    assert entry_dots(torch.empty(6, 4, device="meta"), far, *there).shape == (40,)
    tested = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lemmata.row_sums, (x, weights, *by_row), test_utils=tested)
    torch.library.opcheck(torch.ops.lemmata.entry_dots, (torch.randn(6, 4), x, *by_row), test_utils=tested)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.ones(8, 4)}, r"x must be \(9, features\), got shape \(8, 4\)"),
        ({"x": torch.ones(9)}, r"x must be \(9, features\), got shape \(9,\)"),
        ({"weights": torch.ones(39)}, r"weights must have shape \(40,\), got \(39,\)"),
        ({"weights": torch.ones(40, 1)}, r"weights must have shape \(40,\), got \(40, 1\)"),
    ],
)
def test_what_is_not_there_is_not_read(change, message):
    _, _, by_row, by_column = pattern(6, 9, 40)
    with pytest.raises(ValueError, match=message):
        row_sums(**{"x": torch.ones(9, 4), "rows": by_row, "transposed": by_column} | change)


def test_inner_products_of_unequal_length_are_refused():
    _, _, by_row, by_column = pattern(6, 9, 40)
    with pytest.raises(ValueError, match="a and b must have as many features, got 3 and 4"):
        entry_dots(torch.ones(6, 3), torch.ones(9, 4), by_row, by_column)
    with pytest.raises(ValueError, match=r"a must be \(6, features\)"):
        entry_dots(torch.ones(5, 4), torch.ones(9, 4), by_row, by_column)


def test_the_path_is_told_with_its_reason(monkeypatch):
    assert sparse_path(torch.ones(1, device="meta")) == "torch: no kernels for meta"
    assert sparse_path(torch.ones(1, dtype=torch.int64)) == "torch: no compiled numbers of type torch.int64"
    assert sparse_path(torch.ones(1).bfloat16()) == sparse_path(torch.ones(1))
    monkeypatch.setattr(paths.compiled, "why_not_compiled", lambda dtype: "switched off")
    assert sparse_path(torch.ones(1)) == "torch: switched off"


def test_whole_numbers_are_added_up_too():
    r, c, by_row, by_column = pattern(6, 9, 40)
    x = torch.randint(100, (9, 3))
    ones = dense(r, c, 6, 9, torch.ones(40, dtype=torch.int64))
    assert torch.equal(row_sums(x, by_row, by_column), ones @ x)
