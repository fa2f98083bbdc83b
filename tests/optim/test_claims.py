"""What the claims of this chapter notice: methods that break a statement in one place, each refused by its check."""

import pytest
import torch

from lemmata.judge.draw import Draw
from lemmata.optim import SAM, HeavyBall, Muon
from lemmata.optim.claims import averaging, linear_rates, momentum, muon, sam


@pytest.mark.parametrize("factor", [1.2, 1.5, 1.8])
@pytest.mark.parametrize(
    "check",
    [linear_rates.strong_convexity_gives_a_linear_rate, linear_rates.the_pl_condition_gives_a_linear_rate],
    ids=lambda check: check.id,
)
def test_linear_rates_are_not_faster(check, factor):
    assert not check(Draw(check.id), factor=factor).holds


def test_a_method_that_never_moves_does_not_average_to_the_minimum():
    assert not averaging.averaging_the_iterates(Draw("optim.polyak_averaging"), length=0.0).holds


def test_the_last_iterate_falls_by_its_rate():
    """And not by being no mean: the first check that fails is that of the rate."""
    found = averaging.averaging_the_iterates(Draw("optim.polyak_averaging"), average=averaging.last_iterate)
    assert not found.holds
    assert "slope" in found.detail


class RateOutside(HeavyBall):
    """The step size multiplies the whole displacement."""

    def update(self, group, theta, g, t, *state):
        (velocity,) = state
        velocity.mul_(group["momentum"]).sub_(g)
        theta.add_(velocity, alpha=group["lr"])

    def update_all(self, group, theta, g, t, *state):
        for each in zip(theta, g, *state, strict=True):
            self.update(group, each[0], each[1], t, *each[2:])


def test_a_changing_step_size_is_no_factor_of_the_displacement():
    assert not momentum.a_ball_with_friction(Draw("optim.heavy_ball"), optimizer=RateOutside).holds


class NormOfTheFirst(SAM):
    """Divides by the norm of the first tensor's gradient."""

    @torch.no_grad()
    def ascend(self):
        params = [p for group in self.param_groups for p in group["params"]]
        self._keep_copy(params)
        length = self.param_groups[0]["rho"] / params[0].grad.norm()
        for p in params:
            p.add_(p.grad, alpha=float(length))
        self.zero_grad()


def test_the_norm_is_that_of_all_tensors():
    assert not sam.the_gradient_of_the_worst_point_nearby(Draw("optim.sam"), optimizer=NormOfTheFirst).holds


@pytest.mark.parametrize(
    "options", [{"nesterov": False}, {"weight_decay": 0.0}, {"ns_steps": 4}, {"adjust_lr_fn": "rms_to_rms"}]
)
def test_the_defaults_of_muon_are_looked_at(options):
    def other(params, **given):
        return Muon(params, **(options | given))

    assert not muon.muon_steps_are_orthogonal(Draw("optim.muon"), optimizer=other).holds
