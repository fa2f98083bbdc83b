"""All widths at once are what each is alone, and the recipe has its peak where the examples are just met."""

import dataclasses

import pytest
import torch
from sklearn.linear_model import RidgeCV

from lemmata.generalization import WidthSweepClassifier
from lemmata.generalization.recipes_double_descent import ONCE, DoubleDescentConfig, fit_growing_widths
from lemmata.train.loop import run_experiment


def noisy_classes(n=30, inputs=4):
    drawn = torch.Generator().manual_seed(4)
    return torch.randn(n, inputs, generator=drawn, dtype=torch.float64), torch.randint(3, (n,), generator=drawn)


def test_every_width_is_the_shortest_least_squares_fit_of_its_features():
    x, y = noisy_classes()
    model = WidthSweepClassifier(4, widths=(5, 29, 90)).fit(x, y)
    features = model.hidden.features(x - x.mean(0))
    aim = torch.nn.functional.one_hot(y, 3).double()
    for i, width in enumerate(model.widths):
        weight = torch.linalg.pinv(features[:, :width]) @ (aim - aim.mean(0))
        assert torch.allclose(model.fitted_.weight[i, :width], weight, rtol=1e-6, atol=1e-8)
        assert not model.fitted_.weight[i, width:].any()
    assert (model.predict_all(x)[-1] == y).all()


def test_the_ridge_of_each_width_is_that_of_leaving_one_out():
    x, y = noisy_classes()
    model = WidthSweepClassifier(4, widths=(5, 20, 90)).fit(x, y)
    features = model.hidden.features(x - x.mean(0))
    aim = torch.nn.functional.one_hot(y, 3).double()
    for i, width in enumerate(model.widths):
        part = features[:, :width].detach()
        level = float(part.square().sum()) / len(x)  # the mean eigenvalue of the Gram matrix
        ridges = [10 ** (-8 + k / 4) * level for k in range(37)]
        theirs = RidgeCV(ridges, fit_intercept=False).fit(part.numpy(), (aim - aim.mean(0)).numpy())
        assert float(model.fitted_.ridge[i]) * level == pytest.approx(float(theirs.alpha_), rel=1e-9)
        assert torch.allclose(model.fitted_.ridged[i, :width].mT, torch.as_tensor(theirs.coef_), rtol=1e-6, atol=1e-9)


def test_a_fitted_one_comes_back_from_its_state():
    x, y = noisy_classes()
    model, other = WidthSweepClassifier(4, widths=(5, 40)).fit(x, y), WidthSweepClassifier(4, widths=(5, 40), seed=1)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.scores(x, ridged=True), model.scores(x, ridged=True))
    assert torch.equal(other.predict(x), model.predict(x))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: WidthSweepClassifier(4, widths=(9, 3)), r"widths must grow, got \[9, 3\]"),
        (lambda x, y: WidthSweepClassifier(4).fit(x, y[:-1]), "y must be 30 classes from 0 to 2, got 29, from 0 to 2"),
        (lambda x, y: WidthSweepClassifier(4).fit(x, y, classes=2), "y must be 30 classes from 0 to 1"),
        (lambda x, y: WidthSweepClassifier(4).fit(x * torch.nan, y), "x"),
    ],
)
def test_bad_input_is_answered_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call(*noisy_classes())


def test_what_is_not_fitted_says_so():
    with pytest.raises(RuntimeError, match="not fitted"):
        WidthSweepClassifier(4).predict(torch.ones(1, 4))


@pytest.mark.parametrize("data", ["digits", "fashion"])
def test_the_error_peaks_where_the_examples_are_just_met_and_the_ridge_has_no_peak(data):
    experiment = fit_growing_widths(data, DoubleDescentConfig(examples=200), dataclasses.replace(ONCE, seed=3))
    run_experiment(experiment)
    plain = (experiment.system.predict_all(experiment.test.x.double()) != experiment.test.y).double().mean(1)
    ridged = (experiment.system.predict_all(experiment.test.x.double(), ridged=True) != experiment.test.y).double()
    widths = experiment.system.widths
    assert widths[int(plain.argmax())] == 200
    assert plain[-1] < 0.6 * plain.max()  # and down again
    assert ridged.mean(1)[3:].max() < plain.min() + 0.02
