"""Krylov spaces that end, and starts that miss the top; bad input and dtypes are in test_probable_norm."""

import math

import torch

from lemmata.foundations.lanczos import largest_ritz_pair
from lemmata.foundations.probable_norm import krylov_miss_probability


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
