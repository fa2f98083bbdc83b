"""What the noise of minibatches does: how far it spreads around a minimum, and what it lets one leave."""

import torch

from lemmata.judge import all_of, claim, close, exactly, lie, mean_is, probability_is
from lemmata.optim.gradient_descent import GradientDescent

SHARP, WIDE, RIDGE = -1.0, 1.0, -0.6  # where the wells of `_two_wells` are, and about where their slopes meet


def _sgd_chains(draw, optimizer, gradient, start, root, lr, steps):
    """Chains of SGD side by side, whose gradients have noise of covariance `root` times its transpose: (count, n)."""
    place = torch.nn.Parameter(start.clone())
    descent = optimizer([place], lr=lr)
    for _ in range(steps):
        place.grad = gradient(place.detach()) + draw.normal(*place.shape) @ root.T
        descent.step()
    return place.detach()


def _two_wells(x, raised=0.0):
    """The slope of two parabolas joined smoothly: a sharp one at -1, raised or not, and a wide one at 1, 25 times as
    flat."""
    sharp, wide = 5.0 * (x - SHARP) ** 2 + raised, 0.2 * (x - WIDE) ** 2
    share = torch.sigmoid((wide - sharp) / 0.02)  # of the lower of the two
    return share * 10.0 * (x - SHARP) + (1 - share) * 0.4 * (x - WIDE)


def _crossed_chains(draw, optimizer, count, noise, raised=0.0, steps=300):
    """Which of the chains that start in the sharp well are in the wide one in the end."""
    root = torch.full((1, 1), noise).double()
    start = torch.full((count, 1), SHARP).double()
    return _sgd_chains(draw, optimizer, lambda x: _two_wells(x, raised), start, root, lr=0.1, steps=steps)[:, 0] > RIDGE


def _stationary_covariance(hessian, noise, lr, step):
    """The solution S of H S + S H - step * lr * H S H = lr * C, by Kronecker products."""
    one = torch.eye(len(hessian)).double()
    system = torch.kron(hessian, one) + torch.kron(one, hessian) - step * lr * torch.kron(hessian, hessian)
    return torch.linalg.solve(system, (lr * noise).flatten()).reshape(hessian.shape)


SPREAD = "the chains resolve a tenth of a variance"
ENOUGH = "a little more or less noise crosses the ridge as well"


@claim("optim.sgd.basin_width")
@lie("larger batches spread more", power=-1.0, regime=SPREAD, loose=SPREAD)
@lie("only the learning rate counts", power=0.0, regime=SPREAD, loose=SPREAD)
@lie("the length of the steps does not count, however long they are", step=0.0, regime=SPREAD, loose=SPREAD)
@lie("the learning rate over the batch size, without the factor two", two=1.0)
@lie("without noise the wide basin is found too", noise=0.0, regime=ENOUGH, loose=ENOUGH)
def the_spread_of_sgd_around_a_minimum(draw, power=1.0, step=1.0, two=2.0, noise=1.0, optimizer=GradientDescent):
    """Whitened by the predicted covariance, chains must be white; a sharp well is left with small batches only."""
    q, lr, batch = draw.orthogonal(2), 0.2, 4
    hessian = (q * torch.tensor([1.0, 5.0]).double()) @ q.T
    covariance = draw.covariance(2)
    spread = _stationary_covariance(hessian, covariance / batch**power, lr, step)
    white = torch.linalg.inv(torch.linalg.cholesky(spread))

    def chains(count):
        root, start = torch.linalg.cholesky(covariance) / batch**0.5, torch.zeros(count, 2).double()
        return _sgd_chains(draw, optimizer, lambda x: x @ hessian, start, root, lr, steps=24) @ white.T

    small, one = 1e-7, torch.eye(2).double()  # what the limit leaves out is smaller than the rest by this factor
    limit = close(
        _stationary_covariance(hessian, hessian / batch, small, step), small / (two * batch) * one, within=1e-13
    )
    alpha = 2e-10
    second = mean_is(lambda z: z[:, 1] ** 2, chains, 1.0, effect=0.1, alpha=alpha)
    if not (limit.holds and second.holds):
        return all_of(limit, second)
    return all_of(
        mean_is(lambda z: z[:, 0] ** 2, chains, 1.0, effect=0.1, alpha=alpha),
        second,
        mean_is(lambda z: z[:, 0] * z[:, 1], chains, 0.0, effect=0.1, alpha=alpha),
        probability_is(
            lambda n: _crossed_chains(draw, optimizer, n, 2.0 * noise), 0.8, side="at_least", effect=0.1, alpha=alpha
        ),
        probability_is(
            lambda n: _crossed_chains(draw, optimizer, n, 2.0 / 16**0.5), 0.1, side="at_most", effect=0.1, alpha=alpha
        ),
        limit,
    )


@claim("optim.sgd.escape")
@lie("descent without noise leaves as well", noise=0.0, regime=ENOUGH, loose=ENOUGH)
@lie("without noise it stays at a saddle wherever it started", beside=0.1)
def noise_leaves_poor_stationary_points(draw, noise=2.0, beside=0.0, optimizer=GradientDescent):
    """A sharp well with a deeper, wide one beside it; a saddle, approached along its ridge; both without noise too."""

    def saddle(x):
        """The slope of x^2/2 - y^2/2 + y^4/4: a saddle at the origin, minima at y = -1 and y = 1."""
        return torch.stack([x[:, 0], x[:, 1] ** 3 - x[:, 1]], 1)

    def left_saddle(count, amount):
        start = torch.tensor([2.0, beside]).double().expand(count, 2)
        root = amount / 10 * torch.eye(2).double()
        return _sgd_chains(draw, optimizer, saddle, start, root, lr=0.1, steps=300)[:, 1].abs() > 0.5

    still = [int(_crossed_chains(draw, optimizer, 200, 0.0, raised=0.2).sum()), int(left_saddle(200, 0.0).sum())]
    alpha = 5e-10
    return all_of(
        probability_is(
            lambda n: _crossed_chains(draw, optimizer, n, noise, 0.2), 0.9, side="at_least", effect=0.05, alpha=alpha
        ),
        probability_is(lambda n: left_saddle(n, noise), 0.9, side="at_least", effect=0.05, alpha=alpha),
        exactly(still, [0, 0]),
    )
