"""What else can be learnt by the validation loss: strengths, step sizes, optimisers, operations."""

import torch
from scipy.optimize import minimize_scalar
from torch import nn

from lemmata.data.examples import Examples
from lemmata.judge import all_of, always, at_least, at_most, claim, close, lie
from lemmata.meta.architecture_search import Elementwise, MixedOperation, search_architecture
from lemmata.meta.bilevel import ridge_solution, solve_bilevel
from lemmata.meta.learned_optimizer import LearnedRates, unroll


def noisy_regression(draw, n=30, features=12):
    """Targets with as much noise as signal, so that some regularisation is best."""
    weights = draw.normal(features) / features**0.5
    x, y = draw.normal(2, n, features), torch.zeros(2, n, dtype=torch.float64)
    y = (x @ weights) + 0.8 * draw.normal(2, n)
    return (x[0], y[0]), (x[1], y[1])


@claim("meta.other_targets")
@lie("chosen by the training loss", chosen="train")
@lie("the strength itself rather than its logarithm", exponent=2.0)
def the_strength_that_validation_chooses(draw, chosen="validation", exponent=1.0, solve=solve_bilevel):
    """Ridge regression through its closed form, against a search without derivatives on the same losses."""
    train, validation = draw.until(
        lambda: noisy_regression(draw), lambda parts: -4 < searched(*parts)[0] < 1.5 and searched(*parts)[1] > 0.02
    )
    judged = validation if chosen == "validation" else train

    def loss(weights):
        return (judged[0] @ weights - judged[1]).square().mean()

    start = torch.tensor(-2.0, dtype=torch.float64)
    found = solve(
        lambda log_strength: ridge_solution(train[0], train[1], log_strength), loss, start, steps=600, lr=0.03
    )
    best, _ = searched(train, validation)
    return all_of(
        close(exponent * found.outer, torch.tensor(best, dtype=torch.float64), within=0.01),
        at_most(found.losses[-1], found.losses[0]),
    )


def searched(train, validation):
    """The logarithm of the best strength by golden sections, and how much better it is than a tiny one."""

    def loss(log_strength):
        weights = ridge_solution(train[0], train[1], torch.tensor(log_strength, dtype=torch.float64))
        return float((validation[0] @ weights - validation[1]).square().mean())

    found = minimize_scalar(loss, bounds=(-12.0, 6.0), method="bounded", options={"xatol": 1e-6})
    return float(found["x"]), loss(-12.0) - float(found["fun"])  # type: ignore[index]


# --- Learned optimisers ---


def bowls(draw, curvature, count=200):
    """Quadratic problems of one spectrum in random places, as one batch."""
    return 3 * draw.normal(count, len(curvature))


def best_of_descent(curvature, start, steps):
    """The mean final loss of gradient descent with its best step size, from a fine grid."""
    rates = torch.logspace(-3, 0.5, 400, dtype=torch.float64) / curvature.max()
    left = (1 - rates[:, None] * curvature) ** (2 * steps)  # (rates, d)
    return ((curvature / 2 * left)[:, None] * start.square()).sum(2).mean(1).min()


def teach(rates, generator, curvature, steps, updates=300):
    """Lower the sum of the losses on the way, over problems drawn anew at each update."""
    bent = torch.tensor(curvature, dtype=torch.float64)
    outer = torch.optim.Adam(rates.parameters(), lr=0.05)
    for _ in range(updates):
        start = 3 * torch.randn(32, len(bent), dtype=torch.float64, generator=generator)
        outer.zero_grad()
        _, losses = unroll(rates, lambda theta: (bent * theta.square()).sum(1) / 2, start, steps)
        losses[1:].sum(0).mean().backward()
        outer.step()


def untaught(size):
    return LearnedRates(size, lr=0.05).double()


SPECTRUM = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2)


@claim("meta.learned_optimiser")
@lie("as good on another spectrum", family="shifted")
@lie("plain descent is beaten by a hundred", factor=0.0)
def good_where_it_was_taught_and_not_elsewhere(draw, family="taught", factor=0.5, learned=untaught):
    """Step sizes learnt on bowls of one spectrum, on new bowls of it and of the spectrum turned round."""
    steps = 8
    optimizer = draw.trained(learned, teach, size=len(SPECTRUM), curvature=SPECTRUM, steps=steps)
    taught = torch.tensor(SPECTRUM, dtype=torch.float64)
    start = bowls(draw, taught)

    def final(curvature):
        _, losses = unroll(optimizer, lambda theta: (curvature * theta.square()).sum(1) / 2, start, steps)
        return losses[-1].mean().detach()

    elsewhere = taught.flip(0)
    home = taught if family == "taught" else elsewhere
    return all_of(
        at_most(final(home), factor * best_of_descent(home, start, steps)),
        at_least(final(elsewhere), best_of_descent(elsewhere, start, steps)),
    )


# --- Architectures ---


class Table(nn.Module):
    """Remembers a value for each of its keys, and says zero to all else: what memorises."""

    keys: torch.Tensor

    def __init__(self, keys):
        super().__init__()
        self.register_buffer("keys", keys)
        self.values = nn.Parameter(torch.zeros_like(keys))

    def forward(self, x):
        same = (x[:, None, 0] == self.keys[None, :, 0]).double()  # (batch, keys)
        return same @ self.values


@claim("meta.nas")
@lie("by the training loss", by="train")
@lie("another operation than the one that made the data", made_by="tanh")
def the_operation_that_made_the_data(draw, by="validation", made_by="same", search=search_architecture):
    """Each of four operations makes data with noise; the mixture has all of them, and a table of the training set."""
    names = ("identity", "relu", "sin", "square")
    found, mixtures = [], []
    for name in names:
        x = 3 * draw.normal(2, 40, 1)
        y = Elementwise(name)(x) + 0.5 * draw.normal(2, 40, 1)
        train, validation = Examples(x=x[0], y=y[0]), Examples(x=x[1], y=y[1])
        candidates = {each: Elementwise(each) for each in names} | {"table": Table(x[0])}
        mixed = MixedOperation(candidates, dtype=torch.float64)
        judged = validation if by == "validation" else train
        found.append(search(mixed, train, judged)[""] == (name if made_by == "same" else made_by))
        with torch.no_grad():
            mixed.alpha.copy_(torch.tensor([0.0, 0.0, 60.0, 0.0, 0.0]))
        mixtures.append((mixed(x[1]).detach(), x[1].sin()))
    return all_of(always(found), *(close(ours, alone, scale=1.0) for ours, alone in mixtures))
