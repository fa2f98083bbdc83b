"""The recipes on a GPU: they train there, are shown from there, and come back to the CPU."""

import inspect
from dataclasses import replace

import pytest
import torch
from torch import nn

from lemmata.connectionism.recipes import remember_prototypes, separate_classes
from lemmata.feedforward import (
    MLP,
    LinearRegression,
    LogisticRegression,
    PiecewiseLinear,
    cross_entropy,
    linear_regions,
    uniform_distance,
)
from lemmata.feedforward.recipes import classify_clothing, classify_points
from lemmata.feedforward.recipes_residual import residual_points
from lemmata.train import run_experiment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_outputs_are_those_of_the_cpu(dtype):
    mlp, x = MLP(20, 5, widths=(30, 30), activation="gelu").to(dtype), torch.randn(8, 20, dtype=dtype)
    there = mlp.cuda()(x.cuda()).cpu()
    torch.testing.assert_close(there, mlp.cpu()(x))


@pytest.mark.parametrize("ignore_index", [None, 3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_that_of_the_cpu(ignore_index, reduction, smoothing):
    logits, y = torch.randn(3, 40, 7, dtype=torch.double), torch.randint(7, (3, 40))
    results = []
    for device in ("cpu", "cuda"):
        given = logits.to(device).requires_grad_()
        loss = cross_entropy(given, y.to(device), smoothing, reduction, ignore_index=ignore_index)
        slope = torch.autograd.grad(loss.square().sum(), given, create_graph=True)[0]
        bend = torch.autograd.grad(slope.square().sum(), given)[0]
        results.append([part.detach().cpu() for part in (loss, slope, bend)])
    for here, there in zip(*results, strict=True):  # sums in another order: rounding of the largest terms
        torch.testing.assert_close(there, here, rtol=1e-10, atol=1e-12 * float(here.abs().max()))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_regressions_find_the_weights_of_the_cpu(classes, dtype):
    x, y = torch.randn(5000, 4, dtype=dtype) + 2, torch.randint(classes, (5000,))
    y = torch.where(torch.rand(5000) < 0.3, (x[:, 0] > 2).long(), y)
    for fit in (
        lambda device: LogisticRegression(0.01).fit(x.to(device), y.to(device)),
        lambda device: LinearRegression(0.01).fit(x.to(device), y.to(device, dtype)),
    ):
        here, there = fit("cpu"), fit("cuda")
        assert there.weight_.is_cuda
        torch.testing.assert_close(there.weight_.cpu(), here.weight_, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(there.bias_.cpu(), here.bias_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_weighted_regressions_find_the_weights_of_the_cpu(classes):
    x, y, often = torch.randn(500, 3, dtype=torch.double), torch.randint(classes, (500,)), torch.rand(500)
    for model, solver in ((LinearRegression, "cholesky"), (LinearRegression, "gd"), (LogisticRegression, "newton"),
                          (LogisticRegression, "lbfgs"), (LogisticRegression, "gd")):  # fmt: skip
        aim = y.double() if model is LinearRegression else y
        here = model(0.1, solver=solver).fit(x, aim, sample_weight=often)
        there = model(0.1, solver=solver).fit(x.cuda(), aim.cuda(), sample_weight=often)
        torch.testing.assert_close(there.weight_.cpu(), here.weight_, rtol=1e-5, atol=1e-6)
        score = there.score(x.cuda(), aim.cuda(), often.cuda())
        assert score == pytest.approx(here.score(x, aim, often), abs=1e-6)


def test_distances_regions_and_broken_lines_are_those_of_the_cpu():
    nets = [nn.Sequential(nn.Linear(1, 4), nn.LeakyReLU(0.1), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).eval()]
    nets += [nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(0.1), nn.Linear(4, 1))]
    for inputs, net in enumerate(nets, 1):
        here, there = (linear_regions(net.to(device), [(-2, 2)] * inputs) for device in ("cpu", "cuda"))
        assert len(here) == len(there)
        torch.testing.assert_close(there.corners.cpu(), here.corners)
    f, g = MLP(1, 1, widths=(4,)).cuda(), MLP(1, 1, widths=(4,)).double()
    found = uniform_distance(f, g, (-1.0, 1.0), tolerance=0.01)
    at = torch.linspace(-1, 1, 99)[:, None]
    seen = float((f(at.cuda()).cpu() - g(at.double())).detach().abs().max())
    assert found.lower - 1e-5 <= found.upper
    assert seen <= found.upper + 1e-5
    line, x = PiecewiseLinear(torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0]), left=1.0), torch.linspace(-3, 3, 40)
    torch.testing.assert_close(line.cuda()(x.cuda()).cpu(), line.cpu()(x))


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
