"""The network linear in its parameters: what it is, how it is fitted from both sides, and how it learns."""

import torch
from torch.func import functional_call

from lemmata.judge import all_of, at_most, claim, close, lie, slope_is
from lemmata.kernel.claims.tangent_kernel import flat, gradients, named, small_network
from lemmata.kernel.linearized_network import linearize
from lemmata.kernel.tangent_kernel import ntk
from lemmata.optim.gradient_flow import flow_path


@claim("ntk.linearised")
@lie("the network's own value is left out", start=0.0)
@lie("the gradient counts half", factor=0.5)
@lie("the error is of the first order", order=1.0)
def first_order_in_the_parameters(draw, start=1.0, factor=1.0, order=2.0, tangent=linearize):
    """Values against the gradients one by one, the error over the length of the step, and linearity in β."""
    model, x = small_network(draw), draw.normal(6, 3)
    linear, phi = tangent(model), gradients(model, x)
    f, first, second = model(x)[:, 0].detach(), draw.normal(phi.shape[1]), draw.normal(phi.shape[1])

    def value(change):
        return linear.along(named(model, change))(x)[:, 0]

    steps = [0.04, 0.02, 0.01, 0.005]
    errors = []
    for step in steps:
        there = functional_call(model, named(model, flat(model) + step * first), (x,))[:, 0].detach()
        errors.append((there - value(step * first)).norm())
    return all_of(
        close(linear(x)[:, 0], start * f, ulps=1000, scale=1.0),
        close(value(first), start * f + factor * phi @ first, ulps=1000),
        close(value((first + second) / 2), (value(first) + value(second)) / 2, ulps=1000),
        slope_is(steps, torch.stack(errors), order, within=0.3),
    )


def with_duplicates(draw, n=6):
    """Points of which two are equal, with equal targets: their kernel is singular."""
    x, y = draw.normal(n, 3), draw.normal(n)
    return torch.cat([x, x[:1]]), torch.cat([y, y[:1]])


@claim("ntk.dual")
@lie("the multipliers ignore where the network starts", start=0.0)
@lie("a ridge of 0.1 is added", ridge=0.1)
def both_sides_agree(draw, start=1.0, ridge=0.0, tangent=linearize):
    """Predictions from the kernel and from the parameters, and the slope of the loss in the multipliers."""
    sides, slopes, scales = [], [], []
    for x, y in ((draw.normal(6, 3), draw.normal(6)), with_duplicates(draw)):
        model, new = small_network(draw), draw.normal(5, 3)
        primal = tangent(model).fit(x, y[:, None], solver="primal")
        dual = tangent(model).fit(x, y[:, None], solver="dual")
        f, k = model(x)[:, 0].detach(), ntk(model, x)[:, :, 0, 0]
        inverse = torch.linalg.pinv(k + ridge * torch.eye(len(k)).double(), rtol=1e-10, hermitian=True)
        alpha = inverse @ (y - start * f)
        across = ntk(model, new, x)[:, :, 0, 0]
        sides.append((dual(new)[:, 0], primal(new)[:, 0], model(new)[:, 0].detach() + across @ alpha))
        slopes.append(k @ (k @ dual.multipliers_ + f - y))
        scales.append((k.norm() * y.norm()).item())
    dual, primal, known = (torch.cat(each) for each in zip(*sides, strict=True))
    return all_of(
        close(dual, primal, within=1e-6),
        close(dual, known, within=1e-6),
        close(torch.cat(slopes), torch.zeros(13).double(), within=1e-9 * max(scales)),
    )


@claim("ntk.linear_solution")
@lie("the prediction lacks the network it started from", printed="000/1", start=0.0)
@lie("the prediction lacks the network, with the pseudo-inverse", printed="001/2", start=0.0)
@lie("the prediction lacks the network, of the unique solution", printed="003/3", start=0.0)
@lie("a ridge of 0.1 is added", ridge=0.1)
def least_norm_through_the_data(draw, start=1.0, ridge=0.0, tangent=linearize):
    """Predictions, the data, and β, against gradients one by one and torch's own least squares."""
    found, known, betas, least = [], [], [], []
    for x, y in ((draw.normal(6, 3), draw.normal(6)), with_duplicates(draw)):
        model, new = small_network(draw), draw.normal(5, 3)
        fitted = tangent(model).fit(x, y[:, None])
        phi, f = gradients(model, x), model(x)[:, 0].detach()
        k = phi @ phi.mT + ridge * torch.eye(len(x)).double()
        multipliers = torch.linalg.pinv(k, rtol=1e-10, hermitian=True) @ (y - f)
        for at in (new, x):
            found.append(fitted(at)[:, 0])
            known.append(start * model(at)[:, 0].detach() + gradients(model, at) @ phi.mT @ multipliers)
        found.append(known[-1])
        known.append(y)
        betas.append(torch.cat([part.flatten() for part in fitted.change_.values()]))
        least.append(torch.linalg.lstsq(phi, (y - f)[:, None], rcond=1e-10, driver="gelsd").solution[:, 0])
    return all_of(
        close(torch.cat(found), torch.cat(known), within=1e-6),
        close(torch.cat(betas), torch.cat(least), within=1e-6),
    )


def each_by_its_own(values):
    return values


def all_alike(values):
    return values.mean().expand(len(values))


@claim("ntk.exp_solution")
@lie("the kernel enters squared", power=2.0)
@lie("all modes decay alike", rates=all_alike)
@lie("a ridge of 0.1 remains in the limit", ridge=0.1)
def errors_decay_along_eigenvectors(draw, power=1.0, rates=each_by_its_own, ridge=0.0, tangent=linearize):
    """The network at seven times against the exponential, an integrated flow, each mode's rate, and the limit."""
    model, x, y = small_network(draw, hidden=5), draw.normal(6, 3), draw.normal(6)
    linear, phi, f = tangent(model).fit(x, y[:, None]), gradients(model, x), model(x)[:, 0].detach()
    values, vectors = torch.linalg.eigh(phi @ phi.mT)
    times = torch.tensor([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]).double()
    missing = vectors.mT @ (y - f)
    left = torch.exp(-(rates(values) ** power) * times[:, None]) * missing  # (times, modes)
    path = torch.stack([linear.at(float(t))(x)[:, 0] for t in times])

    def loss(beta):
        return (f + beta @ phi.mT - y).square().sum(-1) / 2

    flowed = f + flow_path(loss, torch.zeros(phi.shape[1]).double(), times) @ phi.mT
    new = draw.normal(4, 3)
    far = gradients(model, new) @ phi.mT @ torch.linalg.solve(phi @ phi.mT + ridge * torch.eye(6).double(), y - f)
    return all_of(
        close(path, y - left @ vectors.mT, within=1e-8),
        close(path, flowed, within=1e-5),
        close((y - path) @ vectors, left, within=1e-8),
        close(linear.at(1e12)(new)[:, 0], model(new)[:, 0].detach() + far, within=1e-6),
        at_most((y - path).norm(dim=1).diff(), torch.zeros(6).double()),
    )
