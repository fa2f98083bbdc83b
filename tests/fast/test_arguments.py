"""What could be read or written beside an array, call by call: one sentence each, before any kernel runs."""

import numpy as np
import pytest
import torch
from tests.fast.test_wavenet_steps import beginning, needs_a_compiler, weights

from lemmata import fast
from lemmata.fast.sparse.neighbour_attention import row_attention
from lemmata.fast.sparse.neighbour_extreme import row_extremes
from lemmata.fast.sparse.neighbour_sum import entry_dots, row_sums
from lemmata.fast.sparse.reference import gathered_sums
from lemmata.fast.sparse.rows import Rows, rows_of

OPS = torch.ops.lemmata
fast.linear_scan
R, C = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 0])
GOOD = rows_of(R, C, 2), rows_of(C, R, 3)
X = torch.arange(12.0).view(3, 4)
POINTERS, COLUMNS, ENTRIES = GOOD[0]

BAD_ROWS = {
    "columns beyond x": (Rows(POINTERS, COLUMNS + 10**9, ENTRIES), r"x must be \(\d+, features\)"),
    "negative columns": (Rows(POINTERS, COLUMNS - 5, ENTRIES), "columns of rows must be 0 or more, got -5"),
    "pointers beyond": (Rows(POINTERS * 10**9, COLUMNS, ENTRIES), "pointers of rows must go up from 0 to 3"),
    "pointers that fall": (Rows(torch.tensor([0, 5, 3]), COLUMNS, ENTRIES), "pointers of rows must go up from 0 to 3"),
    "no pointers": (Rows(POINTERS[:0], COLUMNS, ENTRIES), r"must fit together, got lengths \(0, 3, 3\)"),
    "short entries": (Rows(POINTERS, COLUMNS, ENTRIES[:2]), r"must fit together, got lengths \(3, 3, 2\)"),
    "entries beyond": (Rows(POINTERS, COLUMNS, ENTRIES + 1), "entries of rows must be each number from 0 to 2 once"),
    "entries twice": (Rows(POINTERS, COLUMNS, ENTRIES * 0), "entries of rows must be each number from 0 to 2 once"),
    "of 32 bits": (Rows(POINTERS, COLUMNS.int(), ENTRIES), "columns of rows must be an int64 tensor, got torch.int32"),
    "with gaps": (Rows(POINTERS, COLUMNS.repeat_interleave(2)[::2], ENTRIES), "columns of rows must be one contiguous"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("call", [gathered_sums, lambda x, w, rows: OPS.row_sums(x, w, *rows)], ids=["torch", "op"])
def test_a_pattern_made_by_hand_is_looked_at(name, call):
    rows, said = BAD_ROWS[name]
    with pytest.raises((ValueError, TypeError), match=said):
        call(X, None, rows)
    with pytest.raises((ValueError, TypeError), match="must"):
        row_sums(X, rows, GOOD[1])
    with pytest.raises((ValueError, TypeError), match="must"):
        row_extremes(X, rows, GOOD[1])
    with pytest.raises((ValueError, TypeError), match="must"):
        entry_dots(X[:2], X, rows, GOOD[1])
    with pytest.raises((ValueError, TypeError), match="must"):
        row_attention(X[:2, :1], X[:, :1], X[:, None], rows, GOOD[1])


def test_a_pattern_that_was_changed_in_place_is_looked_at_again():
    rows, turned = rows_of(R, C, 2), rows_of(C, R, 3)
    before = row_sums(X, rows, turned)
    rows.columns[0] = 10**9
    with pytest.raises(ValueError, match="must be one pattern of 2 rows and 3 columns"):
        row_sums(X, rows, turned)
    rows.columns[0] = 1
    assert torch.equal(row_sums(X, rows, turned), before)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: OPS.row_sums(X.double(), X[:, 0].to(torch.complex64), *GOOD[0]), "weights must be real as x is"),
        (lambda: OPS.row_extremes(X, 2.0, *GOOD[0]), "sign must be 1 for the largest or -1"),
        (lambda: OPS.row_attention(X[:2, :1].double(), X[:, :1], None, X[:, None], 0.2, *GOOD[0]), "in the dtype of"),
        (lambda: OPS.row_sums(X.to("meta"), None, *GOOD[0]), "all tensors must be on one device"),
        (lambda: rows_of(R + 5, C, 2), "rows must be from 0 to 1, got 5 to 6"),
        (lambda: rows_of(R, C - 1, 2), "columns must be 0 or more, got -1"),
        (lambda: OPS.linear_scan(X[None], X[None, :2], None, False), "a must have the shape"),
        (lambda: OPS.linear_scan(X[None].double(), X[None], None, False), "a must have the dtype of b"),
        (lambda: OPS.linear_scan_backward(X[None], X[None], None, X[None, :1], False), "grad must have the shape"),
        (
            lambda: fast.compiled_forward(X[None], X[None], None, False, X[None, :1].expand(1, 3, 4)),
            "out must have a p",
        ),
        (lambda: fast.even_bounds(-1, 2), "blocks must be >= 0"),
        (lambda: fast.even_bounds(2**62, 2**62), "threads must be <= 65536"),
        (lambda: row_sums(X, GOOD[0], rows_of(C, R + 7, 3)), "one pattern"),
        (lambda: fast.share_work(print, [3]), "bounds must be two integers or more"),
    ],
)
def test_what_a_kernel_would_misread_is_refused(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()


@needs_a_compiler
@pytest.mark.parametrize("position", [-1, -999, 2**62, 1.0])
def test_positions_lie_ahead(position):
    given, chance = weights(), torch.rand(3, 2, dtype=torch.float64)
    memory, last = beginning(given, 2)
    kept = memory.clone()
    with pytest.raises((ValueError, TypeError), match="position must be"):
        fast.compiled_steps(given, memory, last, position, 1.0, chance)
    assert torch.equal(memory, kept)


@pytest.mark.parametrize("sweep", [fast.compiled_sweep, fast.quick_sweep, fast.block_sweep])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.ones(2)}, "y must be -1 or \\+1 for each of the 4 points"),
        ({"y": np.full(4, 0.5)}, "y must be -1 or \\+1"),
        ({"y": np.ones(4, "f4")}, "must all be float32 or all float64, got y of float32"),
        ({"state": np.zeros(3)}, "state must be \\(4,\\)"),
        ({"x": np.zeros((4, 6))[:, ::2]}, "x must have no gaps in memory"),
        ({"x": np.zeros((3, 4)).T}, "x must have no gaps in memory"),
        ({"x": [[0.0] * 3] * 4}, "x must be a numpy array, got list"),
        ({"bias": 1}, "bias must be True or False, got 1"),
    ],
)
def test_arrays_of_a_sweep_must_fit(sweep, change, said):
    given = {"x": np.zeros((4, 3)), "y": np.ones(4), "state": np.zeros(4), "bias": True} | change
    with pytest.raises((ValueError, TypeError), match=said):
        sweep(**given)
