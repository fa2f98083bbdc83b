"""Perceptrons against the rest: scikit-learn's weights update for update, resumable sweeps, and refusals."""

import json

import numpy as np
import pytest
import torch
from sklearn import linear_model

from lemmata.connectionism import OneVersusRest, Perceptron, textbook_perceptron


def clouds(classes, points=90, features=5, spread=1.0):
    """Points around a centre for each class, in random order."""
    centres = 3 * torch.randn(classes, features, dtype=torch.double)
    y = torch.arange(points) % classes
    return centres[y] + spread * torch.randn(points, features, dtype=torch.double), y


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("bias", [True, False])
def test_its_weights_are_those_of_scikit_learn_update_for_update(classes, bias):
    x, y = clouds(classes, spread=3.0)
    ours = OneVersusRest(5, classes, bias=bias)
    for sweeps in (1, 2, 3):
        updates = ours.sweep(x, y)
        peer = linear_model.Perceptron(max_iter=sweeps, tol=None, shuffle=False, fit_intercept=bias)
        peer.fit(x.numpy(), y.numpy())
        assert updates > 0
        np.testing.assert_allclose(ours.weight, peer.coef_, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.bias, peer.intercept_, rtol=1e-12, atol=1e-12)
        assert ours.predict(x).tolist() == peer.predict(x.numpy()).tolist()


@pytest.mark.parametrize(("classes", "bias"), [(2, True), (4, True), (4, False)])
def test_each_class_is_learnt_as_the_textbook_says(classes, bias):
    x, y = torch.randint(-9, 10, (40, 3)).double(), torch.randint(0, classes, (40,))
    signs = [torch.where(y == unit, 1.0, -1.0).double() for unit in ([1] if classes == 2 else range(classes))]
    weight, b, made = zip(*(textbook_perceptron(x, sign, 3, bias) for sign in signs), strict=True)
    weight, b = torch.stack(weight), torch.stack(b)
    learnt = OneVersusRest(3, classes, bias=bias)
    assert sum(learnt.sweep(x, y) for _ in range(3)) == sum(map(len, made))
    assert learnt.weight.equal(weight)
    assert learnt.bias.equal(b)
    assert OneVersusRest(3, classes, bias).fit(x, y, max_epochs=3).weight.equal(weight)
    activation = x @ weight.T + b
    assert learnt.mistakes(x, y) == int((torch.stack(signs, 1) * activation <= 0).any(1).sum())
    by_class = torch.cat([-activation, activation], 1) if classes == 2 else activation
    assert learnt.decision_function(x).equal(by_class)
    assert learnt.predict(x).equal(by_class.argmax(1))


def test_two_classes_are_one_perceptron():
    x, y = clouds(2)
    one = Perceptron().fit(x, 2 * y - 1)
    both = OneVersusRest(5, 2).fit(x, y, max_epochs=1000)
    torch.testing.assert_close(both.weight[0], one.weight_)
    assert torch.equal(2 * both.predict(x) - 1, one.predict(x).long())


def test_a_clean_sweep_means_that_every_class_is_separated():
    x, y = clouds(4)
    learnt = OneVersusRest(5, 4).fit(x, y, max_epochs=1000)
    assert learnt.mistakes(x, y) == 0
    assert learnt.sweep(x, y) == 0
    assert torch.equal(learnt.predict(x), y)


def test_what_was_learnt_is_given_to_another():
    x, y = clouds(3, spread=3.0)
    one = OneVersusRest(5, 3)
    one.sweep(x, y)
    other = OneVersusRest(**json.loads(json.dumps({"features": 5, "classes": 3})))
    other.load_state_dict(one.state_dict())
    assert one.sweep(x, y) == other.sweep(x, y) > 0
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(one.decision_function(x), other.decision_function(x))


def test_a_sweep_never_changes_what_was_saved_before():
    x, y = clouds(3)
    learner = OneVersusRest(5, 3)
    saved = learner.state_dict()
    learner.sweep(x, y)
    assert not saved["weight"].any()


def test_whoever_has_learnt_nothing_is_wrong_everywhere():
    x, y = clouds(3)
    assert OneVersusRest(5, 3).mistakes(x, y) == len(x)  # an activation of 0 decides nothing


def test_half_precision_is_learnt_in_single():
    x, y = clouds(3)
    assert OneVersusRest(5, 3).fit(x.bfloat16(), y, max_epochs=1).weight.dtype is torch.float32


@pytest.mark.usefixtures("unchecked")
def test_bad_input_names_the_argument_and_the_fix():
    x, y = clouds(3)
    system = OneVersusRest(5, 3)
    for build, said in (
        (lambda: OneVersusRest(0, 3), "features must be >= 1, got 0"),
        (lambda: OneVersusRest(5, 1), "classes must be >= 2, got 1"),
        (lambda: OneVersusRest(5, 3, bias=1), "bias must be True or False"),
        (lambda: system.sweep(x[:, :4], y), "x must have 5 features on its last axis"),
        (lambda: system.sweep(x, y + 1), "y must be an integer from 0 to 2 for each of the 90 points"),
        (lambda: system.sweep(x, y[:4]), "for each of the 90 points"),
        (lambda: system.sweep(x * torch.nan, y), "NaN"),
        (lambda: system.fit(x, y, max_epochs=0), "max_epochs must be >= 1, got 0"),
        (
            lambda: system.load_state_dict(OneVersusRest(4, 3).state_dict()),
            r"weight must have shape \(3, 5\), got \(3, 4\)",
        ),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError), match=said):
            build()
    assert repr(system) == "OneVersusRest(features=5, classes=3, bias=True)"
