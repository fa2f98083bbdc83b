"""Recipes without a gradient: what they answer, what they beat, and that runs are used again."""

import pytest
import torch

import lemmata
from lemmata.kernel.recipes_tangent import (
    InfiniteWidthConfig,
    LinearizedConfig,
    classify_at_infinite_width,
    classify_by_the_tangent,
)
from lemmata.kernel.tangent_classifiers import InfiniteWidthClassifier, LinearizedClassifier


def clouds(n=40):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 3
    return torch.randn(n, 5, generator=generator).double() + 3 * torch.eye(5).double()[y], y


@pytest.mark.parametrize(
    "made", [lambda: InfiniteWidthClassifier(classes=3, depth=4), lambda: LinearizedClassifier(5, 3, widths=(12, 8))]
)
def test_classifiers_learn_and_are_saved(made):
    x, y = clouds()
    torch.manual_seed(0)
    system = made().fit(x[:30], y[:30])
    assert float((system.predict(x[30:]) == y[30:]).double().mean()) > 0.8
    torch.manual_seed(1)
    again = made()
    again.load_state_dict(system.state_dict())
    assert torch.allclose(again.decision_function(x), system.decision_function(x))


def accuracy(experiment):
    """Of a recipe that is run to its end."""
    experiment.learner.step(experiment.train, 1.0)
    test = type(experiment.test)(x=experiment.test.x.double(), y=experiment.test.y)
    assert experiment.predict(experiment.system, test[:7])["class"].shape == (7,)
    return experiment.learner.evaluate(test)["accuracy"]


def test_infinite_width_beats_what_it_names():
    experiment = classify_at_infinite_width(config=InfiniteWidthConfig(examples=500))
    assert accuracy(experiment) > max(experiment.notes["baselines"].values()) + 0.01


def test_the_tangent_stands_beside_the_trained_network():
    experiment = classify_by_the_tangent(config=LinearizedConfig(examples=40, width=32))
    assert set(experiment.notes["baselines"]) == {"logistic regression", "the network, trained"}
    assert 0.6 < accuracy(experiment) <= experiment.notes["baselines"]["the network, trained"] + 0.02


def test_unfitted_classifiers_say_so():
    with pytest.raises(RuntimeError, match="call fit"):
        InfiniteWidthClassifier(classes=2).predict(torch.ones(1, 2))
    with pytest.raises(ValueError, match="classes must be >= 2"):
        InfiniteWidthClassifier(classes=1)
    assert lemmata.kernel.InfiniteWidthClassifier is InfiniteWidthClassifier
