"""Early stopping: when it stops and what it returns, and the weight decay that it is like."""

import sympy
import torch
from torch import nn

from lemmata.judge import Domain, Figure, Line, all_of, claim, close, everywhere, lie, reaches, symbolic
from lemmata.tricks.early_stopping import EarlyStopping, descent_shrinkage, matching_steps
from lemmata.tricks.weight_decay import shrinkage


class NeverReset(EarlyStopping):
    """Counts all checks without improvement, and not those since the last one."""

    def update(self, score, model=None):
        self.missed = getattr(self, "missed", 0) + (not self.improves(float(score)))
        super().update(score, model)
        return self.missed >= self.patience


class OneMore(EarlyStopping):
    """Waits for one check more."""

    def update(self, score, model=None):
        super().update(score, model)
        return self.checks - 1 - self.best_check > self.patience


class LastWeights(EarlyStopping):
    """Returns the weights of the last check."""

    def restore(self, model):
        pass


def _stops_where_it_should(stopping, improvements):
    """Errors that fall where the bit says so, and else stay or rise, against the first p bits 0 in a row."""
    for patience in (1, 2, 3):
        rule, best, history = stopping(patience), 0.0, "1"  # the first check is always the best so far
        found = [rule.update(best)]
        for number, improved in enumerate(improvements):
            best -= improved
            found.append(rule.update(best if improved else best + number % 2))
            history += str(int(improved))
        end = history.find("0" * patience)
        if (found.index(True) if True in found else -1) != (end + patience - 1 if end >= 0 else -1):
            return False
    return True


def _stopping_races(draw, stopping, count=100, inputs=60, points=40, noise=4.0, checks=60):
    """How often the weights that are returned are no worse than the last ones: least squares with more weights than
    examples, gradient descent from 0, an error on as many other examples after every tenth step."""
    scale = torch.arange(1, inputs + 1, dtype=torch.float64) ** -0.5
    x, held_out = (draw.normal(count, points, inputs) * scale for _ in range(2))
    teacher = draw.unit(count, inputs, 1) * 3
    y, wanted = (data @ teacher + noise * draw.normal(count, points, 1) for data in (x, held_out))
    lr = 1 / torch.linalg.matrix_norm(x, 2).square()[:, None, None]
    w, path, errors = torch.zeros_like(teacher), [], []
    for step in range(10 * checks):
        w = w - lr * x.mT @ (x @ w - y)
        if step % 10 == 9:
            path.append(w)
            errors.append((held_out @ w - wanted).square().mean((1, 2)))
    better = 0
    for race in range(count):
        model, rule = nn.Linear(inputs, 1, bias=False, dtype=torch.float64).requires_grad_(False), stopping(5)
        for weights, error in zip(path, errors, strict=True):
            model.weight.copy_(weights[race].T)
            if rule.update(error[race], model):
                break
        rule.restore(model)
        returned, last = (((v - teacher[race].T) * scale).norm() for v in (model.weight, path[-1][race].T))
        better += bool(returned <= last)
    return better


@claim("reg.early_stopping")
@lie("the count is never set back to 0", stopping=NeverReset)
@lie("it stops one check later", stopping=OneMore)
@lie("the last weights are returned", kept=LastWeights)
def early_stopping_returns_the_best_weights(draw, stopping=EarlyStopping, kept=EarlyStopping):
    """All 1,024 courses of ten checks, with patience 1, 2 and 3; and a hundred noisy regressions, whose returned
    weights are compared with the last."""
    rule, model, errors = kept(patience=3), nn.Linear(1, 1), draw.uniform(40)
    for number, error in enumerate(errors):
        nn.init.constant_(model.weight, number)
        if rule.update(error, model):
            break
    rule.restore(model)
    told = all_of(
        everywhere(Domain.bits(10), lambda bits: _stops_where_it_should(stopping, bits)),
        close(errors[int(model.weight)], errors[: rule.checks].min(), ulps=0),
    )
    if not told.holds:
        return told  # decided without training
    return all_of(
        told,
        reaches(_stopping_races(draw, kept), 95, detail="of 100 regressions have no smaller error in the end"),
    )


@claim("reg.early_stopping.equivalence")
@lie("t ≈ η/μ", printed="003/1", power=1.0)
@lie("gradient descent leaves λ/(λ + ημ)", rate=1.0)
def early_stopping_is_like_weight_decay(draw, power=-1.0, rate=0.0, steps=matching_steps):
    """Gradient descent on a quadratic, the time at which both factors agree, and its limit for flat directions."""
    lr, mu = 0.05, 0.1
    values = torch.cat([torch.tensor([1e-9, 1e-3]).double(), draw.uniform(6, low=0.01, high=19.0)])
    w, target = torch.zeros(8).double(), 1 + draw.uniform(8)
    for _ in range(40):
        w = w - lr * values * (w - target)
    t = steps(values, lr, mu)
    same = torch.stack([descent_shrinkage(v, lr, float(n)) for v, n in zip(values, t, strict=True)])
    flat, eta, decay = sympy.symbols("lambda eta mu", positive=True)
    exact = sympy.log(decay / (flat + decay)) / sympy.log(1 - eta * flat)
    times = torch.arange(0, 601, 5)
    mode = torch.tensor([0.02]).double()
    figure = Figure(
        "What is left of a flat direction, λ = 0.02", "steps of gradient descent", "fraction of the minimum",
        [
            Line(times, [float(descent_shrinkage(mode, lr, int(n))) for n in times], "gradient descent"),
            Line(times[1:], [float(shrinkage(mode, lr**power / int(n))) for n in times[1:]], "weight decay for t"),
        ],
    )  # fmt: skip
    return all_of(
        close(descent_shrinkage(values, lr, 40), w / target, ulps=1000),
        close(same, shrinkage(values, mu * lr**rate), ulps=1e5),  # so many digits of t are left for λ = 1e-9
        symbolic(sympy.limit(exact, flat, 0), 1 / (eta * decay)),
        close(t[0] * lr, lr ** (power + 1) / mu, within=1e-6 / mu),
    ).showing(figure)
