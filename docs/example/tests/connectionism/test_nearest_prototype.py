"""The nearest prototype: agreement with distances, bad choices, training."""

import pytest
import torch

from lemmata.connectionism import NearestPrototype
from lemmata.connectionism.recipes_prototype import classify_by_prototypes
from lemmata.train import run_experiment


@pytest.fixture
def classifier():
    torch.manual_seed(0)
    return NearestPrototype(inputs=4, classes=3).double()


def test_logits_are_squared_distances(classifier):
    x = torch.randn(7, 4, dtype=torch.float64)
    assert torch.allclose(classifier(x), -(torch.cdist(x, classifier.prototypes) ** 2))
    assert torch.equal(classifier.predict(x), torch.cdist(x, classifier.prototypes).argmin(1))


def test_bad_choices_are_named():
    with pytest.raises(ValueError, match="classes must be >= 2, got 1"):
        NearestPrototype(inputs=4, classes=1)


def test_the_recipe_beats_the_class_means(tmp_path):
    run = run_experiment(classify_by_prototypes(), out=tmp_path / "run")
    assert run.scores["accuracy"] > 0.93  # the class means have 0.897
