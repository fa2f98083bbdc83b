"""What the recipes promise: less is forgotten than by plain training, and a run that was stopped goes on."""

import json
import statistics
from dataclasses import replace

import pytest
import torch

from lemmata.catalog import load as catalog
from lemmata.continual import permuted_tasks, recipes
from lemmata.continual.recipes import LOST, OnStream
from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.figure import Figure
from lemmata.lab.recipe_choice import record_of
from lemmata.lab.trained_run import restore
from lemmata.train import Watcher, run_experiment
from lemmata.train.forms import built
from lemmata.train.loop import fit
from lemmata.train.recipe import Recipe, find_entry

ALL = {
    "ewc": recipes.learn_by_ewc,
    "rehearsal": recipes.learn_by_rehearsal,
    "generative_replay": recipes.learn_by_replay,
    "gradient_projection": recipes.learn_by_projection,
    "task_masks": recipes.learn_with_masks,
}


def chosen(name, data="digits", **settings):
    recipe = Recipe.of(ALL[name])
    return recipe(data, *recipe.settings(device="cpu", **settings))


@pytest.mark.parametrize("name", ALL)
def test_more_is_left_of_all_tasks_than_by_plain_training(name):
    experiment = chosen(name)
    scores = run_experiment(experiment).scores
    assert scores["accuracy"] > LOST["digits"]["plain sequential training"] + 0.1
    assert scores["accuracy"] == pytest.approx(statistics.mean(scores[f"task_{k}"] for k in (1, 2, 3)))
    curves = experiment.picture(experiment.system)
    assert [type(mark).__name__ for mark in curves.marks] == ["Line"] * 3
    (content,) = experiment.files(experiment.system).values()
    (matrix,) = Figure.from_json(json.loads(content)).marks
    assert torch.tensor(matrix.values).shape == (4, 3)
    answers = experiment.predict(experiment.system, experiment.test)
    right = float((answers["class"] == experiment.test.y).double().mean())
    assert right == pytest.approx(scores["task_1"])  # a trained network is asked in the first order
    raw = Examples(x=experiment.test.x.view(-1, 8, 8), y=experiment.test.y)
    assert torch.equal(experiment.predict(experiment.system, raw)["class"], answers["class"])


class StopAfter(Watcher):
    def __init__(self, step):
        self.last = step

    def stepped(self, step, epoch, numbers):
        if step >= self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ALL)
def test_a_stopped_run_goes_on_to_the_same_bits_and_is_used_again(name, tmp_path):
    short = {"epochs": 3, "save": 10, "evaluate": 1}
    whole = run_experiment(chosen(name, **short))
    experiment = chosen(name, **short)
    entry, data = find_entry(catalog(), name)
    out = {"out": tmp_path, "record": record_of(entry, data, Recipe.of(ALL[name]).settings(**short)[0], experiment)}
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment, watchers=[StopAfter(35)], **out)  # in the second task, between two saves
    resumed = run_experiment(chosen(name, **short), resume=True, **out)
    assert resumed.scores == whole.scores
    for part, other in zip(resumed.system.state_dict().values(), whole.system.state_dict().values(), strict=True):
        assert torch.equal(part, other)
    trained = restore(tmp_path)
    answers = trained.experiment.predict(trained.system, trained.experiment.test)["class"]
    assert float((answers == trained.experiment.test.y).double().mean()) == pytest.approx(whole.scores["task_1"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epochs": 7}, "epochs must be a multiple of the 3 tasks, got 7"),
        ({"patience": 2}, "patience must be left out"),
        ({"steps": 10}, "steps must be left out"),
        ({"tasks": 0}, "tasks must be >= 1, got 0"),
        ({"widths": (0,)}, "widths must be >= 1, got 0"),
        ({"strength": -1.0}, "strength must be >= 0, got -1.0"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        chosen("ewc", **settings)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("rehearsal", {"size": 0}, "size must be >= 1"),
        ("generative_replay", {"factors": 0}, "factors must be >= 1"),
        ("gradient_projection", {"energy": 2.0}, "energy must be"),
        ("task_masks", {"overlap": 2.0}, "overlap must be"),
    ],
)
def test_each_recipe_checks_its_own(name, settings, words):
    with pytest.raises(ValueError, match=words):
        chosen(name, **settings)


# --- What must lose, and what could be reached ---


@pytest.mark.long
@pytest.mark.measures("continual.recipes", "plain sequential training")
@pytest.mark.parametrize("data", ["digits", "fashion"])
def test_what_plain_sequential_training_leaves(data):
    scores = [run_experiment(chosen("ewc", data, strength=0.0, seed=seed)).scores["accuracy"] for seed in range(3)]
    assert statistics.mean(scores) == pytest.approx(LOST[data]["plain sequential training"], abs=0.03)


@pytest.mark.long
@pytest.mark.measures("continual.recipes", "all tasks at once")
@pytest.mark.parametrize("data", ["digits", "fashion"])
def test_what_all_tasks_at_once_reach(data):
    stream = permuted_tasks(load(data), OnStream.tasks)
    joint, scores = stream.joint(), []
    arguments = {"inputs": joint.x.shape[1], "outputs": 10, "widths": OnStream.widths}
    for seed in range(3):
        options = replace(recipes.STREAM, epochs=recipes.STREAM.epochs // len(stream), seed=seed, device="cpu")
        model = built(MLP, arguments, options)
        fit(model, Examples(x=joint.x, y=joint.y), options=options, progress=False)
        with torch.no_grad():
            scores += [float((model(task.test.x).argmax(1) == task.test.y).double().mean()) for task in stream]
    assert statistics.mean(scores) == pytest.approx(LOST[data]["all tasks at once"], abs=0.02)
