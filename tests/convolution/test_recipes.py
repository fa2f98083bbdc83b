"""What the recipes for pictures promise: a baseline on the same examples that loses, pictures, predictions."""

from dataclasses import replace

import pytest
import torch

from lemmata.convolution import recipes
from lemmata.convolution.recipes import (
    DenseNetPictureConfig,
    LeNet5PictureConfig,
    ResNetPictureConfig,
    classify_all_pictures,
    classify_few_pictures,
    nearest_class_mean,
)
from lemmata.data.examples import Dataset, Examples
from lemmata.data.registry import load
from lemmata.figure import Heat, Image
from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment

# Of each network one that learns within seconds.
QUICK = {
    "lenet": (LeNet5PictureConfig(activation="relu", padding=2, shift=1), 4),
    "resnet": (ResNetPictureConfig(width=4, small=False), 3),
    "densenet": (DenseNetPictureConfig(growth=1, small=True, dropout=0.1), 1),
}


def experiment_of(system, **changes):
    config, epochs = QUICK[system]
    _, options = usual_settings(classify_few_pictures, system)
    options = replace(options, epochs=epochs, evaluate=epochs, device="cpu", **changes)
    return classify_few_pictures(config=config, options=options, system=system)


@pytest.fixture
def few(monkeypatch):
    """Only the first 64 pictures to learn from, and 50 to be tested on."""
    found = load("fashion")
    parts = {"train": found.train[:64], "test": found.test[:50]}
    monkeypatch.setattr(recipes, "load", lambda name: Dataset(name, parts, found.classes))


def test_the_baseline_is_what_class_means_reach():
    found = load("fashion")
    x, y = found.train.x.flatten(1).double(), found.train.y
    means = torch.stack([x[y == k].mean(0) for k in range(len(found.classes))])
    nearest = torch.cdist(found.test.x.flatten(1).double(), means).argmin(1)
    # A picture that is as near to two means may fall to either, by the last bit.
    assert nearest_class_mean(found) == pytest.approx((nearest == found.test.y).double().mean().item(), abs=0.002)
    assert nearest_class_mean(found) == pytest.approx(0.675, abs=0.002)


def test_classes_of_different_sizes_have_their_own_means():
    x = torch.tensor([[[0.0]], [[0.0]], [[0.0]], [[1.0]]])
    data = Dataset("lines", {"train": Examples(x=x, y=torch.tensor([0, 0, 0, 1])),
                             "test": Examples(x=x[2:] * 0.6, y=torch.tensor([0, 1]))}, ("dark", "bright"))  # fmt: skip
    assert nearest_class_mean(data) == 1.0


@pytest.mark.parametrize("system", ["lenet", "resnet"])
def test_networks_beat_the_baseline_after_a_few_epochs(system):
    experiment = experiment_of(system)
    run_experiment(experiment)
    assert experiment.loss
    assert experiment.predict
    network = experiment.system.eval()
    with torch.no_grad():
        score = experiment.loss(network, experiment.test)["accuracy"].item()
        predicted = experiment.predict(network, experiment.test)
    assert score > experiment.notes["baselines"]["nearest class mean"] + 0.03
    assert (predicted["class"] == experiment.test.y).double().mean().item() == pytest.approx(score, abs=0.002)
    assert ((predicted["probability"] > 0.1) & (predicted["probability"] <= 1)).all()


@pytest.mark.parametrize("system", QUICK)
@pytest.mark.usefixtures("few")
def test_mistakes_kernels_and_confusions_are_drawn(system):
    experiment = experiment_of(system)
    run_experiment(experiment)
    assert experiment.picture
    network = experiment.system.train()
    figure = experiment.picture(network)
    assert network.training
    images = [mark for mark in figure.marks if isinstance(mark, Image)]
    kernels = [image for image in images if image.label.startswith("kernel")]
    assert len(kernels) == min(16, next(network.parameters()).shape[0])
    assert all(", is " in image.label for image in images if image not in kernels)
    assert len(images) - len(kernels) <= 5
    (confusion,) = [mark for mark in figure.marks if isinstance(mark, Heat)]
    assert confusion.rows == confusion.columns == list(experiment.classes)
    mistaken = [sum(value or 0 for value in row) for row in confusion.values]  # the right ones are left out
    assert all(0 <= share <= 100.5 for share in mistaken)
    assert sum(mistaken) > 0


@pytest.mark.usefixtures("few")
def test_the_same_seed_learns_the_same_and_the_settings_build_it_again():
    first, second = (experiment_of("resnet", seed=3) for _ in range(2))
    assert run_experiment(first).scores == run_experiment(second).scores
    again = type(first.system)(**first.arguments)
    again.load_state_dict(first.system.state_dict())
    x = first.test.x[:5, None]
    assert torch.equal(again.eval()(x), first.system.eval()(x))


@pytest.mark.usefixtures("few")
def test_pictures_are_moved_only_while_it_learns():
    experiment = experiment_of("lenet")
    assert experiment.loss
    network, batch = experiment.system, experiment.train
    assert experiment.loss(network.eval(), batch)["loss"] == experiment.loss(network.eval(), batch)["loss"]
    assert experiment.loss(network.train(), batch)["loss"] != experiment.loss(network.train(), batch)["loss"]


@pytest.mark.parametrize("system", QUICK)
def test_sixty_thousand_pictures_are_fetched_or_read_first(system, monkeypatch, tmp_path):
    monkeypatch.setenv("LEMMATA_CACHE", str(tmp_path))
    config, options = usual_settings(classify_all_pictures, system)
    with pytest.raises(FileNotFoundError, match="lemmata data mnist --fetch"):
        classify_all_pictures(config=config, options=options, system=system)


@pytest.mark.parametrize(
    ("kind", "other"),
    [(LeNet5PictureConfig, "padding"), (ResNetPictureConfig, "depth"), (DenseNetPictureConfig, "depth")],
)
def test_bad_choices_name_the_fix(kind, other):
    with pytest.raises(ValueError, match="shift must be >= 0, got -1"):
        kind(shift=-1)
    with pytest.raises(ValueError, match=f"{other} must be"):
        kind(**{other: 16})
