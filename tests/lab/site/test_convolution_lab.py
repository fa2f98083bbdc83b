"""The convolution lab: both pictures are the library's, the kernels are what they are called, and sizes are true."""

import base64
import math
import runpy

import pytest
import torch

from lemmata.convolution import convolve
from lemmata.figure import Image
from lemmata.lab.site.labs import read_state
from lemmata.lab.site.work import convolution_lab as lab


def state(**given):
    return read_state(lab.State, {key: str(value) for key, value in given.items()})


def pixels(text):
    grey = torch.tensor(list(base64.b64decode(text)), dtype=torch.float64) / 255
    return grey.reshape(math.isqrt(len(grey)), -1)


def test_a_point_shows_the_kernel_convolved_and_the_turned_one_correlated():
    told = lab.show(state(picture="point", kernel="stroke"))
    kernel = torch.tensor(told["taps"], dtype=torch.float64).reshape(5, 5)
    near = slice(30, 35)
    for name, wanted in ("convolution", kernel), ("correlation", kernel.flip(0, 1)):
        shown = pixels(told["pictures"][name])
        torch.testing.assert_close(shown[near, near], wanted / 5, rtol=0, atol=1 / 255)
        assert shown.count_nonzero() == 5


def test_the_convolution_is_that_of_two_signals():
    chosen = state(kernel="relief", picture="cat")
    whole = convolve(lab.picture("cat"), chosen.taps() / 5)  # its positive numbers add up to 5
    torch.testing.assert_close(lab.layers(chosen)[1], whole[2:-2, 2:-2])


@pytest.mark.parametrize("kernel", list(lab.KERNELS))
@pytest.mark.parametrize("picture", ["camera", "cat", "coffee", "letter", "point"])
def test_symmetric_kernels_alone_make_no_difference(kernel, picture):
    told = lab.show(state(kernel=kernel, picture=picture))
    assert told["symmetric"] == (kernel in ("blur", "sharpen", "laplace"))
    assert (told["difference"] == 0) == told["symmetric"]
    assert told["signed"] == (min(told["taps"]) < 0)
    assert max(float(layer.abs().max()) for layer in lab.layers(state(kernel=kernel, picture=picture))) <= 1 + 1e-12


@pytest.mark.parametrize("stride", [1, 3, 4])
@pytest.mark.parametrize("dilation", [1, 4])
@pytest.mark.parametrize(("padding", "mode"), [(0, "zeros"), (3, "reflect"), (4, "circular"), (4, "replicate")])
def test_sizes_are_those_that_are_told(stride, dilation, padding, mode):
    told = lab.show(state(stride=stride, dilation=dilation, padding=padding, padding_mode=mode))
    assert told["size"] == told["room"] // stride + 1
    for name in ("correlation", "convolution", "difference"):
        assert pixels(told["pictures"][name]).shape == (told["size"], told["size"])


def test_a_drawn_kernel_takes_the_place_of_the_named_one():
    drawn = [0] * 25
    drawn[7] = -3
    told = lab.show(state(cells=",".join(map(str, drawn))))
    assert told["taps"] == drawn
    assert told["signed"]
    empty = lab.show(state(cells=",".join("0" * 25)))
    assert empty["symmetric"]
    assert pixels(empty["pictures"]["convolution"]).count_nonzero() == 0


def test_the_still_has_all_four_pictures():
    marks = lab.still(state(stride=4)).marks
    assert [type(mark) for mark in marks] == [Image] * 4
    assert all(0 <= value <= 1 for mark in marks for row in mark.pixels for value in row)


@pytest.mark.parametrize(
    "given",
    [
        {"cells": "1,2"},
        {"cells": ",".join(["10"] * 25)},
        {"stride": 0},
        {"dilation": 5},
        {"padding": 5},
        {"kernel": "x"},
    ],
)
def test_what_is_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        state(**given)


@pytest.mark.parametrize(
    "given", [{}, {"picture": "point", "stride": 2}, {"picture": "letter", "padding_mode": "reflect"}]
)
def test_the_python_runs(tmp_path, given, capsys):
    script = tmp_path / "script.py"
    script.write_text(lab.show(state(**given))["python"])
    runpy.run_path(str(script))
    assert "torch.Size" in capsys.readouterr().out
