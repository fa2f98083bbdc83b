"""What the recipes promise: each beats its baseline, and says so with images."""

from dataclasses import replace

import pytest
import torch

from lemmata.marks import usual_settings
from lemmata.train.loop import run_experiment
from lemmata.vision.recipes import (
    RestorationConfig,
    SensorConfig,
    ThresholdingConfig,
    calibrate_sensor,
    find_by_contrast,
    restore_photographs,
)


def trained(recipe, system, config, **changed):
    options = usual_settings(recipe, system)[1]
    experiment = recipe(config=config, options=replace(options, device="cpu", **changed))
    return experiment, run_experiment(experiment)


def score(experiment):
    found = experiment.metrics(experiment.system, experiment.test) if experiment.metrics else None
    return found or experiment.learner.evaluate(experiment.test)


def test_restored_photographs_are_better_than_blurred_and_inverted_ones():
    experiment, _ = trained(restore_photographs, "restoration", RestorationConfig(windows=24), epochs=8)
    reached = score(experiment)["psnr"]
    lost = experiment.notes["baselines"]
    assert reached > lost["the blurred image"] + 1.5
    assert lost["the blurred image"] > lost["the plain inverse"] + 5
    assert 0.001 < float(experiment.system.log_balance.detach().exp()) < 0.1
    again = type(experiment.system)(**experiment.arguments)
    again.load_state_dict(experiment.system.state_dict())
    assert torch.equal(again(experiment.test.x), experiment.system(experiment.test.x))
    assert len(experiment.picture(experiment.system).marks) == 9


def test_one_threshold_of_the_contrast_beats_otsus():
    experiment, _ = trained(find_by_contrast, "thresholding", ThresholdingConfig(scenes=200))
    assert score(experiment)["iou"] > experiment.notes["baselines"]["Otsu's threshold"] + 0.05
    learner = experiment.learner
    kept = learner.state()
    learner.restore(kept)
    assert torch.equal(learner.scores, kept["scores"])
    assert len(experiment.picture(experiment.system).marks) == 12


def test_a_calibrated_sensor_beats_constant_noise():
    experiment, _ = trained(calibrate_sensor, "sensor", SensorConfig(pixels=2000), epochs=25)
    found = score(experiment)
    assert found["nll"] < experiment.notes["baselines"]["constant noise"] - 0.01
    assert found["gain error"] < 0.05
    assert found["read noise error"] < 0.2
    assert experiment.picture(experiment.system).marks[0].label == "measured"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (lambda: RestorationConfig(length=0.0), "length must be > 0 and <= 31, got 0.0"),
        (lambda: RestorationConfig(noise=-1.0), "noise must be >= 0, got -1.0"),
        (lambda: ThresholdingConfig(scenes=0), "scenes must be >= 1, got 0"),
        (lambda: SensorConfig(frames=1), "frames must be >= 2, got 1"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(config, words):
    with pytest.raises(ValueError, match=words):
        config()
