"""Networks that fold: what they compute, in which dtype, and what they refuse."""

import pytest
import torch

from lemmata.feedforward import folding_network, linear_regions, sawtooth_network


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_sawtooth_is_the_tent_map_after_itself(depth):
    x = torch.linspace(0, 1, 257, dtype=torch.float64)[:, None]
    tent = x
    for _ in range(depth):
        tent = torch.minimum(2 * tent, 2 - 2 * tent)
    assert torch.equal(sawtooth_network(depth)(x).detach(), tent)


def test_a_million_pieces_are_counted():
    regions = linear_regions(sawtooth_network(16), [(0, 1)])
    assert len(regions) == 2**16
    assert torch.equal(regions.slopes.flatten().abs(), torch.full((2**16,), 2.0**16, dtype=torch.float64))
    assert regions.exact_decisions == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parts_of_the_cube_are_folded_on_each_other(dtype):
    network = folding_network(inputs=2, width=6, depth=2, dtype=dtype)
    x = torch.rand(50, 2, dtype=dtype) / 3
    mirrored = torch.stack([2 / 3 - x[:, 0], x[:, 1]], dim=1)  # the second of three parts is the first, turned round
    assert torch.allclose(network(x), network(mirrored), atol=1e-5)
    assert network(x).dtype == dtype
    assert [tuple(values.shape) for values in network.parameters()] == [(6, 2), (6,), (6, 6), (6,), (1, 6), (1,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": 3, "width": 6, "depth": 2}, "inputs must be <= 2, got 3"),
        ({"inputs": 2, "width": 1, "depth": 2}, "width must be >= inputs = 2, got 1"),
        ({"inputs": 1, "width": 2, "depth": 0}, "depth must be >= 1, got 0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        folding_network(**arguments)
    with pytest.raises(ValueError, match="depth must be >= 1"):
        sawtooth_network(0)


def test_whole_numbers_hold_no_weights():
    with pytest.raises(TypeError, match=r"dtype must be floating point, got torch\.int64"):
        sawtooth_network(2, torch.int64)


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_the_default_dtype_of_the_user_changes_nothing(default):
    wanted = [network.state_dict() for network in (folding_network(2, 5, 3), folding_network(1, 3, 2))]
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found = [network.state_dict() for network in (folding_network(2, 5, 3), folding_network(1, 3, 2))]
    finally:
        torch.set_default_dtype(before)
    for mine, theirs in zip(found, wanted, strict=True):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
