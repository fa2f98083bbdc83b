"""Autoencoders with a critic of codes: their objectives exactly, on few codes, and what training on digits brings."""

import math

import sympy
import torch
from torch import Tensor, nn

from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.foundations.information.discrete import jensen_shannon
from lemmata.generative.adversarial.gan_losses import discriminator_loss
from lemmata.generative.autoencoders.claims.latent_prior import WEIGHTS, squared_error, trained_autoencoder
from lemmata.generative.autoencoders.latent_penalty import AdversarialAutoencoder, WassersteinAutoencoder
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, reaches, symbolic
from lemmata.measure.sample_distances import energy_distance
from lemmata.measure.transport import optimal_transport, w1_distance


def table_model(draw, size, model=AdversarialAutoencoder, **settings):
    """As many codes as there are examples, each one axis, so that a linear critic has a logit of its own for each."""
    found = model(size, code=size, widths=(), activation="identity", dtype=torch.float64, **settings)
    found.add_module("encoder", nn.Identity())
    found.add_module("critic", nn.Linear(size, 1, bias=False).double())
    with torch.no_grad():
        weight_of(found.decoder.layers[0]).copy_(draw.normal(size, size))
    return found


def weight_of(layer: nn.Module) -> Tensor:
    assert isinstance(layer, nn.Linear)
    return layer.weight


def drawn_codes(draw, size, shared):
    """How often each code comes up among data and prior: both everywhere, each in parts, or never both."""
    counts = draw.integers(1, 9, 2, size)
    if not shared:
        counts = counts * torch.eye(2).long().repeat(1, size)[:, :size]
    return tuple(torch.eye(size).double().repeat_interleave(each, 0) for each in counts)  # (count, size) each


def best_critic(model, objective) -> Tensor:
    """Raise the objective in the critic alone, to the last digit: it is concave in the logits."""
    weight = model.critic.weight
    optimizer = torch.optim.LBFGS(
        [weight], max_iter=300, tolerance_grad=1e-13, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def lowered():
        optimizer.zero_grad()
        loss = -objective()
        weight.grad = torch.autograd.grad(loss, weight)[0]
        return loss

    optimizer.step(lowered)
    return objective().detach()


def not_raised(model, objective) -> Tensor:
    return objective().detach()


class WeightOnOneTerm(AdversarialAutoencoder):
    """As printed: the weight stands before one of the two terms."""

    def objective(self, x, prior):
        codes, weight = self.encode(x), self.config.penalty_weight
        error = (self.decode(codes) - x).square().sum(1).mean()
        fake, real = (nn.functional.logsigmoid(a).mean() for a in (-self.critic(codes), self.critic(prior)))
        return error + weight * fake + real


class MeanError(AdversarialAutoencoder):
    """The squared error is a mean over the numbers of an example too."""

    def objective(self, x, prior):
        codes = self.encode(x)
        return (self.decode(codes) - x).square().mean() + self.config.penalty_weight * self.penalty(codes, prior)


@claim("aae.objective")
@lie("the weight stands before one of the two terms", printed="004/1", model=WeightOnOneTerm)
@lie("the squared error is averaged over an example's numbers", model=MeanError)
@lie("the divergence counts once", factor=1.0)
@lie("the critic does not learn", raised=not_raised)
def the_value_at_the_best_critic(draw, factor=2.0, raised=best_critic, model=AdversarialAutoencoder):
    """On six codes, for several weights: the largest value against the error and the Jensen-Shannon divergence."""
    values, expected = [], []
    for weight in (0.0, 0.3, 1.0, 20.0):
        codes, prior = drawn_codes(draw, 6, shared=True)
        found = table_model(draw, 6, model, penalty_weight=weight)
        values.append(raised(found, lambda found=found, codes=codes, prior=prior: found.objective(codes, prior)))
        error = (codes @ weight_of(found.decoder.layers[0]).mT - codes).square().sum(1).mean()
        divergence = jensen_shannon(prior.mean(0), codes.mean(0))
        expected.append(error + weight * (factor * divergence - 2 * math.log(2)))
    return close(torch.stack(values), torch.stack(expected), within=1e-8)


def as_it_is(terms):
    return terms.sum()


def second_twice(terms):
    return terms[0] + 2 * terms[1]


@claim("aae.jsd_derivation")
@lie("the divergence counts once", factor=1.0)
@lie("the logarithm of 2 counts once", logs=1.0)
@lie("the term of p counts twice", added=second_twice)
@lie("the best answer is p over the sum", swapped=True)
def the_best_critic_measures_the_divergence(
    draw, factor=2.0, logs=2.0, added=as_it_is, swapped=False, model=AdversarialAutoencoder
):
    """The stationary point by algebra; on up to twenty codes the best critic, its value, and what any other reaches."""
    q, p, eta = sympy.symbols("q p eta", positive=True)
    value = q * sympy.log(eta) + p * sympy.log(1 - eta)
    best = (p if swapped else q) / (p + q)
    reached, expected, sums, answers, others = [], [], [], [], []
    for size, shared in ((2, True), (20, True), (20, True), (1, True), (8, False)):
        codes, prior = drawn_codes(draw, size, shared)
        found = table_model(draw, size, model)
        others.append(found.penalty(codes, prior))
        reached.append(best_critic(found, lambda found=found, codes=codes, prior=prior: found.penalty(codes, prior)))
        laws = torch.stack([prior.mean(0), codes.mean(0)])
        terms = (laws * (laws / laws.sum(0)).log().nan_to_num(0, neginf=0)).sum(1)
        expected.append(factor * jensen_shannon(*laws) - logs * math.log(2))
        sums.append(added(terms))
        if shared:
            answers.append(weight_of(found.critic).detach()[0].sigmoid() - laws[0] / laws.sum(0))
    return all_of(
        close(torch.stack(reached), torch.stack(expected), within=1e-6),
        close(torch.stack(sums), torch.stack(expected), scale=1.0, detail="the integrals of both terms"),
        symbolic(sympy.diff(value, eta).subs(eta, best), 0),
        close(torch.cat(answers), 0.0, within=1e-5),
        at_least(torch.stack(reached), -2 * math.log(2), attained=True, ulps=1e4, detail="equal laws reach it"),
        at_most(torch.stack(others), torch.stack(reached), ulps=1e4, detail="any other critic"),
    )


# --- What training on digits brings ---


def right_answers(draw, model) -> float:
    """Of a critic trained anew on codes and draws of the prior: how often it is right on held-out codes and others."""
    data, critic = load("digits"), MLP(2, 1, widths=(64, 64))
    codes, held_out = (model.encode(part.x).detach() for part in (data.train, data.test))
    optimizer = torch.optim.Adam(critic.parameters(), lr=3e-3)
    for _ in range(300):
        optimizer.zero_grad()
        discriminator_loss(critic(draw.normal(*codes.shape).float()), critic(codes)).backward()
        optimizer.step()
    right = [critic(held_out) < 0, critic(draw.normal(4000, 2).float()) > 0]
    return float(sum(each.double().mean() for each in right) / 2)


@claim("aae.system")
@lie("without the critic the codes follow the prior as well", factor=0.0)
@lie("draws half as wide are decoded to data as well", spread=0.5)
def codes_follow_the_prior_and_decode_to_digits(draw, factor=1.0, spread=1.0):
    """Digits in two numbers, with and without a critic: a new critic's answers, errors, decoded draws of the prior."""
    x, latent = load("digits").test.x, draw.normal(1000, 2).float()
    plain = trained_autoencoder(draw, "adversarial", 0.0)
    drawn = trained_autoencoder(draw, "adversarial", factor * WEIGHTS["adversarial"])
    far = [energy_distance(each, x.flatten(1)) for each in (drawn.decode(spread * latent), drawn(x).flatten(1))]
    return all_of(
        reaches(right_answers(draw, drawn), 0.65, at_most=True, detail="right answers of a new critic"),
        reaches(right_answers(draw, plain), 0.75, detail="right answers about a plain autoencoder"),
        reaches(squared_error(drawn, x) / squared_error(plain, x), 1.5, at_most=True, detail="times the error"),
        reaches(
            float(far[0] / far[1]), 1.5, at_most=True, detail="energy distance of decoded draws over reconstructions"
        ),
    )


class PrintedTerms(WassersteinAutoencoder):
    """Twice the critic of codes, without the logarithm of that of the prior."""

    def penalty(self, codes, prior):
        return 2 * self.critic(codes).mean() - self.critic(prior).log().mean()


class CodesAlone(WassersteinAutoencoder):
    """The prior's term is left out, which does not depend on the encoder."""

    def penalty(self, codes, prior):
        return self.critic(codes).mean()


class SteepestCritic(nn.Module):
    """The 1-Lipschitz function with these values at these points, plus a constant, which is immaterial."""

    def __init__(self, points, values, constant=10.0):
        super().__init__()
        self.points, self.values, self.constant = points, values, constant

    def forward(self, codes):
        return self.constant + (torch.cdist(codes, self.points) + self.values).amin(1, keepdim=True)


@claim("wasserstein.waae")
@lie("twice the critic of codes, less the logarithm of that of the prior", printed="004/1", model=PrintedTerms)
@lie("the critic's mean over codes alone", model=CodesAlone)
@lie("twice the distance", times=2.0)
@lie("without the critic the codes follow the prior as well", factor=0.0)
def a_critic_of_slope_one_brings_codes_to_the_prior(draw, times=1.0, factor=1.0, model=WassersteinAutoencoder):
    """The value at the best critic for several weights, and for equal codes; W1 of held-out codes of digits."""
    values, expected = [], []
    for weight, equal in ((0.0, False), (0.3, False), (20.0, False), (1.0, True)):
        found = model(5, code=2, widths=(4,), penalty_weight=weight, dtype=torch.float64)
        x = draw.normal(8, 5)
        codes = found.encode(x).detach()
        prior = codes.flip(0) if equal else draw.normal(6, 2)
        best = optimal_transport(codes, prior)
        found.add_module("critic", SteepestCritic(prior, best.critic_y))
        values.append(found.objective(x, prior))
        expected.append((found(x) - x).square().sum(1).mean() + times * weight * w1_distance(codes, prior))
    x, prior = load("digits").test.x, draw.normal(359, 2).float()
    plain, drawn = (trained_autoencoder(draw, "wasserstein", f * WEIGHTS["wasserstein"]) for f in (0.0, factor))
    far = [float(w1_distance(each.encode(x).detach(), prior)) for each in (plain, drawn)]
    return all_of(
        close(torch.stack(values), torch.stack(expected), within=1e-6),
        reaches(far[0] / far[1], 3.0, detail="times nearer to the prior"),
        reaches(squared_error(drawn, x) / squared_error(plain, x), 2.0, at_most=True, detail="times the error"),
    )
