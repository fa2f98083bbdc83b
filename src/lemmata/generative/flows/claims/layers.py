"""Layers of which the Jacobian is triangular: couplings, and what is autoregressive."""

import math

import torch
from torch import nn
from torch.distributions import Normal
from torch.func import jacrev, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from lemmata.generative.flows.claims.densities import SMOOTH, flow_of
from lemmata.generative.flows.coupling import AffineCoupling
from lemmata.generative.flows.masked_affine import MaskedAffine
from lemmata.judge import all_of, always, claim, close, lie, slope_is


class Wild(nn.Module):
    """Networks s and t that nobody could invert, side by side."""

    def __init__(self, draw, kept, moved, size, shifts=1.0):
        super().__init__()
        self.a, self.b = draw.normal(2, kept, moved)
        self.size, self.shifts = size, shifts

    def log_scale(self, half):
        return self.size * torch.sin(half @ self.a.to(half))

    def shift(self, half):
        return self.shifts * (half @ self.b.to(half)).abs()

    def forward(self, half):
        return torch.cat([self.log_scale(half), self.shift(half)], 1)


def wild_coupling(draw, features, flipped, size, shifts=1.0):
    kept = features - features // 2 if flipped else features // 2
    networks = Wild(draw, kept, features - kept, size, shifts)
    return networks, AffineCoupling(features, flipped, networks, max_log_scale=math.inf)


def half_that_passed(kept, moved):
    return kept


def half_that_moved(kept, moved):
    return moved[:, torch.arange(kept.shape[1]) % moved.shape[1]]


@claim("flow.coupling")
@lie("on the way back the networks look at the half that has moved", seen=half_that_moved)
@lie("on the way back the scale is the same", sign=1.0)
@lie("the shift is scaled as well", scaled=1.0)
def any_networks_can_be_undone(draw, seen=half_that_passed, sign=-1.0, scaled=0.0):
    """Networks of sines and absolute values, 2 to 16 features, odd ones, both masks, scales up to e⁶ and float32."""
    evidence, back = [], []
    for features, flipped, size in ((2, False, 0.5), (2, True, 6.0), (5, False, 1.0), (5, True, 1.0), (16, False, 2.0)):
        networks, layer = wild_coupling(draw, features, flipped, size)
        x = draw.normal(30, features)
        kept, moved = layer.halves(x)
        s, t = networks.log_scale(kept), networks.shift(kept)
        there = moved * s.exp() + t * (scaled * s).exp()  # (points, moved)
        y = layer(x)[0]
        evidence.append(close(layer.halves(y)[1], there, scale=there.abs() + moved.abs() * s.exp(), ulps=1000))
        back.append(bool(torch.equal(layer.halves(y)[0], kept)))
        look = seen(*layer.halves(y))
        undone = (layer.halves(y)[1] - networks.shift(look)) * (sign * networks.log_scale(look)).exp()
        rounding = (t.abs() + moved.abs() * s.exp()) * (-s).exp() + moved.abs()
        evidence.append(close(layer.halves(layer.inverse(y)[0])[1], undone, scale=rounding, ulps=1000))
        evidence.append(close(layer.inverse(y)[0], x, within=1e-9))
        single = x.float()
        evidence.append(close(layer.inverse(layer(single)[0])[0], single, within=1e-5 * math.exp(size)))
    return all_of(*evidence, always(back, detail="the first half passes to the bit"))


def added(s):
    return s.sum(1)


def sum_of_exponentials(s):
    return s.logsumexp(1)


def averaged(s):
    return s.mean(1)


def by_its_layer(layer, z):
    return layer(z)[1]


def by_elimination(layer, z):
    """Of the whole Jacobian, as if nothing were known of it."""
    return torch.linalg.slogdet(vmap(jacrev(lambda row: layer(row[None])[0][0]))(z)).logabsdet


class Counted(TorchDispatchMode):
    """How many numbers are computed."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        self.numbers += found.numel() if isinstance(found, torch.Tensor) else 0
        return found


class Twice(nn.Module):
    """The cheapest networks: what passes is scale and shift at once."""

    def forward(self, half):
        return torch.cat([half, half], 1)


@claim("flow.coupling_logdet")
@lie("the sum of the scales in place of their product", combine=sum_of_exponentials)
@lie("the mean of the scales", combine=averaged)
@lie("shifts count, too", shifts=0.1)
@lie("at the cost of a determinant", log_det=by_elimination)
def scales_alone_are_multiplied(draw, combine=added, shifts=0.0, log_det=by_its_layer):
    """Full Jacobians of networks of sines and absolute values, the block that is zero, and the numbers computed."""
    evidence, zero = [], []
    for features, flipped, size in ((2, False, 1.0), (5, False, 0.7), (5, True, 0.7), (8, False, 3.0)):
        networks, layer = wild_coupling(draw, features, flipped, size)
        z = draw.normal(20, features)
        jacobian = vmap(jacrev(lambda row, layer=layer: layer(row[None])[0][0]))(z)  # (points, features, features)
        kept, moved = layer.halves(torch.arange(features)[None])
        zero.append(not bool(jacobian[:, kept[0][:, None], moved[0]].any()))
        half = layer.halves(z)[0]
        predicted = combine(networks.log_scale(half)) + shifts * networks.shift(half).sum(1)
        evidence.append(close(log_det(layer, z), predicted, within=1e-8))
        evidence.append(close(torch.linalg.slogdet(jacobian).logabsdet, predicted, within=1e-8))
    numbers, sizes = [], [64, 256, 1024]
    for features in sizes:
        with Counted() as counted:
            log_det(AffineCoupling(features, conditioner=Twice()), draw.normal(1, features))
        numbers.append(counted.numbers)
    return all_of(*evidence, always(zero, detail="the block that is zero"), slope_is(sizes, numbers, 1.0, within=0.2))


class SeesItself(MaskedAffine):
    """A mask that lets each feature into its own scale and shift."""

    def __init__(self, *arguments, **choices):
        super().__init__(*arguments, **choices)
        self.get_buffer("mask0").fill_(1.0)


@claim("flow.ar_triangular")
@lie("the determinant is 1 whatever the scales", volume=0.0)
@lie("a scale and shift may look at their own feature", layer=SeesItself)
@lie("the scales are precisions", spread=-1.0)
def each_feature_given_those_before(draw, volume=1.0, spread=1.0, layer=MaskedAffine):
    """One to eight features in both orders: full Jacobians, and densities as products of normal conditionals."""
    evidence, exact = [], []
    for features, flipped in ((1, False), (2, False), (5, True), (8, False)):
        masked = layer(features, flipped, **SMOOTH)
        flow = flow_of(draw, masked)
        z = draw.normal(20, features)
        x, found = masked(z)
        jacobian = vmap(jacrev(lambda row, masked=masked: masked(row[None])[0][0]))(z)
        jacobian = jacobian.flip(1, 2) if flipped else jacobian
        exact += [not bool(jacobian.triu(1).any()), features == 1 or bool(jacobian.tril(-1).any())]
        conditionals, scales = [], []
        for i in range(features):
            others = torch.arange(features) <= i if flipped else torch.arange(features) >= i
            blind = torch.where(others, draw.normal(20, features), x)  # of what comes later, nothing but noise
            alpha, mean = (each[:, i] for each in masked.scale_and_shift(blind))
            conditionals.append(Normal(mean, (spread * alpha).exp()).log_prob(x[:, i]))
            scales.append(alpha)
        evidence.append(close(flow.log_prob(x), torch.stack(conditionals).sum(0), within=1e-8))
        evidence.append(close(found, volume * torch.stack(scales).sum(0), within=1e-8))
        evidence.append(close(torch.linalg.slogdet(jacobian).logabsdet, found, within=1e-8))
    return all_of(*evidence, always(exact, detail="zero above the diagonal, and not below it"))
