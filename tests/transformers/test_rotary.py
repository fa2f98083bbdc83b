"""Rotary positions: rotations of pairs, products that know distances only, far positions, gradients, bad input."""

import pytest
import torch

from lemmata.transformers import rotate


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_pairs_are_turned_as_complex_numbers():
    x, positions = drawn(2, 3, 5, 8), torch.tensor([0, 1, 7, 3, 100])
    frequency = torch.tensor([50.0 ** (-2 * i / 8) for i in range(4)], dtype=torch.float64)
    turned = torch.complex(x[..., :4], x[..., 4:]) * torch.exp(1j * positions[:, None] * frequency)
    expected = torch.cat([turned.real, turned.imag], -1)
    assert torch.allclose(rotate(x, positions, 50.0), expected, rtol=0, atol=1e-13)
    assert torch.allclose(rotate(x, positions).norm(dim=-1), x.norm(dim=-1), rtol=1e-14)
    assert torch.equal(rotate(x, torch.zeros(5).long()), x)


def test_products_depend_on_the_distance_alone():
    query, key, places = drawn(1, 6).expand(9, 6), drawn(2, 6)[1:].expand(9, 6), torch.arange(9)
    for start in (0, 12_345):
        products = rotate(query, places + start) @ rotate(key, places + start).mT
        for distance in range(-8, 9):
            diagonal = products.diagonal(distance)
            assert torch.allclose(diagonal, products.diagonal(distance)[:1].expand_as(diagonal), rtol=0, atol=1e-10)
        apart = rotate(query[:1], torch.tensor([3])) @ key[:1].mT
        assert torch.allclose(products[3, 0], apart, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_far_positions_are_as_exact_as_the_dtype(dtype):
    x, positions = drawn(4, 8), torch.tensor([0, 1000, 100_000, 10_000_000])
    found, exact = rotate(x.to(dtype), positions), rotate(x.to(dtype).double(), positions)
    assert found.dtype == dtype
    assert (found - exact).abs().max() < 16 * torch.finfo(dtype).eps


def test_gradients_and_the_meta_device():
    x, positions = drawn(2, 3, 4).requires_grad_(), torch.arange(3)
    assert torch.autograd.gradcheck(lambda x: rotate(x, positions, 10.0), (x,))
    assert rotate(x.to("meta"), positions.to("meta")).is_meta


def test_bad_input_is_named(unchecked):
    with pytest.raises(ValueError, match="x must have an even width, to be turned in pairs, got 3"):
        rotate(torch.zeros(2, 3), torch.arange(2))
    with pytest.raises(ValueError, match="base must be > 0, got -1"):
        rotate(torch.zeros(2, 4), torch.arange(2), base=-1.0)
    with pytest.raises(ValueError, match=r"positions must be \(2,\), one for each vector, got shape \(3,\)"):
        rotate(torch.zeros(2, 4), torch.arange(3))
