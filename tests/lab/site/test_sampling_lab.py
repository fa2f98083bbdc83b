"""The sampling lab: signals come back where they should, and as what they should where not."""

import pytest

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import sampling_lab as lab


def shown(**given):
    return lab.show(read_state(lab.State, {key: str(value) for key, value in given.items()}))


@pytest.mark.parametrize("frequency", [1, 4, 8])
def test_sincs_return_what_is_sampled_densely_enough(frequency):
    dense = shown(frequency=frequency, rate=2 * frequency + 4)
    assert dense["enough"]
    assert dense["off_by"] < 0.01
    assert dense["alias"] == frequency


def test_waves_are_taken_for_slower_ones():
    few = shown(frequency=4, rate=6)
    assert not few["enough"]
    assert few["alias"] == 2
    assert few["off_by"] > 0.5


def test_gaussians_damp():
    assert shown(by="gaussian")["off_by"] > 0.05
    assert shown()["off_by"] < 1e-4


def test_boxes_exchange_bright_and_dark():
    star, boxed, smooth = lab.stars(read_state(lab.State, {"size": "15"}))
    alike = [((star - 0.5) * (pixels - 0.5)).min() for pixels in (boxed, smooth)]
    assert alike[0] < -0.1
    assert alike[1] > 0.5 * alike[0]  # but for the middle, where the pixels themselves alias
