"""What the recipes for the vision transformer promise: a baseline that loses, pictures, predictions."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from lemmata.data.examples import Dataset
from lemmata.data.registry import load
from lemmata.figure import Heat, Image
from lemmata.train.experiment import Experiment
from lemmata.train.loop import run_experiment
from lemmata.transformers import recipes_vit
from lemmata.transformers.recipes_vit import (
    FEW,
    ViTPictureConfig,
    attend_to_all_pictures,
    attend_to_few_pictures,
    attention_pictures,
)
from lemmata.transformers.transformer_block import TransformerBlock
from lemmata.transformers.vit import ViT

QUICK = ViTPictureConfig(patch_size=7, width=32, depth=1, hidden=64, dropout=0.0, shift=0)  # learns within seconds


def experiment_of(epochs: int = 1, config: ViTPictureConfig = QUICK, **changes: Any) -> Experiment:
    options = replace(FEW, epochs=epochs, evaluate=epochs, device="cpu", **changes)
    return attend_to_few_pictures(config=config, options=options)


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first 64 pictures to learn from, and 50 to be tested on."""
    found = load("fashion")
    parts = {"train": found.train[:64], "test": found.test[:50]}
    monkeypatch.setattr(recipes_vit, "load", lambda name: Dataset(name, parts, found.classes))


def test_it_beats_the_baseline_after_a_few_epochs() -> None:
    experiment = experiment_of(epochs=8, warmup=20, lr=5e-3)
    run_experiment(experiment)
    assert experiment.loss
    assert experiment.predict
    network = experiment.system.eval()
    with torch.no_grad():
        score = experiment.loss(network, experiment.test)["accuracy"].item()
        predicted = experiment.predict(network, experiment.test)
    assert experiment.notes["baselines"]["nearest class mean"] == pytest.approx(0.675, abs=0.002)
    assert score > experiment.notes["baselines"]["nearest class mean"] + 0.03
    assert (predicted["class"] == experiment.test.y).double().mean().item() == pytest.approx(score, abs=0.002)
    assert ((predicted["probability"] > 0.1) & (predicted["probability"] <= 1)).all()


@pytest.mark.usefixtures("_few")
def test_pictures_where_it_looks_and_confusions_are_drawn() -> None:
    experiment = experiment_of()
    run_experiment(experiment)
    assert experiment.picture
    network = experiment.system.train()
    figure = experiment.picture(network)
    assert network.training
    images = [mark for mark in figure.marks if isinstance(mark, Image)]
    assert [image.label == "where it looks" for image in images] == [False, True] * 5
    assert all(len(image.pixels) == len(image.pixels[0]) == 28 for image in images)
    (confusion,) = [mark for mark in figure.marks if isinstance(mark, Heat)]
    assert confusion.rows == confusion.columns == list(experiment.classes)


def test_a_picture_of_attention_is_bright_where_the_class_token_looks() -> None:
    """Queries and keys by which the [CLS] token looks at bright patches."""
    model = ViT(2, image_size=(4, 6), patch_size=2, channels=1, width=4, depth=1, heads=1, hidden=4)
    (block,) = model.blocks
    assert isinstance(block, TransformerBlock)
    with torch.no_grad():
        for values in model.parameters():
            values.zero_()
        block.self_attention_norm.weight.fill_(1.0)
        model.class_token[..., 1] = 1.0
        model.patches.project.weight[0] = 1.0
        block.self_attention.project.bias[0] = 10.0  # every query asks for the first value
        block.self_attention.project.weight[4, 0] = 1.0  # and finds it in the keys
    pictures = torch.zeros(1, 4, 6)
    pictures[0, 2:, 2:4] = 1.0
    (image,) = attention_pictures(model, pictures)
    grey = torch.tensor(image.pixels)
    assert (grey[2:, 2:4] == 1).all()
    assert grey.sum() < 4 + 20 * 0.01


@pytest.mark.usefixtures("_few")
def test_the_same_seed_learns_the_same_and_the_settings_build_it_again() -> None:
    first, second = (experiment_of(seed=3) for _ in range(2))
    assert run_experiment(first).scores == run_experiment(second).scores
    again = ViT(**first.arguments)
    again.load_state_dict(first.system.state_dict())
    x = first.test.x[:5, None]
    assert torch.equal(again.eval()(x), first.system.eval()(x))


@pytest.mark.usefixtures("_few")
def test_pictures_are_moved_only_while_it_learns() -> None:
    experiment = experiment_of(config=replace(QUICK, shift=2))
    assert experiment.loss
    network, batch = experiment.system, experiment.train
    assert experiment.loss(network.eval(), batch)["loss"] == experiment.loss(network.eval(), batch)["loss"]
    assert experiment.loss(network.train(), batch)["loss"] != experiment.loss(network.train(), batch)["loss"]


def test_sixty_thousand_pictures_are_fetched_or_read_first() -> None:
    with pytest.raises(FileNotFoundError, match="lemmata data mnist --fetch"):
        attend_to_all_pictures()


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"shift": -1}, "shift must be >= 0, got -1"),
        ({"width": 0}, "width must be"),
        ({"dropout": 1.0}, "dropout must be"),
    ],
)
def test_bad_choices_name_the_fix(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ViTPictureConfig(**chosen)
    with pytest.raises(ValueError, match="image_size must be whole patches of 5"):
        attend_to_few_pictures(config=ViTPictureConfig(patch_size=5))
