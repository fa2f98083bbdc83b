"""What the claims of this chapter notice: systems that break a statement in one place, each refused by its check."""

import pytest
import torch
from torch import nn

from lemmata.judge.draw import Draw
from lemmata.tricks.batch_norm import BatchNorm
from lemmata.tricks.claims import dropout, initialization, normalization, normalized_training, weight_decay
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

    monkeypatch.setattr(initialization, "_layer", signed)
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

    monkeypatch.setattr(normalized_training, "_loss", loss)
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
