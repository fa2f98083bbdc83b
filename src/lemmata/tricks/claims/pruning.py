"""Lottery tickets: which weights are pruned, that zeros stay, and how fast a ticket learns beside what is none."""

import copy

import torch
from torch.nn import functional

from lemmata.data.registry import load
from lemmata.judge import all_of, at_least, claim, exactly, lie, reaches
from lemmata.tricks.pruned_mlp import PrunedMLP
from lemmata.tricks.pruning import apply_masks, lottery_ticket, masks_of, prune, remove_masks, shuffled_masks

FRACTION, ROUNDS, SHORT = 0.3, 8, 30


def digits(part="train"):
    data = load("digits")
    mean = data.train.x.flatten(1).float().mean(0)
    return (data.train if part == "train" else data.test).x.flatten(1).float() - mean, getattr(data, part).y


def network():
    return PrunedMLP(64, 10, widths=(200, 100))


def learn(model, generator, steps=300):
    """Adam with decaying weights, which would move a zero if it could be moved."""
    x, y = digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(steps):
        batch = torch.randint(len(x), (60,), generator=generator)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
    return model


def search(model, generator):
    """Eight rounds, each of which leaves seven weights in ten of every layer."""
    lottery_ticket(model, lambda each: learn(each, generator), FRACTION, ROUNDS, scope="layer")


def itself(ticket, generator):
    return ticket


def fresh_values(ticket, generator):
    return apply_masks(network(), masks_of(ticket))


def random_places(ticket, generator):
    return apply_masks(network(), shuffled_masks(masks_of(ticket), generator))


def all_weights(ticket, generator):
    return remove_masks(ticket, zeros=False)


def _trained_accuracy(draw, ticket, start):
    """What it starts from, trained for thirty steps, six times; and how many of the test digits it knows then."""
    models = [learn(start(copy.deepcopy(ticket), draw.generator), draw.generator, SHORT) for _ in range(6)]
    x, y = digits("test")
    with torch.no_grad():
        return models, float(torch.stack([(each(x).argmax(1) == y).double().mean() for each in models]).mean())


def _leaves_seven_in_ten(draw, by):
    """Magnitudes of what goes against what stays, layer by layer and over all; and how many stay after two rounds."""
    gone, left, counts = [], [], []
    for scope in ("layer", "global"):
        model = prune(network().double(), FRACTION, scope=scope, by=by)
        weights = [layer.get_parameter("parametrizations.weight.original").detach() for layer in model.layers]
        masks = list(masks_of(model).values())
        if scope == "global":
            weights, masks = ([torch.cat([each.flatten() for each in part])] for part in (weights, masks))
        gone += [weight[~mask].abs().max() for weight, mask in zip(weights, masks, strict=True)]
        left += [weight[mask].abs().min() for weight, mask in zip(weights, masks, strict=True)]
        counts.append(sum(int(mask.sum()) for mask in masks_of(prune(model, FRACTION, scope=scope)).values()))
    return gone, left, counts


@claim("prune.lottery_ticket")
@lie("it is the mask that counts: fresh values learn as fast", start=fresh_values)
@lie("any weights do, if they are as many", start=random_places)
@lie("weights are removed by chance", by="random")
def tickets_learn_as_fast_as_all_weights(draw, start=itself, by="magnitude"):
    """Which weights are pruned; then digits: one weight in seventeen, trained for as few steps as all of them."""
    gone, left, counts = _leaves_seven_in_ten(draw, by)
    sizes = [12_800, 20_000, 1_000]
    expected = [sum(n - round(0.3 * n) for n in (m - round(0.3 * m) for m in ms)) for ms in (sizes, [sum(sizes)])]
    exact = all_of(at_least(torch.stack(left), torch.stack(gone)), exactly(counts, expected))
    if not exact.holds:
        return exact  # decided without training
    ticket = draw.trained(network, search)
    models, accuracy = _trained_accuracy(draw, ticket, start)
    still = [layer.weight[~mask] for layer, mask in zip(models[0].layers, masks_of(ticket).values(), strict=True)]
    others = {other: _trained_accuracy(draw, ticket, other)[1] for other in (all_weights, fresh_values, random_places)}
    words = "of the test digits after thirty steps, with 5.8 % of the weights"
    return all_of(
        exact,
        exactly(int(torch.cat(still).count_nonzero()) if start is itself else 0, 0, detail="zeros that moved"),
        reaches(accuracy, others[all_weights] - 0.1, detail=f"{words}; with all weights, less ten points"),
        reaches(accuracy, others[fresh_values] + 0.05, detail=f"{words}; fresh values, five points more"),
        reaches(accuracy, others[random_places] + 0.2, detail=f"{words}; random places, twenty points more"),
    )
