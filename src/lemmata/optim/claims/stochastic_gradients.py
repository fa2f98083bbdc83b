"""Gradients of minibatches: their mean, their variance, and the rates of stochastic gradient descent."""

import itertools
import math

import torch

from lemmata.judge import all_of, at_least, claim, close, lie, slope_is
from lemmata.measure.gradient_noise import gradient_noise_scale
from lemmata.optim.claims.smooth_functions import slopes
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path

EXAMPLES = 6


def examples(draw):
    """Six inputs and targets, and the weights of a tanh unit."""
    return draw.normal(EXAMPLES, 3), draw.normal(EXAMPLES), draw.normal(3)


def regression(inputs, targets):
    """The losses of a tanh unit on some of the examples."""
    return lambda w, chosen: (torch.tanh(inputs[chosen] @ w) - targets[chosen]).square()


def batches(size, replaced):
    """Every minibatch of some size: with replacement as a sequence, without as a subset."""
    kind = (
        itertools.product(range(EXAMPLES), repeat=size) if replaced else itertools.combinations(range(EXAMPLES), size)
    )
    return torch.tensor(list(kind))


def batch_gradient(losses, weights, chosen, reduce=torch.mean):
    return torch.func.grad(lambda w: reduce(losses(w, chosen)))(weights)


@claim("optim.sgd.unbiased")
@lie("a batch's losses are added and not averaged", reduce=torch.sum)
@lie("the last example may be left out", loose="there are no others", everyone=5)
def the_minibatch_gradient_is_unbiased(draw, reduce=torch.mean, everyone=6, optimizer=GradientDescent):
    """Every batch of one, two and three of six examples: the mean of one step from each, against that of descent."""
    *data, weights = examples(draw)
    losses = regression(*data)
    full = batch_gradient(losses, weights, torch.arange(EXAMPLES))
    steps = []
    for size, replaced in itertools.product((1, 2, 3), (True, False)):
        chosen = batches(size, replaced)
        chosen = chosen[(chosen < everyone).all(1)]

        def mean_losses(w, chosen=chosen):  # one row of weights for each batch
            return torch.vmap(lambda w, chosen: reduce(losses(w, chosen)))(w, chosen)

        start = weights.expand(len(chosen), 3)
        ends = descent_path(mean_losses, start, 1, lambda parameters: optimizer(parameters, lr=0.5))[-1]
        steps.append((ends - start).mean(0))
    return close(torch.stack(steps), (-0.5 * full).expand(6, 3), within=1e-12)


def without_replacement(size, less):
    """What is left of the variance where no example can come twice."""
    return (EXAMPLES - size) / (EXAMPLES - less)


def as_with_replacement(size, less):
    return 1.0


@claim("optim.sgd.variance")
@lie("a batch without replacement has the variance of one with it", left=as_with_replacement)
@lie("the factor without replacement is (s - B)/s", less=0.0)
@lie("the variance falls like the square of the batch", power=2.0)
@lie("the variance is the mean of the squares", minus=0.0)
def the_variance_of_the_minibatch_gradient(
    draw, left=without_replacement, less=1.0, power=1.0, minus=1.0, measure=gradient_noise_scale
):
    """The noise of the gradients of a tanh unit, measured over every batch of six examples, of each size."""
    inputs, targets, weights = examples(draw)
    losses = regression(inputs, targets)
    unit = torch.nn.Linear(3, 1, bias=False).double()
    unit.weight.data = weights[None]

    def loss(output, target):
        return (torch.tanh(output[:, 0]) - target).square().mean()

    each = torch.stack([batch_gradient(losses, weights, torch.tensor([k])) for k in range(EXAMPLES)])
    full = batch_gradient(losses, weights, torch.arange(EXAMPLES))
    variance = (each - full).square().sum(1).mean()
    found, formula = [], []
    for size, replaced in itertools.product(range(1, EXAMPLES + 1), (True, False)):
        if size > 3 and replaced:
            continue  # of four there are 1,296
        chosen = [(inputs[some], targets[some]) for some in batches(size, replaced)]
        chosen = chosen if len(chosen) > 1 else 2 * chosen  # the batch of all examples is the only one
        # The estimate is made for batches that are a sample; these are all that there are.
        found.append(measure(unit, loss, chosen).variance * (1 - 1 / len(chosen)) / size)
        formula.append(variance / size**power * (1.0 if replaced else left(size, less)))
    return all_of(
        close(variance, each.square().sum(1).mean() - minus * full @ full, within=1e-12),
        close(found, formula, within=1e-12),
    )


def mean_iterate(optimizer, h, start, noise, lr):
    """The mean of the iterates of noisy descent on the line, in one run for each row of noise (runs, steps)."""
    place = torch.full((len(noise),), start, dtype=torch.float64, requires_grad=True)
    chosen, total = optimizer([place], lr=1.0), torch.zeros(len(noise), dtype=torch.float64)
    for step in range(noise.shape[1]):
        chosen.param_groups[0]["lr"] = lr(step + 1)
        place.grad = slopes(h, place) + noise[:, step]
        chosen.step()
        total += place.detach()
    return total / noise.shape[1]


def one_over(step):
    return 1 / step


def kinked(x):
    return x**2 / 2 + torch.maximum(x, -3 * x)


def smooth(x):
    return x**2 / 2


@claim("optim.sgd.rates")
@lie("convex functions in general allow 1/t", general=1.0)
@lie("strongly convex and smooth functions allow 1/t²", strong=2.0)
@lie("the logarithm stays where the function is smooth", rough=smooth)
def averaged_iterates_converge_at_these_rates(draw, general=0.5, strong=1.0, rough=kinked, optimizer=GradientDescent):
    """|x| with steps like 1/√t; a parabola, whose excess is computed exactly; and a kink, which costs a logarithm."""
    counts, flat, round_, bent = (256, 512, 1024), [], [], []
    for steps in counts:
        lr = 3 / (4 * math.sqrt(steps))
        ends = mean_iterate(optimizer, torch.abs, 3.0, 0.1 * draw.normal(200, steps), lambda _, lr=lr: lr)
        flat.append(ends.abs().mean())
        # On a parabola the mean iterate is linear in the noise: one run for each step's gives its variance.
        shares = mean_iterate(optimizer, smooth, 0.0, torch.eye(steps, dtype=torch.float64), one_over)
        round_.append(shares.square().sum() / 2)
    for steps in (25, 100, 400):
        ends = mean_iterate(optimizer, rough, 3.0, draw.normal(8000, steps), one_over)
        bent.append(steps * rough(ends).mean())
    grown = torch.stack(bent).diff()  # with each factor 4
    return all_of(
        slope_is(counts, flat, -general, within=0.012),
        slope_is(counts, round_, -strong, within=0.012),
        # t times the excess grows like log t: by some 1.3 each time, with a standard error of 0.04.
        at_least(grown, 0.9),
        close(grown[1], grown[0], within=0.5),
    )
