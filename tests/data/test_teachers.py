"""Teacher networks: the given weights give the given labels."""

import pytest
import torch
from scipy import stats
from torch.nn import functional

from lemmata.data import teacher


def answer(extra, x):
    hidden = functional.linear(x.double(), extra["hidden_weight"], extra["hidden_bias"]).relu()
    return functional.linear(hidden, extra["weight"], extra["bias"])


def test_the_given_weights_give_the_given_labels():
    data = teacher(features=7, hidden=11, outputs=3)
    for part in data.parts.values():
        assert torch.equal(answer(data.extra, part.x).float(), part.y)
    assert {name: tuple(value.shape) for name, value in data.extra.items()} == {
        "hidden_weight": (11, 7),
        "hidden_bias": (11,),
        "weight": (3, 11),
        "bias": (3,),
    }


def test_classes_are_the_largest_output():
    data = teacher(outputs=4, classes=True)
    assert data.classes == ("0", "1", "2", "3")
    assert torch.equal(answer(data.extra, data.train.x).argmax(1), data.train.y)


def test_noise_is_added_to_the_answer():
    data = teacher(n=3000, noise=0.5)
    gap = (data.train.y - answer(data.extra, data.train.x)).flatten().numpy()
    assert stats.kstest(gap / 0.5, "norm").pvalue > 1e-9


@pytest.mark.parametrize("hidden", [4, 64, 1024])
def test_outputs_are_of_order_one_whatever_the_width(hidden):
    spreads = torch.stack([teacher(n=200, hidden=hidden, seed=seed).train.y.square().mean() for seed in range(20)])
    assert 0.3 < spreads.mean() < 3


def test_inputs_are_standard_gaussian():
    assert stats.kstest(teacher().train.x.flatten().numpy(), "norm").pvalue > 1e-9
