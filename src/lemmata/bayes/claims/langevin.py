"""Langevin dynamics with friction: on Gaussians its steps are linear, and their stationary law is exact."""

import torch

from lemmata.bayes.langevin import UnadjustedLangevin, UnderdampedLangevin, VelocityState
from lemmata.judge import all_of, at_most, claim, close, lie, mean_is, slope_is


def left_alone(a, b):
    """The covariance Σ = AΣAᵀ + BBᵀ that a linear step with this noise leaves alone."""
    n = len(a)
    whole = torch.eye(n * n).double() - torch.kron(a, a)
    return torch.linalg.solve(whole, (b @ b.mT).flatten()).view(n, n)


def stationary_covariance(kernel, curvature, power=0.5):
    """Of positions and velocities, for a quadratic energy: A and B are read from the kernel's step.

    A power other than a half is that of 2γη in the noise.
    """
    d = len(curvature)
    zero, unit = torch.zeros(2 * d, d).double(), torch.eye(d).double()
    theta, v = torch.eye(2 * d).double().chunk(2, dim=1)
    move = kernel.baoab if kernel.scheme == "baoab" else kernel.euler
    moved = move(VelocityState(theta, theta[:, 0], -theta @ curvature, v), zero)
    shaken = move(VelocityState(zero[:d], zero[:d, 0], zero[:d], zero[:d]), unit)
    a, b = (torch.cat([state.position, state.velocity], dim=1).mT for state in (moved, shaken))
    return left_alone(a, b * (2 * kernel.friction * kernel.step_length) ** (power - 0.5))


class StepOfFriction(UnderdampedLangevin):
    """The gradient is multiplied by the friction instead of the step."""

    def euler(self, state, noise):
        return super().euler(state._replace(gradient=state.gradient * self.friction / self.step_length), noise)


@claim("mcmc.langevin.underdamped")
@lie("the noise is 2γη, without its root", power=1.0)
@lie("the gradient is multiplied by γ instead of η", kernel=StepOfFriction)
@lie("the gradient of the mean is not multiplied by the data size", size=1)
@lie("the error falls like the square root of the step", order=0.5)
def friction_and_noise_balance_at_the_target(draw, power=0.5, kernel=UnderdampedLangevin, size=10, order=1.0):
    """The exact stationary covariance of the step as printed, for correlated Gaussians: how its error falls with the
    step. That of BAOAB, whose positions have none. Chains for the mean of ten points, against the printed step
    written out. Overdamped: the variance 1 / (1 - ε/2)."""
    curvature, steps = draw.covariance(2), [0.02, 0.01, 0.005, 0.0025]
    target = torch.block_diag(torch.linalg.inv(curvature), torch.eye(2).double())
    gaussian = lambda x: -0.5 * ((x @ curvature) * x).sum(1)  # noqa: E731
    printed = [
        stationary_covariance(kernel(gaussian, step, friction=1.0, scheme="euler"), curvature, power) for step in steps
    ]
    exact = stationary_covariance(kernel(gaussian, step=0.3, friction=0.7), curvature)
    data, eta = draw.normal(10), 0.1
    chain = kernel(lambda x: -size * 0.5 * (x - data).square().mean(1), eta, friction=3.0, scheme="euler")
    a = torch.tensor([[1.0, eta], [-10 * eta, 1 - 3 * eta]], dtype=torch.float64)
    b = torch.tensor([[0.0], [(6 * eta) ** 0.5]], dtype=torch.float64)
    wanted = left_alone(a, b)

    def settled(chains):
        state = chain.init(data.mean().expand(chains, 1).clone(), draw.generator)
        for _ in range(60):
            state, _ = chain.step(state, draw.generator)
        return state.position[:, 0] - data.mean()

    epsilon = float(draw.uniform(1, low=0.1, high=1.5))
    overdamped = UnadjustedLangevin(score=lambda x: -x, step=epsilon)
    kept = float(overdamped.drifted(overdamped.init(torch.ones(1, 1).double())))
    return all_of(
        slope_is(steps, [(found - target).abs().max() for found in printed], order, within=0.2),
        at_most((printed[0] - target).abs().diagonal(), 0.06 * target.diagonal().max(), detail="at a step of 0.02"),
        close(exact[:2, :2], target[:2, :2], ulps=1e4),
        # Of a centred Gaussian with this variance; bounded, whatever the variance is.
        mean_is(lambda x: torch.exp(-0.5 * x.square() / wanted[0, 0]), settled, 0.5**0.5, effect=0.02),
        close(2 * epsilon / (1 - kept**2), 1 / (1 - epsilon / 2)),
    )
