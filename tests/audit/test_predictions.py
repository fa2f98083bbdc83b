"""Predictions: one label an example, probabilities read as such, as many as there is time for."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.audit.clock import Clock, OutOfTime
from lemmata.audit.predictions import predictions
from lemmata.audit.sample import as_sample
from lemmata.audit.subject import Subject


def given(model, x, y, loss=None):
    return Subject(model, as_sample((x, y)), loss=loss)


def stopped(seconds):
    """A clock that stands still with so much time left."""
    return Clock(seconds, now=lambda: 0.0)


def test_of_classes_they_are_the_outputs():
    model, x, y = nn.Linear(4, 3), torch.randn(80, 4), torch.randint(0, 3, (80,))
    subject = given(model, x, y)
    said = predictions(subject, subject.train, stopped(60))
    assert torch.equal(said.logits, model(x).detach().double())
    assert torch.equal(said.labels, y)
    assert said.surprise.mean().item() == pytest.approx(functional.cross_entropy(model(x), y).item(), rel=1e-6)
    assert said.correct.float().mean() == (model(x).argmax(1) == y).float().mean()
    assert torch.allclose(said.at(2.0).logits, said.logits / 2)
    assert len(said[torch.arange(5)]) == 5


def test_of_one_output_the_sigmoid_is_the_second_class():
    model, x, y = nn.Linear(4, 1), torch.randn(80, 4), torch.randint(0, 2, (80,))
    subject = given(model, x, y)
    said = predictions(subject, subject.train, stopped(60))
    assert torch.allclose(said.probabilities[:, 1], torch.sigmoid(model(x).double())[:, 0])


def test_one_label_of_each_example_and_none_that_is_left_out():
    x, y = torch.randn(60, 1, 4, 4), torch.randint(0, 3, (60, 4, 4))
    y[:20] = -100  # left out altogether
    y[20:40, :, 1:] = -100
    model = nn.Conv2d(1, 3, 1)
    subject = given(model, x, y)
    said = predictions(subject, subject.train, stopped(60))
    assert len(said) == 40
    outputs = model(x).detach().double()
    for index in range(40):
        places = (outputs[20 + index].flatten(1).mT - said.logits[index]).abs().sum(1) < 1e-12
        assert bool((y[20 + index].flatten()[places] == said.labels[index]).any())


def test_shares_of_classes_as_targets():
    x, y = torch.randn(60, 4), torch.rand(60, 3).softmax(1)
    subject = given(nn.Linear(4, 3), x, y, loss="cross_entropy")
    assert torch.equal(predictions(subject, subject.train, stopped(60)).labels, y.argmax(1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_become_their_logarithms(dtype):
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)).to(dtype)
    x, y = torch.randn(80, 4).to(dtype), torch.randint(0, 3, (80,))
    subject = given(model, x, y, loss=lambda p, y: functional.nll_loss(p.log(), y))
    said = predictions(subject, subject.train, stopped(60))
    assert torch.allclose(said.probabilities, model(x).detach().double(), atol=1e-6)


def test_as_many_as_half_of_the_time_allows():
    subject = given(nn.Linear(4, 3), torch.randn(500, 4), torch.randint(0, 3, (500,)))
    subject.seconds = 1.0
    assert len(predictions(subject, subject.train, stopped(300))) == 150
    assert len(predictions(subject, subject.train, stopped(60))) == 50  # as few as say something
    with pytest.raises(OutOfTime, match="predicting 50 examples would take about 50 s"):
        predictions(subject, subject.train, stopped(40))


def test_no_label_at_all():
    subject = given(nn.Linear(4, 3), torch.randn(60, 4), torch.full((60,), -100))
    with pytest.raises(ValueError, match="no label of these examples names a class"):
        predictions(subject, subject.train, stopped(60))


@pytest.mark.parametrize(
    ("loss", "probabilities"),
    [(functional.binary_cross_entropy, True), (functional.binary_cross_entropy_with_logits, False)],
)
def test_numbers_between_zero_and_one_are_what_the_loss_takes_them_for(loss, probabilities):
    x = torch.linspace(0.05, 0.95, 80)[:, None]
    y = (x > 0.4).float()
    subject = given(nn.Identity(), x, y.long(), lambda out, t: loss(out, t.to(out)))
    found = predictions(subject, subject.train, stopped(60))
    wanted = torch.cat([1 - x, x], 1).log() if probabilities else torch.cat([0 * x, x], 1)
    assert torch.allclose(found.logits.softmax(1).float(), wanted.softmax(1), atol=1e-6)
