"""Flat minima: what flatness measures and what it does not, averages of weights, and the local entropy."""

import torch
from torch import nn

from lemmata.generalization.flatness import noise_rise
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, mean_is
from lemmata.optim.averaging import PolyakAverage
from lemmata.optim.entropy_sgd import EntropySGD
from lemmata.optim.gradient_descent import GradientDescent

# --- Noise in the parameters ---

SIGMA, POINTS = 0.3, 50


def mean_square(f, y):
    return (f - y).square().mean()


def relu_network(weights, alpha=1.0, back=-1.0):
    """Three inputs, four hidden units; the weights into them times alpha, those out of them times a power of it."""
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    for parameter, value, power in zip(network.parameters(), weights, (1.0, 1.0, back, 0.0), strict=True):
        parameter.data = value * alpha**power
    return network


def traces_of_blocks(network, batch):
    """The trace of the Hessian by parameter, from the whole second derivative by autograd."""
    named = {name: p.detach() for name, p in network.named_parameters()}
    second = torch.func.hessian(lambda w: mean_square(torch.func.functional_call(network, w, batch[:1]), batch[1]))
    blocks = second(named)
    return [blocks[k][k].reshape(p.numel(), p.numel()).trace() for k, p in named.items()]


@claim("flat.minima")
@lie("the rise is the trace times the variance", half=1.0)
@lie("the trace of the Hessian is invariant under rescaling", power=0.0)
@lie("noise in proportion to the weights feels rescaling as well", relative=2.0)
@lie("the same factor on both sides keeps the function", back=1.0)
def the_rise_under_noise(draw, half=2.0, power=2.0, relative=0.0, back=-1.0):
    """A linear regression with noise in its weights, by formula and by draws; then a ReLU network, rescaled."""
    directions = draw.orthogonal(POINTS)[:, :3] * 6.0 * draw.uniform(3, low=0.5, high=2.0)
    line = nn.Linear(3, 1, bias=False).double()
    least = (directions, line(directions).detach())  # at the minimum, where the loss is zero
    predicted = SIGMA**2 / half * float(2 * directions.square().sum() / POINTS)
    rises = lambda count: SIGMA**2 * (directions @ draw.normal(3, count)).square().mean(0)  # noqa: E731
    weights = [draw.normal(*shape) for shape in ((4, 3), (4,), (1, 4), (1,))]
    x = draw.normal(POINTS, 3)
    batch = (x, relu_network(weights)(x).detach())  # fitted exactly: a minimum
    alphas, traces, outputs, sums = torch.tensor([1.0, 0.25, 0.5, 2.0, 4.0]).double(), [], [], []
    for alpha in alphas.tolist():
        network = relu_network(weights, alpha, back)
        outputs.append(network(x).detach())
        traces.append(sum(traces_of_blocks(relu_network(weights, alpha), batch)))
        same_signs = torch.Generator().manual_seed(draw.seed)
        sums.append(noise_rise(network, mean_square, batch, SIGMA, generator=same_signs).rise)
    into, of_bias, out, last = traces_of_blocks(relu_network(weights), batch)
    return all_of(
        close(noise_rise(line, mean_square, least, SIGMA, relative=False).rise, predicted, ulps=1024),
        mean_is(lambda rise: rise, rises, predicted, effect=0.2 * predicted),
        close(outputs, outputs[0].expand(5, -1, -1), ulps=1024),
        close(traces, (into + of_bias) * alphas**-power + out * alphas**power + last, ulps=4096),
        close(sums, sums[0] * alphas**relative, ulps=1e5),
    )


# --- Averages of weights ---


def all_iterates(params):
    return PolyakAverage(params)


def last_iterate(params):
    return PolyakAverage(params, ema_decay=0.0)


STEPS, CHAINS, RATE = 200, 4000, 0.5


def forgetting(keep):
    """The variance of the mean of so many iterates over that of one, when neighbours are correlated so much."""
    waits = torch.arange(1, STEPS, dtype=torch.float64)
    return float(1 + 2 * ((1 - waits / STEPS) * keep**waits).sum()) / STEPS


def one_basin(draw, count):
    """Where (x^2 - 1)^2 is convex, on one side."""
    return draw.uniform(count, 8, low=0.6, high=1.4)


def both_basins(draw, count):
    return one_basin(draw, count) * draw.signs(count, 8)


def average_of(average, places):
    """The shipped average of iterates, (time, ...)."""
    place = nn.Parameter(places[0].clone())
    mean = average([place])
    for now in places:
        place.data.copy_(now)
        mean.update()
    return mean.averages[0]


@claim("flat.weight_averaging")
@lie("the last iterate does as well", average=last_iterate)
@lie("the iterates are independent", correlated=0.0)
@lie("without a common basin too", basin=both_basins)
def the_average_lies_lower(draw, average=all_iterates, correlated=1.0, basin=one_basin):
    """Convex losses by Jensen's inequality; chains on a noisy parabola from its own noise; the wells of (x^2 - 1)^2."""
    planes, shifts, iterates = draw.normal(1000, 10, 4), draw.normal(1000, 10), draw.normal(12, 1000, 4)
    wells = basin(draw, 1000).T  # (iterates, draws)
    variance = RATE / (2 - RATE)  # that of the iterates, where the noise holds them

    def convex(x):
        return ((planes @ x[..., None])[..., 0] + shifts).logsumexp(-1)

    def double_well(x):
        return (x.square() - 1).square()

    def chains(count):
        place = nn.Parameter(variance**0.5 * draw.normal(count))
        optimizer, mean = GradientDescent([place], lr=RATE), average([place])
        for _ in range(STEPS):
            place.grad = place.detach() + draw.normal(count)
            optimizer.step()
            mean.update()
        return mean.averages[0].square()

    predicted = variance * forgetting(correlated * (1 - RATE))
    return all_of(
        at_most(convex(average_of(average, iterates)), convex(iterates).mean(0)),
        at_most(double_well(average_of(average, wells)), double_well(wells).mean(0)),
        mean_is(lambda loss: loss, chains, predicted, effect=0.3 * predicted),
        at_most(predicted, 0.2 * variance),
    )


# --- The local entropy ---

SCOPE, CENTRES, CURVATURES = 0.5, (-1.0, 1.0), (1.0, 100.0)  # a wide valley and a narrow one, equally deep
GRID = torch.linspace(-12.0, 12.0, 24_001, dtype=torch.float64)


def two_valleys(x):
    parts = [-h / 2 * (x - c).square() for c, h in zip(CENTRES, CURVATURES, strict=True)]
    return -torch.logsumexp(torch.stack(parts), 0)


def parabola(x):
    return 2.0 * x.square()


def local_entropy(loss, theta):
    """By quadrature: (places,)."""
    exponent = -loss(GRID) - SCOPE / 2 * (theta[:, None] - GRID).square()
    return -torch.logsumexp(exponent, -1) - (GRID[1] - GRID[0]).log()


def plain_loss(loss, theta):
    return loss(theta)


def walked(draw, loss, place, noise, steps, outer, lr):
    """Where so many outer steps of the shipped optimiser lead from each place."""
    parameter = nn.Parameter(place.clone())
    optimizer = EntropySGD(
        [parameter], lr=lr, steps=steps, scope=SCOPE, noise=noise, mean_rate=0.02, generator=draw.generator
    )

    def closure():
        optimizer.zero_grad()
        value = loss(parameter).sum()
        value.backward()
        return value

    for _ in range(outer):
        optimizer.step(closure)
    return parameter.detach()


@claim("flat.entropy_sgd")
@lie("the gradient points to the mean", sign=-1.0)
@lie("the pull does not count", pull=0.0)
@lie("the loss itself prefers the wide valley", function=plain_loss)
@lie("it leaves the narrow valley without noise", temperature=0.0)
def wide_valleys_pull_more(draw, sign=1.0, pull=1.0, function=local_entropy, temperature=1.0):
    """The gradient by quadrature and by the walk; two valleys of one depth, seen from the bottom of the narrow one."""
    noise = (2 * temperature) ** 0.5
    theta = draw.uniform(20, low=-3.0, high=3.0).requires_grad_()
    slope = torch.autograd.grad(local_entropy(two_valleys, theta).sum(), theta)[0]
    theta = theta.detach()
    weight = torch.softmax(-two_valleys(GRID) - pull * SCOPE / 2 * (theta[:, None] - GRID).square(), -1)
    start = torch.ones(1, dtype=torch.float64, requires_grad=True)
    here = torch.autograd.grad(local_entropy(parabola, start).sum(), start)[0].item()

    def estimates(count):  # the mean of the walk has forgotten its start but for one part in a million
        place = torch.ones(count, dtype=torch.float64)
        return SCOPE * (place - walked(draw, parabola, place, noise, 700, 1, 0.1))

    bottoms = torch.tensor(CENTRES, dtype=torch.float64)
    depth = function(two_valleys, bottoms)
    ends = walked(draw, two_valleys, torch.ones(200, dtype=torch.float64), noise, 200, 8, 0.01)
    stays = GradientDescent([place := nn.Parameter(torch.ones(1, dtype=torch.float64))], lr=0.01)
    for _ in range(400):
        stays.zero_grad()
        two_valleys(place).sum().backward()
        stays.step()
    return all_of(
        close(slope, sign * SCOPE * (theta - weight @ GRID), within=1e-9),
        mean_is(lambda g: g, estimates, sign * here, effect=0.1),
        at_least(depth[1] - depth[0], 0.3),
        always([(ends < 0).double().mean() > 0.7, place.item() > 0.9]),
    )
