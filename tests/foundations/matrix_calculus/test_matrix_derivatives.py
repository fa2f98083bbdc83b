"""The table of derivatives: how its rows are looked up."""

import pytest

from lemmata.foundations.matrix_calculus.matrix_derivatives import derivative_of, derivative_table


@pytest.mark.parametrize("row", derivative_table(), ids=lambda row: row.name)
def test_every_row_is_found_by_its_name_and_as_it_is_written(row):
    for text in (row.name, row.name.upper(), row.written):
        assert derivative_of(text) is row


def test_spacing_means_nothing_and_capitals_are_told_apart():
    names = [derivative_of(text).name for text in ("x^TAx", "X a", "a")]
    assert names == ["quadratic form", "matrix times vector, by the matrix", "constant"]


def test_the_table_runs_from_scalars_to_tensors():
    kinds = list(dict.fromkeys(row.kind for row in derivative_table()))
    assert kinds == [
        "scalar by scalar", "scalar by vector", "vector by vector", "scalar by matrix", "vector by matrix",
    ]  # fmt: skip
