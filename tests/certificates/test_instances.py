"""The hard instances are there: every dtype, both ends of every scale, ties, one, none; and all numbers are stored."""

import pytest
import torch
from tests.certificates.catalogue import BY_NAME
from tests.certificates.instances import FLOATS, INTEGERS, Source, rotated
from tests.certificates.registry import instances


def drawn(name, count=400):
    return [arguments[0] for _, arguments in instances(BY_NAME[name], count, seed=0)]


def test_symmetric_matrices_are_of_every_dtype_size_and_scale():
    matrices = drawn("certify_definiteness")
    assert {matrix.dtype for matrix in matrices} == {*FLOATS, *INTEGERS, torch.bool}
    assert {len(matrix) for matrix in matrices} == {0, 1, 2, 3, 4, 5}
    largest = [
        float(matrix.double().abs().max()) for matrix in matrices if matrix.dtype is torch.float64 and len(matrix)
    ]
    assert min(size for size in largest if size) < 1e-320
    assert max(largest) > 1e307
    different = [matrix for matrix in matrices if not torch.equal(matrix, matrix.mT)]
    assert 10 < len(different) < 100
    assert all(matrix.double().isfinite().all() for matrix in matrices)


def test_matrices_have_every_shape_and_rank():
    matrices = drawn("exact_rank")
    assert {tuple(matrix.shape) for matrix in matrices} >= {(1, 1), (1, 4), (4, 1), (4, 4), (0, 0)}
    assert {matrix.dtype for matrix in matrices} == {*FLOATS, *INTEGERS, torch.bool}
    assert any(matrix.numel() and not matrix.any() for matrix in matrices)


def test_points_are_nearly_equal_or_tied_or_alone():
    points = drawn("separate")
    near = [x for x in points if len(x) > 1 and x.is_floating_point() and x.any() and not x.isinf().any()]
    gaps = [float(((x[0] - x[1]).abs().max() / x.abs().max()).double()) for x in near]
    assert sum(0 < gap < 1e-12 for gap in gaps) > 10
    assert sum(gap == 0 for gap in gaps) > 10
    assert any(len(x) == 1 for x in points)
    assert any(x.dtype is torch.uint64 and 2**64 - 1 in x.flatten().tolist() for x in points)


def test_flat_spectra_of_large_matrices_are_drawn():
    sizes = [max(matrix.shape) for matrix in drawn("probable_spectral_norm", 200)]
    assert sum(size >= 60 for size in sizes) > 10
    assert max(sizes) >= 400


@pytest.mark.parametrize("axis", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.3, -2.0, 0.7]])
def test_a_spectrum_is_kept_by_a_change_of_basis(axis):
    values = [-1.0, 0.5, 3.0]
    found = torch.linalg.eigvalsh(torch.tensor(rotated(values, axis), dtype=torch.float64))
    torch.testing.assert_close(found, torch.tensor(values, dtype=torch.float64))


def test_what_would_be_infinite_is_stored_as_large_as_possible():
    stored = Source("any").stored([[1.0, 7.0]], torch.float16, 60_000.0)
    assert stored.tolist() == [[4284.0, 30000.0]]
    assert Source("any").stored([[1.0]], torch.float64, 5e-324).item() == 5e-324
