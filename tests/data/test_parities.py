"""Parity: the whole table, its split, and strings drawn at random."""

import pytest
import torch

from lemmata.data import parity


@pytest.mark.parametrize("bits", [1, 2, 3, 8])
def test_the_table_holds_every_string_once_with_its_parity(bits):
    data = parity(bits=bits)
    x, y = data.everything
    assert len(x) == 2**bits == len(x.unique(dim=0))
    assert x.shape[1] == bits
    assert torch.equal(y, x.sum(1).long() % 2)
    assert len(data.train) == {1: 1, 2: 3, 3: 6, 8: 204}[bits]


def test_strings_may_be_long_when_they_are_drawn():
    data = parity(bits=100, n=500, test=20)
    assert data.train.x.shape == (500, 100)
    assert set(data.train.x.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(data.train.y, data.train.x.sum(1).long() % 2)
    assert (data.train.x.mean() - 0.5).abs() < 0.02  # 50,000 tosses: 0.02 is nine standard deviations
    assert len(parity(n=30).test) == 30


def test_a_flipped_bit_flips_the_label():
    x, y = parity(bits=6).everything
    number = (x.long() * 2 ** torch.arange(6)).sum(1)
    label = torch.empty_like(y).scatter_(0, number, y)
    for bit in range(6):
        assert torch.equal(label[number ^ (1 << bit)], 1 - y)
