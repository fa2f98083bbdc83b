"""The recipes of the chapter: what they reach, what they show, and that nothing but training is random."""

from dataclasses import fields, replace

import pytest
import torch

from lemmata.catalog import load as load_catalog
from lemmata.data import load
from lemmata.feedforward.recipes import PictureConfig, classify_clothing, classify_digits, classify_points
from lemmata.figure import Heat, Image, Points
from lemmata.lab.recipe_choice import defaults
from lemmata.train import Options, run_experiment
from lemmata.train.shifted_images import moved

FAST = Options(epochs=12, lr=5e-3, evaluate=12, device="cpu")


@pytest.mark.parametrize(("data", "least"), [("moons", 0.97), ("xor", 0.98), ("rings", 0.97)])
def test_points_that_no_line_separates_are_separated(data, least):
    experiment = classify_points(data, options=FAST)
    assert run_experiment(experiment).scores["accuracy"] > least > experiment.notes["baselines"]["logistic regression"]


@pytest.mark.measures("feedforward.recipes", "moons", "rings", "spirals", "xor")
@pytest.mark.parametrize("data", ["moons", "rings", "spirals", "xor"])
def test_the_straight_line_is_as_good_as_it_is_said_to_be(data):
    linear = pytest.importorskip("sklearn.linear_model")
    found = load(data)
    peer = linear.LogisticRegression().fit(found.train.x.numpy(), found.train.y.numpy())
    reached = peer.score(found.test.x.numpy(), found.test.y.numpy())
    said = classify_points(data).notes["baselines"]["logistic regression"]
    assert said == pytest.approx(reached, abs=2 / len(found.test))  # a point on the line may fall to either side


def test_three_passes_over_the_digits_suffice_for_most():
    run = run_experiment(classify_digits(options=Options(epochs=3, lr=2e-3, device="cpu")))
    assert run.scores["accuracy"] > 0.93


def test_clothing_is_learnt_a_little_in_a_few_steps():
    run = run_experiment(classify_clothing(options=Options(steps=40, batch_size=64, device="cpu")))
    assert run.scores["accuracy"] > 0.55


def test_the_same_seed_gives_the_same_weights_and_another_others():
    runs = [run_experiment(classify_digits(options=Options(steps=3, seed=seed, device="cpu"))) for seed in (0, 0, 1)]
    first, same, other = (run.system.state_dict()["layers.0.weight"] for run in runs)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_the_plane_is_shown_with_the_points_on_it():
    experiment = classify_points("moons", options=FAST)
    heat, *points = experiment.picture(experiment.system).marks
    assert isinstance(heat, Heat)
    assert all(-1 <= value <= 1 for row in heat.values for value in row)
    assert [mark.label for mark in points if isinstance(mark, Points)] == ["upper", "lower"]


def test_pictures_are_shown_with_predictions_and_a_few_errors():
    experiment = classify_digits()
    images = experiment.picture(experiment.system).marks
    assert len(images) == 15
    assert all(isinstance(image, Image) for image in images)
    assert all(", is " in image.label for image in images[10:])


def test_a_picture_leaves_the_mode_of_the_system_alone():
    experiment = classify_digits()
    experiment.system.train()
    assert experiment.picture(experiment.system) == experiment.picture(experiment.system)  # no dropout
    assert experiment.system.training


def test_moving_pictures_moves_them_and_nothing_else():
    dot = torch.zeros(200, 7, 9)
    dot[:, 3, 4] = 1
    assert torch.equal(moved(dot, 0), dot)
    places = moved(dot, 1).nonzero()[:, 1:]
    assert len(places) == 200
    assert {tuple(place) for place in places.tolist()} == {(i, j) for i in (2, 3, 4) for j in (3, 4, 5)}
    corner = torch.zeros(50, 4, 4)
    corner[:, 0, 0] = 1
    assert set(moved(corner, 2).sum((1, 2)).tolist()) == {0.0, 1.0}  # what leaves does not come in again


def test_only_training_pictures_are_moved():
    experiment = classify_clothing()
    batch = load("fashion").train[:16]
    system = experiment.system.eval()
    assert torch.equal(experiment.loss(system, batch)["loss"], experiment.loss(system, batch)["loss"])
    system.train()
    assert not torch.equal(experiment.loss(system, batch)["loss"], experiment.loss(system, batch)["loss"])


def test_predictions_are_probabilities_of_the_likeliest():
    experiment = classify_points("moons")
    found = experiment.predict(experiment.system, load("moons").test)
    assert set(found["class"].tolist()) <= {0, 1}
    assert (found["probability"] >= 0.5).all()


def test_bad_choices_name_the_fix():
    with pytest.raises(ValueError, match="shift must be >= 0, got -1"):
        PictureConfig(shift=-1)


def test_no_choice_of_any_recipe_has_the_name_of_another_option():
    common = {"data", "out", "resume", "procs", "tensorboard", "quiet", "json"}
    for entry in load_catalog().recipes:
        config, options = (({field.name for field in fields(part)}) for part in defaults(entry, {}))
        assert not (config & options) | (config & common) | (options & common), entry.name


@pytest.mark.long
@pytest.mark.parametrize("recipe", [classify_clothing, classify_digits])
def test_the_recipes_reach_what_scikit_learns_network_reaches(recipe):
    experiment = recipe()
    experiment = replace(experiment, options=replace(experiment.options, device="cpu"))
    baselines = experiment.notes["baselines"]
    least = max(baselines["MLPClassifier"], baselines["MLPClassifier, tuned"])
    assert run_experiment(experiment).scores["accuracy"] >= least
