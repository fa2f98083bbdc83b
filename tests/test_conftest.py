"""What the shared conftest promises to every test and doctest."""

import os
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

from lemmata.connectionism.mcculloch_pitts import McCullochPittsNeuron


def test_shapes_are_checked():
    with pytest.raises(TypeCheckError):
        McCullochPittsNeuron(synapses="not a tensor", threshold=1.0)


def test_random_numbers_are_the_same_in_every_test():
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert drawn.equal(torch.rand(1))


@pytest.mark.parametrize("time", [1, 2])
def test_every_test_has_an_empty_cache(time):
    cache = Path(os.environ["LEMMATA_CACHE"])
    assert not cache.exists()
    cache.mkdir()


def test_one_thread_is_enough():
    assert torch.get_num_threads() == 1
