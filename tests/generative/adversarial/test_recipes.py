"""What the recipes of adversarial networks promise: better than a Gaussian, and the same bits after a kill."""

from dataclasses import replace

import pytest
import torch

from lemmata.generative.adversarial.recipes import GANGame, WGANGame, generate_digits, generate_points
from lemmata.marks import recipe_for, usual_settings
from lemmata.train.loop import run_experiment
from lemmata.train.options import Options


def experiment_of(recipe, system, config=None, **changed):
    usual, options = usual_settings(recipe, system)
    return recipe_for(recipe, system)(config=config or usual, options=replace(options, device="cpu", **changed))


@pytest.mark.parametrize("system", ["gan", "wgan"])
def test_a_killed_run_resumes_to_the_bit(system, tmp_path):
    def run(out, last=None, **more):
        made = experiment_of(generate_points, system, epochs=3, save=5, evaluate=3)
        stop = {"on_epoch": lambda state: state.epoch == last} if last else {}
        return run_experiment(replace(made, **stop), out=out, **more).system.state_dict()

    whole = run(tmp_path / "whole")
    run(tmp_path / "cut", last=1)
    again = run(tmp_path / "cut", resume=True)
    assert all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.mark.parametrize(("system", "config"), [("gan", GANGame(latent=4)), ("wgan", WGANGame(latent=4, channels=4))])
def test_digits_are_drawn_as_images(system, config):
    made = experiment_of(generate_digits, system, config, steps=2)
    run = run_experiment(made)
    assert run.scores["energy_distance"] > 0
    assert set(made.notes["baselines"]) == {"Gaussian with full covariance"}
    for figure in (made.picture(run.system), made.sample(run.system, 20, torch.Generator().manual_seed(1))):
        assert [type(mark).__name__ for mark in figure.marks] == ["Image"]


@pytest.mark.parametrize("system", ["gan", "wgan"])
@pytest.mark.parametrize("play", ["simultaneous", "extragradient"])
def test_every_play_is_played(system, play):
    usual, _ = usual_settings(generate_points, system)
    config = replace(usual, play=play, critic_steps=1)
    made = experiment_of(generate_points, system, config, steps=3)
    assert torch.isfinite(torch.tensor(run_experiment(made).scores["energy_distance"]))
    assert [mark.label for mark in made.sample(made.system, 9, torch.Generator()).marks] == ["data", "samples"]


def test_points_of_two_rings_are_nearer_than_a_gaussian():
    made = experiment_of(generate_points, "gan", epochs=100, evaluate=100)
    assert run_experiment(made).scores["energy_distance"] < min(made.notes["baselines"].values())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"optimizer": "sgd"}, "optimizer must be one of adam, got 'sgd'"),
        ({"clip": 1.0}, "clip is not known to two players: leave it out, or set it to None"),
        ({"warmup": 3}, "warmup is not known to two players"),
    ],
)
def test_options_of_one_loss_are_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        generate_points(options=Options(**{"optimizer": "adam"} | changed))


def test_bad_games_are_answered_in_a_sentence():
    with pytest.raises(ValueError, match="play must be one of"):
        GANGame(play="fair")
    with pytest.raises(ValueError, match="critic_steps must be >= 1, got 0"):
        WGANGame(critic_steps=0)
