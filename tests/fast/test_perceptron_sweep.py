"""The quick sweeps: the textbook's updates whatever the sizes and numbers, with and without a compiler."""

import shutil

import numpy as np
import pytest
import torch

from lemmata.connectionism.perceptron import Perceptron, textbook_perceptron
from lemmata.fast import perceptron_sweep
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.perceptron_sweep import block_sweep, compiled_sweep, fingerprint, quick_sweep

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")


def noise(points, features, dtype):
    """Integers, on which every sum is exact, and labels that nothing explains."""
    generator = torch.Generator().manual_seed(features)
    x = torch.randint(-5, 6, (points, features), generator=generator).to(dtype)
    return x, torch.randint(0, 2, (points,), generator=generator).to(dtype) * 2 - 1


def by_blocks(x, y, state, bias):
    mistakes, shown, _ = block_sweep(x, y, state, bias)
    assert shown == len(x)
    return mistakes


def quickly(x, y, state, bias):
    return quick_sweep(x, y, state, bias)[0]


@pytest.mark.parametrize("sweep", [by_blocks, pytest.param(compiled_sweep, marks=needs_a_compiler), quickly])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("features", [1, 15, 16, 17, 50])
def test_a_sweep_makes_the_updates_of_the_textbook(features, dtype, bias, sweep):
    x, y = noise(200, features, dtype)
    state = np.zeros(features + 1, dtype=x.numpy().dtype)
    one, two = (sweep(x.numpy(), y.numpy(), state, bias) for _ in range(2))
    weight, b, updates = textbook_perceptron(x, y, epochs=2, bias=bias)
    assert one + two == updates
    assert state.tolist() == [*weight.tolist(), b.item()]


@pytest.mark.parametrize("sweep", [by_blocks, pytest.param(compiled_sweep, marks=needs_a_compiler), quickly])
def test_there_is_nothing_to_learn_from_no_points(sweep):
    assert sweep(np.empty((0, 3)), np.empty(0), np.zeros(4), True) == []


def test_blocks_stop_after_so_many_mistakes_and_say_where():
    x, y = (each.numpy() for each in noise(200, 5, torch.float64))
    state, whole = np.zeros(6), np.zeros(6)
    mistakes, shown, _ = block_sweep(x, y, state, True, max_mistakes=7)
    assert len(mistakes) == 7
    assert shown == mistakes[-1] + 1
    rest, _, _ = block_sweep(x[shown:], y[shown:], state, True)
    assert mistakes + [shown + index for index in rest] == by_blocks(x, y, whole, True)
    assert state.tolist() == whole.tolist()


def test_a_clean_sweep_tells_its_lowest_product():
    x, y = np.array([[3.0], [-2.0], [5.0]] * 100), np.array([1.0, -1.0, 1.0] * 100)
    assert quick_sweep(x, y, np.array([2.0, 1.0]), True) == ([], 3.0)
    assert quick_sweep(x, y, np.array([2.0, 1.0]), True, earlier=perceptron_sweep.MANY) == ([], -np.inf)
    assert quick_sweep(x, -y, np.array([2.0, 1.0]), True)[1] == -np.inf
    assert np.isnan(quick_sweep(x, y, np.array([np.nan, 1.0]), True)[1])


def test_mistakes_far_apart_are_found_across_blocks():
    x, y = np.ones((1000, 1)), np.ones(1000)
    y[[63, 64, 65, 500, 999]] = -1.0
    state = np.array([0.5, 0.0])
    assert by_blocks(x, y, state, False) == textbook(x, y, 0.5)


def textbook(x, y, weight):
    """One feature, no bias, a start other than 0."""
    mistakes = []
    for i in range(len(x)):
        if y[i] * x[i, 0] * weight <= 0:
            weight += y[i] * x[i, 0]
            mistakes.append(i)
    return mistakes


def test_many_mistakes_are_made_in_the_same_order_with_and_without_a_compiler(monkeypatch):
    x, y = noise(300, 5, torch.float64)
    fitted = [Perceptron(max_epochs=6, certify=False).fit(x, y)]
    asked = []
    monkeypatch.setattr(perceptron_sweep, "_sweep_library", asked.append)
    fitted.append(Perceptron(max_epochs=6, certify=False).fit(x, y))
    assert fitted[0].mistakes_ > perceptron_sweep.MANY
    assert fitted[0].updates_.tolist() == fitted[1].updates_.tolist() == textbook_perceptron(x, y, epochs=6)[2]
    assert 1 <= len(asked) <= 6  # once in a sweep at most


def test_few_mistakes_ask_for_no_compiler(monkeypatch):
    monkeypatch.setattr(perceptron_sweep, "_compiled_sweep", None)
    x, _ = noise(300, 5, torch.float64)
    few = Perceptron(max_epochs=1, certify=False).fit(x, torch.where(x[:, 0] > 2, 1.0, -1.0))
    assert 0 < few.mistakes_ < perceptron_sweep.MANY


def test_weights_are_known_again_by_their_fingerprint_and_no_others():
    state = np.array([1.0, -2.0, 0.5])
    assert fingerprint(state) == fingerprint(state.copy())
    assert fingerprint(state) != fingerprint(state + np.array([0.0, 0.0, 2**-50]))
