"""What the recipes promise: learnt starts beat joint training and neighbours, and the same bits after a kill."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from lemmata.data import load
from lemmata.feedforward import MLP
from lemmata.marks import usual_settings
from lemmata.meta import recipes
from lemmata.meta.recipes import LOST, LearntStartConfig, learn_letters, learn_waves, letter_pictures, letter_tasks
from lemmata.train.loop import run_experiment

METHODS = ("maml", "fomaml", "reptile", "anil")


def prepared(recipe, system, config=None, **changed) -> Any:
    usual, options = usual_settings(recipe, system)
    return recipe(config=config or usual, options=replace(options, device="cpu", **changed), system=system)


@pytest.fixture
def few_letters(monkeypatch):
    monkeypatch.setattr(recipes, "LEARNT", 64)
    monkeypatch.setattr(recipes, "TESTED", 8)


def test_a_start_for_waves_is_shown_after_several_steps():
    experiment = prepared(learn_waves, "maml", epochs=1, steps=3)
    assert run_experiment(experiment).scores.keys() == {"loss", "mse after 1 step", "mse after 10 steps"}
    labels = [mark.label for mark in experiment.picture(experiment.system).marks]
    assert labels == ["the wave", "0 steps", "1 step", "5 steps", "10 steps", "what is learnt from"]
    generator = torch.Generator().manual_seed(1)
    assert experiment.sample(experiment.system, 1, generator) != experiment.sample(experiment.system, 1, generator)


@pytest.mark.usefixtures("few_letters")
@pytest.mark.parametrize("system", METHODS)
def test_a_few_updates_on_letters_run_and_are_shown(system):
    experiment = prepared(learn_letters, system, epochs=1)
    scores = run_experiment(experiment).scores
    assert 0 <= scores["accuracy"] <= 1
    assert len(experiment.picture(experiment.system).marks) == 15


@pytest.mark.usefixtures("few_letters")
def test_the_same_bits_after_a_kill(tmp_path):
    recipe = learn_letters
    whole = run_experiment(prepared(recipe, "maml", epochs=2, steps=7))
    broken = prepared(recipe, "maml", epochs=2, steps=7, save=1)
    seen = []

    def killed(state):
        seen.append(state)
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(replace_on_step(broken, killed), out=tmp_path / "run")
    again = run_experiment(prepared(recipe, "maml", epochs=2, steps=7, save=1), out=tmp_path / "run", resume=True)
    assert again.scores == whole.scores
    wanted = whole.system.state_dict()
    assert all(torch.equal(part, wanted[name]) for name, part in again.system.state_dict().items())


def replace_on_step(experiment, callback):
    """The same experiment, whose loss is cut off on the way."""
    loss = experiment.loss

    def counted(model, batch):
        if model.training:
            callback(batch)
        return loss(model, batch)

    return replace(experiment, loss=counted)


def test_what_is_kept_is_the_network_at_its_start():
    experiment = prepared(learn_waves, "anil", epochs=1, steps=2)
    weights = run_experiment(experiment).system.state_dict()
    assert MLP(**experiment.arguments).load_state_dict(weights)


def test_bad_choices_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match="inner_lr must be > 0, got 0"):
        LearntStartConfig(inner_lr=0.0)
    with pytest.raises(ValueError, match="inner_steps must be >= 0, got -1"):
        LearntStartConfig(-1)
    with pytest.raises(ValueError, match="system must be one of maml, fomaml, reptile, anil"):
        learn_waves(system="sgd")


@pytest.mark.long
@pytest.mark.measures("meta.recipes", "joint training")
def test_what_joint_training_reaches_on_waves():
    experiment = prepared(learn_waves, "maml", LearntStartConfig(0))
    scores = run_experiment(experiment).scores
    assert scores["mse after 10 steps"] == pytest.approx(LOST["sinusoids"]["joint training"], rel=0.05)


@pytest.mark.measures("meta.recipes", "nearest neighbour by cosine", "nearest neighbour by cosine, blurred")
@pytest.mark.parametrize(("name", "reach"), [("", 0), (", blurred", 3)])
def test_what_neighbours_say_of_letters(name, reach):
    found = load("glyphs")
    pictures = {part: examples.x for part, examples in found.parts.items()}
    tasks = letter_pictures(pictures, letter_tasks(found.test, recipes.TESTED, 2, 1))

    def directions(x):
        blurred = functional.avg_pool2d(x.flatten(0, 1)[:, None], 2 * reach + 1, 1, reach).reshape(x.shape)
        return functional.normalize(blurred.flatten(2), dim=2)

    nearest = (directions(tasks.query_x) @ directions(tasks.x).mT).argmax(2)
    said = LOST["glyphs"][f"nearest neighbour by cosine{name}"]
    assert float((nearest == tasks.query_y).double().mean()) == pytest.approx(said, abs=0.005)


@pytest.mark.long
@pytest.mark.parametrize("system", METHODS)
def test_every_method_beats_joint_training_on_waves(system):
    scores = run_experiment(prepared(learn_waves, system)).scores
    assert scores["mse after 10 steps"] < 0.4 * LOST["sinusoids"]["joint training"]


@pytest.mark.long
@pytest.mark.parametrize("system", ["maml", "anil"])
def test_second_order_beats_neighbours_on_letters(system):
    scores = run_experiment(prepared(learn_letters, system)).scores
    assert scores["accuracy"] > max(LOST["glyphs"].values()) + 0.03
