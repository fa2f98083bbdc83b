"""Hamiltonian dynamics: what it conserves, what its discretisation conserves, and the sampler made of it."""

import functools

import torch

from lemmata.bayes.hmc import HamiltonianMonteCarlo
from lemmata.bayes.leapfrog_integrator import Trajectory, leapfrog
from lemmata.bayes.mass import Mass
from lemmata.bayes.stochastic_gradient import SGHMC
from lemmata.bayes.transition import slope_at
from lemmata.judge import all_of, always, at_least, at_most, claim, close, law_is, lie, slope_is
from lemmata.optim.heavy_ball import HeavyBall


class InverseMass(Mass):
    """Takes M for its inverse in the kinetic energy."""

    def velocity(self, momentum):
        assert self.matrix is not None
        return momentum * self.matrix if self.matrix.ndim == 1 else momentum @ self.matrix


@claim("mcmc.hmc.energy")
@lie("the kinetic energy has M for its inverse", kinetic=InverseMass)
@lie("the prior is left out of the energy", prior=0.0)
@lie("momenta have half the energy", factor=0.5)
def positions_follow_the_posterior_and_momenta_a_gaussian(draw, kinetic=Mass, prior=1.0, factor=1.0):
    """Quadrature of e^-H over positions and momenta for the slope of a line: both marginals, and their product, against
    the posterior in closed form and the Gaussian of variance M. In three dimensions M against the momenta's energy."""
    x, y, m = draw.normal(6), draw.normal(6), float(draw.uniform(1, low=2.0, high=4.0))
    precision = 1 + x.square().sum()
    mean, variance = x @ y / precision, 1 / precision
    theta = mean + variance.sqrt() * torch.linspace(-9, 9, 721, dtype=torch.float64)
    v = m**0.5 * torch.linspace(-13, 13, 721, dtype=torch.float64)
    energy = 0.5 * (y - theta[:, None] * x).square().sum(1) + prior * 0.5 * theta.square()
    one = kinetic(torch.tensor([m], dtype=torch.float64))
    joint = torch.exp(-(energy - energy.min())[:, None] - factor * one.kinetic(v[:, None]))
    joint = joint / joint.sum()
    posterior = torch.exp(-0.5 * (theta - mean).square() / variance)
    gaussian = torch.exp(-0.5 * v.square() / m)
    posterior, gaussian = posterior / posterior.sum(), gaussian / gaussian.sum()
    covariance = draw.covariance(3)
    several, noise = kinetic(covariance), draw.normal(50, 3)
    drawn = several.momentum(noise)
    root = several.momentum(torch.eye(3).double())
    return all_of(
        close(joint.sum(1), posterior, within=1e-8),
        close(joint.sum(0), gaussian, within=1e-8),
        close(joint, posterior[:, None] * gaussian, within=1e-8),
        close(root.mT @ root, covariance),  # momenta are Lz
        close(factor * several.kinetic(drawn), 0.5 * noise.square().sum(1), condition=10.0),  # H weighs them as drawn
    )


def by_the_mass(mass, v):
    """The velocity of a momentum."""
    return mass.velocity(v)


def as_it_is(mass, v):
    """A momentum taken for a velocity, as printed."""
    return v


@claim("mcmc.hmc.dynamics")
@lie("positions move by v, printed with a kinetic energy that has M in it", printed="000/1", velocity=as_it_is)
@lie("θ̇ = v with the dot put back, but without M", printed="001/2", velocity=as_it_is)
@lie("friction conserves the energy, too", friction=0.1)
def the_flow_conserves_energy_and_volume(draw, velocity=by_the_mass, friction=0.0):
    """The flow of random quadratic energies and dense masses by the matrix exponential: the energy along it, the
    determinant, and leapfrogs of the same length, which come near it to second order."""
    energies, changed, volumes = [], [], []
    for d in (1, 2, 4):
        curvature, mass = draw.covariance(d), Mass(draw.covariance(d))
        speed = velocity(mass, torch.eye(d).double()).mT  # θ̇ = speed v
        top = torch.cat([torch.zeros(d, d).double(), speed], dim=1)
        bottom = torch.cat([-curvature, -friction * torch.eye(d).double()], dim=1)
        field, start = torch.cat([top, bottom]), draw.normal(20, 2 * d)
        for time in (0.3, 2.0, 9.0):
            flow = torch.linalg.matrix_exp(time * field)
            ends = start @ flow.mT
            now, before = (hamiltonian(each, curvature, mass) for each in (ends, start))
            energies.append(before)
            changed.append(now)
            volumes.append(torch.linalg.det(flow))
    density = lambda x: -0.5 * (x @ curvature * x).sum(1)  # noqa: E731
    flow, steps = torch.linalg.matrix_exp(field), [20, 40, 80, 160]
    errors = []
    for n in steps:
        end = leapfrog(density, start[:, :d], start[:, d:], 1 / n, n, mass)
        errors.append((torch.cat([end.position, end.momentum], dim=1) - start @ flow.mT).abs().max())
    return all_of(
        close(torch.cat(changed), torch.cat(energies), condition=100.0),
        close(torch.stack(volumes), 1.0, condition=100.0),
        slope_is(steps, errors, -2.0, within=0.1),
    )


def hamiltonian(phase, curvature, mass):
    """H of (θ, v) for a quadratic energy; the kinetic energy by a solve."""
    theta, v = phase.chunk(2, dim=1)
    return 0.5 * ((theta @ curvature) * theta).sum(1) + 0.5 * (v * torch.linalg.solve(mass.matrix, v.mT).mT).sum(1)


def euler(log_density, position, momentum, step, steps, mass=None, gradient=None):
    """Euler's steps as printed: both sides at the old place."""
    mass = Mass() if mass is None else mass
    value, gradient = slope_at(log_density, position)
    for _ in range(steps):
        position, momentum = position + step * mass.velocity(momentum), momentum + step * gradient
        value, gradient = slope_at(log_density, position)
    return Trajectory(position, momentum, value, gradient)


class AlwaysAccepting(HamiltonianMonteCarlo):
    """Takes the end of every trajectory."""

    def propose_and_choose(self, state, generator, steps):
        now, transition, proposed = super().propose_and_choose(state, generator, steps)
        end = proposed.end
        return type(now)(end.position, end.log_density, end.gradient), transition, proposed


class OneMomentum(HamiltonianMonteCarlo):
    """Draws momenta once and for all."""

    def propose_and_choose(self, state, generator, steps):
        again = torch.Generator().manual_seed(0)
        return super().propose_and_choose(state, again, steps)


class TransposedRoot(Mass):
    """Momenta by the transposed Cholesky factor."""

    def momentum(self, noise):
        return noise @ self._root


class WithTransposedRoot(HamiltonianMonteCarlo):
    """Momenta that have not the covariance M."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.mass = TransposedRoot(self.mass.matrix)


@claim("mcmc.hmc")
@lie("Euler's steps, both sides at the old place", printed="000/1", integrate=euler)
@lie("the same Euler's steps in the other notes", printed="001/2", integrate=euler)
@lie("every end is accepted", kernel=AlwaysAccepting)
@lie("momenta are the same in every transition", kernel=OneMomentum)
@lie("momenta by the transposed root of M", kernel=WithTransposedRoot)
@lie("leapfrogs conserve v² + θ²", dent=0.0)
def leapfrogs_and_the_accepted_leave_the_target_alone(
    draw, integrate=leapfrog, kernel=HamiltonianMonteCarlo, dent=0.25
):
    """A unit oscillator: 300 leapfrogs keep v² + (1 - η²/4) θ², and are undone by turning round; the error of H
    falls like η². Three transitions of chains that start in a correlated Gaussian, with a dense mass and long steps."""
    unit = lambda x: -0.5 * x.square().sum(1)  # noqa: E731
    theta, v = draw.normal(1, 1), draw.normal(1, 1)
    after, before, back, start = [], [], [], []
    for eta in (0.05, 0.5, 1.5):
        end = integrate(unit, theta, v, eta, 300)
        after.append(end.momentum.square() + (1 - dent * eta**2) * end.position.square())
        before.append(v.square() + (1 - dent * eta**2) * theta.square())
        home = integrate(unit, end.position, -end.momentum, eta, 300)
        back.append(torch.stack([home.position, -home.momentum]))
        start.append(torch.stack([theta, v]))
    curvature, mass = draw.covariance(4), draw.covariance(4)
    density = lambda x: -0.5 * ((x @ curvature) * x).sum(1)  # noqa: E731
    position, momentum, steps = draw.normal(200, 4), draw.normal(200, 4), [8, 16, 32]
    errors = []
    for n in steps:
        end = integrate(density, position, momentum, 1 / n, n, Mass(mass))
        errors.append(
            (energy(end.position, end.momentum, density, mass) - energy(position, momentum, density, mass)).abs().mean()
        )
    uneven = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
    target = torch.tensor([[1.0, -0.6], [-0.6, 1.0]], dtype=torch.float64)
    root, inverse = torch.linalg.cholesky(target), torch.linalg.inv(target)
    chain = kernel(lambda x: -0.5 * ((x @ inverse) * x).sum(1), step=0.45, steps=2, mass=2 * uneven)

    def moved(chains):
        state = chain.init(draw.normal(chains, 2) @ root.mT)
        for _ in range(3):
            state, _ = chain.step(state, draw.generator)
        return 0.5 * ((state.position @ inverse) * state.position).sum(1)  # exponential

    return all_of(
        close(torch.stack(after), torch.stack(before), ulps=1e5),
        close(torch.stack(back), torch.stack(start), ulps=1e5),
        slope_is(steps, errors, -2.0, within=0.2),
        law_is(moved, lambda x: 1 - torch.exp(-x), effect=0.02),
    )


def energy(position, momentum, log_density, mass):
    """H with a dense mass, by a solve."""
    return 0.5 * (momentum * torch.linalg.solve(mass, momentum.mT).mT).sum(1) - log_density(position)


@claim("mcmc.hmc.momentum_gd")
@lie("without friction it comes to rest in the minimum", friction=0.0)
@lie("the learning rate is η", power=1.0)
@lie("the noise of a sampler changes nothing", temperature=1e-6)
def friction_without_noise_is_the_heavy_ball(draw, friction=2.0, power=2.0, temperature=0.0):
    """The sampler's steps with friction and no noise beside those of the heavy ball with learning rate η² and momentum
    1 - ηγ, on a random strongly convex function: 100 steps alike, and after 600 at the minimum."""
    eta, curvature, centre = 0.2, draw.covariance(5), draw.normal(5)
    gradient = lambda w: (w - centre) @ curvature + (w - centre).pow(3)  # noqa: E731
    start = centre + draw.normal(5)
    sampler = functools.partial(SGHMC, lr=eta, data_size=1, friction=friction, temperature=temperature)
    ball = functools.partial(HeavyBall, lr=eta**power, momentum=1 - eta * friction)
    paths = [walked(make, start, gradient, 600) for make in (sampler, ball)]
    moves = paths[0][1:101] - paths[0][:100]
    return all_of(
        close(paths[0][:101], paths[1][:101], ulps=1e4),
        at_most((paths[0][-1] - centre).norm(), 1e-6, detail="distance from the minimum"),
        at_least(moves.norm(dim=1)[:10], 1e-3, detail="length of the first moves"),
        always([bool(torch.isfinite(paths[0]).all())]),
    )


def walked(make, start, gradient, steps):
    """The places of an optimiser, step by step."""
    w = start.clone().requires_grad_()
    optimizer, places = make([w]), [start]
    for _ in range(steps):
        w.grad = gradient(w.detach())
        optimizer.step()
        places.append(w.detach().clone())
    return torch.stack(places)
