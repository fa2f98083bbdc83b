"""DropConnect beside dropout: all masks of a small layer written out, and what the layers draw."""

import itertools

import torch

from lemmata.judge import ALPHA, all_of, claim, close, exactly, lie, mean_is
from lemmata.tricks.dropconnect import DropConnect
from lemmata.tricks.dropout import Dropout, dropout_ensemble

OUTPUTS, INPUTS = 2, 4


class MaskOfUnits(DropConnect):
    """Leaves out inputs, with all that they send."""

    def forward(self, x):
        dropped = torch.nn.functional.dropout(x, self.p, self.training)
        return torch.nn.functional.linear(dropped, self.weight, self.bias)


def of_weights(w, x, keep):
    """Probability and outputs of every network that masks of single weights make: 2⁸ of them."""
    masks = torch.tensor(list(itertools.product((0.0, 1.0), repeat=w.numel())), dtype=torch.float64)
    p = (masks * keep + (1 - masks) * (1 - keep)).prod(1)
    return p, (masks.view(-1, *w.shape) * w) @ x


def of_units(w, x, keep):
    """Those that masks of units make: 2⁴, by `dropout_ensemble`."""
    line = torch.nn.Linear(INPUTS, OUTPUTS, bias=False).double().requires_grad_(False)
    line.weight.copy_(w)
    found = dropout_ensemble(torch.nn.Sequential(Dropout(1 - keep, inverted=False), line), x[None])
    return found.probability, found.outputs[:, 0]


def _mask_moments(p, y):
    mean = p @ y
    return mean, ((y - mean) * p[:, None]).mT @ (y - mean)


@claim("reg.dropconnect")
@lie("masks of weights are masks of units: both have the same covariance", weights=of_units)
@lie("the outputs of dropout do not vary together", together=0.0)
@lie("a variance is that of a coin, π² and not π(1 - π)", spread=2.0)
@lie("a layer that leaves out units is DropConnect", layer=MaskOfUnits)
def masks_of_weights_leave_outputs_uncorrelated(draw, weights=of_weights, together=1.0, spread=1.0, layer=DropConnect):
    """Means, covariances and numbers of all masks, for a rare, an even and a usual mask; the layer's own outputs."""
    w, x = 0.5 + draw.uniform(OUTPUTS, INPUTS), 1 + draw.uniform(INPUTS)  # of one sign: what dropout does to both shows
    means, found, formula, numbers = [], [], [], []
    for keep in (0.2, 0.5, 0.6):
        coin = keep**spread * (1 - keep) ** (2 - spread)
        for ensemble, joint in ((weights, 0.0), (of_units, together)):
            p, y = ensemble(w, x, keep)
            mean, covariance = _mask_moments(p, y)
            means.append(mean - keep * w @ x)
            found.append(covariance)
            terms = coin * (w * x.square()) @ w.mT
            formula.append(terms.diag().diag() + joint * (terms - terms.diag().diag()))
            numbers.append(len(p))
    drawn = layer(INPUTS, OUTPUTS, p=0.4, bias=False).double().requires_grad_(False)
    drawn.weight.copy_(w)
    mean = w @ x

    def sample(n):
        return drawn(x.expand(n, INPUTS))

    def product(y):
        return (y - mean).prod(1)

    return all_of(
        close(torch.stack(means), 0.0, scale=10.0),
        close(torch.stack(found), torch.stack(formula), ulps=1000, scale=10.0),
        exactly(numbers, [2 ** (OUTPUTS * INPUTS), 2**INPUTS] * 3),
        mean_is(lambda y: y.sum(1), sample, mean.sum(), effect=0.1, alpha=ALPHA / 2),
        mean_is(product, sample, 0.0, effect=0.3, alpha=ALPHA / 2),  # of units it is 2/3 Σ w w x² > 0.6
        close(drawn.eval()(x), mean, ulps=1000, scale=10.0),
    )
