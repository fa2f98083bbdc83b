"""The recipes of linear and logistic regression: what they reach, what they show, own files, and resuming."""

import inspect
from dataclasses import replace

import pytest
import torch

from lemmata.data import load
from lemmata.data.examples import Examples
from lemmata.feedforward import LinearRegression, LogisticRegression
from lemmata.feedforward.recipes_regression import (
    LogisticConfig,
    LogisticFileConfig,
    RegressionConfig,
    RegressionFileConfig,
    classify_file,
    classify_tumours,
    classify_written_digits,
    nearest_mean,
    predict_file,
    predict_progression,
)
from lemmata.figure import Image, Line, Points
from lemmata.train import run_experiment

RECIPES = [predict_progression, classify_tumours, classify_written_digits]
# A little below what they reach on every machine: one example is 0.9 %, or 0.3 % of the digits.
REACHED = {"predict_progression": 42.5, "classify_tumours": 0.97, "classify_written_digits": 0.955}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_beats_its_baselines(recipe):
    experiment = recipe()
    score = run_experiment(experiment).scores[experiment.metric]
    sign = 1 if experiment.largest else -1
    assert sign * score >= sign * REACHED[recipe.__name__]
    assert experiment.notes["baselines"]
    assert all(sign * score > sign * lost for lost in experiment.notes["baselines"].values())


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_weights_are_those_of_the_estimator_whatever_the_batches(recipe):
    whole = run_experiment(recipe()).system
    options = replace(inspect.signature(recipe).parameters["options"].default, batch_size=300)
    parts = run_experiment(recipe(options=options)).system
    torch.testing.assert_close(parts.weight_, whole.weight_, rtol=1e-6, atol=1e-8)
    assert whole.weight_.dtype is torch.float64


@pytest.mark.parametrize("recipe", RECIPES)
def test_half_an_epoch_and_the_rest_give_the_same_bits(tmp_path, recipe):
    usual = inspect.signature(recipe).parameters["options"].default
    options = replace(usual, batch_size=250, save=1)
    at_once = run_experiment(recipe(options=options)).system
    run_experiment(recipe(options=replace(options, steps=1)), out=tmp_path / "run")
    resumed = run_experiment(recipe(options=options), out=tmp_path / "run", resume=True).system
    assert torch.equal(resumed.weight_, at_once.weight_)
    assert torch.equal(resumed.bias_, at_once.bias_)


def test_predicted_stands_against_measured():
    experiment = predict_progression()
    system = run_experiment(experiment).system
    line, points = experiment.picture(system).marks
    assert line.x == line.y
    assert points.x == load("diabetes").test.y.tolist()
    assert experiment.predict(system, experiment.test)["predicted"].tolist() == points.y


def test_two_classes_stand_under_the_sigmoid():
    experiment = classify_tumours()
    line, *classes = experiment.picture(run_experiment(experiment).system).marks
    assert isinstance(line, Line)
    assert [mark.label for mark in classes] == ["malignant", "benign"]
    assert [set(mark.y) for mark in classes if isinstance(mark, Points)] == [{0.0}, {1.0}]


def test_digits_are_shown_with_a_few_errors():
    experiment = classify_written_digits()
    system = run_experiment(experiment).system
    images = experiment.picture(system).marks
    assert len(images) == 15
    assert all(isinstance(image, Image) for image in images)
    assert all(", is " in image.label for image in images[10:])
    found = experiment.predict(system, load("digits").test)
    assert (found["probability"] > 0.1).all()
    assert (found["class"] == load("digits").test.y).double().mean() > 0.95


@pytest.fixture
def houses(tmp_path):
    torch.manual_seed(0)
    size, rooms = 30 + 170 * torch.rand(120), torch.randint(1, 7, (120,))
    price = 1000 * size + 5000 * rooms + 3000 * torch.randn(120)
    names = ["yes" if value > 120_000 else "no" for value in price]
    rows = [f"{s:.1f},{r},{p:.0f},{name}" for s, r, p, name in zip(size, rooms, price, names, strict=True)]
    path = tmp_path / "houses.csv"
    path.write_text("size,rooms,price,dear\n" + "\n".join(rows))
    return str(path)


def test_numbers_and_classes_of_ones_own(houses):
    experiment = predict_file(houses, RegressionFileConfig(target="price", exclude=("dear",)))
    run = run_experiment(experiment)
    assert run.scores["mae"] < 4000  # the noise has a mean of 2,400
    assert list(experiment.predict(run.system, experiment.test)) == ["price"]
    assert experiment.predict(run.system, experiment.test)["price"].mean() > 50_000
    classes = run_experiment(classify_file(houses, LogisticFileConfig(target="dear", exclude=("price",))))
    assert classes.scores["accuracy"] > 0.9


def test_the_wrong_kind_of_target_names_the_other_system(houses):
    with pytest.raises(ValueError, match="dear holds classes, but this predicts a number: use logistic"):
        predict_file(houses, RegressionFileConfig(target="dear"))
    with pytest.raises(ValueError, match="price holds numbers, but this tells classes apart: use regression"):
        classify_file(houses, LogisticFileConfig(target="price"))


@pytest.mark.usefixtures("unchecked")
def test_bad_choices_are_refused_at_once():
    with pytest.raises(ValueError, match="ridge must be >= 0, got -1"):
        RegressionConfig(ridge=-1.0)
    with pytest.raises(ValueError, match="solver must be one of newton"):
        LogisticConfig(solver="qr")


def test_the_systems_are_built_again_from_their_arguments():
    for recipe, kind in zip(RECIPES, (LinearRegression, LogisticRegression, LogisticRegression), strict=True):
        experiment = recipe()
        assert isinstance(kind(**experiment.arguments), type(experiment.system))


def test_a_class_without_examples_does_not_spoil_the_nearest_mean():
    train = Examples(x=torch.tensor([[0.0], [1.0], [9.0], [10.0]]), y=torch.tensor([0, 0, 2, 2]))
    test = Examples(x=torch.tensor([[0.4], [9.6], [5.0]]), y=torch.tensor([0, 2, 1]))
    assert nearest_mean(train, test) == pytest.approx(2 / 3)
