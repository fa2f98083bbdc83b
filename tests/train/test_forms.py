"""Forms of experiments: one pass through the network for loss and scores, and the same for training and prediction."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.data import Examples
from lemmata.train import Classification, Language, Options, Regression, accuracy, fit, run_experiment
from lemmata.train.forms import chosen, fraction

X = torch.rand(40, 3, generator=torch.Generator().manual_seed(1))
CLASSES = Examples(x=X, y=(X.sum(1) > 1.5).long())
NUMBERS = Examples(x=X, y=X.sum(1))
FEW = Options(epochs=2, batch_size=8, device="cpu")


class Counting(nn.Linear):
    """Counts how often it is asked, by mode."""

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.asked = {True: 0, False: 0}

    def forward(self, x):
        self.asked[self.training] += 1
        return super().forward(x)


def linear(outputs):
    return {"in_features": 3, "out_features": outputs}


@pytest.mark.parametrize(("form", "examples", "outputs"), [(Classification(), CLASSES, 2), (Regression(), NUMBERS, 1)])
def test_an_evaluation_runs_the_network_once(form, examples, outputs):
    experiment = form.experiment(Counting, linear(outputs), examples, examples, FEW)
    run_experiment(experiment)
    assert experiment.system.asked == {True: 10, False: 3}  # five batches an epoch; after each epoch, and in the end


def test_a_classification_is_the_cross_entropy_with_its_accuracy():
    experiment = Classification().experiment(nn.Linear, linear(2), CLASSES, CLASSES, FEW)
    logits = experiment.system(X)
    found = experiment.loss(experiment.system, CLASSES)
    assert found["loss"].equal(functional.cross_entropy(logits, CLASSES.y))
    assert found["accuracy"] == (logits.argmax(1) == CLASSES.y).double().mean()
    assert not found["accuracy"].requires_grad
    predicted = experiment.predict(experiment.system, CLASSES)
    assert predicted["class"].equal(logits.argmax(1))
    assert predicted["probability"].equal(logits.softmax(1).amax(1))
    assert (experiment.metric, experiment.largest) == ("accuracy", True)
    in_parts = Classification(at_once=7).predict(experiment.system, CLASSES)
    torch.testing.assert_close(in_parts["probability"], predicted["probability"])
    assert Classification(at_once=7).predict(experiment.system, CLASSES[:0])["class"].shape == (0,)


def test_batches_are_varied_only_while_they_are_learnt():
    form = Classification(varied=lambda batch: Examples(x=-batch.x, y=batch.y))
    system = nn.Linear(3, 2)
    assert form.loss(system.eval(), CLASSES)["loss"].equal(functional.cross_entropy(system(X), CLASSES.y))
    assert form.loss(system.train(), CLASSES)["loss"].equal(functional.cross_entropy(system(-X), CLASSES.y))


def test_a_regression_scores_in_its_own_unit():
    scores = {"mae": lambda output, y: 10 * (output - y).abs().mean(), "near": lambda output, y: fraction(output > y)}
    form = Regression(error=functional.smooth_l1_loss, scores=scores, name="price", value=lambda output: 10 * output)
    system = nn.Linear(3, 1)
    output = system(X)[:, 0]
    found = form.loss(system, NUMBERS)
    assert found["loss"].equal(functional.smooth_l1_loss(output, NUMBERS.y))
    assert found["mae"] == 10 * (output - NUMBERS.y).abs().mean()
    assert form.predict(system, NUMBERS)["price"].equal(10 * output)
    assert (form.metric, form.largest) == ("mae", False)


def test_bits_are_those_of_the_tokens_that_are_scored():
    nll = torch.rand(4, 6, requires_grad=True)
    found = Language(lambda system, batch: nll, scored=lambda nll: nll[:, 3:]).loss(None, CLASSES)
    assert found["loss"].equal(nll.mean())
    assert float(found["bits"]) == pytest.approx(nll[:, 3:].detach().mean().item() / math.log(2))
    experiment = Language().experiment(nn.Linear, linear(1), CLASSES, CLASSES, FEW)
    assert (experiment.metric, experiment.largest, experiment.predict) == ("bits", False, None)


def test_the_seed_alone_draws_the_weights_and_an_instance_is_taken_as_it_is():
    form, own = Classification(), nn.Linear(3, 2)
    torch.manual_seed(5)
    first = form.experiment(nn.Linear, linear(2), CLASSES, CLASSES, FEW).system
    second = form.experiment(nn.Linear, linear(2), CLASSES, CLASSES, FEW).system
    assert first.weight.equal(second.weight)
    assert form.experiment(own, linear(2), CLASSES, CLASSES, FEW).system is own


def test_accuracy_is_a_metric_of_fit():
    run = fit(nn.Linear(3, 2), CLASSES, metrics={"accuracy": accuracy}, options=FEW)
    assert run.scores["accuracy"] == pytest.approx(float(accuracy(run.model(X), CLASSES.y)))


def test_choices_are_those_of_a_kind_or_all_but_some():
    config = Options(epochs=3)
    assert chosen(config)["epochs"] == 3
    assert "epochs" not in chosen(config, without=("epochs",))
