"""What deleting hidden units costs a network that was trained with dropout, and one that was not."""

import torch
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, claim, lie, reaches

UNITS = 128
WEIGHT_DECAY = 0.3  # of AdamW; stronger ones cost accuracy


def digits(part):
    data = load("digits")
    mean = data.train.x.flatten(1).float().mean(0)
    return getattr(data, part).x.flatten(1).float() - mean, getattr(data, part).y


def network(dropout):
    return MLP(64, 10, widths=(UNITS,), dropout=dropout)


def learn_digits(model, generator, weight_decay):
    x, y = digits("train")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=weight_decay)
    for _ in range(600):
        batch = torch.randint(len(x), (64,), generator=generator)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()


KINDS = {"dropout": (0.5, 0.0), "weight decay": (0.0, WEIGHT_DECAY), "nothing": (0.0, 0.0)}


def _without_units(draw, kind, choices):
    """Accuracy with all units; with those that are left of them, in the mean over the choices."""
    dropout, weight_decay = KINDS[kind]
    model = draw.trained(network, learn_digits, dropout=dropout, weight_decay=weight_decay)
    x, y = digits("test")
    with torch.no_grad():
        hidden = model.activations(x)[1]  # (examples, units)

        def accuracy(scale):
            return float((model.layers[1](hidden * scale).argmax(1) == y).double().mean())

        few = sum(accuracy(4.0 * kept) for kept in choices) / len(choices)
        return accuracy(1.0), few


@claim("reg.dropout.coadaptation")
@lie("weight decay does the same", kind="weight decay")
@lie("units depend no more on one another without it", kind="nothing")
def networks_with_dropout_lose_less_without_units(draw, kind="dropout"):
    """Digits: 128 hidden units of which 32 are left, rescaled, in the mean over forty choices."""
    choices = [torch.randperm(UNITS, generator=draw.generator) < UNITS // 4 for _ in range(40)]  # the same for all
    clean, few = _without_units(draw, kind, choices)
    others = [_without_units(draw, other, choices) for other in ("nothing", "weight decay")]
    return all_of(
        *(reaches(clean, other[0] - 0.02, detail="accuracy with all units, against another's") for other in others),
        reaches(
            few, others[0][1] + 0.025, detail="accuracy with a quarter of the units, 2.5 points above plain training"
        ),
        reaches(few, others[1][1] + 0.015, detail="and 1.5 points above weight decay"),
    )
