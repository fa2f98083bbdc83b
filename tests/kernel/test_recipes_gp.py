"""The recipe of Gaussian processes: what it reaches, own files, resuming, what it shows."""

from dataclasses import replace

import pytest
import torch

from lemmata.kernel.gaussian_process import GaussianProcess
from lemmata.kernel.recipes_gp import (
    ONCE,
    GaussianProcessConfig,
    GaussianProcessFileConfig,
    predict_file_with_bars,
    predict_with_bars,
)
from lemmata.train import run_experiment


@pytest.fixture
def table(tmp_path):
    x = torch.rand(120, 2) * 4
    y = 10 * x[:, 0].sin() + 0.5 * torch.randn(120)
    path = tmp_path / "table.csv"
    path.write_text("a,b,height\n" + "".join(f"{a:.4f},{b:.4f},{c:.4f}\n" for (a, b), c in zip(x, y, strict=True)))
    return path


def test_ridge_regression_and_the_mean_lose():
    experiment = predict_with_bars()
    scores = run_experiment(experiment).scores
    lost = experiment.notes["baselines"]
    assert scores["nll"] < 5.38 < 5.40 < lost["ridge regression"] < lost["the mean"]
    assert scores["mae"] < 41.5
    band, points = experiment.picture(experiment.system).marks
    inside = sum(low <= y <= high for low, y, high in zip(band.low, points.y, band.high, strict=True))
    assert 0.9 < inside / len(points.y) <= 1


def test_a_table_of_ones_own_in_its_own_unit(table):
    experiment = predict_file_with_bars(str(table))
    run = run_experiment(experiment)
    assert run.scores["nll"] < experiment.notes["baselines"]["ridge regression"] - 0.5
    assert 0.2 < run.scores["mae"] < 1.0
    found = experiment.predict(run.system, experiment.test)
    assert list(found) == ["height", "standard deviation"]
    assert 0.3 < found["standard deviation"].median() < 0.9
    table.write_text("a,b\n" + "".join(f"{k / 7:.3f},{'yes' if k % 3 else 'no'}\n" for k in range(30)))
    with pytest.raises(ValueError, match="predicts a number: use logistic"):
        predict_file_with_bars(str(table), GaussianProcessFileConfig())


def test_half_an_epoch_and_the_rest_give_the_same_bits(tmp_path):
    options = replace(ONCE, batch_size=200, save=1)
    config = GaussianProcessConfig(kernel="matern52", ard=False)
    at_once = run_experiment(predict_with_bars(config=config, options=options)).system
    half = predict_with_bars(config=config, options=replace(options, steps=1))
    run_experiment(half, out=tmp_path / "run")
    resumed = run_experiment(
        predict_with_bars(config=config, options=options), out=tmp_path / "run", resume=True
    ).system
    assert isinstance(resumed, GaussianProcess)
    assert len(resumed.x_) == 354
    for name, value in at_once.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value)


def test_bad_choices():
    with pytest.raises(ValueError, match="kernel must be one of rbf"):
        GaussianProcessConfig(kernel="rbf + sine")
    with pytest.raises(ValueError, match="restarts must be >= 0"):
        GaussianProcessConfig(restarts=-1)
