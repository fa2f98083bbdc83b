"""What the claims of this chapter notice: systems that break a statement in one place, each refused by its check."""

import pytest
import torch
from torch import nn

from lemmata.judge.draw import Draw
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.claims import (
    distillation,
    dropout,
    initialization,
    normalization,
    normalized_training,
    weight_decay,
)
from lemmata.tricks.dropout import Dropout


class KeepsWhatItShouldDrop(Dropout):
    """Wrong only where all units have one probability."""

    def forward(self, x):
        if isinstance(self.p, float) and self.inverted:
            return nn.functional.dropout(x, 1 - self.p, self.training)
        return super().forward(x)


def test_one_probability_for_all_units_is_looked_at():
    assert not dropout.units_are_kept_with_their_probability(Draw("reg.dropout"), layer=KeepsWhatItShouldDrop).holds


def test_signed_permutations_are_not_haars_law(monkeypatch):
    def signed(draw, inputs, outputs, scheme, distribution="normal", **more):
        layer = nn.Linear(inputs, outputs, bias=False, dtype=torch.float64).requires_grad_(False)
        layer.weight.copy_(draw.signs(inputs, 1) * torch.eye(inputs)[draw.permutation(inputs)])
        return layer

    monkeypatch.setattr(initialization, "_drawn_layer", signed)
    assert not initialization.orthogonal_layers_preserve_every_norm(Draw("init.orthogonal")).holds


def test_the_momentum_is_the_share_of_the_newest_batch(monkeypatch):
    def exchanged(features, momentum=0.1, **more):
        return BatchNorm(features, momentum=None if momentum is None else 1 - momentum, **more)

    monkeypatch.setattr(normalization, "BatchNorm", exchanged)
    assert not normalization.batches_standardise_every_feature(Draw("norm.batch")).holds


@pytest.mark.parametrize(("without", "holds"), [(2.3, True), (1.0, False)])
def test_a_network_that_learns_without_normalisation_is_no_example(monkeypatch, without, holds):
    losses = {"none": without, "batch": 0.1}

    def loss(draw, normalization, lr=0.01, gain=1 / 3, learnt="all"):
        return losses[normalization] + (learnt == "bias")

    monkeypatch.setattr(normalized_training, "trained_loss", loss)
    found = normalized_training.normalisation_makes_deep_networks_trainable(Draw("norm.effectiveness"))
    assert found.holds is holds


def test_three_views_are_those_of_every_convex_loss(monkeypatch):
    """A logistic regression whose penalty is twice what it should be, beside least squares that are right."""

    class Overdone(weight_decay.LogisticRegression):
        def __init__(self, ridge=0.0, bias=True):
            super().__init__(ridge=2 * ridge, bias=bias)

    monkeypatch.setattr(weight_decay, "LogisticRegression", Overdone)
    assert not weight_decay.three_views_of_weight_decay(Draw("reg.weight_decay.views")).holds


def test_printed_lies_of_the_update_are_the_printed_line():
    printed = [each for each in weight_decay.decay_is_gradient_descent_on_the_penalised_loss.lies if each.printed]
    assert [each.printed for each in printed] == ["000/1", "003/2"]
    for each in printed:
        sign, rate = each.value(1.0, weight_decay._step_size)
        assert (sign, rate(0.1)) == (-1.0, 1.0)


def test_a_penalty_without_one_half_has_another_gradient():
    def whole(layers, decays):
        return 2 * weight_decay.l2_penalty(layers, decays)

    check = weight_decay.the_penalty_pulls_in_proportion_to_the_weights
    assert not check(Draw("reg.weight_decay.l2"), half=1.0, penalty=whole).holds


@pytest.mark.parametrize(
    "check",
    [
        initialization.both_laws_have_the_variance_that_is_asked_for,
        initialization.weights_of_variance_one_over_n_preserve_the_variance,
        initialization.weights_between_both_demands,
        initialization.rectified_layers_keep_the_mean_square,
    ],
    ids=lambda check: check.id,
)
def test_normal_weights_have_more_than_the_moments_of_normal_ones(monkeypatch, check):
    real = initialization.initialize

    def always_uniform(layer, scheme, distribution="normal", **more):
        return real(layer, scheme, distribution="uniform", **more)

    monkeypatch.setattr(initialization, "initialize", always_uniform)
    assert not check(Draw(check.id)).holds


@pytest.mark.parametrize("sign", [1, -1], ids=["rotations", "reflections"])
def test_half_of_the_orthogonal_matrices_are_not_all_of_them(sign):
    def of_one_kind(draw, m):
        layer = initialization._haar_matrix(draw, m)
        layer.weight[0] *= sign * torch.linalg.det(layer.weight).sign()
        return layer

    check = initialization.orthogonal_layers_preserve_every_norm
    assert not check(Draw("init.orthogonal"), law=of_one_kind).holds


def test_a_convolution_sums_over_its_window(monkeypatch):
    real = initialization.initialize

    def by_channels(layer, scheme, **more):
        told = real(layer, scheme, **more)
        if isinstance(layer, nn.Conv2d):
            with torch.no_grad():
                layer.weight *= 3  # the root of the nine places under the window
        return told

    monkeypatch.setattr(initialization, "initialize", by_channels)
    assert not initialization.weights_of_variance_one_over_n_preserve_the_variance(Draw("init.lecun")).holds


def test_gains_of_glorots_weights_are_measured(monkeypatch):
    """A layer whose gradients are not those of its signals."""

    class Deaf(nn.Linear):
        def forward(self, x):
            return super().forward(x.detach()) + 0 * x.sum()

    monkeypatch.setattr(initialization.nn, "Linear", Deaf)
    assert not initialization.weights_between_both_demands(Draw("init.glorot")).holds


def test_running_variances_are_unbiased(monkeypatch):
    class OfTheBatch(BatchNorm):
        def forward(self, x):
            if not self.training or not self.track_running_stats:
                return super().forward(x)
            running, count = self.get_buffer("running_var"), self.get_buffer("num_batches_tracked")
            before, out = running.clone(), super().forward(x)
            share = 1 / int(count) if self.momentum is None else self.momentum
            running.copy_((1 - share) * before + share * x.var(0, correction=0))
            return out

    monkeypatch.setattr(normalization, "BatchNorm", OfTheBatch)
    assert not normalization.batches_standardise_every_feature(Draw("norm.batch")).holds


def test_the_mixture_with_labels_is_looked_at(monkeypatch):
    class Unscaled(distillation.DistillationLoss):
        def forward(self, student, teacher, y=None):
            soft = distillation.distillation_loss(student, teacher, self.temperature)
            hard = nn.functional.cross_entropy(student, y) if y is not None else torch.zeros(())
            return (1 - self.hard) * soft + self.hard * hard

    monkeypatch.setattr(distillation, "DistillationLoss", Unscaled)
    assert not distillation.students_learn_tempered_probabilities(Draw("distill")).holds
