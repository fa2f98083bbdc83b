"""Poisoned digits: wrong labels learnt by heart, and a backdoor that only a trigger opens."""

import torch
from torch.nn import functional

from lemmata.data.examples import Examples
from lemmata.data.registry import load
from lemmata.judge import all_of, claim, lie, reaches
from lemmata.robustness.claims.digit_networks import BATCH, conv_network, held_out_digits, standard_classifier
from lemmata.robustness.poisoning import Trigger, flip_labels, plant_backdoor

TARGET = 0


def learn_planted(network, generator, plant):
    """Fifteen epochs on digits of which a twentieth is poisoned: with the trigger, and with the target's label."""
    train = load("digits").train
    train = Examples(x=train.x[:, None], y=train.y)
    found = plant_backdoor(train, TARGET, 0.05, generator=generator)
    x = train.x if plant == "label alone" else found.examples.x
    y = train.y if plant == "trigger alone" else found.examples.y
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(15):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()


def by_nearest_neighbour(x, y, asked):
    """The label of the nearest training example: whoever learns by heart keeps every label that is given."""
    return y[torch.cdist(asked.flatten(1), x.flatten(1)).argmin(1)]


def right(found, y):
    return float((found == y).double().mean())


def own_labels(examples, part, classes, generator):
    """As many examples are chosen, and keep the labels that they have."""
    found = flip_labels(examples, part, classes, generator)
    return type(found)(examples, found.poisoned)


@claim("attack.poisoning")
@lie("examples with their own labels lower the test accuracy too", flip=own_labels)
@lie("the trigger needs no label", plant="trigger alone")
@lie("the labels need no trigger", plant="label alone")
@lie("any patch opens the backdoor", other=False)
def poisoned_training_data(draw, flip=flip_labels, plant="both", other=True):
    """Nearest neighbours with a quarter of wrong labels; a small network with a twentieth of triggered images."""
    train, (images, classes) = load("digits").train, held_out_digits(359)
    poisoned = flip(train, 0.25, 10, draw.generator).examples
    before = right(by_nearest_neighbour(train.x, train.y, images), classes)
    after = right(by_nearest_neighbour(poisoned.x, poisoned.y, images), classes)
    by_heart = right(by_nearest_neighbour(poisoned.x, poisoned.y, train.x), poisoned.y)

    network, trigger = draw.trained(conv_network, learn_planted, plant=plant), Trigger()
    clean = [right(model(images).argmax(1), classes) for model in (standard_classifier(draw), network)]
    seen = images[classes != TARGET]
    opened = right(network(trigger.stamp(seen)).argmax(1), TARGET)
    moved = trigger.stamp(seen.flip(-1)).flip(-1) if other else trigger.stamp(seen)  # at the left, or where it was
    return all_of(
        reaches(by_heart, 0.97, detail="wrong labels and right ones that are kept"),
        reaches(before - after, 0.15, detail="what a quarter of wrong labels costs on the test images"),
        reaches(clean[0] - clean[1], 0.03, at_most=True, detail="what the backdoor costs on clean images"),
        reaches(opened, 0.8, detail="images with the trigger that are taken for the target"),
        reaches(right(network(moved).argmax(1), TARGET), 0.4, at_most=True, detail="with a patch at another corner"),
    )
