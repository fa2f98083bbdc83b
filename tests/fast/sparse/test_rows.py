"""Entries sorted by row: the order of the list is kept, rows without entries stay."""

import torch

from lemmata.fast.sparse.rows import rows_of


def test_entries_are_found_again_in_the_list():
    r, c = torch.randint(9, (40,)), torch.randint(7, (40,))
    rows = rows_of(r, c, 11)
    assert rows.number == 11
    assert torch.equal(rows.lengths(), torch.bincount(r, minlength=11))
    assert torch.equal(rows.row_of_each(), r[rows.entries])
    assert torch.equal(rows.columns, c[rows.entries])
    assert torch.equal(rows.row_of_each(), rows.row_of_each().sort().values)
    for number in range(11):  # within a row as in the list
        own = rows.entries[rows.pointers[number] : rows.pointers[number + 1]]
        assert torch.equal(own, own.sort().values)


def test_nothing_at_all_has_rows_too():
    none = torch.zeros(0, dtype=torch.int64)
    assert rows_of(none, none, 3).pointers.tolist() == [0, 0, 0, 0]
    assert rows_of(none, none, 0).number == 0


def test_columns_are_64_bits_wide_for_compiled_code():
    r, c = torch.tensor([1, 0], dtype=torch.int32), torch.tensor([3, 4], dtype=torch.int32)
    assert {part.dtype for part in rows_of(r, c, 2)} == {torch.int64}
