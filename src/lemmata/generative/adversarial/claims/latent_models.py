"""Autoencoders with a critic of codes: their objectives exactly, on few codes, and what training on digits brings."""

import math

import sympy
import torch
from torch import Tensor, nn

from lemmata.foundations.information.discrete import jensen_shannon
from lemmata.generative.autoencoders.latent_penalty import AdversarialAutoencoder
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, symbolic


def table_model(draw, size, model=AdversarialAutoencoder, **settings):
    """As many codes as there are examples, each one axis, so that a linear critic has a logit of its own for each."""
    found = model(size, code=size, widths=(), activation="identity", dtype=torch.float64, **settings)
    found.encoder, found.critic = nn.Identity(), nn.Linear(size, 1, bias=False).double()
    with torch.no_grad():
        found.decoder.layers[0].weight.copy_(draw.normal(size, size))
    return found


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
        error = (codes @ found.decoder.layers[0].weight.mT - codes).square().sum(1).mean()
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
            answers.append(found.critic.weight.detach()[0].sigmoid() - laws[0] / laws.sum(0))
    return all_of(
        close(torch.stack(reached), torch.stack(expected), within=1e-6),
        close(torch.stack(sums), torch.stack(expected), scale=1.0, detail="the integrals of both terms"),
        symbolic(sympy.diff(value, eta).subs(eta, best), 0),
        close(torch.cat(answers), 0.0, within=1e-5),
        at_least(torch.stack(reached), -2 * math.log(2), attained=True, ulps=1e4, detail="equal laws reach it"),
        at_most(torch.stack(others), torch.stack(reached), ulps=1e4, detail="any other critic"),
    )
