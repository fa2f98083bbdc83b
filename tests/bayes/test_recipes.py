"""What the recipes promise: each beats a single net or the likeliest weights, draws what it says, and is used again."""

import json
from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.bayes import ChainLearner, Ensemble, HamiltonianMonteCarlo
from lemmata.bayes.recipes import sample_by_hmc, sample_by_sgld, sample_small_networks, train_ensemble
from lemmata.catalog import load as catalog
from lemmata.data.examples import Examples
from lemmata.lab.cli import main
from lemmata.lab.recipe_choice import record_of
from lemmata.lab.trained_run import restore
from lemmata.train import Watcher, run_experiment
from lemmata.train.recipe import Recipe, find_entry


def chosen(recipe, **settings):
    made = Recipe.of(recipe)
    return made(made.data[0], *made.settings(device="cpu", **settings))


def test_an_ensemble_beats_a_single_net_in_log_score_and_in_what_its_bands_hold():
    single, ensemble = (run_experiment(chosen(train_ensemble, members=members, evaluate=30)) for members in (1, 10))
    assert ensemble.scores["nll"] < single.scores["nll"] - 0.03
    assert ensemble.scores["nll"] < 1.134 - 0.05  # the baseline of the record
    assert abs(ensemble.scores["coverage"] - 0.9) <= abs(single.scores["coverage"] - 0.9)
    assert single.scores["model fraction"] == 0 < ensemble.scores["model fraction"]


def test_langevins_chains_beat_a_single_net():
    experiment = chosen(sample_by_sgld, chains=16, epochs=120, evaluate=120)
    scores = run_experiment(experiment).scores
    assert scores["nll"] < experiment.notes["baselines"]["a single net"] - 0.05
    assert 0.85 < scores["coverage"] < 0.97
    kinds = [type(mark).__name__ for mark in experiment.picture(experiment.system).marks]
    assert kinds[:3] == ["Line", "Band", "Points"]
    said = experiment.predict(experiment.system, experiment.test)
    assert bool((said["low 90%"] < said["predicted"]).all())
    assert bool((said["predicted"] < said["high 90%"]).all())
    assert 20 < float(said["predicted"].min()) < float(said["predicted"].max()) < 350  # in the target's own unit


SHORT = {"chains": 4, "members": 16, "adaptation": 100, "leapfrogs": 4, "epochs": 140}


def weights(run):
    return run.system.flat, run.system.weights


class StopAfter(Watcher):
    def __init__(self, step):
        self.last = step

    def stepped(self, step, epoch, numbers):
        if step == self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize("step", [60, 120])  # in the adaptation, and after it
def test_killed_chains_resume_to_the_bit_and_the_run_is_used_again(step, tmp_path, capsys):
    whole = run_experiment(chosen(sample_by_hmc, evaluate=140, **SHORT))
    experiment = chosen(sample_by_hmc, evaluate=140, **SHORT)
    entry, data = find_entry(catalog(), "hmc")
    config = Recipe.of(sample_by_hmc).settings(**SHORT)[0]
    out = {"out": tmp_path / "run", "record": record_of(entry, data, config, experiment)}
    # Between two saves, so that some transitions are made again.
    saved = replace(experiment, options=replace(experiment.options, save=25))
    with pytest.raises(KeyboardInterrupt):
        run_experiment(saved, watchers=[StopAfter(step)], **out)
    again = chosen(sample_by_hmc, evaluate=140, **SHORT)
    cut = run_experiment(replace(again, options=replace(again.options, save=25)), resume=True, **out)
    assert all(torch.equal(*pair) for pair in zip(weights(cut), weights(whole), strict=True))
    loaded = lemmata.load(tmp_path / "run")
    assert torch.equal(loaded.flat, whole.system.flat)
    trained = restore(tmp_path / "run")
    answers = trained.experiment.predict(trained.system, trained.ready(trained.experiment.test))
    assert torch.equal(answers["class"], experiment.predict(whole.system, trained.ready(experiment.test))["class"])
    assert main(["predict", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.95


def test_draws_of_the_logistic_regression_beat_its_likeliest_weights():
    experiment = chosen(sample_by_hmc, evaluate=140, **SHORT)
    scores = run_experiment(experiment).scores
    assert 0.4 < scores["acceptance"] < 0.95
    assert scores["nll"] < 0.1 < experiment.notes["baselines"]["maximum likelihood"]
    assert torch.equal(experiment.system.weights, torch.full((16,), 1 / 16).double())
    assert len(experiment.system.flat.unique(dim=0)) == 16
    assert experiment.picture(experiment.system).marks[0].label == "right"


def test_small_networks_draw_a_map_of_the_moons_together():
    experiment = chosen(sample_small_networks, evaluate=140, **SHORT | {"chains": 8, "leapfrogs": 8})
    scores = run_experiment(experiment).scores
    assert scores["nll"] < experiment.notes["baselines"]["maximum likelihood"]
    assert type(experiment.picture(experiment.system).marks[0]).__name__ == "Heat"


def learner(**words):
    ensemble, x = Ensemble([torch.nn.Linear(1, 1, bias=False).double() for _ in range(8)]), torch.ones(50, 1).double()
    given = {"chains": 4, "warmup": 0, "draws": 8, "loss": lambda output, y: (output[:, 0] - y).square()} | words
    return ChainLearner(ensemble, Examples(x=x, y=2 * x[:, 0]), HamiltonianMonteCarlo, 1.0, **given)


def test_draws_are_kept_evenly_and_members_without_one_have_no_weight():
    made = learner()
    places = []
    for epoch in range(8):
        made.step(made.train, epoch / 8)
        places.append(made.ensemble.flat.clone())
        if epoch == 3:
            assert made.ensemble.weights.tolist() == [0.25] * 4 + [0.0] * 4
    assert torch.equal(places[7][:4], places[3][:4])
    assert not torch.equal(places[7][4:], places[3][4:])
    assert made.ensemble.weights.tolist() == [0.125] * 8


def test_what_was_restored_can_be_saved_again_before_a_step():
    made, again = learner(), learner()
    assert made.state() == {"state": None}
    for _ in range(3):
        made.step(made.train, 0.0)
    again.restore(made.state())
    assert again.state()["drawn"] == 3
    assert torch.equal(again.state()["state"][0], made.state()["state"][0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"chains": 3}, "members must be a multiple of the 3 chains, got 8"),
        ({"chains": 16}, "chains must be <= 8, got 16"),
        ({"draws": 1}, "draws must be >= 2, got 1"),
        ({"warmup": -1}, "warmup must be >= 0, got -1"),
    ],
)
def test_bad_sizes_meet_one_sentence(words, message):
    with pytest.raises(ValueError, match=message):
        learner(**words)


def test_chains_refuse_a_part_of_the_data_and_an_adaptation_without_end():
    made = learner()
    with pytest.raises(ValueError, match="batch_size must be at least 50: chains need the gradient of all examples"):
        made.step(made.train[:10], 0.0)
    with pytest.raises(ValueError, match="epochs must be more than the 100 of the adaptation, got 20"):
        chosen(sample_by_hmc, **SHORT | {"epochs": 20})
