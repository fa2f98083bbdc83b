"""The restoration lab: what it shows is what the library restores."""

import pytest
import torch

from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import restoration_lab as lab


def shown(**given):
    return lab.show(read_state(lab.State, {key: str(value) for key, value in given.items()}))


def test_the_best_balance_is_between_noise_and_blur():
    here, none, much = shown(), shown(power=-6), shown(power=0)
    assert -4 < here["best"] < -1
    assert here["after"] > here["before"] + 2
    assert none["after"] < none["before"]
    assert much["after"] < here["highest"] - 2
    assert shown(noise=0, power=-6)["after"] > 35


@pytest.mark.parametrize("angle", [0, 30, 90, 135])
def test_the_conjugate_matters_for_kernels_that_are_not_even(angle):
    even, off = (shown(angle=angle, begins=begins)["after"] for begins in ("middle", "start"))
    assert even == pytest.approx(off, abs=0.5)
    assert shown(angle=angle, conjugate="no")["after"] == pytest.approx(even, abs=1e-3)
    assert shown(angle=angle, begins="start", conjugate="no")["after"] < off - 5


def test_zeros_are_stripes_and_the_spectrum_is_its_own_mirror_image():
    values = lab.spectrum(read_state(lab.State, {"way": "16", "angle": "0"}))
    dark = [k for k in range(64) if float(values[:, k].max()) <= 1e-6]
    assert len(dark) >= 14
    values = lab.spectrum(read_state(lab.State, {"angle": "30"}))[1:, 1:]
    assert torch.allclose(values, values.flip(0, 1), atol=1e-3)
