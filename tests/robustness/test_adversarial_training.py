"""Training on the worst examples: as a loss of `fit`, as found, repeatable, and watched."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.robustness.adversarial_training import (
    AdversarialTraining,
    FreeAdversarialTraining,
    Replayed,
    worst_nearby,
)
from lemmata.robustness.norm_ball import perturbation_norms
from lemmata.robustness.threat import Threat
from lemmata.train import fit
from lemmata.train.callbacks import TrainingState
from lemmata.train.history import History


def corner_points(n=64, generator=0):
    """Two classes in the square that one coordinate tells apart."""
    drawn = torch.Generator().manual_seed(generator)
    x = 0.6 * torch.rand(n, 2, generator=drawn) + 0.2
    y = torch.arange(n) % 2
    x[:, 0] = torch.where(y == 1, 0.8, 0.2)
    return Examples(x=x, y=y)


def small_network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_what_is_trained_on_lies_in_ball_and_box(norm):
    batch, model = corner_points(), small_network()
    threat = Threat(0.3, norm)
    nearby = worst_nearby(model, batch.x, batch.y, threat, 7, 0.2, True)
    assert (perturbation_norms(nearby - batch.x, norm) <= 0.3 + 1e-6).all()
    assert nearby.min() >= 0
    assert nearby.max() <= 1
    assert not torch.equal(nearby, batch.x)
    assert not nearby.requires_grad


def test_the_search_leaves_running_means_mode_and_gradients_as_they_were():
    batch, model = corner_points(), small_network().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    worst_nearby(model, batch.x, batch.y, Threat(0.1), 3, 0.05, True)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_without_a_ball_it_is_the_loss_itself_and_mixing_weighs_both():
    batch, model = corner_points(), small_network().eval()
    clean = functional.cross_entropy(model(batch.x), batch.y)
    assert torch.allclose(AdversarialTraining(0.0)(model, batch)["loss"], clean)
    worst = AdversarialTraining(0.2, random_start=False)(model, batch)["loss"]
    mixed = AdversarialTraining(0.2, random_start=False, clean=0.25)(model, batch)
    assert worst > clean
    assert torch.allclose(mixed["loss"], 0.25 * clean + 0.75 * worst)
    assert set(mixed) == {"loss", "accuracy", "robust accuracy"}


def test_the_same_seed_gives_the_same_bits():
    runs = []
    for _ in range(2):
        model = small_network()
        fit(model, corner_points(), loss=AdversarialTraining(0.1), epochs=2, device="cpu", seed=3)
        runs.append(torch.cat([value.flatten() for value in model.state_dict().values()]))
    assert torch.equal(*runs)


def test_free_training_moves_weights_and_perturbation_by_one_backward_pass():
    data, model = corner_points(), nn.Linear(2, 2)
    training = FreeAdversarialTraining(0.2)
    batches = [(data.x[rows], data.y[rows]) for rows in torch.arange(64).split(32)]
    run = fit(model, Replayed(batches, 4), loss=training, epochs=10, lr=0.1, device="cpu")
    assert run.steps == 80
    assert training.perturbation is not None
    assert (training.perturbation.abs() <= 0.2 + 1e-6).all()
    assert training.perturbation.abs().mean() > 0.1
    nearby = worst_nearby(model, data.x, data.y, Threat(0.2), 10, 0.05, False)
    assert (model(nearby).argmax(1) == data.y).double().mean() == 1


BRIGHT = Examples(x=torch.full((1, 2), 7.0), y=torch.zeros(1, dtype=torch.long))


class DeceivesOneStep(nn.Module):
    """Right near every example and wrong a little farther; a kink at each makes the first gradient point inwards."""

    def __init__(self):
        super().__init__()
        self.anchor = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        away = x[:, 0] - self.anchor
        margin = 0.5 - torch.sin(40 * away) - 8 * away.abs()
        return torch.stack([margin, -margin], 1)


def state_of(model):
    return TrainingState(model, 1, 1, 1, {}, {}, History("test"))


def test_the_watch_stops_a_model_that_deceives_its_own_attack_alone():
    batch = Examples(x=torch.full((32, 1), 0.5), y=torch.zeros(32, dtype=torch.long))
    one = AdversarialTraining(0.1, steps=1, step=1e-4, random_start=False)
    assert not one.watch(state_of(DeceivesOneStep()))  # nothing was seen yet
    one(DeceivesOneStep().train(), batch)
    with pytest.warns(UserWarning, match="catastrophic overfitting in epoch 1: 100% right .* use more steps"):
        assert one.watch(state_of(DeceivesOneStep()))
    honest = nn.Linear(2, 2)
    many = AdversarialTraining(0.01)
    run = fit(honest, corner_points(), loss=many, on_epoch=many.watch, epochs=3, lr=0.1, device="cpu")
    assert run.stopped == "finished"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: AdversarialTraining(-0.1), "eps must be >= 0, got -0.1"),
        (lambda: AdversarialTraining(0.1, steps=-1), "steps must be >= 0"),
        (lambda: AdversarialTraining(0.1, clean=1.0), "clean must be in \\[0, 1\\), got 1.0"),
        (lambda: AdversarialTraining(0.1, norm=3), "norm must be 1, 2 or inf, got 3"),
        (lambda: Replayed([], 0), "times must be >= 1, got 0"),
        (lambda: AdversarialTraining(0.1)(nn.Linear(2, 2), BRIGHT), "x must lie in bounds"),
    ],
)
def test_bad_choices_are_answered_in_a_sentence(build, words):
    with pytest.raises(ValueError, match=words):
        build()
