"""The compiled sweep: the textbook's updates whatever the sizes and numbers, and the same ones without a compiler."""

import shutil

import numpy as np
import pytest
import torch

from lemmata.connectionism import perceptron
from lemmata.connectionism.perceptron import Perceptron, textbook_perceptron
from lemmata.fast import perceptron_sweep
from lemmata.fast.compiled_library import COMPILERS
from lemmata.fast.perceptron_sweep import compiled_sweep

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler on this machine")


def noise(points, features, dtype):
    """Whole numbers, on which every sum is exact, and labels that nothing explains."""
    generator = torch.Generator().manual_seed(features)
    x = torch.randint(-5, 6, (points, features), generator=generator).to(dtype)
    return x, torch.randint(0, 2, (points,), generator=generator).to(dtype) * 2 - 1


@needs_a_compiler
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("features", [1, 15, 16, 17, 50])
def test_a_sweep_makes_the_updates_of_the_textbook(features, dtype, bias):
    x, y = noise(200, features, dtype)
    state = np.zeros(features + 1, dtype=x.numpy().dtype)
    one, two = (compiled_sweep(x.numpy(), y.numpy(), state, bias) for _ in range(2))
    weight, b, updates = textbook_perceptron(x, y, sweeps=2, bias=bias)
    assert one + two == updates
    assert state.tolist() == [*weight.tolist(), b.item()]


@needs_a_compiler
def test_there_is_nothing_to_learn_from_no_points():
    assert compiled_sweep(np.empty((0, 3)), np.empty(0), np.zeros(4), True) == []


def test_many_mistakes_are_made_in_the_same_order_with_and_without_a_compiler(monkeypatch):
    x, y = noise(300, 5, torch.float64)
    fitted = [Perceptron(max_sweeps=6, certify=False).fit(x, y)]
    asked = []
    monkeypatch.setattr(perceptron_sweep, "_library", asked.append)
    fitted.append(Perceptron(max_sweeps=6, certify=False).fit(x, y))
    assert fitted[0].mistakes_ > perceptron.MANY
    assert fitted[0].updates_.tolist() == fitted[1].updates_.tolist() == textbook_perceptron(x, y, sweeps=6)[2]
    assert 1 <= len(asked) <= 6  # once in a sweep at most


def test_few_mistakes_ask_for_no_compiler(monkeypatch):
    monkeypatch.setattr(perceptron, "compiled_sweep", None)
    x, _ = noise(300, 5, torch.float64)
    assert Perceptron(certify=False).fit(x, torch.where(x[:, 0] > 2, 1.0, -1.0)).mistakes_ < perceptron.MANY
