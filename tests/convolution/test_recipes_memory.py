"""Convolutions on tasks of memory: what they learn against their baselines, predictions, pictures, resuming."""

import math
from dataclasses import replace

import pytest
import torch

import lemmata
from lemmata.convolution.recipes_memory import ADDING, RecallConfig, recall_by_convolution
from lemmata.data.registry import load
from lemmata.train import Options, run_experiment

SMALL = RecallConfig(width=16, depth=3, lag=10)
FEW = Options(steps=2, batch_size=8, device="cpu")


def small(data, options=FEW, **changed):
    return recall_by_convolution(data, replace(SMALL, **changed), options)


def test_the_baselines_are_what_a_constant_and_half_a_memory_reach():
    found = load("adding", n=20_000, length=10)
    second = found.train.x[:, 5:].prod(2).sum(1)
    # Squared errors have standard deviations below 0.2: seven standard errors of 20,000 are 0.01.
    assert (found.train.y - 1).square().mean().item() == pytest.approx(ADDING["always 1"], abs=0.01)
    half = (found.train.y - second - 0.5).square().mean().item()
    assert half == pytest.approx(ADDING["the second number plus 1/2"], abs=0.01)


@pytest.mark.parametrize("data", ["adding", "echo"])
def test_memory_is_learnt_within_the_field(data):
    options = Options(steps=200, batch_size=32, lr=1e-2, schedule="cosine", device="cpu")
    experiment = small(data, options)
    run = run_experiment(replace(experiment, picture=None))
    assert experiment.predict
    with torch.no_grad():
        answers = experiment.predict(run.system, load(data, **{"length" if data == "adding" else "lag": 10}).test)
    if data == "adding":
        assert run.scores["error"] < 0.5 * ADDING["the second number plus 1/2"]
        error = (answers["sum"] - experiment.test.y).square().mean().item()
        assert error == pytest.approx(run.scores["error"], rel=1e-4)
    else:
        assert run.scores["accuracy"] > 0.9
        right = (answers["class"] == experiment.test.y).double().mean().item()
        assert right == pytest.approx(run.scores["accuracy"], abs=0.002)
        assert ((answers["probability"] > 1 / 8) & (answers["probability"] <= 1)).all()


def test_nobody_repeats_a_letter_that_lies_before_the_field():
    experiment = small("echo", Options(steps=60, batch_size=32, lr=1e-2, device="cpu"), depth=1)  # a field of 5
    run = run_experiment(replace(experiment, picture=None))
    # Guessing is right once in eight times; 1,000 test letters have a standard deviation of 0.0105.
    assert run.scores["accuracy"] < 1 / 8 + 7 * 0.0105


@pytest.mark.parametrize("data", ["adding", "echo"])
def test_a_run_stopped_on_its_way_goes_on_to_the_same_end(tmp_path, data):
    options = replace(FEW, steps=6)
    whole = run_experiment(replace(small(data, options), picture=None))
    for steps in (3, 6):
        experiment = replace(small(data, replace(options, steps=steps)), picture=None)
        record = {"built": "tcn", "arguments": experiment.arguments}
        run_experiment(experiment, out=tmp_path / "run", resume=steps == 6, record=record)
    again = lemmata.load(tmp_path / "run").state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.system.state_dict().items())


def test_the_picture_ends_with_the_field():
    for depth, seen in ((2, 10), (1, 5)):
        experiment = small("adding", depth=depth)
        assert experiment.picture
        (line,) = experiment.picture(experiment.system).marks
        assert len(line.x) == len(line.y) == seen
        assert all(math.isfinite(value) and value > 0 for value in line.y)


def test_a_lag_of_one_is_refused():
    with pytest.raises(ValueError, match="lag must be >= 2, got 1"):
        RecallConfig(lag=1)
