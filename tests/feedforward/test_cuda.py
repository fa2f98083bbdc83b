"""The recipes on a GPU: they train there, are shown from there, and come back to the CPU."""

import inspect
from dataclasses import replace

import pytest
import torch

from lemmata.connectionism.recipes import remember_prototypes, separate_classes
from lemmata.feedforward import MLP
from lemmata.feedforward.recipes import classify_clothing, classify_points
from lemmata.feedforward.recipes_residual import residual_points
from lemmata.train import run_experiment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_outputs_are_those_of_the_cpu(dtype):
    mlp, x = MLP(20, 5, widths=(30, 30), activation="gelu").to(dtype), torch.randn(8, 20, dtype=dtype)
    there = mlp.cuda()(x.cuda()).cpu()
    torch.testing.assert_close(there, mlp.cpu()(x))


RECIPES = [
    (classify_clothing, "fashion"),
    (classify_points, "moons"),
    (residual_points, "moons"),
    (separate_classes, "moons"),
    (separate_classes, "digits"),
    (remember_prototypes, "digits"),
]


@pytest.mark.parametrize(("recipe", "data"), RECIPES)
def test_recipes_train_and_resume_there(tmp_path, recipe, data):
    options = replace(inspect.signature(recipe).parameters["options"].default, device="cuda", evaluate=1)
    for epochs in (1, 2):
        experiment = recipe(data, options=replace(options, epochs=epochs))
        run = run_experiment(experiment, out=tmp_path / "run", resume=epochs == 2)
    assert list((tmp_path / "run" / "pictures").glob("*.json"))
    predicted = experiment.predict(run.system, experiment.test.to("cuda"))["class"]
    assert len(predicted) == len(experiment.test)
