"""The conformance suite of optimisers fails a planted bug by the check that it breaks, and by no other."""

import pytest
import torch
from torch.optim import Optimizer

from lemmata.testing import OptimizerError, check_optimizer


class Sound(Optimizer):
    """Momentum with every virtue that the suite asks for."""

    def __init__(self, params, lr=0.01, weight_decay=0.0, maximize=False, foreach=False):
        self.check(lr)
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach})

    def check(self, lr):
        if lr < 0:
            raise ValueError(f"lr must be >= 0, got {lr}")

    def loss(self, closure):
        with torch.enable_grad():
            return closure()

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else self.loss(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.move(p, self.gradient(p, group), group)
        return loss

    def gradient(self, p, group):
        if p.grad.is_sparse:
            raise ValueError("sparse gradients are refused")
        g = -p.grad if group["maximize"] else p.grad
        return g + group["weight_decay"] * p

    def start(self, p):
        return torch.zeros_like(p)

    def move(self, p, g, group):
        state = self.state[p]
        velocity = state.setdefault("velocity", self.start(p))
        velocity.mul_(0.9).add_(g)
        p.sub_(group["lr"] * velocity)


class Uphill(Sound):
    def move(self, p, g, group):
        super().move(p, -g, group)


class NoOptimizer(Sound):
    def __new__(cls, *args, **options):
        return object()


class LosingParameters(Sound):
    def __init__(self, params, **options):
        super().__init__(list(params)[:1], **options)


class WithoutGradients(Sound):
    def loss(self, closure):
        return closure()


class ReturningNothing(Sound):
    def step(self, closure=None):
        super().step(closure)


class IgnoringTheClosure(Sound):
    def loss(self, closure):
        super().loss(closure)
        return super().loss(closure) * 0


class SteppingTwiceWithAClosure(Sound):
    def step(self, closure=None):
        loss = super().step(closure)
        if closure is not None:
            super().step()
        return loss


COMMON = {}


class SharingState(Sound):
    def move(self, p, g, group):
        velocity = COMMON.setdefault((*p.shape, p.dtype), torch.zeros_like(p))
        velocity.mul_(0.9).add_(g)
        p.sub_(group["lr"] * velocity)


class Rebinding(Sound):
    def move(self, p, g, group):
        p.data = p.data - group["lr"] * g


class WritingIntoGradients(Sound):
    def move(self, p, g, group):
        super().move(p, g, group)
        p.grad.copy_(self.state[p]["velocity"])


class TakingGradientsAway(Sound):
    def step(self, closure=None):
        loss = super().step(closure)
        self.zero_grad()
        return loss


class KeepingTheGradient(Sound):
    """The first gradient becomes the velocity, without a copy."""

    def gradient(self, p, group):
        g = super().gradient(p, group)
        return p.grad if not group["weight_decay"] and not group["maximize"] else g

    def move(self, p, g, group):
        state = self.state[p]
        if "velocity" in state:
            g = state["velocity"] * 0.9 + g
        p.sub_(group["lr"] * g)
        state["velocity"] = g


class ViewingTheParameter(Sound):
    def move(self, p, g, group):
        self.state[p].setdefault("last", p.detach())
        super().move(p, g, group)


class MovingWhatHasNoGradient(Sound):
    def step(self, closure=None):
        loss = super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p.data.mul_(0.9)
        return loss


class StoppingWithoutGradient(Sound):
    def step(self, closure=None):
        if closure is None and any(p.grad is None for group in self.param_groups for p in group["params"]):
            return None
        return super().step(closure)


class FirstIsFaster(Sound):
    def move(self, p, g, group):
        first = p is self.param_groups[0]["params"][0]
        super().move(p, 2 * g if first else g, group)


class TheFirstGroupsRate(Sound):
    def move(self, p, g, group):
        super().move(p, g, self.param_groups[0])


class TheRateOfAllGroups(Sound):
    def move(self, p, g, group):
        least = min(group["lr"] for group in self.param_groups)
        super().move(p, g, group | {"lr": least if group["lr"] != least else group["lr"]})


class DeafToSchedules(Sound):
    def add_param_group(self, group):
        super().add_param_group(group)
        group["fixed"] = group["lr"]

    def move(self, p, g, group):
        super().move(p, g, group | {"lr": group["fixed"]})


class CountingOutsideOfTheState(Sound):
    count = 0

    def step(self, closure=None):
        self.count += 1
        return super().step(closure)

    def move(self, p, g, group):
        super().move(p, g, group | {"lr": group["lr"] / self.count})


class TheFirstGroupsMomentum(Sound):
    def __init__(self, params, momentum=0.9, **options):
        super().__init__(params, **options)
        self.defaults["momentum"] = momentum
        for group in self.param_groups:
            group.setdefault("momentum", momentum)

    def move(self, p, g, group):
        velocity = self.state[p].setdefault("velocity", self.start(p))
        velocity.mul_(self.param_groups[0]["momentum"]).add_(g)
        p.sub_(group["lr"] * velocity)


class KeepingItsOwnRate(Sound):
    def load_state_dict(self, state_dict):
        rates = [group["lr"] for group in self.param_groups]
        super().load_state_dict(state_dict)
        for group, lr in zip(self.param_groups, rates, strict=True):
            group["lr"] = lr


class OneCounterForAll(Sound):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
        return super().step(closure)

    def move(self, p, g, group):
        super().move(p, g, group | {"lr": group["lr"] / group["count"]})


class DeafToMaximize(Sound):
    def gradient(self, p, group):
        return super().gradient(p, group | {"maximize": False})


class AnotherForeach(Sound):
    def move(self, p, g, group):
        super().move(p, g * (1.01 if group["foreach"] else 1.0), group)


class GrowingWeights(Sound):
    def gradient(self, p, group):
        return super().gradient(p, group | {"weight_decay": -group["weight_decay"]})


class CoarseState(Sound):
    def start(self, p):
        return torch.zeros_like(p, dtype=torch.bfloat16 if p.dtype == torch.float32 else torch.float32)

    def move(self, p, g, group):
        super().move(p, g if g.is_complex() else g.to(self.start(p).dtype), group)


class SteppingACopy(Sound):
    def move(self, p, g, group):
        super().move(p, g, group) if p.is_contiguous() else super().move(p.contiguous(), g, group)


class OnlyWithEntries(Sound):
    def move(self, p, g, group):
        g[g.numel() - 1 if g.ndim == 1 and g.numel() != 1 else ...]
        if g.ndim == 0:
            g[0]
        super().move(p, g, group)


class ConjugatingComplex(Sound):
    def move(self, p, g, group):
        super().move(p, -g if g.is_complex() else g, group)


class ForgettingSparseRows(Sound):
    def gradient(self, p, group):
        if p.grad.is_sparse:
            return p.grad.to_dense() * 0.5
        return super().gradient(p, group)


class AcceptingEverything(Sound):
    def check(self, lr):
        pass


class HidingNan(Sound):
    def move(self, p, g, group):
        super().move(p, torch.nan_to_num(g), group)


class SpreadingNan(Sound):
    @torch.no_grad()
    def step(self, closure=None):
        loss = super().step(closure)
        held = [p for group in self.param_groups for p in group["params"]]
        if any(p.isnan().any() for p in held):
            for p in held:
                p.fill_(float("nan"))
        return loss


class RaisingAtNan(Sound):
    def move(self, p, g, group):
        if g.isnan().any():
            raise FloatingPointError("a gradient is NaN")
        super().move(p, g, group)


class SkippingNan(Sound):
    def step(self, closure=None):
        loss = None if closure is None else self.loss(closure)
        held = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        if not any(p.grad.isnan().any() for p in held if not p.grad.is_sparse):
            super().step()
        return loss


BROKEN = [
    (NoOptimizer, "interface", "it must be a torch.optim.Optimizer, got object"),
    (LosingParameters, "interface", "its groups must hold the parameters that it is given, each once"),
    (Uphill, "descent", "on a bowl the loss is .* after 0 steps and .* after 20 steps"),
    (WithoutGradients, "closure", "it calls the closure without gradients"),
    (ReturningNothing, "closure", "step.closure. must return the loss where it began, got None"),
    (IgnoringTheClosure, "closure", "step.closure. must return the loss where it began"),
    (SteppingTwiceWithAClosure, "closure", "step.closure. goes elsewhere than the closure followed by step"),
    (SharingState, "deterministic", "a second optimiser, made in the same way, goes elsewhere"),
    (Rebinding, "in_place", "it puts a parameter elsewhere in memory"),
    (WritingIntoGradients, "gradients_untouched", "a step writes into the gradients"),
    (TakingGradientsAway, "gradients_untouched", "a step takes the gradients away: leave that to zero_grad"),
    (KeepingTheGradient, "aliasing", "its state is a view of a gradient"),
    (ViewingTheParameter, "aliasing", "its state is a view of a parameter"),
    (MovingWhatHasNoGradient, "without_gradient", "it moves a parameter that has no gradient"),
    (StoppingWithoutGradient, "without_gradient", "it stands still where another parameter has no gradient"),
    (FirstIsFaster, "order", "it goes elsewhere when the parameters are given in another order"),
    (TheFirstGroupsRate, "groups", "the lr of the second group has no influence"),
    (TheRateOfAllGroups, "groups", "the lr of the second group moves the parameters of the first"),
    (TheFirstGroupsMomentum, "groups", "the momentum of the second group has no influence"),
    (KeepingItsOwnRate, "resume", "the state_dict gives other steps"),
    (OneCounterForAll, "without_gradient", "a parameter whose gradients begin later goes elsewhere"),
    (DeafToSchedules, "schedule", "a change of lr between steps has no influence"),
    (CountingOutsideOfTheState, "resume", "the state_dict gives other steps: some state is not in it"),
    (DeafToMaximize, "maximize", "with maximize=True it does not climb -h as it descends h"),
    (AnotherForeach, "foreach", "foreach=True goes elsewhere than foreach=False"),
    (GrowingWeights, "weight_decay", "with weight_decay and gradients of zero the parameters must shrink"),
    (CoarseState, "dtypes", "for parameters in torch.float64 it keeps state in torch.float32"),
    (SteppingACopy, "strides", "it goes elsewhere for a parameter that is not contiguous"),
    (OnlyWithEntries, "small_shapes", "the optimiser raised IndexError"),
    (ConjugatingComplex, "complex", "for complex parameters the loss does not fall"),
    (ForgettingSparseRows, "sparse", "with a sparse gradient it goes elsewhere than with the same gradient dense"),
    (AcceptingEverything, "lr_refused", "it accepts lr=-1.0: refuse it when it is made"),
    (HidingNan, "nan", "a NaN in a gradient is hidden: the entry goes on as a number"),
    (SpreadingNan, "nan", "a NaN in the gradient of one parameter reaches another"),
    (RaisingAtNan, "nan", "a NaN in a gradient raises FloatingPointError: a gradient is NaN"),
]


# Some bugs cannot be had alone.
ALSO = {"Uphill": {"weight_decay"}, "CoarseState": {"resume"}, "CountingOutsideOfTheState": {"without_gradient"}}


def test_the_sound_one_passes():
    assert check_optimizer(Sound).named("skipped") == ["sparse", "invariances"]


@pytest.mark.parametrize(("kind", "check", "told"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_fails_the_check_that_it_breaks(kind, check, told):
    with pytest.raises(OptimizerError, match=told) as caught:
        check_optimizer(kind)
    assert check in caught.value.report.named("failed")
    others = set(caught.value.report.named("failed")) - {check}
    assert others <= ALSO.get(kind.__name__, set())


@pytest.mark.parametrize(("kind", "nan"), [(RaisingAtNan, "raise"), (SkippingNan, "skip")])
def test_a_nan_is_handled_as_was_said(kind, nan):
    check_optimizer(kind, nan=nan)
    with pytest.raises(OptimizerError, match=f"as was said by nan='{nan}'"):
        check_optimizer(Sound, nan=nan)
