"""How long a step may be: the loss along its gradient, the largest step that does not raise it, the limit 2/β."""

import torch

from lemmata.foundations.analysis.claims.functions import spectrum
from lemmata.foundations.analysis.quadratic_functions import QuadraticFunction
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie, slope_is
from lemmata.optim.gradient_descent import GradientDescent
from lemmata.optim.gradient_flow import descent_path
from lemmata.optim.stepsizes import stability_limit, step_model


def stepped(optimizer, f, start, lr, steps=1):
    """The points that descent visits."""
    return descent_path(f, start, steps, lambda parameters: optimizer(parameters, lr=lr))


def model_of(f, w):
    w = w.detach().requires_grad_()
    return step_model(lambda: f(w), [w])


@claim("optim.stepsize.taylor_step")
@lie("the quadratic term has no one half", half=1.0)
@lie("the remainder is of second order", order=2.0)
def the_loss_along_its_gradient(draw, half=0.5, order=3.0, optimizer=GradientDescent):
    """Steps short and long on quadratics, bent up and down; and the remainder on eight networks of tanh units."""
    found, formula, sizes = [], [], []
    for values in ((1.0,), (-2.0, 0.0, 3.0), (1e-6, 1e6), (0.5, 1.0, 2.0, 4.0)):
        f, w = QuadraticFunction(spectrum(draw, *values), draw.normal(len(values))), draw.normal(len(values))
        model = model_of(f, w)
        for lr in (0.0, 1e-3 / values[-1], 1 / values[-1], 10 / values[-1]):
            found.append(f(stepped(optimizer, f, w, lr)[-1]))
            formula.append(model.loss - lr * model.slope + half * lr**2 * model.bend)
            sizes.append(abs(model.loss) + lr * model.slope + lr**2 * abs(model.bend) + values[-1])
    lengths, remainders = torch.logspace(-4.0, -3.0, 5, dtype=torch.float64), []
    for _ in range(8):
        inputs, target, w = draw.normal(6, 3), draw.normal(6), draw.unit(20)

        def network(w, inputs=inputs, target=target):
            return (torch.tanh(inputs @ w[:15].reshape(3, 5)) @ w[15:] - target).square().mean()

        model = model_of(network, w)
        values = torch.stack([network(stepped(optimizer, network, w, float(lr))[-1]) for lr in lengths])
        remainders.append(values - model.loss + lengths * model.slope - half * lengths**2 * model.bend)
    return all_of(
        close(torch.stack(found), formula, within=torch.tensor(sizes) * 1e-12),
        # Along one gradient the third derivative may vanish; the root mean square over eight networks does not.
        slope_is(lengths, torch.stack(remainders).square().mean(0).sqrt(), order, within=0.05),
    )


@claim("optim.stepsize.exact_ratio")
@lie("the loss rises above half of it", factor=1.0)
@lie("the whole of it is the best step", half=1.0)
def the_largest_step_along_the_gradient(draw, factor=2.0, half=0.5, optimizer=GradientDescent):
    """Random convex quadratics, of one dimension and of many, tiny and huge: just below, just above, and halfway."""
    below, above, best = [], [], []
    for n in (1, 2, 3, 10):
        for scale in (1e-6, 1.0, 1e6):
            values = (scale * 10 ** draw.uniform(n, low=-2.0)).tolist()
            f, w = QuadraticFunction(spectrum(draw, *values), scale * draw.normal(n)), draw.normal(n)
            model = model_of(f, w)
            largest = factor * model.slope / model.bend
            ends = [stepped(optimizer, f, w, share * largest)[-1] for share in (1 - 1e-6, 1 + 1e-6, half)]
            changes = [float((end - w) @ (f.matrix @ (end + w) / 2 + f.linear)) for end in ends]  # without cancelling
            below.append(changes[0] < 0)
            above.append(changes[1] > 0)
            # Where the step is best the new gradient is at a right angle to the old one.
            old, new = f.matrix @ w + f.linear, f.matrix @ ends[2] + f.linear
            best.append(old @ new / (old @ old))
    return all_of(always(below), always(above), close(torch.stack(best), torch.zeros(12).double(), within=1e-9))


@claim("optim.stepsize.two_over_beta")
@lie("steps up to 4/β converge", limit=4.0)
@lie("2/β itself converges", strict=False)
@lie("from zero descent ends at another solution", start=1.0)
def descent_converges_below_two_over_beta(draw, limit=2.0, strict=True, start=0.0, optimizer=GradientDescent):
    """The loss along random gradients; steps just below, at and above the limit; least squares of both shapes."""
    ratios, rest = [], []
    for values in ((0.2, 1.0, 5.0), (0.5, 0.5, 0.5), (0.0, 1e3, 2e3)):
        f, top = QuadraticFunction(spectrum(draw, *values)), values[-1]
        vectors = torch.cat([draw.normal(10, 3), f.eigenvectors[:, -1:].T])
        ratios += [model_of(f, vector).largest * top / limit for vector in vectors]
        place = draw.normal(3).requires_grad_()
        shipped = limit / 2 * stability_limit(lambda f=f, place=place: f(place), [place])
        paths = [stepped(optimizer, f, vectors[-1], share * shipped, steps=150) for share in (0.99, 1.0, 1.01)]
        rest.append(torch.stack([path[-1].norm() for path in paths]))
    rest = torch.stack(rest)  # what is left of a unit vector: (functions, steps)
    solutions, ends = [], []
    for rows, columns in ((20, 5), (5, 20)):
        data, target = draw.normal(rows, columns), draw.normal(rows)
        place = torch.full((columns,), start, dtype=torch.float64).requires_grad_()

        def loss(w, data=data, target=target):
            return (w @ data.T - target).square().sum(-1) / 2

        lr = 0.9 * stability_limit(lambda loss=loss, place=place: loss(place), [place])
        ends.append(stepped(optimizer, loss, place, lr, steps=300)[-1])
        solutions.append(torch.linalg.pinv(data) @ target)
    return all_of(
        at_least(ratios, 1.0, attained=True),
        at_most(rest[:, 0], 0.06),
        at_least(rest[:, 2], 18.0),
        close(rest[:, 1], 1.0 if strict else 0.0, within=1e-6),
        close(torch.cat(ends), torch.cat(solutions), within=1e-6),
    )
