"""Krylov spaces that end, starts that miss the top, early ends, bad input, dtypes."""

import math

import pytest
import torch

from lemmata.measure.lanczos import largest_ritz_pair
from lemmata.measure.probable_norm import krylov_miss_probability

DIAGONAL = torch.tensor([1.0, 2.0, 3.0])


def times(x):
    return DIAGONAL.to(x.dtype) * x


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtypes_are_kept(dtype):
    found = largest_ritz_pair(times, torch.ones(4, 3, dtype=dtype), steps=2)
    assert {value.dtype for value in found} == {dtype}
    assert found.vector.shape == (4, 3)


def test_spaces_that_lead_nowhere_new():
    start = torch.randn(2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    same, nothing = largest_ritz_pair(lambda x: x, start, 5), largest_ritz_pair(lambda x: 0 * x, start, 5)
    torch.testing.assert_close(same.value, torch.ones(2, dtype=torch.float64))
    assert nothing.value.tolist() == [0, 0]
    for found in (same, nothing):
        torch.testing.assert_close(found.vector.norm(dim=-1), torch.ones(2, dtype=torch.float64))


def test_a_start_without_the_top_vector_finds_the_next():
    values, start = torch.tensor([3.0, 1.0, 5.0]).double(), torch.tensor([1.0, 2.0, 0.0]).double()
    seen = largest_ritz_pair(lambda x: values * x, start, 3)
    torch.testing.assert_close(seen.value, values[0])
    torch.testing.assert_close(seen.vector.abs(), torch.tensor([1.0, 0.0, 0.0]).double(), rtol=0.0, atol=1e-7)
    assert seen.residual <= 1e-12


def test_whoever_misses_began_nearly_orthogonal_to_the_top_vector():
    size, steps, error = 50, 8, 0.15
    generator = torch.Generator().manual_seed(0)
    # All other values lie where Chebyshev's polynomial, of which the bound is made, is as small as it can be.
    nodes = (1 + torch.cos(torch.linspace(0, math.pi, size - 1, dtype=torch.float64))) / 2
    values = torch.cat([torch.ones(1).double(), 0.8 * nodes])
    start = torch.randn(500, size, generator=generator, dtype=torch.float64)
    start[:, 0] *= torch.rand(500, generator=generator, dtype=torch.float64) ** 3
    missed = largest_ritz_pair(lambda x: values * x, start, steps).value < 1 - error
    along = start[:, 0].abs() / start.norm(dim=-1)
    rare = krylov_miss_probability(size, steps, error) / math.sqrt(2 * size / math.pi)
    assert missed.any()
    assert (along[missed] <= rare).all()


def test_an_exhausted_space_ends_the_search_in_the_exact_value():
    for start in (torch.tensor([0.0, 0.0, 1.0]), torch.tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 2.0]])):
        found = largest_ritz_pair(times, start, steps=3)
        torch.testing.assert_close(found.value, torch.full_like(found.value, 3.0))


@pytest.mark.parametrize("size", [2.0**-80, 1.0, 2.0**80])
def test_accuracy_is_relative_and_ends_the_search_early(size):
    calls = []
    values = size * torch.linspace(0, 1, 200, dtype=torch.float64) ** 4

    def counted(x):
        calls.append(1)
        return values * x

    found = largest_ritz_pair(counted, torch.ones(200, dtype=torch.float64), steps=200, accuracy=1e-3)
    assert len(calls) == 24  # looked at after every eighth step, the residual is 8e-3 after 16 and 6e-4 after 24
    assert found.residual <= 1e-3 * found.value
    residual = (values * found.vector - found.value * found.vector).norm()
    torch.testing.assert_close(found.residual, residual, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("size", [2.0**-80, 2.0**80])
def test_no_scale_hides_the_end_of_a_space(size):
    values = size * torch.tensor([3.0, 1e-3, 2.0, 5.0], dtype=torch.float64)
    start = torch.tensor([1.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    found = largest_ritz_pair(lambda x: values * x, start, steps=4)
    torch.testing.assert_close(found.value, values[0], rtol=1e-14, atol=0.0)
    assert found.vector[0].abs() == pytest.approx(1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: largest_ritz_pair(times, torch.zeros(3), 2), ValueError, "start must be .* without zero vectors"),
        (lambda: largest_ritz_pair(times, torch.tensor(1.0), 2), ValueError, r"start must be a \(..., n\) tensor"),
        (lambda: largest_ritz_pair(times, torch.ones(3), 0), ValueError, "steps must be >= 1, got 0"),
        (lambda: largest_ritz_pair(times, torch.ones(3), 2, math.nan), ValueError, "accuracy must be finite"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, error, message):
    with pytest.raises(error, match=message):
        make()
