"""Labellings, growth functions and VC dimensions: Sauer's lemma, motions of the points, and a class of one's own."""

import math

import pytest
import torch

from lemmata.generalization import growth_function, is_shattered, labellings, sauer_bound, sine_frequency, vc_dimension

NAMES = ["thresholds", "intervals", "rectangles", "discs", "half-spaces"]
FEATURES = {"thresholds": 1, "intervals": 1}


def scattered(name, n, seed):
    return torch.randn(n, FEATURES.get(name, 2), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", range(1, 6))
def test_no_points_have_more_labellings_than_the_growth_function_and_sauer_allow(name, n):
    largest, dimension = growth_function(name, n), vc_dimension(name)
    assert len(labellings(name, scattered(name, n, n))) <= largest <= sauer_bound(n, dimension)
    assert (largest == 2**n) == (n <= dimension)


@pytest.mark.parametrize("name", NAMES)
def test_labellings_stay_when_points_move_and_stretch(name):
    x = scattered(name, 5, 1)
    expected = labellings(name, x)
    assert torch.equal(labellings(name, 8 * x + 3), expected)
    order = torch.tensor([3, 1, 0, 4, 2])
    assert {tuple(r) for r in labellings(name, x[order]).tolist()} == {tuple(r) for r in expected[:, order].tolist()}


def test_four_on_a_circle_and_one_inside_others():
    square = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert is_shattered("rectangles", square)
    assert len(labellings("half-spaces", square)) == 14
    assert len(labellings("discs", square)) == 14  # no disc holds two opposite corners of the four alone
    inner = torch.cat([square[:3], torch.tensor([[0.0, 0.4]])])
    assert len(labellings("discs", inner)) == 15  # one set needs the circle turned inside out
    line = torch.arange(4.0)[:, None].expand(4, 2)
    assert len(labellings("half-spaces", line)) == 8
    assert len(labellings("rectangles", line)) == len(labellings("discs", line)) == 11


def test_equal_points_are_labelled_alike():
    x = torch.tensor([[0.0], [0.0], [1.0]])
    found = labellings("intervals", x)
    assert bool((found[:, 0] == found[:, 1]).all())
    assert len(found) == 4


@pytest.mark.parametrize("rows", range(1, 17))
def test_sauer_holds_for_any_table(rows):
    table = torch.rand(rows, 4, generator=torch.Generator().manual_seed(rows)) < 0.5
    points = torch.arange(4)[:, None]
    dimension = vc_dimension(lambda _: table, points)
    for n in range(5):
        assert growth_function(lambda _: table, n, points) <= sauer_bound(n, dimension)
    if dimension:
        assert growth_function(lambda _: table, dimension, points) == 2**dimension


def test_on_given_points_the_dimension_is_that_of_these():
    line = torch.arange(5.0)[:, None].expand(5, 2)
    assert vc_dimension("half-spaces", line) == 2
    assert vc_dimension("half-spaces", scattered("half-spaces", 6, 0)) == 3
    assert growth_function("rectangles", 3, line) == 7
    assert vc_dimension("intervals", torch.zeros(1, 1)) == 1


@pytest.mark.parametrize("dimensions", [1, 2, 5, 50])
def test_half_spaces_have_one_more_than_dimensions(dimensions):
    assert vc_dimension("half-spaces", dimensions=dimensions) == dimensions + 1


def test_growth_without_points_is_one():
    assert [growth_function(name, 0) for name in NAMES] == [1] * 5


def test_sines_spell_any_labels_of_many_points():
    labels = torch.randint(0, 2, (50, 30), generator=torch.Generator().manual_seed(0))
    points = 2.0 ** -torch.arange(1, 31).double()
    waves = torch.sin(sine_frequency(labels)[:, None] * points)
    assert torch.equal(waves > 0, labels.bool())
    assert float(waves.abs().min()) > math.sin(math.pi * 2.0**-30) / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labellings("circles", torch.zeros(2, 2)), "classifiers must be one of"),
        (lambda: labellings("discs", torch.zeros(2, 3)), "points must have 2 features"),
        (lambda: labellings("thresholds", torch.zeros(2, 2)), "points must have 1 feature "),
        (lambda: labellings("intervals", torch.zeros(0, 1)), "points must not be empty"),
        (lambda: labellings(lambda x: torch.zeros(3, 5), torch.zeros(2, 1)), r"must be \(classifiers, 2\)"),
        (lambda: labellings(lambda x: torch.zeros(0, 2), torch.zeros(2, 1)), "must not be empty"),
        (lambda: growth_function(lambda x: x.T > 0, 2), "points must be given for a class of your own"),
        (lambda: growth_function("rectangles", 9), "n must be at most 8 for rectangles, got 9"),
        (lambda: growth_function("intervals", 3, torch.zeros(2, 1)), "n must be at most the number of points, 2"),
        (lambda: growth_function("intervals", 15, torch.arange(40.0)[:, None]), "points must be fewer"),
        (lambda: sine_frequency(torch.zeros(41)), "labels must be at most 40, got 41"),
    ],
)
def test_bad_input_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()
