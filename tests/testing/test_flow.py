"""The suite passes every flow that is shipped and those of zuko and normflows, and fails each known mistake."""

import math

import pytest
import torch
from torch import nn

from lemmata.generative import flows
from lemmata.generative.flows import (
    ActNorm,
    AffineCoupling,
    Flow,
    InvertibleConvolution,
    MaskedAffine,
    MaskedAutoregressiveFlow,
    Permutation,
    RealNVP,
    StandardNormal,
)
from lemmata.testing import FlowError, check_flow

SMALL = {"widths": (16,)}
SHIPPED = {
    RealNVP: lambda: RealNVP(2, couplings=4, **SMALL),
    MaskedAutoregressiveFlow: lambda: MaskedAutoregressiveFlow(2, layers=2, **SMALL),
    Flow: lambda: Flow(
        StandardNormal(2),
        [
            AffineCoupling(2, **SMALL),
            InvertibleConvolution(2),
            MaskedAffine(2, **SMALL),
            Permutation((1, 0)),
            ActNorm(2),
        ],
    ),
}
FITTED = ["narrow", "wide"]


def shipped():
    """Every class of the room from which one can sample, and which is no plain noise."""
    parts = [getattr(flows, name) for name in dir(flows)]
    return [each for each in parts if isinstance(each, type) and issubclass(each, Flow)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", shipped(), ids=lambda kind: kind.__name__)
def test_every_flow_of_the_room_passes_every_check(kind):
    report = check_flow(SHIPPED[kind]())
    assert len(report.named("passed")) == len(report.findings) == 12


@pytest.mark.slow
def test_one_feature_and_several():
    check_flow(MaskedAutoregressiveFlow(1, layers=1, **SMALL), features=1)
    check_flow(RealNVP(5, couplings=2, **SMALL), features=5, steps=100)


# --- Other packages ---


class OfZuko(nn.Module):
    """What the suite calls, of a lazy distribution of zuko."""

    def __init__(self, flow):
        super().__init__()
        self.flow = flow

    def log_prob(self, x):
        return self.flow().log_prob(x)

    def sample(self, n):
        return self.flow().sample((n,))

    def sample_and_log_prob(self, n):
        return self.flow().rsample_and_log_prob((n,))

    def encode(self, x):
        return self.flow().transform(x)

    def decode(self, z):
        return self.flow().transform.inv(z)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "words"), [("NSF", {"variances": (1 / 9, 2.0)}), ("MAF", {}), ("RealNVP", {})])
def test_flows_of_zuko_pass(kind, words):
    """A spline is the identity outside of [-5, 5], so that a NSF is not meant for N(0, 9)."""
    zuko = pytest.importorskip("zuko")
    flow = getattr(zuko.flows, kind)(2, transforms=2, hidden_features=(16,))
    assert len(check_flow(OfZuko(flow), **words).named("passed")) == 12
    if kind == "NSF":
        report = check_flow(
            OfZuko(flow), skip=["narrow", "inverse", "jacobian", "integral", "samples"], steps=50, on_fail="report"
        )
        assert report.named("failed") == ["wide"]


@pytest.mark.slow
def test_a_flow_of_normflows_passes_what_it_has():
    normflows = pytest.importorskip("normflows")
    layers = []
    for _ in range(4):
        layers.append(normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 16, 2], init_zeros=True)))
        layers.append(normflows.flows.Permute(2, mode="swap"))
    base = normflows.distributions.DiagGaussian(2, trainable=False)
    report = check_flow(normflows.NormalizingFlow(base, layers))
    assert report.named("skipped") == ["inverse", "jacobian"]


@pytest.mark.slow
def test_the_scale_of_nflows_cannot_shrink():
    pytest.importorskip("nflows")
    from nflows.distributions import StandardNormal as Noise
    from nflows.flows import Flow as TheirFlow
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import AffineCouplingTransform, CompositeTransform

    masks = [torch.tensor([k % 2, 1 - k % 2]) for k in range(4)]
    layers = [AffineCouplingTransform(mask, lambda a, b: ResidualNet(a, b, hidden_features=16)) for mask in masks]
    report = check_flow(TheirFlow(CompositeTransform(layers), Noise([2])), on_fail="report")
    assert report.named("failed") == ["narrow"]


# --- Mistakes ---


class Turned(AffineCoupling):
    """The log-determinant of the way back has the sign of the way there."""

    def inverse(self, x):
        z, log_det = super().inverse(x)
        return z, -log_det


class TurnedThere(AffineCoupling):
    def forward(self, z):
        x, log_det = super().forward(z)
        return x, -log_det


class Averaged(AffineCoupling):
    """The mean over features, where they must be added."""

    def inverse(self, x):
        z, log_det = super().inverse(x)
        return z, log_det / self.features


class SummedOverTheBatch(AffineCoupling):
    def inverse(self, x):
        z, log_det = super().inverse(x)
        return z, log_det.sum().expand(len(x))


class Clamped(AffineCoupling):
    """A scale of noise that is at most 1, as a sigmoid makes it."""

    def scale_and_shift(self, kept):
        raw, shift = self.conditioner(kept).chunk(2, 1)
        return nn.functional.logsigmoid(raw + 2), shift


class Grown(AffineCoupling):
    """And one that is at least 1."""

    def scale_and_shift(self, kept):
        raw, shift = self.conditioner(kept).chunk(2, 1)
        return -nn.functional.logsigmoid(raw + 2), shift


class ShiftForgotten(AffineCoupling):
    def forward(self, z):
        kept, moved = self.halves(z)
        log_scale, shift = self.scale_and_shift(kept)
        return self.joined(kept, moved * log_scale.exp() + 0 * shift), log_scale.sum(1)


class Unnormalised(StandardNormal):
    def log_prob(self, z):
        return -0.5 * z.square().sum(1)


class OwnNoise(StandardNormal):
    def sample(self, n, *, generator=None):
        return super().sample(n)


class Scaling(Flow):
    """Examples are put right in place."""

    def log_prob(self, x):
        return super().log_prob(x.mul_(0.5))


class Scalar(Flow):
    def log_prob(self, x):
        return super().log_prob(x).mean()


class Planar(nn.Module):
    r"""One layer z = x + u tanh(w x + b), invertible where w u > -1; û divides by the square of the norm of w."""

    def __init__(self, power):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.tensor([0.3, 0.0])), nn.Parameter(torch.zeros(1))
        self.u, self.power = nn.Parameter(torch.tensor([-9.0, 0.5])), power

    def direction(self):
        along = self.w @ self.u
        wanted = nn.functional.softplus(along) - 1
        return self.u + (wanted - along) * self.w / self.w.norm() ** self.power

    def encode(self, x):
        return x + self.direction() * torch.tanh(x @ self.w + self.b)[:, None]

    def log_prob(self, x):
        slope = 1 - torch.tanh(x @ self.w + self.b).square()
        volume = (1 + slope * (self.w @ self.direction())).abs().log()
        return -0.5 * self.encode(x).square().sum(1) - math.log(2 * math.pi) + volume

    def decode(self, z):
        goal, along = z @ self.w, self.w @ self.direction()
        low, high = goal - along.abs() - 1, goal + along.abs() + 1
        for _ in range(60):
            middle = (low + high) / 2
            above = middle + along * torch.tanh(middle + self.b) > goal
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return z - self.direction() * torch.tanh(low + self.b)[:, None]

    def sample(self, n, *, generator=None):
        return self.decode(torch.randn(n, 2, generator=generator, dtype=self.w.dtype))


def couplings(kind):
    return Flow(StandardNormal(2), [kind(2, flipped=bool(k % 2), **SMALL) for k in range(4)])


def plain(flow, base):
    return flow(base(2), [AffineCoupling(2, **SMALL), AffineCoupling(2, flipped=True, **SMALL), ActNorm(2)])


BROKEN = {
    "sign of the way back": (lambda: couplings(Turned), {"jacobian", "agrees"}),
    "sign of the way there": (lambda: couplings(TurnedThere), {"agrees"}),
    "mean of the features": (lambda: couplings(Averaged), {"jacobian"}),
    "sum over the batch": (lambda: couplings(SummedOverTheBatch), {"rows"}),
    "scale at most 1": (lambda: couplings(Clamped), {"wide"}),
    "scale at least 1": (lambda: couplings(Grown), {"narrow"}),
    "shift forgotten": (lambda: couplings(ShiftForgotten), {"inverse", "samples"}),
    "no normalisation": (lambda: plain(Flow, Unnormalised), {"integral"}),
    "own noise": (lambda: plain(Flow, OwnNoise), {"seeds"}),
    "writes": (lambda: plain(Scaling, StandardNormal), {"untouched"}),
    "one number": (lambda: plain(Scalar, StandardNormal), {"interface"}),
    "norm of a planar flow": (lambda: Planar(1), {"integral"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", BROKEN)
def test_what_is_broken_fails_the_check_that_it_breaks(mistake):
    make, checks = BROKEN[mistake]
    with pytest.raises(FlowError) as caught:
        check_flow(make(), skip=[name for name in FITTED if name not in checks], steps=100)
    assert checks <= set(caught.value.report.named("failed")), caught.value


def test_a_planar_flow_with_the_right_norm_has_mass_1():
    check_flow(Planar(2), skip=FITTED, steps=100)


def test_a_law_that_has_nothing_to_learn_is_taken_as_it_is():
    class Fixed:
        def log_prob(self, x):
            return torch.distributions.Normal(0.0, 2.0).log_prob(x).sum(1)

        def sample(self, n):
            return 2 * torch.randn(n, 2, dtype=torch.float64)

    report = check_flow(Fixed())
    assert report.named("skipped") == ["narrow", "wide", "inverse", "jacobian", "agrees", "precision"]


def test_nothing_of_the_flow_or_of_torch_s_randomness_changes():
    flow, before = RealNVP(2, couplings=2, **SMALL), torch.random.get_rng_state()
    kept = [value.clone() for value in flow.parameters()]
    check_flow(flow, steps=20, skip=FITTED)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(map(torch.equal, kept, flow.parameters()))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"flow": nn.Linear(2, 2)}, TypeError, "flow must have methods log_prob and sample, got Linear"),
        ({"features": 0}, ValueError, "features must be >= 1, got 0"),
        ({"variances": (0.0, 1.0)}, ValueError, "variances must be > 0, got 0.0"),
        ({"steps": 0}, ValueError, "steps must be >= 1, got 0"),
        ({"skip": ["speed"]}, ValueError, "skip must name checks among interface.*, got speed"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(words, error, message):
    with pytest.raises(error, match=message):
        check_flow(**{"flow": RealNVP(2)} | words)
