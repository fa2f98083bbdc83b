"""Training by a PAC-Bayes bound: the objective, the gradients of noisy weights, and why flat minima win."""

import math

import torch
from torch import nn

from lemmata.generalization.certificate import certify
from lemmata.generalization.claims.pac_bayes import inverse_failure
from lemmata.generalization.pac_bayes import pac_bayes_objective
from lemmata.generalization.stochastic_network import StochasticNetwork
from lemmata.judge import all_of, at_least, at_most, claim, close, lie, mean_is

# --- The objective ---


def inverted(n, failure, constant):
    """The logarithm with its argument upside down, and the failure under the root."""
    return math.log(1 / (constant * math.sqrt(n * failure)))


def seen_before(error, chosen):
    """The error on the examples that the posterior was chosen by."""
    return chosen


EXAMPLES, FAILURE = 40, 0.05


def trained_posteriors(draw, count):
    """Posteriors on 16 classifiers, each trained by the shipped objective on a data set of its own.

    Errors and risks of the classifiers, (count, 16), the posteriors' logits, and the objective that was reached.
    """
    risk = draw.uniform(16, low=0.05, high=0.95)
    error = (draw.uniform(count, EXAMPLES, 16) < risk).double().mean(1)
    logits = torch.zeros_like(error, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.2)
    for _ in range(200):
        optimizer.zero_grad()
        objective_of(logits, error).sum().backward()
        optimizer.step()
    return risk, error, logits.detach()


def divergence_of(logits):
    log_q = torch.log_softmax(logits, -1)
    return (log_q.exp() * (log_q + math.log(logits.shape[-1]))).sum(-1).clamp(min=0.0)


def objective_of(logits, error):
    return pac_bayes_objective(
        (torch.softmax(logits, -1) * error).sum(-1), divergence_of(logits), EXAMPLES, 1 - FAILURE
    )


@claim("pac.objective")
@lie("the logarithm is upside down", printed="001/1", raises=ValueError, logarithm=inverted)
@lie("the prefactor is 2/n", half=0.5)
@lie("the divergence is not paid for", paid=0.0)
@lie("the empirical error alone bounds the risk", penalty=0.0)
def the_bound_as_a_loss(draw, half=2.0, paid=1.0, penalty=1.0, logarithm=inverse_failure):
    """Values and gradients by formula; posteriors trained by it, which tilt the prior and keep the bound."""
    error, kl, n = draw.uniform(50), 100 * draw.uniform(50), 100 + int(draw.integers(0, 1000, 1))
    math.sqrt(logarithm(n, FAILURE, 2.0))  # at the prior itself the radicand is the logarithm alone
    root = ((paid * kl + logarithm(n, FAILURE, 2.0)) / (half * n)).sqrt()
    leaves = error.clone().requires_grad_(), kl.clone().requires_grad_()
    value = pac_bayes_objective(*leaves, n, 1 - FAILURE)
    slopes = torch.autograd.grad(value.sum(), leaves)
    risk, errors, logits = trained_posteriors(draw, 300)
    reached, q = objective_of(logits, errors), torch.softmax(logits, -1)
    loose = (q * errors).sum(-1) + penalty * (reached - (q * errors).sum(-1))
    tilts = torch.logspace(-1, 3, 200, dtype=torch.float64)[:, None, None]
    best = objective_of(-tilts * errors, errors).amin(0)  # Gibbs's distribution minimises at some temperature
    return all_of(
        close(value, error + root, ulps=256),
        close(slopes, [torch.ones_like(kl), paid / (2 * half * n * root)], ulps=256),
        close(reached, best, within=2e-3),
        at_least((loose >= q @ risk).double().mean(), 1 - FAILURE),
    )


# --- Training by reparametrisation ---


def noise_of_weight(noise):
    """The factor that the chain rule brings."""
    return noise


def no_noise(noise):
    return torch.ones_like(noise)


def whole_bound(network, loss, n):
    """The objective with its root."""
    return pac_bayes_objective(loss, network.kl(), n)


def loss_alone(network, loss, n):
    return loss


def one_layer(mean, std, prior, variance=0.09):
    """A linear unit with a posterior of these means and standard deviations."""
    network = StochasticNetwork(nn.Linear(len(mean), 1, bias=False).double(), variance=variance)
    network.set_prior({"weight": prior[None]})
    network.model.weight.data, network.log_std[0].data = mean[None].clone(), std.log()[None]
    return network


def separated(draw, count):
    """Two classes, one standard deviation and a half from the plane between them: inputs (count, 10) and 0 or 1."""
    y = draw.integers(0, 2, count)
    x = draw.normal(count, 10)
    x[:, 0] += 1.5 * (2 * y - 1)
    return x, y


def certified_training(draw, objective, n=300):
    """The certificate of a logistic model, trained for a while from a prior that knows nothing."""
    x, y = separated(draw, n)
    network = StochasticNetwork(nn.Linear(10, 1).double(), variance=1.0)
    network.set_prior({"weight": torch.zeros(1, 10).double(), "bias": torch.zeros(1).double()})
    network.model.load_state_dict({"weight": torch.zeros(1, 10).double(), "bias": torch.zeros(1).double()})
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        wrong = torch.sigmoid(-(2 * y - 1) * network(x, generator=draw.generator)[:, 0])  # between 0 and 1
        objective(network, wrong.mean(), n).backward()
        optimizer.step()
    return network, certify(network, (x, y), 1000, generator=draw.generator)


@claim("pac.training")
@lie("the gradient for σ lacks its ε", factor=no_noise)
@lie("the noise leaves the mean of the loss as it is", spread=0.0)
@lie("a local draw has no variance", local=0.0)
@lie("the gradient of the divergence may be left out", objective=loss_alone)
def gradients_through_the_noise(draw, factor=noise_of_weight, spread=1.0, local=1.0, objective=whole_bound):
    """One pass of the shipped network against the chain rule, means against the quadratic, and a certificate."""
    x, y, mean, prior = draw.normal(30, 4), draw.normal(30), draw.normal(4), draw.normal(4)
    std = draw.uniform(4, low=0.3, high=1.0)
    network, seed = one_layer(mean, std, prior), draw.seed
    output = network(x, local=False, generator=torch.Generator().manual_seed(seed))[:, 0]
    loss = (output - y).square().mean() + network.kl()
    to_mean, to_log_std = torch.autograd.grad(loss, (*network.model.parameters(), *network.log_std))
    noise = torch.randn(1, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)[0]

    def slope(noise):  # of the loss at the weights that are drawn: (..., 4)
        return 2 / 30 * ((mean + std * noise) @ x.T - y) @ x

    by_hand = slope(noise) + (mean - prior) / 0.09, std * factor(noise) * slope(noise) + std.square() / 0.09 - 1
    expected = 2 * (x.square().mean(0) * std)  # of the whole mean, in each σ
    direction, row = draw.unit(4), draw.integers(0, 30, 1)
    variance = float(x[row].square() @ std.square())

    def local_losses(count):
        with torch.no_grad():
            return (network(x[row].expand(count, 4), generator=draw.generator)[:, 0] - x[row] @ mean).square()

    trained, certificate = certified_training(draw, objective)
    fresh = separated(draw, 20_000)
    return all_of(
        close([to_mean[0], to_log_std[0]], by_hand, ulps=1024, scale=100.0),
        mean_is(
            lambda noise: (factor(noise) * slope(noise)) @ direction, lambda n: draw.normal(n, 4),
            spread * expected @ direction, effect=0.5 * float(expected.norm()), alpha=5e-10,
        ),
        mean_is(lambda loss: loss, local_losses, local * spread * variance, effect=0.3 * variance, alpha=5e-10),
        at_most([certificate.bound.value, certificate.divergence], [0.5, 20.0]),
        at_least(certificate.bound.value, trained.gibbs_error(*fresh, 50, draw.generator)),
    )  # fmt: skip


# --- Flatness ---

WEIGHTS, AWAY, PRIOR = 10, 1.0, 0.09  # parameters, distance from the prior, its variance
WIDTH = torch.linspace(-9.0, -1.0, 4001, dtype=torch.float64)  # of log σ


def best_width(bounds):
    return bounds.argmin(1)


def one_width(bounds):
    """That of the middle of all curvatures, for all of them."""
    return bounds.argmin(1)[len(bounds) // 2].expand(len(bounds))


@claim("pac.flatness")
@lie("the bound does not depend on the curvature", felt=0.0)
@lie("one width serves all curvatures", width=one_width)
@lie("a wide posterior is far from the prior", spread=-1.0)
def flat_minima_have_wide_posteriors(draw, felt=1.0, width=best_width, spread=1.0):
    """Quadratic minima of many curvatures at one distance from the prior; the best width of each, and its bound."""
    curvatures = torch.logspace(-2, 2, 20, dtype=torch.float64)
    away, zero = AWAY * draw.unit(WEIGHTS), torch.zeros(WEIGHTS, dtype=torch.float64)
    log_variance = 2 * WIDTH - math.log(PRIOR)
    divergence = (WEIGHTS * (log_variance.exp() - 1 - spread * log_variance) + AWAY**2 / PRIOR) / 2
    rise = felt * WEIGHTS / 2 * curvatures[:, None] * (2 * WIDTH).exp()  # half the variance times the trace
    bounds = pac_bayes_objective(0.05 + rise, divergence.expand_as(rise), 1000)  # (curvatures, widths)
    best = width(bounds)
    reached, variance = bounds.gather(1, best[:, None])[:, 0], (2 * WIDTH[best]).exp()
    shipped = [one_layer(away, WIDTH[k].exp().expand(WEIGHTS), zero, PRIOR).kl() for k in best]
    # The bound is a minimum of functions that are linear in the curvature: it lies between its tangents.
    steeper = WEIGHTS / 2 * variance
    return all_of(
        close(shipped, divergence[best], ulps=1024),
        at_most(reached.diff(), curvatures.diff() * steeper[:-1]),
        at_least(reached.diff(), curvatures.diff() * steeper[1:]),
        at_most(variance[1:], 0.95 * variance[:-1]),
    )
