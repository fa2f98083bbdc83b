"""Attention over the entries of rows against a dense softmax: every path and size; gradients; extreme scores."""

import itertools

import pytest
import torch
from torch.nn import functional

from lemmata.fast.sparse import compiled
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.reference import gathered_attention
from lemmata.fast.sparse.rows import rows_of

# Heads and widths: those for which loops are unrolled, and others in one block of heads, in several, and none at all.
SHAPES = [
    (8, 8),
    (4, 16),
    (2, 32),
    (1, 64),
    (1, 32),
    (1, 16),
    (1, 8),
    (20, 1),
    (3, 5),
    (19, 2),
    (9, 8),
    (8, 40),
    (1, 1),
    (2, 0),
]


def problem(heads, width, dtype=torch.float64, rows=7, columns=5, entries=30):
    """Entries in a random order, some twice; the last row and column have none."""
    generator = torch.Generator().manual_seed(100 * heads + width)
    r, c = (torch.randint(size - 1, (entries,), generator=generator) for size in (rows, columns))
    shapes = (rows, heads), (columns, heads), (columns, heads, width), (entries, heads)
    to, source, values, more = (torch.randn(*shape, generator=generator, dtype=dtype) for shape in shapes)
    return {
        "to": to, "source": source, "values": values,
        "rows": rows_of(r, c, rows), "transposed": rows_of(c, r, columns), "more": more,
    }  # fmt: skip


def dense(to, source, values, rows, transposed, more, slope):
    """One row after another."""
    total = []
    for number in range(rows.number):
        own = slice(int(rows.pointers[number]), int(rows.pointers[number + 1]))
        c, e = rows.columns[own], rows.entries[own]
        score = functional.leaky_relu(to[number] + source[c] + (0 if more is None else more[e]), slope)
        total.append((score.softmax(0)[..., None] * values[c]).sum(0))
    return torch.stack(total)


@pytest.mark.parametrize("with_more", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_softmax_of_each_row_and_so_are_its_gradients(way, shape, with_more):
    given = problem(*shape)
    given |= {} if with_more else {"more": None}
    leaves = [given[name].requires_grad_() for name in ("to", "source", "values", "more") if given[name] is not None]
    grad = torch.randn(7, *shape, dtype=torch.float64)
    found, expected = row_attention(**given, slope=0.3), dense(**given, slope=0.3)
    pairs = zip(
        [found, *torch.autograd.grad(found, leaves, grad)],
        [expected, *torch.autograd.grad(expected, leaves, grad)],
        strict=True,
    )
    for mine, exact in pairs:
        torch.testing.assert_close(mine, exact, rtol=1e-12, atol=1e-12)  # some hundred roundings of numbers near 1


@pytest.mark.parametrize("shape", [(8, 8), (1, 64), (3, 5)])
def test_single_precision_is_as_exact_as_its_numbers(way, shape):
    given = problem(*shape, dtype=torch.float32)
    wide = {name: part.double() if isinstance(part, torch.Tensor) else part for name, part in given.items()}
    leaves = [[of[name].requires_grad_() for name in ("to", "source", "values", "more")] for of in (given, wide)]
    y, exact = row_attention(**given), row_attention(**wide)
    # Shares to some units of 2^-23, sums of 30 products of numbers below 5, and their differences.
    torch.testing.assert_close(y.double(), exact, rtol=0, atol=2e-5)
    grads = [torch.autograd.grad(z.sum(), of) for z, of in zip((y, exact), leaves, strict=True)]
    for mine, true in zip(*grads, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_exponential_is_exact_to_a_few_units_wherever_it_is_normal(dtype):
    if compiled.why_not_compiled(dtype):
        pytest.skip(compiled.why_not_compiled(dtype))
    lowest = {torch.float32: -87.0, torch.float64: -708.0}[dtype]
    scores = torch.cat([torch.linspace(lowest, 0, 50_001, dtype=torch.float64), torch.tensor([-1e4, -1e-9])]).to(dtype)
    # Row k has scores 0 and z: with values 0 and 1 its share is exp(z) / (1 + exp(z)), which is the smaller the lower.
    r = torch.arange(len(scores)).repeat(2)
    c = torch.tensor([0, 1]).repeat_interleave(len(scores))
    more = torch.cat([torch.zeros_like(scores), scores])[:, None]
    values = torch.tensor([0.0, 1.0], dtype=dtype)[:, None, None]
    rows, turned = rows_of(r, c, len(scores)), rows_of(c, r, 2)
    zeros = torch.zeros(len(scores), 1, dtype=dtype)
    found = row_attention(zeros, zeros[:2], values, rows, turned, more, slope=1.0)[:, 0, 0]
    exact = scores.double().sigmoid()
    exact[-2] = 0.0
    # The reference itself is off by a unit of double precision or two.
    assert ((found.double() - exact).abs() <= 6 * torch.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize(
    ("names", "with_more"),
    [
        (("to", "source", "values", "more"), True),
        (("to", "source", "values"), True),
        (("source", "values"), False),
        (("values",), True),
        (("to", "more"), True),
    ],
)
def test_first_and_second_derivatives_to_what_asks_for_them(way, names, with_more):
    given = problem(2, 3, rows=3, columns=3, entries=5)
    given |= {} if with_more else {"more": None}
    leaves = [given.pop(name).requires_grad_() for name in names]

    def attend(*leaves):
        return row_attention(**dict(zip(names, leaves, strict=True)), **given)

    assert torch.autograd.gradcheck(attend, leaves)
    assert torch.autograd.gradgradcheck(attend, leaves)


def test_huge_scores_do_not_overflow_and_what_is_masked_counts_nothing(way):
    given = problem(8, 8, dtype=torch.float32)
    given["more"] = 1e30 * given["more"]
    assert row_attention(**given).isfinite().all()
    given = problem(8, 8)
    first = int(given["rows"].entries[0])  # of row 0
    given["more"][first] = -torch.inf
    found = row_attention(**given)
    kept = torch.ones(30, dtype=torch.bool).index_fill(0, torch.tensor([first]), False)
    r, c = given["rows"].row_of_each(), given["rows"].columns
    order = given["rows"].entries
    r, c = torch.empty_like(r).index_copy(0, order, r)[kept], torch.empty_like(c).index_copy(0, order, c)[kept]
    given |= {"rows": rows_of(r, c, 7), "transposed": rows_of(c, r, 5), "more": given["more"][kept]}
    torch.testing.assert_close(found, row_attention(**given), rtol=1e-12, atol=1e-12)


def test_what_is_not_a_number_is_seen_in_its_row_and_nowhere_else(way):
    given = problem(8, 8)
    entry = int(given["rows"].entries[0])
    given["more"][entry, 3] = torch.nan
    bad = row_attention(**given).isnan()
    assert bad[0, 3].all()
    assert int(bad.sum()) == 8


@pytest.mark.parametrize(("rows", "columns"), [(7, 5), (0, 5), (7, 0), (0, 0)])
def test_nothing_at_all_is_attended_to_too_with_gradients(way, rows, columns):
    none = torch.zeros(0, dtype=torch.int64)
    to, source, values = torch.ones(rows, 2), torch.ones(columns, 2), torch.ones(columns, 2, 3)
    leaves = [x.requires_grad_() for x in (to, source, values)]
    y = row_attention(*leaves, rows_of(none, none, rows), rows_of(none, none, columns))
    assert torch.equal(y, torch.zeros(rows, 2, 3))
    assert not any(grad.any() for grad in torch.autograd.grad(y.sum(), leaves))


def test_halves_and_mixed_numbers_are_computed_in_single_precision(way):
    given = problem(4, 16, dtype=torch.float32)
    rounded = {**given, "values": given["values"].bfloat16(), "more": given["more"].half()}
    for name in ("to", "values", "more"):
        rounded[name].requires_grad_()
    found = row_attention(**rounded)
    wide = {name: part.float() if isinstance(part, torch.Tensor) else part for name, part in rounded.items()}
    assert torch.equal(found, row_attention(**wide).bfloat16())
    grads = torch.autograd.grad(found.sum(), [rounded[name] for name in ("to", "values", "more")])
    assert [grad.dtype for grad in grads] == [torch.float32, torch.bfloat16, torch.float16]


def test_views_with_gaps_and_other_strides_are_read_and_written_rightly(way):
    plain = problem(3, 5)
    strided = {
        **plain,
        "to": plain["to"].mT.contiguous().mT,
        "source": plain["source"].mT.contiguous().mT,
        "values": plain["values"].permute(2, 1, 0).contiguous().permute(2, 1, 0),
        "more": torch.stack([plain["more"], plain["more"]], 2)[..., 0],
    }
    results = []
    for given in (plain, strided):
        leaves = [given[name].detach().requires_grad_() for name in ("to", "source", "values", "more")]
        named = dict(zip(("to", "source", "values", "more"), leaves, strict=True))
        y = row_attention(**given | named)
        results.append([y, *torch.autograd.grad(y.sum(), leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    given = problem(8, 8, dtype=torch.float32, rows=40, columns=40, entries=500)
    leaves = [given[name].requires_grad_() for name in ("to", "source", "values", "more")]

    def everything():
        y = row_attention(**given)
        return [y, *torch.autograd.grad(y.square().sum(), leaves)]

    alone = everything()
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    for threads in (2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert all(itertools.starmap(torch.equal, zip(everything(), alone, strict=True)))


def test_compiled_by_torch_and_on_the_meta_device():
    given = problem(4, 16, dtype=torch.float32)
    leaves = [given[name].requires_grad_() for name in ("to", "source", "values", "more")]

    def layer(to, source, values, more):
        return row_attention(2 * to, source, values, given["rows"], given["transposed"], more).relu()

    whole = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for one, other in zip(*(torch.autograd.grad(f(*leaves).sum(), leaves) for f in (layer, whole)), strict=True):
        torch.testing.assert_close(one, other)
    to, source, values, more = leaves
    arguments = (to, source, more, values, 0.2, *given["rows"], *given["transposed"])
    torch.library.opcheck(torch.ops.lemmata.row_attention, arguments, test_utils=("test_schema", "test_faketensor"))
    there = [part.to("meta") if isinstance(part, torch.Tensor) else part for part in arguments]
    assert [part.shape for part in torch.ops.lemmata.row_attention(*there)] == [(7, 4, 16), (7, 2, 4)]


def test_shares_stand_in_the_order_of_the_list_and_add_up_to_one():
    given = problem(3, 5)
    _, shares = gathered_attention(given["to"], given["source"], given["more"], given["values"], 0.2, given["rows"])
    r = torch.empty(30, dtype=torch.int64).index_copy(0, given["rows"].entries, given["rows"].row_of_each())
    total = torch.zeros(7, 3, dtype=torch.float64).index_add(0, r, shares)
    there = given["rows"].lengths() > 0
    torch.testing.assert_close(total, there[:, None].double().expand(7, 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": torch.ones(5, 3)}, r"values must be \(5, heads, width\), got shape \(5, 3\)"),
        ({"values": torch.ones(4, 3, 2)}, r"values must be \(5, heads, width\), got shape \(4, 3, 2\)"),
        ({"to": torch.ones(7, 2)}, r"to must have shape \(7, 3\), got \(7, 2\)"),
        ({"source": torch.ones(7, 3)}, r"source must have shape \(5, 3\), got \(7, 3\)"),
        ({"more": torch.ones(3, 30)}, r"more must have shape \(30, 3\), got \(3, 30\)"),
    ],
)
def test_what_is_not_there_is_not_read(change, message):
    with pytest.raises(ValueError, match=message):
        row_attention(**problem(3, 5) | change)
