"""Random labels and shuffled pixels: large networks fit both, and what they learn of them differs."""

import torch
from torch.nn import functional

from lemmata.convolution.lenet import LeNet5
from lemmata.data.registry import load
from lemmata.feedforward.mlp import MLP
from lemmata.judge import all_of, at_least, at_most, claim, lie

INPUTS, POINTS, MOST, LEARNT = 20, 200, 1000, 500


# --- Random labels ---


def large(inputs):
    return MLP(inputs, 2, (512,)).double()


def linear(inputs):
    """As many parameters as inputs, far fewer than examples."""
    return MLP(inputs, 2, ()).double()


def told_by_a_plane(draw, x):
    return (x[:, 0] > 0).long()


def at_random(draw, x):
    return draw.integers(0, 2, len(x))


def steps_to_fit(network, x, y):
    """Steps of Adam until all are right, or as many as there may be."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for step in range(1, MOST + 1):
        optimizer.zero_grad()
        output = network(x)
        if bool((output.argmax(1) == y).all()):
            return step
        functional.cross_entropy(output, y).backward()
        optimizer.step()
    return MOST


def right(network, x, y):
    with torch.no_grad():
        return (network(x).argmax(1) == y).double().mean()


# --- Shuffled pixels ---


def lenet():
    """With a place for its accuracies on what it learnt from and on the rest."""
    network = LeNet5(padding=2, activation="relu").double()
    network.register_buffer("accuracy", torch.zeros(2, dtype=torch.float64))
    return network


def shuffled_pixels(generator):
    return torch.randperm(784, generator=generator)


def pixels_in_place(generator):
    return torch.arange(784)


def clothing(generator, shuffled):
    """All small images of clothing in some order, their pixels as they are or all in one other order."""
    data = load("fashion")
    x, y = torch.cat([data.train.x, data.test.x]).double().flatten(1), torch.cat([data.train.y, data.test.y])
    order = torch.randperm(len(x), generator=generator)
    places = (shuffled_pixels if shuffled else pixels_in_place)(generator)
    return x[order][:, places].reshape(-1, 1, 28, 28), y[order]


def teach_clothing(network, generator, shuffled):
    x, y = clothing(generator, shuffled)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(20):
        for rows in torch.randperm(LEARNT, generator=generator).split(50):
            optimizer.zero_grad()
            functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    for k, part in enumerate((slice(LEARNT), slice(LEARNT, None))):
        network.accuracy[k] = right(network, x[part], y[part])


@claim("slt.randomisation")
@lie("a linear model fits random labels, too", network=linear)
@lie("what is fitted is known of new points, too", replaced=told_by_a_plane)
@lie("shuffled pixels cost a convolutional network nothing", pixels=pixels_in_place)
def large_networks_fit_anything(draw, network=large, replaced=at_random, pixels=shuffled_pixels):
    """A perceptron on true and on random labels; LeNet-5 on images of clothing and on the same with shuffled pixels."""
    x, new = draw.normal(POINTS, INPUTS), draw.normal(2000, INPUTS)
    found = []
    for labels in (told_by_a_plane, replaced):
        y, model = labels(draw, x), network(INPUTS)
        steps = steps_to_fit(model, x, y)
        found.append([steps, right(model, x, y), right(model, new, told_by_a_plane(draw, new))])
    (quick, fitted, true), (slow, memorised, chance) = found
    of_images = draw.trained(lenet, teach_clothing, shuffled=False).accuracy
    of_shuffled = draw.trained(lenet, teach_clothing, shuffled=pixels is shuffled_pixels).accuracy
    return all_of(
        at_least([fitted, memorised], 1.0),
        at_most(float(slow), 10.0 * quick),
        at_least([true, -chance], [0.8, -0.65]),
        at_least([*of_shuffled, of_images[1] - of_shuffled[1]], [0.4, 0.4, 0.02]),
    )
